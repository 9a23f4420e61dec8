//! Small files written in other types and read again.

use std::ops::ControlFlow::{Break, Continue};
use std::path::Path;

use causeway_weights::gguf::{NewTensor, write_directory};
use causeway_weights::{DType, ModelFile, Value};

use crate::{Choice, Target, quantise};

/// A model of two tensors, one of them a matrix of `dtype` whose bytes repeat `byte`.
fn model(path: &Path, dtype: DType, bytes: &[u8]) -> ModelFile {
    let tensors = [
        NewTensor { name: "blk.0.attn_q.weight".to_owned(), dtype, shape: vec![8, 256] },
        NewTensor { name: "output_norm.weight".to_owned(), dtype: DType::F32, shape: vec![3] },
    ];
    let metadata = [
        ("general.architecture".to_owned(), Value::String("llama".to_owned())),
        ("general.file_type".to_owned(), Value::U32(1)),
    ];
    let mut file = Vec::new();
    write_directory(&mut file, &metadata, &tensors).unwrap();
    let matrix = tensors[0].bytes();
    file.extend(bytes.iter().cycle().take(matrix));
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend([0; 32]);
    std::fs::write(path, file).unwrap();
    ModelFile::open(path).unwrap()
}

fn choice(allows_requantising: bool) -> Choice {
    Choice { target: Target::Q4K, rules: Vec::new(), is_pure: true, allows_requantising }
}

#[test]
fn a_model_is_written_whole_and_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(&folder.path().join("in.gguf"), DType::F16, &[0x00, 0x3c, 0x12, 0xb4, 9]);
    let out = |threads: usize| {
        let path = folder.path().join(format!("out-{threads}.gguf"));
        let outcomes = quantise(&source, &path, &choice(false), threads, |_| Continue(())).unwrap();
        (std::fs::read(&path).unwrap(), outcomes, path)
    };
    let (one, outcomes, path) = out(1);
    assert_eq!((&one, &outcomes), (&out(3).0, &out(4).1));
    let read = ModelFile::open(&path).unwrap();
    assert_eq!(read.metadata().u32("general.file_type").unwrap(), Some(15));
    assert_eq!(read.metadata().string("general.architecture").unwrap(), Some("llama"));
    assert_eq!(read.tensor("blk.0.attn_q.weight").unwrap().dtype, DType::Q4_K);
    assert_eq!(read.tensor("output_norm.weight").unwrap().dtype, DType::F32);
    assert!(outcomes[0].rmse > 0.0 && f64::from(outcomes[0].max) >= outcomes[0].rmse);
    assert_eq!((outcomes[1].rmse, outcomes[0].bytes), (0.0, 8 * 144));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "no part is left");
}

/// What is said of a model of such bytes, and that no file is left of it.
fn check_refused(dtype: DType, bytes: &[u8], name: &str, want: &str) {
    let folder = tempfile::tempdir().unwrap();
    let source = model(&folder.path().join("in.gguf"), dtype, bytes);
    let path = folder.path().join(name);
    let error = quantise(&source, &path, &choice(false), 2, |_| Continue(())).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(want), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    check_refused(DType::Q8_0, &[0], "out.gguf", "is Q8_0 already");
    check_refused(DType::F16, &[0, 0x7c], "out.gguf", "holds inf, the limit is a finite ±65504");
    check_refused(DType::F16, &[0], "in.gguf", "is the model itself");
    check_refused(DType::F16, &[0], "no/out.gguf", "cannot be written");
}

#[test]
fn a_quantised_model_is_quantised_again_when_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(&folder.path().join("in.gguf"), DType::Q8_0, &[0x12; 34]);
    let path = folder.path().join("out.gguf");
    let outcomes = quantise(&source, &path, &choice(true), 2, |_| Continue(())).unwrap();
    assert_eq!((outcomes[0].from, outcomes[0].to), (DType::Q8_0, DType::Q4_K));
}

#[test]
fn a_run_that_is_stopped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(&folder.path().join("in.gguf"), DType::F16, &[0]);
    let path = folder.path().join("out.gguf");
    let error = quantise(&source, &path, &choice(false), 2, |_| Break(())).unwrap_err();
    assert!(!error.is_callers_mistake() && error.to_string().starts_with("stopped before"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
}
