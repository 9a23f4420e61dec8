//! `doctor` on a model that is well, and on copies of it that were damaged on purpose.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use causeway_weights::ModelFile;
use serde_json::Value;
use support::{causeway, object, smollm2};

/// The verdict on one check; `-` where it was not reached.
fn verdict(found: &Value, name: &str) -> String {
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.map_or("-", |check| check["verdict"].as_str().unwrap()).to_owned()
}

/// The small model's file.
fn file() -> PathBuf {
    let ran = causeway(&["models", "--json"]);
    let found = support::lines(&ran.stdout);
    let line = found.iter().find(|line| line["name"] == smollm2());
    PathBuf::from(line.expect("run `causeway pull smollm2:135m`")["path"].as_str().unwrap())
}

/// What is said of a copy of the small model that `damage` was done to.
fn check(damage: impl FnOnce(&mut Vec<u8>), want_code: i32, want: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.gguf");
    let mut bytes = fs::read(file()).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let ran = causeway(&["doctor", "--json", path.to_str().unwrap()]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    for (name, want) in want {
        assert_eq!(verdict(&found, name), *want, "{name}: {found:#}");
    }
    assert_eq!(ran.code, want_code, "{found:#}");
}

/// Where a tensor's bytes lie in the small model, and the bytes of one row.
fn place(name: &str) -> (usize, usize, usize) {
    let file = ModelFile::open(&file()).unwrap();
    let entry = file.tensors().find(|entry| entry.name == name).unwrap();
    (entry.offset, entry.bytes, file.tensor(name).unwrap().row_bytes(0).len())
}

fn replace(bytes: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let place = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
    bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
}

#[test]
fn a_model_that_is_well_is_said_to_be_well() {
    let found = object(&causeway(&["doctor", "--json", smollm2()]));
    for check in found["checks"].as_array().unwrap() {
        let is_well = check["verdict"] == "ok" || check["name"] == "sampling";
        assert!(is_well, "{check}");
    }
}

/// What is said of one check, and the verdict.
fn said(path: &Path, name: &str) -> (String, String) {
    let ran = causeway(&["doctor", "--json", path.to_str().unwrap()]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    (check["verdict"].as_str().unwrap().to_owned(), check["said"].as_str().unwrap().to_owned())
}

/// What is said of a copy of the small model, under a name of its own.
fn said_of_copy(
    file_name: &str,
    damage: impl FnOnce(&mut Vec<u8>),
    name: &str,
) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file_name);
    let mut bytes = fs::read(file()).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    said(&path, name)
}

#[test]
fn a_name_that_promises_answers_wants_a_template() {
    let gone = |bytes: &mut Vec<u8>| {
        replace(bytes, "tokenizer.chat_template", "tokenizer.chat_tempest!");
    };
    for (name, want) in [
        (
            "m-Instruct-Q4_1.gguf",
            "there is none, though the name `m-Instruct-Q4_1` promises answers",
        ),
        ("m-item.gguf", "there is none: a base model"),
    ] {
        let (verdict, found) = said_of_copy(name, gone, "template");
        assert!(verdict == "unusual" && found.starts_with(want), "{found}");
    }
}

#[test]
fn a_text_that_begins_twice_is_unusual() {
    let twice = |bytes: &mut Vec<u8>| {
        let (from, to) = ("<|im_start|>system\nYou are", "<|im_start|><|im_start|>  ");
        replace(bytes, from, to);
    };
    let (verdict, found) = said_of_copy("m.gguf", twice, "template");
    let want = "a text begins 2 times in what it renders: its own BOS is twice";
    assert_eq!((verdict.as_str(), found.as_str()), ("unusual", want));
}

#[test]
fn a_question_through_the_template_is_answered() {
    let (verdict, found) = said(&file(), "question");
    assert_eq!(verdict, "ok");
    assert!(found.contains("Paris"), "{found}");
}

#[test]
fn a_context_beyond_what_scaling_reaches_is_unusual() {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny/qwen2_yarn");
    for file in fs::read_dir(&from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let config = folder.path().join("config.json");
    let mut fields: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    fields["max_position_embeddings"] = 1024.into();
    fs::write(&config, fields.to_string()).unwrap();
    let (verdict, found) = said(folder.path(), "positions");
    let want = "the context is 1024, and RoPE's scaling reaches 256";
    assert_eq!((verdict.as_str(), found.as_str()), ("unusual", want));
}

#[test]
fn scaled_positions_are_said_with_what_was_trained() {
    let tiny = |name: &str| {
        let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny");
        said(&tiny.join(name), "positions")
    };
    for (name, verdict, want) in [
        ("llama", "ok", "as trained"),
        ("llama_linear_bias", "unusual", "RoPE is scaled (linear by 4)"),
        ("llama_rope3", "unusual", "RoPE is scaled (llama3 by 8), 128 positions trained"),
        ("qwen2_yarn", "unusual", "RoPE is scaled (yarn by 4), 64 positions trained"),
        ("phi3_longrope", "unusual", "RoPE is scaled (longrope), 64 positions trained"),
    ] {
        assert_eq!(tiny(name), (verdict.to_owned(), want.to_owned()), "{name}");
    }
}

#[test]
fn a_tokenizer_that_is_another_models_is_found_out() {
    let (start, length, row) = place("token_embd.weight");
    let shift = |bytes: &mut Vec<u8>| bytes[start..start + length].rotate_left(row * 1000);
    check(shift, 1, &[("values", "ok"), ("round trip", "ok"), ("known text", "wrong")]);
}

#[test]
fn zeros_and_a_wrong_pre_tokenizer_are_wrong() {
    let (start, length, _) = place("blk.3.ffn_down.weight");
    let damage = |bytes: &mut Vec<u8>| {
        bytes[start..start + length].fill(0);
        let key = b"tokenizer.ggml.pre";
        let place = bytes.windows(key.len()).position(|part| part == key).unwrap() + key.len();
        // Behind the key stand its type and the length of the value.
        bytes[place + 12] = b'?';
    };
    let want = [("size", "ok"), ("values", "wrong"), ("load", "wrong"), ("answer", "-")];
    check(damage, 1, &want);
}

#[test]
fn a_template_that_is_gone_and_bytes_of_no_tensor_are_unusual() {
    let damage = |bytes: &mut Vec<u8>| {
        replace(bytes, "tokenizer.chat_template", "tokenizer.chat_tempest!");
        bytes.extend([0; 100_000]);
    };
    check(damage, 0, &[("size", "unusual"), ("template", "unusual"), ("answer", "ok")]);
}

#[test]
fn a_file_that_is_cut_is_wrong() {
    check(|bytes| bytes.truncate(50_000_000), 1, &[("file", "wrong"), ("size", "-")]);
}
