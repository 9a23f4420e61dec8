//! The files that the fuzz targets keep: each is refused, and the good ones are read.

use std::path::Path;

use causeway_weights::gguf::Directory;
use causeway_weights::safetensors::Header;

/// Which of a target's files are read; all others must be refused.
fn check(target: &str, reads: fn(&[u8]) -> bool, want: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(target);
    let files = std::fs::read_dir(&folder).expect("the folder of kept files is there");
    let mut read = Vec::new();
    for file in files {
        let path = file.expect("the folder can be listed").path();
        if reads(&std::fs::read(&path).expect("a kept file can be read")) {
            let name = path.file_name().expect("a kept file has a name");
            read.push(name.to_string_lossy().into_owned());
        }
    }
    read.sort_unstable();
    assert_eq!(read, want, "{target}");
}

#[test]
fn kept_files_are_read_or_refused_as_named() {
    let gguf = |bytes: &[u8]| Directory::parse(bytes).is_ok();
    check("gguf", gguf, &["scores-as-bytes", "small", "version-2"]);
    let safetensors = |bytes: &[u8]| Header::parse(bytes).is_ok();
    check("safetensors", safetensors, &["shape-of-nothing", "small"]);
}
