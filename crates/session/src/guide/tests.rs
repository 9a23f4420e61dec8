//! A form begins behind a thought, and goes on behind a prefill.

use causeway_policy::{LaidBy, THOUGHT_BUDGET};

use super::*;
use crate::forms::Forms;
use crate::toy;

const SCHEMA: &str = r#"{"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"],"additionalProperties":false}"#;

fn guide_of(side: &Arc<Text>, toml: &str, prefill: &str) -> Result<Box<dyn Guide>, SessionError> {
    let (policy, start, rules) = toy::begun(side, toml, prefill)?;
    let forms = Forms::new(Arc::clone(side), &toy::about());
    let form = forms.plan(&policy.file().constraints.form)?;
    let prefilled = start.request.effective.prefilled_tokens;
    let guide = guide(&policy, &rules, form.as_ref(), &prefilled, side)?;
    Ok(guide.expect("the policy has a form"))
}

fn schema(more: &str) -> String {
    format!("[constraints]\nschema = '{SCHEMA}'\n{more}")
}

/// The answer of a reader who wants `wanted`; what is laid stands in brackets.
fn written(toml: &str, prefill: &str, wanted: &str) -> (String, bool) {
    let side = Arc::new(toy::text());
    let mut guide = guide_of(&side, toml, prefill).unwrap();
    let mut wanted = toy::tokens(&side, wanted).into_iter();
    let mut found = String::new();
    let piece = |token| String::from_utf8_lossy(side.tokenizer.piece(token).unwrap()).into_owned();
    while !guide.is_complete() {
        let token = if let Some(Laid { token, by }) = guide.laid() {
            let brackets = if by == LaidBy::Field(THOUGHT_BUDGET) { "()" } else { "[]" };
            found.push_str(&brackets[..1]);
            found.push_str(&piece(token));
            found.push_str(&brackets[1..]);
            token
        } else {
            let Some(token) = wanted.next() else { break };
            guide.prepare();
            let allowed = guide.mask().unwrap().is_none_or(|mask| mask.allows(token));
            assert!(allowed, "{found} then {}", piece(token));
            found.push_str(&piece(token));
            token
        };
        guide.read(token);
    }
    (found, guide.is_complete())
}

/// Each character in brackets.
fn laid(text: &str) -> String {
    text.chars().map(|c| format!("[{c}]")).collect()
}

#[test]
fn what_a_schema_leaves_no_choice_about_is_laid() {
    let (found, is_complete) = written(&schema(""), "", "y");
    assert_eq!(found, format!("{}y{}", laid(r#"{"a":""#), laid(r#""}"#)));
    assert!(is_complete);
}

#[test]
fn a_form_goes_on_behind_a_prefill() {
    let (found, is_complete) = written(&schema(""), r#"{"a":"#, "x");
    assert_eq!(found, format!("{}x{}", laid("\""), laid(r#""}"#)));
    assert!(is_complete);
}

#[test]
fn a_prefill_that_breaks_the_form_or_fills_it_is_refused() {
    let side = Arc::new(toy::text());
    let refused = |prefill: &str, want: &str| {
        let error = guide_of(&side, &schema(""), prefill).unwrap_err();
        assert!(error.is_callers_mistake());
        assert!(error.to_string().contains(want), "{error}");
    };
    refused(r#"{"b":"#, "breaks what `constraints.schema` asks for, at its token 2");
    refused(r#"{"a":"x"}"#, "nothing is left to write");
}

#[test]
fn a_thought_is_free_and_the_form_follows_it() {
    let (found, is_complete) = written(&schema(MARKERS), "<t>", "so_{it}_is</t>x");
    assert_eq!(found, format!("so_{{it}}_is</t>{}x{}", laid(r#"{"a":""#), laid(r#""}"#)));
    assert!(is_complete);
    let (found, _) = written(&schema(&format!("{MARKERS}tokens_max = 2\n")), "<t>", "soy");
    assert_eq!(found, format!("so(<)(/)(t)(>){}y{}", laid(r#"{"a":""#), laid(r#""}"#)));
}

const MARKERS: &str = "[reasoning]\nopen = \"<t>\"\nclose = \"</t>\"\n";

#[test]
fn a_marker_of_several_tokens_opens_a_thought() {
    let json = format!("{}x{}", laid(r#"{"a":""#), laid(r#""}"#));
    // No JSON begins like the marker: its first token is chosen, and the rest is laid.
    let (found, is_complete) = written(&schema(MARKERS), "", "<so</t>x");
    assert_eq!((found, is_complete), (format!("<[t][>]so</t>{json}"), true));
    let budget = format!("{MARKERS}tokens_max = 1\n");
    let (found, _) = written(&schema(&budget), "", "<sx");
    assert_eq!(found, format!("<[t][>]s(<)(/)(t)(>){json}"));
    // Whoever does not think is held to the form, whose one way to begin is a choice here.
    let (found, is_complete) = written(&schema(MARKERS), "", "{x");
    assert_eq!((found, is_complete), (format!("{{{}x{}", laid("\"a\":\""), laid("\"}")), true));
    // There is one thought at the beginning, and none behind it.
    let (found, _) = written(&schema(MARKERS), "", "<</t>x");
    assert_eq!(found, format!("<[t][>]</t>{json}"));
}

#[test]
fn what_begins_like_a_marker_may_be_the_answer() {
    let choice = format!("[constraints]\nchoice = [\"<tag>\", \"<a>\"]\n{MARKERS}");
    let check = |wanted: &str, want: &str| {
        let (found, is_complete) = written(&choice, "", wanted);
        assert_eq!((found.as_str(), is_complete), (want, true), "{wanted}");
    };
    check("<ta", "<ta[g][>]");
    check("<a", "<a[>]");
    check("<t>so</t>t", "<t>so</t>[<]t[a][g][>]");
}

#[test]
fn an_answer_cannot_end_inside_a_thought() {
    let side = Arc::new(toy::text());
    let mut guide = guide_of(&side, &schema(MARKERS), "<t>").unwrap();
    let mask = guide.mask().unwrap().unwrap();
    assert!(!mask.allows(TokenId(1)) && mask.allows(TokenId(2)));
}

#[test]
fn a_copy_says_the_same() {
    let side = Arc::new(toy::text());
    let mut guide = guide_of(&side, &schema(""), "").unwrap();
    for _ in 0..3 {
        let mut copy = guide.boxed();
        assert_eq!(guide.laid(), copy.laid());
        let laid = guide.laid().unwrap();
        guide.read(laid.token);
    }
}
