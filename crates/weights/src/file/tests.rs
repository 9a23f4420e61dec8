//! Real models, opened whole.

use std::path::PathBuf;

use super::{Format, ModelFile};

/// A model of the models' folder, which the test command fills before the tests start.
fn real(name: &str, file: &str) -> ModelFile {
    let home = std::env::var_os("CAUSEWAY_HOME").map(PathBuf::from).unwrap_or_else(|| {
        let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME is set"));
        data.unwrap_or_else(|| home().join(".local/share")).join("causeway")
    });
    let path = home.join("models").join(file);
    ModelFile::open(&path).unwrap_or_else(|error| {
        panic!("{} does not open ({error}): run `causeway pull {name}` first", path.display())
    })
}

#[test]
fn real_models_open() {
    let file = real("smollm2:135m", "smollm2-135m.gguf");
    assert_eq!(file.format(), Format::Gguf { version: 3 });
    assert_eq!(file.tensors().len(), 272);
    assert_eq!(file.metadata().u32("llama.block_count").unwrap(), Some(30));
    assert_eq!(file.metadata().strings("tokenizer.ggml.tokens").unwrap().unwrap().len(), 49152);
    let tensor = file.tensor("token_embd.weight").unwrap();
    assert_eq!((tensor.dtype.name(), tensor.shape), ("Q8_0", &[49152, 576][..]));
}
