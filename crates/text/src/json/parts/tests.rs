//! Files that the library would take: refused, each in one sentence.

use serde_json::json;

use crate::json::JsonTokenizer;

fn check(part: &str, value: serde_json::Value, want: &str) {
    let mut file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
    });
    match file[part].as_object_mut() {
        Some(fields) => fields.extend(value.as_object().unwrap().clone()),
        None => file[part] = value,
    }
    let got = match JsonTokenizer::from_bytes(file.to_string().as_bytes()) {
        Ok(Ok(_)) => "taken".to_owned(),
        Ok(Err(refusal)) => refusal.to_string(),
        Err(fault) => fault.to_string(),
    };
    assert_eq!(got, want, "{part} of {file}");
}

#[test]
fn what_the_library_stumbles_over_is_refused() {
    let replace =
        |pattern, content| json!({"type": "Replace", "pattern": pattern, "content": content});
    let empty = "`Replace` of `tokenizer.json` replaces what may be empty";
    for regex in ["", "x?", "\\b", "(?=a)", "$"] {
        check("normalizer", replace(json!({"Regex": regex}), "y".to_owned()), empty);
    }
    check("normalizer", replace(json!({"String": ""}), "y".to_owned()), empty);
    check("normalizer", replace(json!({"Regex": " {2,}"}), "\u{2581}".to_owned()), "taken");
    check("normalizer", replace(json!({"String": " "}), "\u{2581}".to_owned()), "taken");
    let long = replace(json!({"String": "a"}), "a".repeat(65));
    check("normalizer", long, "`Replace` of `tokenizer.json` puts in more than 64 bytes");
    let ten = replace(json!({"String": "a"}), "a".repeat(10));
    let many = json!({"type": "Sequence", "normalizers": [ten, {"type": "NFC"}, ten]});
    let sentence = "`Replace` of `tokenizer.json` is the second to make a text longer";
    check("normalizer", many, sentence);
    let fixed =
        json!({"type": "Sequence", "pretokenizers": [{"type": "FixedLength", "length": 0}]});
    let sentence = "`FixedLength` of `tokenizer.json` cuts text into pieces of no length";
    check("pre_tokenizer", fixed, sentence);
    let drops = "`BPE` of `tokenizer.json` leaves merges out at random (dropout)";
    check("model", json!({"dropout": 0.5}), drops);
    check("model", json!({"dropout": null}), "taken");
    check("model", json!({"dropout": 0.0}), "taken");
    for (part, value) in [
        ("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AAA"})),
        ("model", json!({"continuing_subword_prefix": "zzzzzz"})),
    ] {
        check(part, value, "the library gives up on it");
    }
}
