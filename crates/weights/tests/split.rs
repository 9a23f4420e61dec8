//! Split GGUF models: whichever part is opened they are one, and the one sentence for each fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]

mod support;

use causeway_weights::gguf::{NewTensor, write_directory};
use causeway_weights::{DType, ModelFile, Value};
use support::{Folder, sentence};

/// Tensors of 8 bytes each by name, the first of them of two rows.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// One part as the project's own writer makes it: keys, and the tensors from `first` on.
fn part(keys: &[(&str, Value)], names: &[&str]) -> Vec<u8> {
    let keys: Vec<_> = keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let tensor = |name: &&str| NewTensor {
        name: (*name).to_owned(),
        dtype: DType::F32,
        shape: if *name == "a" { vec![2, 1] } else { vec![2] },
    };
    let tensors: Vec<_> = names.iter().map(tensor).collect();
    let mut file = Vec::new();
    let alignment = write_directory(&mut file, &keys, &tensors).unwrap();
    for name in names {
        file.extend([name.as_bytes()[0]; 8]);
        file.resize(file.len().next_multiple_of(alignment), 0);
    }
    file
}

fn split_keys(number: u16, count: u16) -> Vec<(&'static str, Value)> {
    vec![
        ("split.no", Value::U16(number)),
        ("split.count", Value::U16(count)),
        ("split.tensors.count", Value::I32(5)),
    ]
}

fn first_keys(count: u16) -> Vec<(&'static str, Value)> {
    let mut keys = split_keys(0, count);
    keys.push(("general.architecture", Value::String("llama".to_owned())));
    keys
}

/// The parts of the model of which each holds so many tensors, by their names.
fn parts(sizes: &[usize]) -> Vec<(String, Vec<u8>)> {
    let (mut names, count) = (&NAMES[..], u16::try_from(sizes.len()).unwrap());
    let mut files = Vec::new();
    for (number, size) in (0..).zip(sizes) {
        let (own, rest) = names.split_at(*size);
        let keys = if number == 0 { first_keys(count) } else { split_keys(number, count) };
        files.push((format!("m-{:05}-of-{count:05}.gguf", number + 1), part(&keys, own)));
        names = rest;
    }
    files
}

/// A folder of these files.
fn folder(files: &[(String, Vec<u8>)]) -> Folder {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, file)| (&**name, &**file)).collect();
    Folder::with(&files)
}

/// What is said where `open` of these files is opened, the folder's path written as `.`.
fn check(files: &[(String, Vec<u8>)], open: &str, want: &str) {
    let folder = folder(files);
    let got = match ModelFile::open(&folder.join(open)) {
        Ok(file) => format!("read: {} tensors", file.tensors().len()),
        Err(error) => sentence(&error).replace(&folder.path().display().to_string(), "."),
    };
    assert_eq!(got, want, "{open}");
}

#[test]
fn whichever_part_is_opened_all_are_one_model() {
    for sizes in [&[2, 3][..], &[0, 4, 1], &[1, 1, 1, 1, 1]] {
        let files = parts(sizes);
        let folder = folder(&files);
        for (name, _) in &files {
            let model = ModelFile::open(&folder.join(name)).unwrap();
            assert_eq!(model.metadata().string("general.architecture").unwrap(), Some("llama"));
            let listed: Vec<&str> = model.tensors().map(|entry| &*entry.name).collect();
            assert_eq!(listed, NAMES);
            for name in NAMES {
                assert_eq!(model.tensor(name).unwrap().bytes, [name.as_bytes()[0]; 8]);
            }
            let paths: Vec<_> = files.iter().map(|(name, _)| folder.join(name)).collect();
            assert_eq!(model.files(), paths);
            let bytes: usize = files.iter().map(|(_, file)| file.len()).sum();
            assert_eq!(model.bytes(), bytes as u64);
            model.check_unchanged().unwrap();
        }
    }
}

#[test]
fn a_model_of_one_part_is_a_file_like_any_other() {
    let files = [("x.gguf".to_owned(), part(&first_keys(1), &NAMES))];
    check(&files, "x.gguf", "read: 5 tensors");
}

