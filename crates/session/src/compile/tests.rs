//! Which policy fits which model, and the sentence for each that does not.

use super::*;
use crate::toy;

fn compiled(toml: &str, about: &About) -> Result<Policy, SessionError> {
    let resolve = |name: &str| (name == "nickname").then(|| about.path.clone());
    compile(&toy::file(toml), about, &resolve)
}

fn check_refused(toml: &str, about: &About, want: &str) {
    let error = compiled(toml, about).expect_err(toml);
    assert_eq!(error.to_string(), want, "{toml}");
    assert!(error.is_callers_mistake(), "{toml}");
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

#[test]
fn a_pin_names_the_model_or_is_refused() {
    let about = toy::about();
    for pin in [
        "name = \"toy\"".to_owned(),
        "name = \"nickname\"".to_owned(),
        format!("sha256 = \"{}\"", hex(1)),
        format!("tokenizer_sha256 = \"{}\"", hex(2)),
    ] {
        assert!(compiled(&format!("[model]\n{pin}"), &about).is_ok(), "{pin}");
    }
    check_refused(
        "[model]\nname = \"other\"",
        &about,
        "the policy is for model `other`, not for `toy`",
    );
    for (field, what, own) in [("sha256", "weights", 1), ("tokenizer_sha256", "tokenizer", 2)] {
        check_refused(
            &format!("[model]\n{field} = \"{}\"", hex(9)),
            &about,
            &format!("the policy is for {what} {}, `toy` has {}", hex(9), hex(own)),
        );
    }
    let mut bare = about;
    bare.model.tokenizer_sha256 = None;
    check_refused(
        &format!("[model]\ntokenizer_sha256 = \"{}\"", hex(2)),
        &bare,
        &format!("the policy is for tokenizer {}, `toy` has none", hex(2)),
    );
}

#[test]
fn what_no_run_would_heed_is_refused() {
    let about = toy::about();
    check_refused(
        "[account]\nlevel = \"tokens\"",
        &about,
        "the policy sets `account.level`, which is not supported yet",
    );
    let one = "the policy sets one of `reasoning.open` and `reasoning.close`, but needs both";
    check_refused("[reasoning]\nopen = \"<t>\"", &about, one);
    check_refused("[reasoning]\nclose = \"</t>\"", &about, one);
    check_refused(
        "[constraints]\nallowed_tokens = [260]",
        &about,
        "`constraints.allowed_tokens` names token 260, but the vocabulary has 260 tokens",
    );
    let without_text = About { has_text: false, ..about };
    for (toml, field) in [
        ("[stop]\nstrings = [\"x\"]", "stop.strings"),
        ("[reasoning]\nopen = \"<t>\"\nclose = \"</t>\"", "reasoning.open"),
    ] {
        let want =
            format!("the policy sets `{field}`, but `toy` has no tokenizer.json to read text with");
        check_refused(toml, &without_text, &want);
    }
}
