//! Folders that say how their answers are drawn, and those that do not.

use std::path::Path;

use causeway_weights::ModelFile;

use super::sampling_keys;

/// The keys for a folder with this `generation_config.json`, one after the other.
fn check(generation: &str, want: &str) {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny/llama");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(tiny.join(name), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("generation_config.json"), generation).unwrap();
    let file = ModelFile::open(folder.path()).unwrap();
    let keys = sampling_keys(&file).unwrap();
    let shown: Vec<String> = keys.iter().map(|(key, value)| format!("{key} {value:?}")).collect();
    assert_eq!(shown.join(", "), want, "{generation}");
}

#[test]
fn what_is_drawn_by_is_said() {
    check(
        r#"{"do_sample": true, "temperature": 0.5, "top_k": 20, "top_p": null, "eos_token_id": 2}"#,
        "general.sampling.temp F32(0.5), general.sampling.top_k I32(20)",
    );
    check(
        r#"{"do_sample": true, "repetition_penalty": 1.25, "min_p": 0.25, "top_k": "many"}"#,
        "general.sampling.min_p F32(0.25), general.sampling.penalty_repeat F32(1.25)",
    );
    check(r#"{"do_sample": false, "temperature": 0.5}"#, "");
    check("{}", "");
}
