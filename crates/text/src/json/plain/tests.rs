//! Models that take words whole, and a text that spells their control tokens.

use serde_json::{Value, json};

use crate::error::TextError;
use crate::json::JsonTokenizer;
use crate::markers::Control;

/// What `text` becomes by a model with the control token `[S]`, id 1, and the words `a` and `[`.
fn plain(model: &Value, text: &str) -> Result<Vec<u32>, TextError> {
    let added = |id: u32, content: &str, special: bool| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": special})
    };
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [added(0, "[U]", true), added(1, "[S]", true), added(5, "tool", false)],
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": model
    });
    let tokenizer = JsonTokenizer::from_bytes(file.to_string().as_bytes()).unwrap().unwrap();
    let mut tokens = Vec::new();
    let markers = tokenizer.markers();
    tokenizer.encode(text, &markers, Control::Nowhere, &mut tokens)?;
    let mut parsed = Vec::new();
    tokenizer.encode("[S] a", &markers, Control::Everywhere, &mut parsed).unwrap();
    assert_eq!(parsed, [1, 2], "{model}");
    assert_eq!(tokenizer.token("[S]"), Some(1));
    Ok(tokens)
}

#[test]
fn a_control_token_in_a_users_text_stays_text() {
    let words = json!({"[U]": 0, "[S]": 1, "a": 2, "[": 3, "tool": 5, "S": 4});
    let pieces =
        json!([["[U]", 0.0], ["[S]", 0.0], ["a", -1.0], ["[", -2.0], ["S", -2.0], ["tool", -1.0]]);
    let piece_model = json!({"type": "WordPiece", "unk_token": "[U]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": words});
    let unigram = json!({"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": false});
    let level = json!({"type": "WordLevel", "vocab": words, "unk_token": "[U]"});
    let whole = json!({"type": "BPE", "dropout": null, "unk_token": "[U]",
        "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true,
        "byte_fallback": false, "ignore_merges": true, "vocab": words, "merges": []});
    for (model, want) in [
        (&piece_model, vec![2, 0, 5]),
        (&unigram, vec![2, 3, 4, 0, 5]),
        (&level, vec![2, 0, 5]),
        (&whole, vec![2, 3, 4, 0, 5]),
    ] {
        assert_eq!(plain(model, "a [S] tool").unwrap(), want, "{model}");
        let inner = plain(model, "a \u{fdd0}[S] a").map_err(|error| {
            assert!(error.is_callers_mistake());
            error.to_string()
        });
        assert_eq!(inner.unwrap_err(), "this text cannot be tokenised", "{model}");
    }
}
