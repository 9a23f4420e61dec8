//! `quantize` as a user meets it: from a file, from a folder, compared, refused and broken off.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../weights/tests/support/mod.rs"]
mod gguf;
mod support;
#[expect(dead_code, reason = "a part of it is for other tests")]
#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use causeway_weights::gguf::{Source, write_directory};
use causeway_weights::{ModelFile, Value as GgufValue};
use serde_json::{Value, json};
use support::{Ran, causeway, lines, object, ran, smollm2, tiny, tree};
use tempfile::TempDir;

const TEXT: &str = "The ferry leaves at 7:45, and again at noon; nobody waits for the rain to end.";

/// A folder with `in.gguf`, a small model in F32.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.gguf"), tiny_gguf::tiny_gguf(None).build()).unwrap();
    folder
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// `quantize` inside a folder.
fn quantize(folder: &TempDir, from: &str, to: &str, more: &[&str]) -> Ran {
    let (from, to) = (shown(&folder.path().join(from)), shown(&folder.path().join(to)));
    causeway(&[&["quantize", &from, &to], more].concat())
}

/// The names of all files of a folder.
fn names(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Digests of a model's logits at each of a few tokens.
fn digests(model: &Path) -> Vec<Value> {
    let args = ["logits", "-m", &shown(model), "--json", "--kv-type", "f32"];
    let ran = causeway(&[&args[..], &["--ids", "5,6,7,100,101,9,30"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    lines(&ran.stdout).into_iter().map(|row| row["digest"].clone()).collect()
}

#[test]
fn every_type_is_written_and_reported() {
    let folder = folder();
    // The rows are of 32 values, which blocks of 256 do not fill: the next smaller type stands in.
    for (asked, written) in [
        ("q8_0", "Q8_0"),
        ("q5_0", "Q5_0"),
        ("q5_1", "Q5_1"),
        ("q4_0", "Q4_0"),
        ("q4_1", "Q4_1"),
        ("q4_k", "Q5_0"),
        ("q5_k", "Q5_1"),
        ("q6_k", "Q8_0"),
        ("f16", "F16"),
        ("f32", "F32"),
    ] {
        let out = format!("{asked}.gguf");
        let found =
            object(&quantize(&folder, "in.gguf", &out, &["--type", asked, "--pure", "--json"]));
        let path = folder.path().join(&out);
        assert_eq!(found["path"], shown(&path));
        assert_eq!(found["bytes"], fs::metadata(&path).unwrap().len());
        assert_eq!(found["eval"], Value::Null);
        let tensor = |found: &Value, name: &str| {
            let all = found["tensors"].as_array().unwrap();
            all.iter().find(|tensor| tensor["name"] == name).unwrap().clone()
        };
        let gate = tensor(&found, "blk.0.ffn_gate.weight");
        assert_eq!((&gate["from"], &gate["to"]), (&json!("F32"), &json!(written)), "{asked}");
        assert_eq!(gate["rmse"] == 0.0, asked == "f32", "{asked}: {gate}");
        assert_eq!(tensor(&found, "output_norm.weight")["to"], "F32");
        let inspected = object(&causeway(&["inspect", "--json", &shown(&path)]));
        assert_eq!(tensor(&inspected, "blk.0.ffn_gate.weight")["dtype"], written);
        assert_eq!(digests(&path) == digests(&folder.path().join("in.gguf")), asked == "f32");
    }
}

#[test]
fn a_report_for_people_has_a_line_for_each_tensor() {
    let folder = folder();
    let rules = "blk.0.ffn_*.weight=q4_1,blk.0.attn_v.weight=f16";
    let more = ["--type", "q8_0", "--per-tensor", rules, "--threads", "2"];
    let Ran { code, stdout, stderr } = quantize(&folder, "in.gguf", "out.gguf", &more);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    for want in [
        "blk.0.ffn_up.weight       F32   Q4_1  rmse ",
        "blk.0.attn_v.weight       F32   F16   rmse ",
        "blk.0.attn_q.weight       F32   Q8_0  rmse ",
        "\nQ4_1      3 tensors            1920 bytes\n",
        " bytes of ",
    ] {
        assert!(stdout.contains(want), "{stdout} lacks {want:?}");
    }
}

#[test]
fn out_is_replaced_by_a_whole_file_only() {
    let folder = folder();
    fs::write(folder.path().join("out.gguf"), "something else").unwrap();
    let refused = |from: &str, to: &str, more: &[&str], code: i32, want: &str| {
        let before = names(&folder);
        let Ran { code: found, stdout, stderr } = quantize(&folder, from, to, more);
        assert_eq!((found, stdout.as_str(), stderr.lines().count()), (code, "", 1), "{stderr}");
        assert!(stderr.contains(want), "{stderr} lacks {want:?}");
        assert_eq!(names(&folder), before);
        let kept = fs::read_to_string(folder.path().join("out.gguf")).unwrap();
        assert_eq!(kept, "something else", "{want}");
    };
    let q8 = ["--type", "q8_0"];
    refused("in.gguf", "in.gguf", &q8, 2, "is the model itself: name another file");
    refused("in.gguf", "no/out.gguf", &q8, 1, "no/out.gguf` cannot be written");
    refused("in.gguf", "in.gguf/out.gguf", &q8, 1, "cannot be written");
    refused("nowhere.gguf", "out.gguf", &q8, 2, "nowhere.gguf");
    refused("out.gguf", "new.gguf", &q8, 1, "not a GGUF file");
    refused("in.gguf", "out.gguf", &["--type", "q8_0", "--eval", "nowhere.txt"], 2, "nowhere.txt");
    let done = quantize(&folder, "in.gguf", "small.gguf", &q8);
    assert_eq!(done.code, 0, "{done:?}");
    refused("small.gguf", "out.gguf", &["--type", "q4_0"], 2, "is Q8_0 already");
    let again = ["--type", "q4_0", "--allow-requantize", "--json"];
    let again = object(&quantize(&folder, "small.gguf", "out.gguf", &again));
    assert!(again["tensors"].as_array().unwrap().iter().any(|tensor| tensor["from"] == "Q8_0"));
    assert!(ModelFile::open(&folder.path().join("out.gguf")).is_ok());
    assert_eq!(names(&folder), ["in.gguf", "out.gguf", "small.gguf"]);
}

#[test]
fn a_disk_that_is_full_is_named_and_leaves_nothing() {
    let folder = folder();
    let (from, to) = (shown(&folder.path().join("in.gguf")), shown(&folder.path().join("o.gguf")));
    // A file may grow to a few blocks here, and then each write fails as on a full disk.
    let mut command = Command::new("sh");
    let script = r#"trap "" XFSZ; ulimit -f 8; exec "$0" "$@""#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_causeway"), "quantize", &from, &to]);
    command.args(["--type", "f32"]);
    let Ran { code, stdout, stderr } = ran(command, "");
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    assert!(stderr.contains("o.gguf` cannot be written"), "{stderr}");
    assert_eq!(names(&folder), ["in.gguf"]);
}

#[test]
fn a_run_that_is_interrupted_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out.gguf");
    let args = ["quantize", smollm2(), &shown(&to), "--type", "f32", "--allow-requantize"];
    let mut child = support::spawned(support::command(&args));
    // The part is there as soon as the work begins; 20 seconds are more than any machine needs.
    for _ in 0..2_000 {
        if !names(&folder).is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(sent.success());
    let code = support::code_of(child.wait().unwrap());
    let said = support::rest_of(child.stderr.take().unwrap());
    assert!(code == 1 && said.contains("stopped before the model was whole"), "{code}: {said}");
    assert_eq!(names(&folder), Vec::<String>::new());
}

/// A copy of a tiny model's folder with a small byte-level tokenizer.
fn folder_with_tokenizer(model: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(model.join(name), folder.path().join(name)).unwrap();
    }
    let tokenizer = tree().join("testdata/tokenization/json/byte_level/tokenizer.json");
    let mut tokenizer: Value =
        serde_json::from_str(&fs::read_to_string(tokenizer).unwrap()).unwrap();
    let added = tokenizer["added_tokens"].as_array_mut().unwrap();
    // Those that strip what stands beside them cannot be said.
    added.retain(|token| {
        ["lstrip", "rstrip", "single_word"].iter().all(|flag| token[flag] == false)
    });
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({"bos_token": "<s>", "eos_token": "</s>"});
    fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    folder
}

#[test]
fn a_folder_becomes_a_file_of_the_same_bits_and_tokens() {
    let folder = folder_with_tokenizer(Path::new(&tiny()));
    let to = folder.path().join("out.gguf");
    let ran = quantize(&folder, "", "out.gguf", &["--type", "f32", "--json"]);
    let found = object(&ran);
    assert_eq!(ran.stderr, "");
    assert!(found["tensors"].as_array().unwrap().iter().all(|tensor| tensor["rmse"] == 0.0));
    assert_eq!(digests(&to), digests(folder.path()));
    let tokens = |model: &Path| {
        object(&support::with_stdin(
            &["tokenize", "-m", &shown(model), "--json"],
            &format!("{}\n", json!({ "text": TEXT })),
        ))
    };
    assert_eq!(tokens(&to), tokens(folder.path()));
    // Without a tokenizer it is written all the same, and that is said.
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let Ran { code, stderr, .. } = quantize(&folder, "", "bare.gguf", &["--type", "q8_0"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("has no tokenizer, and so the file will have none"), "{stderr}");
    // What cannot be said in a file is refused by its name.
    let word_piece = tree().join("testdata/tokenization/json/word_piece/tokenizer.json");
    fs::copy(word_piece, folder.path().join("tokenizer.json")).unwrap();
    let Ran { code, stderr, .. } = quantize(&folder, "", "never.gguf", &["--type", "q8_0"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("the tokenizer kind `WordPiece` cannot be written"), "{stderr}");
    assert!(!folder.path().join("never.gguf").exists());
}

#[test]
fn packed_experts_of_a_folder_stay_as_they_are() {
    let folder = folder_with_tokenizer(&tree().join("testdata/tiny/gpt_oss_mxfp4"));
    let found = object(&quantize(&folder, "", "m.gguf", &["--type", "f32", "--json"]));
    let types = found["tensors"].as_array().unwrap().iter().map(|tensor| &tensor["to"]);
    assert_eq!(types.filter(|dtype| *dtype == "MXFP4").count(), 2 * 3, "{found}");
    assert_eq!(digests(&folder.path().join("m.gguf")), digests(folder.path()));
}

#[test]
fn eval_says_how_far_the_result_is_from_its_source() {
    let folder = folder_with_tokenizer(Path::new(&tiny()));
    let text = folder.path().join("text.txt");
    fs::write(&text, TEXT).unwrap();
    let eval = |target: &str| {
        let out = format!("{target}.gguf");
        let more = ["--type", target, "--pure", "--json", "--eval", &shown(&text)];
        object(&quantize(&folder, "", &out, &more))["eval"].clone()
    };
    let number = |eval: &Value, key: &str| eval[key].as_f64().unwrap();
    let same = eval("f32");
    assert_eq!((number(&same, "kl_max"), number(&same, "same_best")), (0.0, 1.0), "{same}");
    assert_eq!(same["bits_per_byte"], same["bits_per_byte_before"]);
    assert_eq!(same["bytes"], TEXT.len() - 1, "nothing stands before the first token: {same}");
    // The same number as from the command that scores a text.
    let args = ["score", "-m", &shown(folder.path()), "--kv-type", "f32", "--json"];
    let line = format!("{}\n", json!({ "text": TEXT }));
    let score = object(&support::with_stdin(&args, &line));
    let off = number(&score, "bits_per_byte") - number(&same, "bits_per_byte_before");
    assert!(off.abs() < 1e-9, "{score} {same}");
    let (fine, coarse) = (eval("q8_0"), eval("q4_0"));
    assert!(number(&fine, "kl_mean") > 0.0, "{fine}");
    assert!(number(&coarse, "kl_mean") > 4.0 * number(&fine, "kl_mean"), "{fine} {coarse}");
    assert!(number(&coarse, "kl_max") >= number(&coarse, "kl_mean"), "{coarse}");
    // For people, a line; for a model without a tokenizer, a sentence before the work.
    let more = ["--type", "q8_0", "--eval", &shown(&text)];
    let Ran { stdout, .. } = quantize(&folder, "", "again.gguf", &more);
    assert!(stdout.lines().last().unwrap().contains("KL mean 0.00"), "{stdout}");
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let Ran { code, stderr, .. } = quantize(&folder, "", "never.gguf", &more);
    assert_eq!(
        (code, stderr.contains("--eval needs the model's tokenizer")),
        (2, true),
        "{stderr}"
    );
    assert!(!folder.path().join("never.gguf").exists());
}

/// Writes a model as two parts, of which the first has the keys, and returns their paths.
fn split(model: &Path, folder: &TempDir) -> [PathBuf; 2] {
    let file = ModelFile::open(model).unwrap();
    let source: &dyn Source = &file;
    let tensors = source.tensors();
    let paths = [1, 2].map(|part| folder.path().join(format!("s-{part:05}-of-00002.gguf")));
    let cut = tensors.len() / 2;
    for (part, own) in [(0, 0..cut), (1, cut..tensors.len())] {
        let mut keys = if part == 0 { source.keys() } else { Vec::new() };
        keys.push(("split.no".to_owned(), GgufValue::U16(part)));
        keys.push(("split.count".to_owned(), GgufValue::U16(2)));
        let mut file = Vec::new();
        let alignment = write_directory(&mut file, &keys, &tensors[own.clone()]).unwrap();
        for index in own {
            file.extend_from_slice(&source.bytes(index).unwrap());
            file.resize(file.len().next_multiple_of(alignment), 0);
        }
        fs::write(&paths[usize::from(part)], file).unwrap();
    }
    paths
}

#[test]
fn a_split_file_is_one_model_for_every_command() {
    let folder = folder();
    let whole = folder.path().join("in.gguf");
    let [first, second] = split(&whole, &folder);
    assert_eq!(digests(&first), digests(&whole));
    assert_eq!(digests(&second), digests(&whole));
    let inspected = object(&causeway(&["inspect", "--json", &shown(&second)]));
    let bytes: u64 = [&first, &second].iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(inspected["bytes"], bytes);
    assert_eq!(inspected["metadata"]["general.architecture"], "llama");
    let doctor = causeway(&["doctor", "--json", &shown(&first)]);
    let checks = lines(&doctor.stdout)[0]["checks"].clone();
    assert!(checks.as_array().unwrap().iter().all(|check| check["name"] != "file"), "{checks}");
    let made =
        object(&quantize(&folder, "s-00001-of-00002.gguf", "q.gguf", &["--type", "f32", "--json"]));
    assert_eq!(made["bytes_before"], bytes);
    assert_eq!(digests(&folder.path().join("q.gguf")), digests(&whole));
    let onto =
        quantize(&folder, "s-00001-of-00002.gguf", "s-00002-of-00002.gguf", &["--type", "f32"]);
    assert!(onto.code == 2 && onto.stderr.contains("is the model itself"), "{onto:?}");
    // The model's hash is the same whichever part is named, and covers them all.
    let hash = |model: &Path| {
        let record = folder.path().join("record.json");
        let args = [
            "run",
            "-m",
            &shown(model),
            "--record",
            &shown(&record),
            "--tokens-max",
            "1",
            "--raw",
            "a",
        ];
        let ran = causeway(&args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let record: Value = serde_json::from_str(&fs::read_to_string(record).unwrap()).unwrap();
        record["start"]["model"]["sha256"].as_str().unwrap().to_owned()
    };
    let before = hash(&first);
    assert_eq!(before, hash(&second));
    let mut bytes = fs::read(&second).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&second, bytes).unwrap();
    assert_ne!(before, hash(&first));
    fs::remove_file(&second).unwrap();
    let Ran { code, stderr, .. } = causeway(&["inspect", &shown(&first)]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("and `s-00002-of-00002.gguf` is missing"), "{stderr}");
}
