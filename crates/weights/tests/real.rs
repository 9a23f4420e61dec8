//! Real models: what their files say, and values against an independent reader's, bit for bit.

use std::path::PathBuf;

use causeway_weights::{Format, ModelFile, Tensor};
use serde_json::Value;

const TENSORS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/weights/real_tensors.json"));

/// A model of the models' folder, which the test command fills before the tests start.
fn real(name: &str, file: &str) -> ModelFile {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("CAUSEWAY_HOME").unwrap_or_else(|| {
        let below = || variable("HOME").map(|home| home.join(".local/share"));
        let base = variable("XDG_DATA_HOME").or_else(below);
        base.expect("HOME or CAUSEWAY_HOME is set").join("causeway")
    });
    let path = home.join("models").join(file);
    ModelFile::open(&path).unwrap_or_else(|error| {
        panic!("{} does not open ({error}): run `causeway pull {name}` first", path.display())
    })
}

/// The sum over all values of their bits, weighted by place, as the reference defines it.
fn checksum(tensor: &Tensor<'_>) -> u64 {
    let mut row = vec![0.0; tensor.columns()];
    let mut places = (1..=65_521_u64).cycle();
    let mut sum = 0_u64;
    for index in 0..tensor.rows() {
        tensor.dequantize_row(index, &mut row).expect("the type is one that is read");
        for (value, place) in row.iter().zip(&mut places) {
            sum = sum.wrapping_add(u64::from(value.to_bits()) * place);
        }
    }
    sum
}

fn check(name: &str, file_name: &str, want_keys: usize, want_tensors: usize) {
    let file = real(name, file_name);
    assert_eq!(file.format(), Format::Gguf { version: 3 });
    assert_eq!((file.metadata().len(), file.tensors().len()), (want_keys, want_tensors));
    let reference: Value = serde_json::from_str(TENSORS).expect("the reference is JSON");
    let tensors = reference[file_name].as_array().expect("a list of tensors");
    assert!(!tensors.is_empty(), "{file_name}");
    for want in tensors {
        let name = want["name"].as_str().expect("a name");
        let tensor = file.tensor(name).expect(name);
        assert_eq!(want["dtype"], tensor.dtype.name(), "{name}");
        assert_eq!(want["shape"], Value::from(tensor.shape), "{name}");
        assert_eq!(want["bits"], checksum(&tensor).to_string(), "{name}");
    }
    file.release_pages();
    file.check_unchanged().expect("nobody changes the file");
}

#[test]
fn smollm2_reads_as_elsewhere() {
    check("smollm2:135m", "smollm2-135m.gguf", 33, 272);
}

#[test]
fn qwen_reads_as_elsewhere() {
    check("qwen2.5-coder:0.5b", "qwen2.5-coder-0.5b.gguf", 26, 291);
}

#[test]
fn gemma3_reads_as_elsewhere() {
    check("gemma3:270m", "gemma3-270m.gguf", 33, 236);
}

#[test]
fn vocabularies_are_read_whole() {
    let file = real("gemma3:270m", "gemma3-270m.gguf");
    let metadata = file.metadata();
    let tokens = metadata.strings("tokenizer.ggml.tokens").expect("strings").expect("a list");
    let scores = metadata.f32s("tokenizer.ggml.scores").expect("f32s").expect("a list");
    let types = metadata.i32s("tokenizer.ggml.token_type").expect("i32s").expect("a list");
    assert_eq!((tokens.len(), scores.len(), types.len()), (262_144, 262_144, 262_144));
    assert_eq!((tokens[0].as_str(), tokens[2].as_str()), ("<pad>", "<bos>"));
}
