//! Any bytes are read as a GGUF file or refused, and what is read lies inside them.

#![no_main]

use causeway_weights::gguf::Directory;
use causeway_weights::{TensorEntry, dequantize};
use libfuzzer_sys::fuzz_target;

/// Values of one tensor that are read; more only makes a run slower.
const VALUES_MAX: usize = 1 << 16;

fuzz_target!(|file: &[u8]| {
    let directory = match Directory::parse(file) {
        Ok(directory) => directory,
        Err(fault) => {
            assert!(!fault.to_string().contains(char::is_control), "{fault}");
            return;
        }
    };
    for (key, _) in directory.metadata.iter() {
        // Each getter answers or refuses; none may panic, whatever the value's type.
        let metadata = &directory.metadata;
        let _ = (metadata.u32(key), metadata.u64(key), metadata.f32(key), metadata.bool(key));
        let _ = (metadata.string(key), metadata.strings(key));
        let _ = (metadata.f32s(key), metadata.i32s(key), metadata.u32s(key));
    }
    let mut ends = Vec::new();
    for TensorEntry { name: _, dtype, shape, offset, bytes, shard: _ } in &directory.tensors {
        let elements = shape.iter().product();
        assert_eq!(dtype.bytes_of(elements), Some(*bytes));
        let bytes = &file[*offset..*offset + *bytes];
        ends.push((*offset, *offset + bytes.len()));
        if elements <= VALUES_MAX && dtype.is_readable() {
            dequantize(*dtype, bytes, &mut vec![0.0; elements]).expect("whole blocks are read");
        }
    }
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "tensors overlap");
});
