//! Events of a streamed answer, as servers send them.

use super::*;

/// `text|finish|prompt/cached/output|error`, `-` for what is not there.
fn check(payload: &str, want: &str) {
    let Some(Piece { text, finish_reason, usage, error }) = read(payload) else {
        assert_eq!("unreadable", want, "{payload}");
        return;
    };
    let dash = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
    let usage = usage.map(|usage| {
        let cached = dash(usage.cached_tokens.map(|cached| cached.to_string()));
        format!("{}/{cached}/{}", usage.prompt_tokens, usage.output_tokens)
    });
    assert_eq!(format!("{text}|{}|{}|{}", dash(finish_reason), dash(usage), dash(error)), want);
}

#[test]
fn both_forms_are_read() {
    check(r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#, "|-|-|-");
    check(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, "|-|-|-");
    check(
        r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":null}],"usage":null}"#,
        "Hi|-|-|-",
    );
    check(r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#, "hm|-|-|-");
    check(r#"{"choices":[{"index":0,"text":" cat","logprobs":null}]}"#, " cat|-|-|-");
    check(r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#, "|length|-|-");
    check(r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}"#, "|-|3/-/5|-");
    check(
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,
            "prompt_tokens_details":{"cached_tokens":8}}}"#,
        "|-|9/8/5|-",
    );
    check(r#"{"id":"x","object":"chat.completion.chunk"}"#, "|-|-|-");
}

#[test]
fn errors_are_told_in_their_own_words() {
    check(r#"{"error":{"message":"too long","type":"x"}}"#, "|-|-|too long");
    check(r#"{"error":"no"}"#, "|-|-|no");
    check(r#"{"error":{"code":5}}"#, r#"|-|-|{"code":5}"#);
    assert_eq!(message_of(&serde_json::json!({"message": "m"})), "m");
    assert_eq!(message_of(&Value::from("x".repeat(1_000))).len(), MESSAGE_CHARS_MAX);
}

#[test]
fn what_is_no_such_object_is_unreadable() {
    check("", "unreadable");
    check("[1]", "unreadable");
    check(r#"{"choices":5}"#, "unreadable");
    check(r#"{"choices":[{"delta":{"content":5}}]}"#, "unreadable");
    check(r#"{"choices":[{"delta"#, "unreadable");
}
