//! Every stop reason in its JSON form, there and back.

use super::*;

#[test]
fn every_stop_reason_has_its_numbers() {
    let after_step = 4;
    let cancelled = |by| StopReason::Cancelled { by, after_step };
    check(&StopReason::Eos { token: TokenId(2) }, r#"{"reason":"eos","token":2}"#, "eos (token 2)");
    check(
        &StopReason::StopToken { token: TokenId(7) },
        r#"{"reason":"stop_token","token":7}"#,
        "stop_token (token 7)",
    );
    check(
        &StopReason::StopString { string: "\n\n".to_owned() },
        r#"{"reason":"stop_string","string":"\n\n"}"#,
        r#"stop_string ("\n\n")"#,
    );
    check(
        &StopReason::MaxTokens { tokens_max: 64 },
        r#"{"reason":"max_tokens","tokens_max":64}"#,
        "max_tokens (64)",
    );
    check(
        &StopReason::ContextFull { context_len: 2048 },
        r#"{"reason":"context_full","context_len":2048}"#,
        "context_full (2048)",
    );
    check(&StopReason::SchemaComplete, r#"{"reason":"schema_complete"}"#, "schema_complete");
    check(
        &cancelled(Canceller::Client),
        r#"{"reason":"cancelled","by":"client","after_step":4}"#,
        "cancelled (by client, after 4 steps)",
    );
    check(
        &cancelled(Canceller::Disconnect),
        r#"{"reason":"cancelled","by":"disconnect","after_step":4}"#,
        "cancelled (by disconnect, after 4 steps)",
    );
    check(
        &cancelled(Canceller::Operator),
        r#"{"reason":"cancelled","by":"operator","after_step":4}"#,
        "cancelled (by operator, after 4 steps)",
    );
    check(
        &cancelled(Canceller::Shutdown),
        r#"{"reason":"cancelled","by":"shutdown","after_step":4}"#,
        "cancelled (by shutdown, after 4 steps)",
    );
    check(
        &StopReason::Deadline { after_step },
        r#"{"reason":"deadline","after_step":4}"#,
        "deadline (after 4 steps)",
    );
    check(
        &StopReason::Error { message: "logits hold NaN".to_owned(), is_callers_mistake: false },
        r#"{"reason":"error","message":"logits hold NaN"}"#,
        "error (logits hold NaN)",
    );
}

fn check(reason: &StopReason, json: &str, words: &str) {
    let stop = Stop::from(reason);
    assert_eq!(serde_json::to_string(&stop).unwrap(), json);
    assert_eq!(serde_json::from_str::<Stop>(json).unwrap(), stop);
    assert_eq!(stop.describe(), words);
    assert!(words.starts_with(reason.name()), "{words}");
    // A field too many is refused for every reason.
    let more = json.replace('}', r#","more":1}"#);
    assert!(serde_json::from_str::<Stop>(&more).is_err(), "{more}");
}

#[test]
fn an_unknown_reason_is_refused() {
    let error = serde_json::from_str::<Stop>(r#"{"reason":"tired"}"#).unwrap_err();
    assert!(error.to_string().contains("unknown variant `tired`"), "{error}");
}
