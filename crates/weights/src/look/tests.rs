//! First bytes, and what is said of them.

use super::Look;

fn check(bytes: &[u8], want: &str) {
    assert_eq!(Look::at(bytes).to_string(), want);
}

#[test]
fn the_sentence_says_what_a_file_looks_like() {
    let html = "it looks like an HTML page, perhaps a download that needed a login";
    check(b"", "it is empty");
    check(b"G", "it is 1 byte long");
    check(b"GGU", "it is 3 bytes long");
    check(b"<!DOCTYPE html><html>", html);
    check(b"\n\n  <HTML lang=en>", html);
    check(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:",
        "it looks like a Git LFS pointer, not the file it points to",
    );
    check(b"{\"error\": \"not found\"}", "it looks like JSON");
    check(
        b"\x40\0\0\0\0\0\0\0{\"__metadata__\":",
        "it looks like a safetensors file, which is read with its folder",
    );
    check(b"PK\x03\x04\0\0", "it looks like a zip archive or a PyTorch checkpoint");
    check(b"\x1f\x8b\x08\0", "it looks like a gzip archive");
    check(b"tjgg\x03\0\0\0", "it looks like a GGML file from before GGUF");
    check(&[0; 64], "it starts with zeros, as an unfinished download does");
    check(b"404: Not Found", "it looks like plain text");
    check(b"\x01\xffG\n\0\0", "it starts with the bytes \\x01\\xffG\\n");
}
