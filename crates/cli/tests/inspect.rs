//! `inspect` as a user meets it: what it shows, and the exit code of each bad file.

#[path = "../../weights/tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{Folder, Gguf, safetensors};

/// Runs `causeway inspect`; the exit code, stdout and stderr.
fn run(path: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.env("CAUSEWAY_HOME", path).arg("inspect").arg(path).args(args);
    let output = command.output().expect("the command was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
    // A signal has no code: reading past the end of a mapping would show here.
    let code = output.status.code().expect("the command ends by itself");
    (code, text(output.stdout), text(output.stderr))
}

/// The one sentence and the exit code that a file of these bytes gets.
fn check_refused(bytes: &[u8], want: &str) {
    let folder = Folder::with(&[("m.gguf", bytes)]);
    let path = folder.join("m.gguf");
    let (code, stdout, stderr) = run(&path, &[]);
    let start = format!("causeway: cannot read `{}`: {want}", path.display());
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    assert!(stderr.starts_with(&start) && stderr.lines().count() == 1, "{stderr:?}");
}

#[test]
fn bad_files_get_one_sentence_and_exit_code_1() {
    let good = Gguf::small().build();
    check_refused(&good[..good.len() / 2], "the file is cut short");
    let outside = "tensor `blk.0.ffn_up.weight` lies outside the file: it ends at byte";
    check_refused(&good[..good.len() - 1], outside);
    check_refused(b"", "not a GGUF file: it is empty");
    check_refused(b"GGU", "not a GGUF file: it is 3 bytes long");
    check_refused(b"<!DOCTYPE html>", "not a GGUF file: it looks like an HTML page");
    let big_endian = Gguf { version: 3_u32.swap_bytes(), ..Gguf::small() };
    check_refused(&big_endian.build(), "wrong byte order");
}

#[test]
fn what_does_not_exist_is_the_callers_mistake() {
    let folder = Folder::with(&[("m.gguf", &Gguf::small().build())]);
    let (code, _, stderr) = run(&folder.join("absent.gguf"), &[]);
    assert_eq!((code, stderr.lines().count()), (2, 1), "{stderr}");
    let (code, _, stderr) = run(&folder.join("m.gguf"), &["--tensor", "absent"]);
    assert!(code == 2 && stderr.contains("has no tensor `absent`"), "{code} {stderr}");
}

#[test]
fn a_listed_type_is_listed_and_its_values_are_refused_by_name() {
    let file = Gguf::new().tensor("w", &[64, 2], 40, &[0; 72]).build();
    let folder = Folder::with(&[("m.gguf", &file)]);
    let (code, stdout, _) = run(&folder.join("m.gguf"), &[]);
    assert!(code == 0 && stdout.contains("NVFP4"), "{stdout}");
    let (code, _, stderr) = run(&folder.join("m.gguf"), &["--tensor", "w"]);
    let want = "causeway: the values of tensor `w` cannot be read: the type NVFP4 is not read, \
                only listed\n";
    assert_eq!((code, stderr.as_str()), (1, want));
}

#[test]
fn the_machine_form_says_what_the_file_says() {
    let folder = Folder::with(&[("m.gguf", &Gguf::small().build())]);
    let (code, stdout, _) = run(&folder.join("m.gguf"), &["--json"]);
    let line: Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!((code, &line["format"], &line["version"]), (0, &"gguf".into(), &3.into()));
    assert_eq!(line["metadata"]["llama.block_count"], 1);
    assert_eq!(line["metadata"]["tokenizer.ggml.tokens"][2], "ä");
    let first = &line["tensors"][0];
    assert_eq!(first["shape"], Value::from([2, 32].as_slice()));
    assert_eq!((&first["dtype"], &first["bytes"]), (&"Q4_0".into(), &36.into()));
    assert_eq!(line["types"]["F32"]["bytes"], 12);
    assert_eq!(line["total"]["tensors"], 5);
    let (_, stdout, _) = run(&folder.join("m.gguf"), &["--json", "--tensor", "output_norm.weight"]);
    let line: Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!(line["first"], Value::from([1.0, -2.0, 0.5].as_slice()));
    assert_eq!((&line["min"], &line["max"]), (&(-2.0).into(), &1.0.into()));
}

#[test]
fn long_lists_are_cut_with_their_length() {
    let words: Vec<String> = (0..1000).map(|n| format!("w{n}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let file = Gguf::new().strings("words", &words).string("text", &"a\n".repeat(500)).build();
    let folder = Folder::with(&[("m.gguf", &file)]);
    let path = folder.join("m.gguf");
    let (_, stdout, _) = run(&path, &[]);
    assert!(stdout.contains("1,000: \"w0\", \"w1\"") && !stdout.contains("w9"), "{stdout}");
    assert!(stdout.contains("a\\na\\n") && stdout.contains("(1,000 characters)"), "{stdout}");
    let (_, stdout, _) = run(&path, &["--json"]);
    let line: Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!(line["metadata"]["words"]["count"], 1000);
    let (_, stdout, _) = run(&path, &["--json", "--full"]);
    let line: Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!(line["metadata"]["words"][999], "w999");
}

#[test]
fn a_folder_shows_its_config() {
    let header = r#"{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#;
    let file = safetensors(header, &1.5_f32.to_le_bytes());
    let folder = Folder::with(&[
        ("config.json", br#"{"model_type": "llama"}"#),
        ("model.safetensors", &file),
    ]);
    let (code, stdout, _) = run(folder.path(), &["--json"]);
    let line: Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!((code, &line["format"]), (0, &"safetensors".into()));
    assert_eq!(line["config"]["model_type"], "llama");
    let (code, stdout, _) = run(folder.path(), &["--tensor", "w"]);
    assert!(code == 0 && stdout.contains("first 1.5"), "{stdout}");
}
