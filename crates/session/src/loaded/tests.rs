//! Models that are opened from files, and what cannot be.

use std::path::Path;

use causeway_kernels::KvType;

use super::*;

fn opening(name: &str) -> Opening {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny").join(name);
    let settings = Settings { context_len: Some(64), kv_type: KvType::F32, threads: 1 };
    Opening { name: "tiny".to_owned(), path, settings }
}

#[test]
fn a_folder_without_a_tokenizer_takes_ids_only() {
    let loaded = Loaded::open(opening("llama")).unwrap();
    assert!(loaded.text.is_none() && loaded.end_tokens().unwrap().is_empty());
    let error = loaded.text().unwrap_err();
    assert!(error.is_callers_mistake() && error.to_string().contains("it takes token ids only"));
    let about = loaded.about(&causeway_models::Hashes::new("")).unwrap();
    assert_eq!((about.context_len, about.has_text, about.threads), (64, false, 1));
    assert_eq!(about.model.tokenizer_sha256, None);
    assert_eq!(about.numerics.kv_type, "f32");
}

#[test]
fn a_models_bytes_and_config_need_no_loading() {
    let opening = opening("llama");
    assert!(opening.bytes() > 1_000);
    assert_eq!(opening.config().unwrap().shape.vocab_size, 512);
    let missing = Opening { path: opening.path.join("nowhere"), ..opening };
    assert_eq!(missing.bytes(), 0);
    assert!(missing.config().is_err());
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, b"GGUF but no more").unwrap();
    let error = Loaded::open(Opening { path, ..opening("llama") }).unwrap_err();
    assert!(matches!(error, SessionError::Weights(_)), "{error}");
    assert!(!error.to_string().contains('\n'));
    let context = Settings { context_len: Some(1 << 30), ..opening("llama").settings };
    let error = Loaded::open(Opening { settings: context, ..opening("llama") }).unwrap_err();
    assert!(error.is_callers_mistake(), "{error}");
}