#[test]
fn a_part_without_its_name_or_its_fellows_is_refused() {
    let files = parts(&[2, 2, 1]);
    let unnamed = [("x.gguf".to_owned(), files[1].1.clone())];
    check(
        &unnamed,
        "x.gguf",
        "cannot read `./x.gguf`: it is one of the 3 parts of a split model, and the others are \
         found by names that end in -00001-of-00003.gguf and so on, as its own does not: give it \
         that name back",
    );
    for open in [0, 1] {
        let name = &files[open].0;
        check(
            &files[..2],
            name,
            &format!(
                "cannot read `./{name}`: it is one of the 3 parts of a split model, and \
                 `m-00003-of-00003.gguf` is missing: all of them belong into one folder"
            ),
        );
    }
    let renamed: Vec<_> =
        (1..=2).map(|n| (format!("m-{n:05}-of-00002.gguf"), files[n - 1].1.clone())).collect();
    check(
        &renamed,
        "m-00001-of-00002.gguf",
        "cannot read `./m-00001-of-00002.gguf`: its name says that there are 2 parts, its key \
         `split.count` says 3: give the parts back the names that they were made with",
    );
    let many = [("m-00001-of-02000.gguf".to_owned(), part(&first_keys(2_000), &NAMES))];
    check(
        &many,
        "m-00001-of-02000.gguf",
        "cannot read `./m-00001-of-02000.gguf`: it is one of 2000 parts, the limit is 1024",
    );
}

/// What is said of the second of two parts, in the place of which this file stands.
fn check_second(file: Vec<u8>, want: &str) {
    let mut files = parts(&[2, 3]);
    files[1].1 = file;
    let second = "m-00002-of-00002.gguf";
    check(&files, &files[0].0, &format!("cannot read `./{second}`: {want}"));
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let with = |key: &'static str, value: Value| {
        let mut keys = split_keys(1, 2);
        keys.retain(|(own, _)| *own != key);
        keys.push((key, value));
        part(&keys, &NAMES[2..])
    };
    let other = "these are parts of different models, so fetch all of one model";
    check_second(
        with("split.tensors.count", Value::U32(7)),
        &format!("its key `split.tensors.count` is 7, and 5 in the first part: {other}"),
    );
    check_second(
        with("split.count", Value::U16(3)),
        &format!("its key `split.count` is 3, and 2 in the first part: {other}"),
    );
    check_second(
        with("general.architecture", Value::String("qwen2".to_owned())),
        &format!(
            "its key `general.architecture` is `qwen2`, and `llama` in the first part: {other}"
        ),
    );
    check_second(
        with("split.no", Value::U16(0)),
        "it is part 2 by its name, and part 1 by its key `split.no`: give the parts back the \
         names that they were made with",
    );
    check_second(
        part(&[], &NAMES[2..]),
        "it has no key `split.count`, so it is no part of the split model that its name is of",
    );
    check_second(
        part(&split_keys(1, 2), &["b", "d", "e"]),
        &format!("it holds tensor `b`, which `m-00001-of-00002.gguf` holds too: {other}"),
    );
    let changed = "one of them is of another model or was changed, so fetch all of one model";
    check_second(
        part(&split_keys(1, 2), &["c"]),
        &format!("the 2 parts hold 3 tensors, and `split.tensors.count` is 5: {changed}"),
    );
    check_second(
        part(&split_keys(1, 2), &["c", "d", "e", "f"]),
        &format!("the 2 parts hold 6 tensors, and `split.tensors.count` is 5: {changed}"),
    );
    check_second(
        b"<!doctype html>".to_vec(),
        "not a GGUF file: it looks like an HTML page, perhaps a download that needed a login",
    );
}

#[test]
fn numbers_that_are_none_are_refused() {
    let keys = [("split.count", Value::String("2".to_owned()))];
    let files = [("x.gguf".to_owned(), part(&keys, &NAMES))];
    check(&files, "x.gguf", "metadata key `split.count` must be an integer, the file has string");
    // What no list of parts can be, is not taken for a length.
    let keys = [("split.no", Value::U16(0)), ("split.count", Value::U32(u32::MAX))];
    let files = [("m-00001-of-00002.gguf".to_owned(), part(&keys, &NAMES))];
    check(
        &files,
        "m-00001-of-00002.gguf",
        "cannot read `./m-00001-of-00002.gguf`: its name says that there are 2 parts, its key \
         `split.count` says 4294967295: give the parts back the names that they were made with",
    );
}
