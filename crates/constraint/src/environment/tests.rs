//! Vocabularies and the tokens that forced text becomes.

use std::path::PathBuf;

use causeway_request::TokenId;
use causeway_text::Text;
use causeway_weights::ModelFile;
use serde_json::json;

use super::Environment;
use crate::{Constraint, EnvironmentError, Limits, Whitespace, accepts, compile};

/// The tokenizer of a model that the test command has fetched.
fn text(file: &str) -> Text {
    let home = std::env::var_os("CAUSEWAY_HOME").map(PathBuf::from).unwrap_or_else(|| {
        let kept = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let kept = kept.or_else(|| {
            std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"))
        });
        kept.unwrap().join("causeway")
    });
    let path = home.join("models").join(file);
    let name = file.trim_end_matches(".gguf");
    let model = ModelFile::open(&path)
        .unwrap_or_else(|error| panic!("{error}: run `causeway pull` for {name}"));
    Text::open(&model).unwrap()
}

#[test]
fn forced_text_has_the_tokens_of_the_tokenizer() {
    for file in ["smollm2-135m.gguf", "qwen2.5-coder-0.5b.gguf", "gemma3-270m.gguf"] {
        let tokenizer = text(file).tokenizer;
        let rows = tokenizer.vocab_size();
        let ends = tokenizer.end_tokens().to_vec();
        let environment = Environment::new(tokenizer.clone(), rows, &ends).unwrap();
        let schema = json!({
            "type": "object",
            "properties": { "reasoning": { "type": "string" }, "risk_score": { "type": "integer" } },
            "required": ["reasoning", "risk_score"],
            "additionalProperties": false,
        });
        let constraint = Constraint::JsonSchema { schema, whitespace: Whitespace::Compact };
        let plan = compile(&constraint, &environment, &Limits::default()).unwrap();
        let mut matcher = plan.matcher();
        let forced = matcher.forced().unwrap();
        let whole = tokenizer.encode("{\"reasoning\":\"", false, false).unwrap();
        assert!(whole.starts_with(&forced), "{file}: {forced:?} of {whole:?}");
        assert!(forced.len() >= 3, "{file}: {forced:?}");
        // The mask is the forced token, each time, and feeding one at a time forces the rest.
        for (index, &token) in forced.iter().enumerate() {
            assert_eq!(matcher.forced().unwrap(), forced[index..], "{file}");
            let mask = matcher.mask().unwrap();
            assert_eq!((mask.count(), mask.allows(token)), (1, true), "{file}");
            matcher.advance(token).unwrap();
        }
        let document = r#"{"reasoning":"Zahlung überfällig – 請求書 😀","risk_score":7}"#;
        accepts(&mut plan.matcher(), &environment, document).unwrap();
        let control = ends[0];
        assert!(environment.bytes(control).is_empty(), "{file}");
        assert!(!plan.matcher().mask().unwrap().allows(control), "{file}");
    }
}

#[test]
fn vocabularies_that_cannot_end_are_refused() {
    let check = |rows, ends: &[TokenId], want: EnvironmentError| {
        let tokenizer = text("smollm2-135m.gguf").tokenizer;
        assert_eq!(Environment::new(tokenizer, rows, ends).unwrap_err(), want);
    };
    check(49152, &[], EnvironmentError::NoEnd);
    check(100, &[TokenId(2)], EnvironmentError::Rows { rows: 100, tokens: 49152 });
    check(49152, &[TokenId(50000)], EnvironmentError::End { end: 50000, rows: 49152 });
}
