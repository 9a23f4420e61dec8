//! Hugging Face folders, good and bad: what is read, and the one sentence for each fault.

mod support;

use causeway_weights::safetensors::Header;
use causeway_weights::{Format, ModelFile};
use support::{Folder, Gguf, safetensors, sentence};

const CONFIG: (&str, &[u8]) = ("config.json", br#"{"model_type": "llama", "hidden_size": 64}"#);
const GOOD: &str = r#"{"__metadata__": {"format": "pt"},
    "b": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
    "a": {"dtype": "BF16", "shape": [3], "data_offsets": [8, 14]}}"#;

/// The sentence that refuses a file with this header and this many tensor bytes.
fn check(header: &str, bytes: usize, want: &str) {
    let got = match Header::parse(&safetensors(header, &vec![0; bytes])) {
        Ok(header) => format!("read: {} tensors", header.tensors.len()),
        Err(fault) => fault.to_string(),
    };
    assert_eq!(got, want);
}

/// The same for one tensor `w` in 8 bytes of data.
fn check_tensor(entry: &str, want: &str) {
    check(&format!(r#"{{"w": {{{entry}}}}}"#), 8, want);
}

/// What is said of a folder, its own path written as `.`.
fn check_folder(files: &[(&str, &[u8])], want: &str) {
    let folder = Folder::with(files);
    let got = match ModelFile::open(folder.path()) {
        Ok(file) => format!("read: {} tensors", file.tensors().len()),
        Err(error) => sentence(&error).replace(&folder.path().display().to_string(), "."),
    };
    assert_eq!(got, want);
}

#[test]
fn a_single_file_is_read() {
    let values: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let bytes = [&values[..], &[0x80, 0x3f, 0, 0, 0x80, 0xbf]].concat();
    let folder = Folder::with(&[CONFIG, ("model.safetensors", &safetensors(GOOD, &bytes))]);
    let file = ModelFile::open(folder.path()).unwrap();
    assert_eq!((file.format(), file.folder()), (Format::Safetensors, Some(folder.path())));
    assert!(file.metadata().is_empty());
    assert_eq!(file.config().unwrap()["hidden_size"], 64);
    let (a, b) = (file.tensor("a").unwrap(), file.tensor("b").unwrap());
    assert_eq!((a.to_f32().unwrap(), a.shape), (vec![1.0, 0.0, -1.0], &[3][..]));
    assert_eq!((b.to_f32().unwrap(), b.shape), (vec![1.5, -2.0], &[2, 1][..]));
    assert_eq!((b.rows(), b.columns(), b.row_bytes(1)), (2, 1, &values[4..]));
    assert!(file.tensor("c").is_none());
    file.check_unchanged().unwrap();
}

#[test]
fn shards_are_read_by_their_index() {
    let first = r#"{"x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
        "unlisted": {"dtype": "U8", "shape": [1], "data_offsets": [2, 3]}}"#;
    let second = r#"{"y": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}"#;
    let index = br#"{"metadata": {"total_size": 3}, "weight_map": {"y": "2.st", "x": "1.st"}}"#;
    let folder = Folder::with(&[
        CONFIG,
        ("model.safetensors.index.json", index),
        ("1.st", &safetensors(first, &[1, 2, 9])),
        ("2.st", &safetensors(second, &[3])),
    ]);
    let file = ModelFile::open(folder.path()).unwrap();
    let names: Vec<&str> = file.tensors().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["x", "y"]);
    assert_eq!(file.tensor("x").unwrap().bytes, [1, 2]);
    assert_eq!(file.tensor("y").unwrap().to_f32().unwrap(), [3.0]);
    assert_eq!(file.tensor("y").unwrap().row_bytes(0), [3]);
    file.release_pages();
    assert_eq!(file.tensor("x").unwrap().bytes, [1, 2]);
}

