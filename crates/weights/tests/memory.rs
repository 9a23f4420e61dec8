//! Refusing a file that declares exabytes takes no memory worth the name.
//!
//! Alone in its file, and one test only: it reads the peak of its whole process.

mod support;

use causeway_weights::gguf::Directory;
use causeway_weights::safetensors::Header;
use support::{F32, Gguf, STRING, U8, safetensors};

/// Peak of the address space, in bytes, which counts what is reserved and not touched, too.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmPeak:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[test]
fn declared_sizes_are_not_allocated() {
    const ALLOWED_BYTES: u64 = 16 << 20;
    let Some(before) = peak_bytes() else {
        eprintln!("skipped: this platform has no /proc/self/status");
        return;
    };
    let giant = [1 << 62, u64::MAX, 1 << 40, 1 << 33];
    for count in giant {
        for element_type in [U8, F32, STRING] {
            let file = Gguf::new().array("key", element_type, count, &[0; 64]).build();
            assert!(Directory::parse(&file).is_err());
        }
        for (tensor_count, key_count) in [(Some(count), None), (None, Some(count))] {
            let file = Gguf { tensor_count, key_count, ..Gguf::small() }.build();
            assert!(Directory::parse(&file).is_err());
        }
        let file = Gguf::new().entry("w", &[count / 4 * 4], 0, 0).build();
        assert!(Directory::parse(&file).is_err());
        assert!(Header::parse(&[&count.to_le_bytes()[..], b"{}"].concat()).is_err());
        let header = format!(
            r#"{{"w": {{"dtype": "U8", "shape": [{count}], "data_offsets": [0, {count}]}}}}"#
        );
        assert!(Header::parse(&safetensors(&header, &[])).is_err());
    }
    let grown = peak_bytes().map(|after| after - before);
    assert!(grown.is_some_and(|grown| grown <= ALLOWED_BYTES), "grew by {grown:?} bytes");
}
