//! A step in JSON: pieces that are no text, numbers that JSON cannot hold.

use super::*;
use crate::tests::output;

#[test]
fn a_piece_is_text_or_hexadecimal_bytes() {
    check_piece(b" word", r#"" word""#, r#"" word""#);
    check_piece(b"", r#""""#, r#""""#);
    check_piece("é\n\"".as_bytes(), r#""é\n\"""#, r#""é\n\"""#);
    check_piece(&[0xf0, 0x9f], r#"{"hex":"f09f"}"#, r#""\xf0\x9f""#);
    check_piece(b"a\xffb", r#"{"hex":"61ff62"}"#, r#""a\xffb""#);
}

fn check_piece(bytes: &[u8], json: &str, quoted: &str) {
    let piece = Piece(bytes.to_vec());
    assert_eq!(serde_json::to_string(&piece).unwrap(), json);
    assert_eq!(serde_json::from_str::<Piece>(json).unwrap(), piece);
    assert_eq!(piece.quoted(), quoted);
}

#[test]
fn bytes_that_are_no_hexadecimal_pairs_are_refused() {
    for json in [r#"{"hex":"f"}"#, r#"{"hex":"f🦀"}"#, r#"{"hex":"FF"}"#, "7", "{}", "null"] {
        assert!(serde_json::from_str::<Piece>(json).is_err(), "{json}");
    }
    assert!(serde_json::from_str::<Piece>(r#"{"hex":"ff","more":1}"#).is_err());
}

#[test]
fn a_number_that_json_cannot_hold_is_refused_with_its_step() {
    let nan = f64::NAN;
    check_number(|choice| choice.logprob = nan, "step 3 has NaN as its `logprob`");
    check_number(|choice| choice.logprob = f64::INFINITY, "step 3 has inf as its `logprob`");
    check_number(|choice| choice.probability = nan, "step 3 has NaN as its `probability`");
    check_number(|choice| choice.entropy = -f64::INFINITY, "step 3 has -inf as its `entropy`");
    check_number(
        |choice| choice.runner_up = Some((TokenId(1), nan)),
        "step 3 has NaN as its `runner_up`",
    );
}

fn check_number(change: impl Fn(&mut Choice), want: &str) {
    let mut output = output(3);
    change(&mut output.choice);
    let error = Step::from_output(&output, b"", Shown::Visible).unwrap_err();
    assert_eq!(error.to_string(), format!("{want}, which a record cannot hold"));
}

#[test]
fn a_token_that_the_raw_logits_rule_out_has_no_logprob() {
    let mut output = output(3);
    output.choice.logprob = f64::NEG_INFINITY;
    let step = Step::from_output(&output, b"", Shown::Visible).unwrap();
    assert_eq!(step.reasons.logprob, None);
    let json = serde_json::to_string(&step).unwrap();
    assert!(json.contains(r#""logprob":null"#), "{json}");
    assert_eq!(serde_json::from_str::<Step>(&json).unwrap(), step);
}

#[test]
fn every_cause_has_a_name() {
    for (cause, name) in
        [(Cause::Chosen, "chosen"), (Cause::Forced, "forced"), (Cause::Prefilled, "prefilled")]
    {
        let json = serde_json::to_string(&StepCause::from(cause)).unwrap();
        assert_eq!(json, format!("\"{name}\""));
    }
}

/// The bits of any finite number, and of those where a parser that rounds twice goes wrong.
#[test]
fn numbers_come_back_bit_for_bit() {
    let mut step = Step::from_output(&output(0), b"", Shown::Visible).unwrap();
    let edges = [0.0, -0.0, 5e-324, f64::MIN_POSITIVE, f64::MAX, 0.1, 1e23, 9007199254740993.0];
    let random = crate::tests::random_numbers(1).take(20_000).map(f64::from_bits);
    let mut checked = 0;
    for value in edges.into_iter().chain(random).filter(|value| value.is_finite()) {
        step.reasons.logprob = Some(value);
        let json = serde_json::to_string(&step.reasons).unwrap();
        let back: Reasons = serde_json::from_str(&json).unwrap();
        assert_eq!(back.logprob.map(f64::to_bits), Some(value.to_bits()), "{json}");
        checked += 1;
    }
    assert!(checked > 10_000, "only {checked} numbers were finite");
}
