//! Damaged files by the thousand: each is read or refused, and what is read lies inside the file.
//!
//! The damage comes from a seeded generator, so a failure names the seed that repeats it.

mod support;

use causeway_weights::gguf::Directory;
use causeway_weights::safetensors::Header;
use causeway_weights::{DType, TensorEntry, dequantize};
use support::{Gguf, Random, safetensors};

/// Damaged copies per kind of file; a second's worth.
const COPIES: u64 = 100_000;
/// Values of one tensor that are read for the check; damage cannot make more of a small file.
const VALUES_MAX: usize = 1 << 20;

/// What every file that was read must keep: tensors inside the file, apart, and readable.
fn check_read(file: &[u8], tensors: &[TensorEntry], seed: u64) {
    let mut ends: Vec<(usize, usize)> = Vec::new();
    for TensorEntry { name, dtype, shape, offset, bytes, shard: _ } in tensors {
        let end = offset.checked_add(*bytes);
        assert!(end.is_some_and(|end| end <= file.len()), "seed {seed}: `{name}` is outside");
        let elements: usize = shape.iter().product();
        assert_eq!(dtype.bytes_of(elements), Some(*bytes), "seed {seed}: `{name}`");
        ends.push((*offset, offset + bytes));
        if elements <= VALUES_MAX && dtype.is_readable() {
            let mut values = vec![0.0; elements];
            let read = dequantize(*dtype, &file[*offset..offset + bytes], &mut values);
            assert_eq!(read, Ok(()), "seed {seed}: `{name}`");
        }
    }
    ends.retain(|(start, end)| start < end);
    ends.sort_unstable();
    let apart = ends.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    assert!(apart, "seed {seed}: tensors overlap");
}

/// Reads a file as both formats; the sentences must be of one line.
fn check(file: &[u8], seed: u64) -> bool {
    let gguf = Directory::parse(file);
    match &gguf {
        Ok(directory) => check_read(file, &directory.tensors, seed),
        Err(fault) => check_sentence(&fault.to_string(), seed),
    }
    let header = Header::parse(file);
    match &header {
        Ok(header) => check_read(file, &header.tensors, seed),
        Err(fault) => check_sentence(&fault.to_string(), seed),
    }
    gguf.is_ok() || header.is_ok()
}

fn check_sentence(sentence: &str, seed: u64) {
    let is_one_line = !sentence.contains(char::is_control) && sentence.len() < 500;
    assert!(is_one_line, "seed {seed}: {sentence:?}");
}

/// Damages a copy: bytes changed, or a number written over eight of them, or bytes cut out, put
/// in or cut off the end.
fn damage(good: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut file = good.to_vec();
    for _ in 0..=random.below(3) {
        // Mostly the directory, which is where damage matters; never an empty range.
        let area = if random.below(4) > 0 { file.len().min(700) } else { file.len() };
        let at = random.below(area.max(1)).min(file.len().saturating_sub(1));
        match random.below(6) {
            _ if file.is_empty() => {}
            0 | 1 => file[at] ^= 1 << random.below(8),
            2 => file[at] = random.next().to_le_bytes()[0],
            3 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let count = file.len().saturating_sub(at).min(8);
                file[at..at + count].copy_from_slice(&number[..count]);
            }
            4 => {
                let end = (at + random.below(16)).min(file.len());
                drop(file.drain(at..end));
            }
            _ if random.below(8) == 0 => file.truncate(at),
            _ => file.insert(at, random.next().to_le_bytes()[0]),
        }
    }
    file
}

/// Numbers at which products wrap, signs turn and limits lie.
const NUMBERS: [u64; 14] = [
    0,
    1,
    31,
    33,
    255,
    65_536,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    (1 << 42) + 1,
    1 << 61,
    1 << 63,
    u64::MAX - 3,
    u64::MAX,
];

fn small_safetensors() -> Vec<u8> {
    let header = r#"{"__metadata__": {"format": "pt"},
        "model.embed_tokens.weight": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]},
        "model.norm.weight": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]},
        "model.scale": {"dtype": "F16", "shape": [], "data_offsets": [28, 30]}}"#;
    safetensors(header, &[0x3c; 30])
}

#[test]
fn damaged_files_are_read_or_refused() {
    for good in [Gguf::small().build(), small_safetensors()] {
        let read = (0..COPIES).filter(|&seed| check(&damage(&good, seed), seed)).count();
        // Some damage falls into tensor bytes and names, so neither count may be all.
        let copies = usize::try_from(COPIES).unwrap();
        assert!((copies / 100..copies * 9 / 10).contains(&read), "{read} of {COPIES} were read");
    }
}

#[test]
fn every_beginning_of_a_file_is_refused() {
    for good in [Gguf::small().build(), small_safetensors()] {
        assert!(check(&good, 0));
        for length in 0..good.len() {
            let start = &good[..length];
            let refused = Directory::parse(start).is_err() && Header::parse(start).is_err();
            assert!(refused, "the first {length} bytes of {} were read", good.len());
            check(start, length as u64);
        }
    }
}

#[test]
fn every_byte_of_the_directory_may_have_any_value() {
    let good = Gguf::small().build();
    let tensors_start = Directory::parse(&good).unwrap().tensors[0].offset;
    for at in 0..tensors_start {
        for value in [0, 1, 2, 9, 13, 31, 32, 127, 128, 255] {
            let mut file = good.clone();
            file[at] = value;
            check(&file, at as u64);
        }
    }
}

/// The canary: a reader that believed a directory's offsets would fail the check above.
#[test]
fn the_check_notices_a_tensor_outside_its_file() {
    let entry = |offset| TensorEntry {
        name: "w".to_owned(),
        dtype: DType::F32,
        shape: vec![2],
        offset,
        bytes: 8,
        shard: 0,
    };
    let noticed = |entries: Vec<TensorEntry>| {
        std::panic::catch_unwind(|| check_read(&[0; 16], &entries, 0)).is_err()
    };
    assert!(noticed(vec![entry(9)]));
    assert!(noticed(vec![entry(usize::MAX)]));
    assert!(noticed(vec![entry(0), entry(4)]));
    assert!(!noticed(vec![entry(0), entry(8)]));
}