#[test]
fn rows_are_copied_out_in_any_order_and_missed_when_the_file_is_cut() {
    let header = r#"{"w": {"dtype": "U8", "shape": [3, 2], "data_offsets": [0, 6]}}"#;
    let bytes = safetensors(header, &[1, 2, 3, 4, 5, 6]);
    let folder = Folder::with(&[CONFIG, ("model.safetensors", &bytes)]);
    let file = ModelFile::open(folder.path()).unwrap();
    let w = file.tensor("w").unwrap();
    let mut values = vec![0.0; 6];
    file.dequantize_rows(&w, [2, 0, 2].into_iter(), &mut values).unwrap();
    assert_eq!(values, vec![5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
    file.dequantize_rows(&w, [].into_iter(), &mut []).unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cut = file.dequantize_rows(&w, [2].into_iter(), &mut values[..2]).unwrap_err();
    let want = format!("`{}` was changed by another program while it was in use", path.display());
    assert_eq!(sentence(&cut), want);
}

#[test]
fn folders_that_are_no_models_are_refused() {
    let incomplete = |missing| {
        format!(
            "`.` is a folder without `{missing}`: a model is a .gguf file, or a folder with \
             config.json and model.safetensors or its shards"
        )
    };
    check_folder(&[], &incomplete("config.json"));
    check_folder(&[CONFIG], &incomplete("model.safetensors"));
    let file = ("model.safetensors", &safetensors("{}", &[])[..]);
    check_folder(&[CONFIG, file], "read: 0 tensors");
    check_folder(
        &[("config.json", b"{\"a\": "), file],
        "cannot read `./config.json`: the JSON ends too early (line 1, column 6)",
    );
    check_folder(
        &[("config.json", b"<html>"), file],
        "cannot read `./config.json`: not valid JSON (line 1, column 1)",
    );
    check_folder(
        &[("config.json", b"[]"), file],
        "cannot read `./config.json`: the JSON is not of the form that is read here (line 1, \
         column 1)",
    );
    check_folder(
        &[("config.json", &b"[".repeat(100_000)), file],
        "cannot read `./config.json`: not valid JSON (line 1, column 128)",
    );
    check_folder(
        &[("config.json", &vec![b' '; (4 << 20) + 1]), file],
        "`./config.json` is 4194305 bytes long, the limit for it is 4194304",
    );
}

#[test]
fn a_bad_file_in_a_folder_is_named() {
    check_folder(
        &[CONFIG, ("model.safetensors", b"<html>")],
        "cannot read `./model.safetensors`: not a safetensors file: it looks like an HTML page, \
         perhaps a download that needed a login",
    );
    check_folder(
        &[CONFIG, ("model.safetensors", &safetensors("{", &[]))],
        "cannot read `./model.safetensors`: in its header, the JSON ends too early (line 1, \
         column 1)",
    );
    let index: &[u8] = br#"{"weight_map": {"w": "1.st"}}"#;
    let files = [CONFIG, ("model.safetensors.index.json", index), ("1.st", b"{}")];
    let want = "cannot read `./1.st`: not a safetensors file: it is 2 bytes long";
    check_folder(&files, want);
}

#[test]
fn an_index_may_not_reach_outside_its_folder() {
    for shard in ["../m.st", "/etc/passwd", "a/b.st", "..", ".", "", "a\\\\b", "./m.st", "m.st/"] {
        let index = format!(r#"{{"weight_map": {{"w": "{shard}"}}}}"#);
        let shown = shard.replace("\\\\", "\\");
        check_folder(
            &[CONFIG, ("model.safetensors.index.json", index.as_bytes())],
            &format!(
                "cannot read `./model.safetensors.index.json`: it names the shard `{shown}`, \
                 which is not a file name in its own folder"
            ),
        );
    }
}

/// What is said of an index beside a shard `1.st` that holds `w`.
fn check_index(index: &str, want: &str) {
    let shard = r#"{"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}"#;
    let files: [(&str, &[u8]); 4] = [
        CONFIG,
        ("model.safetensors.index.json", index.as_bytes()),
        ("1.st", &safetensors(shard, &[0])),
        ("2.st", &safetensors(shard, &[0])),
    ];
    check_folder(&files, &format!("cannot read `./model.safetensors.index.json`: {want}"));
}

#[test]
fn an_index_must_hold_what_it_says() {
    check_index(r#"{"weight_map": {"w": "9.st"}}"#, "it names the shard `9.st`, which is missing");
    check_index(
        r#"{"weight_map": {"v": "1.st"}}"#,
        "it puts tensor `v` into `1.st`, which does not hold it",
    );
    check_index(
        r#"{"weight_map": {"w": "1.st", "w": "2.st"}}"#,
        "it puts tensor `w` into two shards",
    );
    check_index(r#"{"weight_map": {}}"#, "it names no tensors");
    let form = "the JSON is not of the form that is read here";
    check_index("{}", &format!("{form} (line 1, column 2)"));
    check_index(r#"{"weight_map": {"w": 1}}"#, &format!("{form} (line 1, column 22)"));
    let many: Vec<String> = (0..1025).map(|n| format!(r#""{n}": "{n}.st""#)).collect();
    check_index(
        &format!(r#"{{"weight_map": {{{}}}}}"#, many.join(", ")),
        "it names 1025 shards, the limit is 1024",
    );
}

#[test]
fn what_is_not_safetensors_is_told_by_its_looks() {
    let check = |bytes: &[u8], want: &str| {
        assert_eq!(Header::parse(bytes).unwrap_err().to_string(), want);
    };
    check(b"", "not a safetensors file: it is empty");
    check(b"1234567", "not a safetensors file: it looks like plain text");
    check(
        b"<!DOCTYPE html><html></html>",
        "not a safetensors file: it looks like an HTML page, perhaps a download that needed a \
         login",
    );
    check(
        b"version https://git-lfs.github.com/spec/v1\n",
        "not a safetensors file: it looks like a Git LFS pointer, not the file it points to",
    );
    check(&Gguf::small().build(), "not a safetensors file: it looks like a GGUF file");
    check(
        &u64::MAX.to_le_bytes(),
        "its header is 18446744073709551615 bytes long, the limit is 100000000",
    );
    check(
        &[&100_u64.to_le_bytes()[..], b"{}"].concat(),
        "the file is cut short: it ends at byte 10, inside its header of 100 bytes",
    );
}

/// What is said of a header that is not of the form, the place in the line left off.
fn check_form(header: &str, want: &str) {
    let fault = Header::parse(&safetensors(header, &[0; 8])).expect_err(header).to_string();
    let (sentence, place) = fault.split_once(" (line 1, column ").unwrap_or((&fault, ""));
    assert_eq!(sentence, format!("in its header, {want}"));
    assert!(place.ends_with(')'), "{fault}");
}

#[test]
fn headers_that_are_not_of_the_form_are_refused() {
    check("{}", 0, "read: 0 tensors");
    check_form("{", "the JSON ends too early");
    check_form("", "the JSON ends too early");
    check_form("{}x", "not valid JSON");
    let deep = format!(r#"{{"__metadata__": {}"#, "[".repeat(1000));
    check_form(&deep, "the JSON ends too early");
    let three = r#"{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]}}"#;
    check_form(three, "not valid JSON");
    let entries = [
        "",
        r#""dtype": "F32", "shape": [1]"#,
        r#""dtype": "F32", "shape": [-1], "data_offsets": [0, 4]"#,
        r#""dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]"#,
        r#""dtype": "F32", "shape": 1, "data_offsets": [0, 4]"#,
        r#""dtype": "F32", "shape": [36893488147419103232], "data_offsets": [0, 4]"#,
        r#""dtype": "F32", "shape": [1], "data_offsets": [0]"#,
        r#""dtype": "F32", "dtype": "F32", "shape": [1], "data_offsets": [0, 4]"#,
        r#""dtype": 7, "shape": [1], "data_offsets": [0, 4]"#,
    ];
    for entry in entries {
        let header = format!(r#"{{"w": {{{entry}}}}}"#);
        check_form(&header, "the JSON is not of the form that is read here");
    }
    check_form("[]", "the JSON is not of the form that is read here");
}

#[test]
fn tensors_that_cannot_be_are_refused() {
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#""dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}"#)
    };
    check_tensor(&entry("F32", "[2]", "[0, 8]"), "read: 1 tensors");
    check_tensor(&entry("F32", "[]", "[0, 4]"), "read: 1 tensors");
    check_tensor(&entry("F32", "[0, 7]", "[8, 8]"), "read: 1 tensors");
    check_tensor(
        &entry("F99", "[2]", "[0, 8]"),
        "tensor `w` has the type `F99`, which is none of the known types",
    );
    let length = |needed, declared| {
        format!("tensor `w` takes {needed} bytes by its shape and type, {declared} by its offsets")
    };
    check_tensor(&entry("F32", "[2]", "[0, 4]"), &length(8, 4));
    check_tensor(&entry("F16", "[2]", "[0, 8]"), &length(4, 8));
    check_tensor(&entry("F32", "[2]", "[8, 0]"), &length(8, 0));
    check_tensor(&entry("F32", "[2]", "[18446744073709551608, 8]"), &length(8, 0));
    check_tensor(
        &entry("F32", "[4]", "[0, 16]"),
        "tensor `w` lies outside the file: it ends at byte 86 of 78",
    );
    check_tensor(
        &entry("F32", "[2]", "[0, 18446744073709551615]"),
        "tensor `w` lies outside the file: it ends at byte 18446744073709551703 of 96",
    );
    check_tensor(
        &entry("F32", "[4294967296, 4294967296]", "[0, 8]"),
        "tensor `w` has the shape [4294967296, 4294967296], whose size in bytes does not fit in \
         64 bits",
    );
    check_tensor(
        &entry("U8", "[1,1,1,1,1,1,1,1,1]", "[0, 1]"),
        "tensor `w` has 9 dimensions, the limits are 0 and 8",
    );
    check_tensor(
        &entry("U8", &format!("[{}1]", "1,".repeat(999)), "[0, 1]"),
        "tensor `w` has 1000 dimensions, the limits are 0 and 8",
    );
    let many = (0..65_537).map(|n| format!(r#""{n}": {{{}}}"#, entry("U8", "[0]", "[0, 0]")));
    check(
        &format!("{{{}}}", many.collect::<Vec<String>>().join(",")),
        0,
        "it holds 65537 tensors, the limit is 65536",
    );
    let two = |second: &str| format!(r#"{{"a": {{{}}}, {second}}}"#, entry("U8", "[4]", "[0, 4]"));
    check(
        &two(&format!(r#""b": {{{}}}"#, entry("U8", "[4]", "[3, 7]"))),
        8,
        "tensor `b` overlaps tensor `a`",
    );
    check(
        &two(&format!(r#""a": {{{}}}"#, entry("U8", "[4]", "[4, 8]"))),
        8,
        "tensor `a` is listed twice",
    );
}

#[test]
fn a_missing_path_is_the_callers_mistake_and_a_bad_file_is_not() {
    let folder = Folder::with(&[("bad.gguf", b"<html>")]);
    let missing = ModelFile::open(&folder.join("absent.gguf")).unwrap_err();
    assert!(missing.is_callers_mistake(), "{missing}");
    let bad = ModelFile::open(&folder.join("bad.gguf")).unwrap_err();
    assert!(!bad.is_callers_mistake(), "{bad}");
}

#[test]
fn a_file_cut_short_while_open_is_noticed() {
    let folder = Folder::with(&[("m.gguf", &Gguf::small().build())]);
    let path = folder.join("m.gguf");
    let file = ModelFile::open(&path).unwrap();
    file.check_unchanged().unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(64).unwrap();
    let error = sentence(&file.check_unchanged().unwrap_err());
    let want = format!("`{}` was changed by another program while it was in use", path.display());
    assert_eq!(error, want);
}
