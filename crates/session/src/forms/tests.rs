//! Forms are compiled once, and refused with their place.

use super::*;
use crate::toy;

fn forms() -> Forms {
    Forms::new(Arc::new(toy::text()), &toy::about())
}

#[test]
fn a_form_is_compiled_once() {
    let forms = forms();
    let form = Form { regex: Some("[ab]{3}".to_owned()), ..Form::default() };
    let first = forms.plan(&form).unwrap().unwrap();
    let again = forms.plan(&form).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first.plan, &again.plan));
    assert_eq!(first.field, "constraints.regex");
    assert!(forms.plan(&Form::default()).unwrap().is_none());
}

#[test]
fn no_more_plans_are_kept_than_the_limit() {
    let forms = forms();
    for count in 1..=PLANS_MAX + 3 {
        let form = Form { regex: Some(format!("a{{{count}}}")), ..Form::default() };
        forms.plan(&form).unwrap();
    }
    assert_eq!(forms.plans.lock().unwrap().len(), PLANS_MAX);
}

#[test]
fn a_form_that_is_refused_names_its_field_and_place() {
    let forms = forms();
    let schema = |text: &str| Form { schema: Some(text.to_owned()), ..Form::default() };
    let error = forms.plan(&schema(r#"{"type":"object","properties":{"a":{"not":{}}}}"#));
    let error = error.unwrap_err();
    assert_eq!(error.path(), Some("#/properties/a/not"), "{error}");
    assert!(error.to_string().starts_with("`constraints.schema`: "), "{error}");
    let error = forms.plan(&schema("{")).unwrap_err();
    assert!(error.to_string().contains("no JSON"), "{error}");
    let grammar = Form { grammar: Some("start: nothing".to_owned()), ..Form::default() };
    assert_eq!(forms.plan(&grammar).unwrap_err().field(), Some("constraints.grammar"));
}
