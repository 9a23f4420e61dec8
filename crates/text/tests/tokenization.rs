//! Token ids, texts and pieces of three real vocabularies against independent references.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::{Path, PathBuf};

use causeway_request::TokenId;
use causeway_text::{DetokenizeOptions, Text};
use causeway_weights::ModelFile;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

fn testdata(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn model(file: &str, name: &str) -> Text {
    let home = std::env::var_os("CAUSEWAY_HOME").map_or_else(
        || {
            let share = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
            let share = share.unwrap_or_else(|| {
                PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share")
            });
            share.join("causeway")
        },
        PathBuf::from,
    );
    let path = home.join("models").join(file);
    assert!(path.exists(), "{} is missing: run `causeway pull {name}`", path.display());
    Text::open(&ModelFile::open(&path).unwrap()).unwrap()
}

/// Every variant of every line, the decoded text of each, and the bytes of every token.
fn check(reference: &str, file: &str, name: &str) {
    let text = model(file, name);
    let mut wrong = Vec::new();
    for line in testdata(&format!("tokenization/{reference}.jsonl")).lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let input = case["text"].as_str().unwrap();
        for (variant, ids) in case["ids"].as_object().unwrap() {
            let (parse, add) = (variant.ends_with("special"), variant.starts_with("bos"));
            let found = text.tokenizer.encode(input, parse, add).unwrap();
            let wanted = ids_of(ids);
            if found != wanted {
                wrong.push(format!("{variant} {input:?}: {found:?}, wanted {wanted:?}"));
            }
        }
        let Some(decoded) = case["decoded"].as_str() else { continue };
        let tokens = text.tokenizer.encode(input, true, false).unwrap();
        let options = DetokenizeOptions { show_control: true, continues: false };
        assert_eq!(text.tokenizer.decode(&tokens, options).unwrap(), decoded);
        if let Some(hex) = case["decoded_hex"].as_str() {
            let bytes: Vec<u8> = tokens
                .iter()
                .flat_map(|token| text.tokenizer.piece(*token).unwrap().to_vec())
                .collect();
            assert_eq!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), hex);
        }
    }
    assert!(wrong.is_empty(), "{} variants differ:\n{}", wrong.len(), wrong.join("\n"));
    check_pieces(&text, reference);
}

fn check_pieces(text: &Text, reference: &str) {
    let pieces: Value = serde_json::from_str(&testdata("tokenization/pieces.json")).unwrap();
    let count = u32::try_from(text.tokenizer.vocab_size()).unwrap();
    assert_eq!(pieces[reference]["vocab_size"], count);
    let mut hash = Sha256::new();
    for id in 0..count {
        let piece = text.tokenizer.piece(TokenId(id)).unwrap();
        hash.update(u32::try_from(piece.len()).unwrap().to_le_bytes());
        hash.update(piece);
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(pieces[reference]["sha256"], digest);
}

fn ids_of(ids: &Value) -> Vec<TokenId> {
    let ids = ids.as_array().unwrap().iter();
    ids.map(|id| TokenId(u32::try_from(id.as_u64().unwrap()).unwrap())).collect()
}

#[test]
fn smollm2() {
    check("smollm2", "smollm2-135m.gguf", "smollm2:135m");
}

#[test]
fn qwen() {
    check("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b.gguf", "qwen2.5-coder:0.5b");
}

#[test]
fn gemma() {
    check("gemma3-270m", "gemma3-270m.gguf", "gemma3:270m");
}
