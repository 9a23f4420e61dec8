//! Any bytes are read as a safetensors file or refused, and what is read lies inside them.

#![no_main]

use causeway_weights::safetensors::Header;
use causeway_weights::{TensorEntry, dequantize};
use libfuzzer_sys::fuzz_target;

/// Values of one tensor that are read; more only makes a run slower.
const VALUES_MAX: usize = 1 << 16;

fuzz_target!(|file: &[u8]| {
    let header = match Header::parse(file) {
        Ok(header) => header,
        Err(fault) => {
            assert!(!fault.to_string().contains(char::is_control), "{fault}");
            return;
        }
    };
    let mut ends = Vec::new();
    for TensorEntry { name: _, dtype, shape, offset, bytes, shard: _ } in &header.tensors {
        let elements = shape.iter().product();
        assert_eq!(dtype.bytes_of(elements), Some(*bytes));
        let bytes = &file[*offset..*offset + *bytes];
        if !bytes.is_empty() {
            ends.push((*offset, *offset + bytes.len()));
        }
        if elements <= VALUES_MAX && dtype.is_readable() {
            dequantize(*dtype, bytes, &mut vec![0.0; elements]).expect("whole blocks are read");
        }
    }
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "tensors overlap");
});
