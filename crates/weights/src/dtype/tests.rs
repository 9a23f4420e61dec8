//! The type table against itself and against the formats' numbers.

use super::{DType, LISTED, READABLE};

#[test]
fn each_number_and_each_name_stands_once() {
    let rows = || READABLE.iter().map(|(_, row)| row).chain(&LISTED);
    let mut ids: Vec<u32> = rows().filter_map(|row| row.ggml).collect();
    let mut names: Vec<&str> = rows().filter_map(|row| row.safetensors).collect();
    let (id_count, name_count) = (ids.len(), names.len());
    ids.sort_unstable();
    ids.dedup();
    names.sort_unstable();
    names.dedup();
    assert_eq!((ids.len(), names.len()), (id_count, name_count));
}

#[test]
fn every_type_is_found_again_by_its_number() {
    for id in 0..=64 {
        if let Some(dtype) = DType::from_ggml(id) {
            assert_eq!(dtype.row().ggml, Some(id), "{dtype}");
            assert_eq!(dtype.bytes_of(dtype.block_len() * 3), Some(dtype.block_bytes() * 3));
        }
    }
}

/// Number, name, elements and bytes of a block, as the format's description gives them.
fn check(id: u32, name: &str, block_len: usize, block_bytes: usize) {
    let dtype = DType::from_ggml(id).expect(name);
    let got = (dtype.name(), dtype.block_len(), dtype.block_bytes());
    assert_eq!(got, (name, block_len, block_bytes));
}

#[test]
fn sizes_are_the_formats_own() {
    check(0, "F32", 1, 4);
    check(1, "F16", 1, 2);
    check(30, "BF16", 1, 2);
    check(2, "Q4_0", 32, 18);
    check(14, "Q6_K", 256, 210);
    check(15, "Q8_K", 256, 292);
    check(16, "IQ2_XXS", 256, 66);
    check(28, "F64", 1, 8);
    check(39, "MXFP4", 32, 17);
}

#[test]
fn withdrawn_and_unknown_numbers_are_no_types() {
    // 4, 5, 31 to 33 and 36 to 38 were given out once and withdrawn.
    for id in [4, 5, 31, 32, 33, 36, 37, 38, 200, u32::MAX] {
        assert_eq!(DType::from_ggml(id), None, "{id}");
    }
}

#[test]
fn part_blocks_and_overflows_have_no_size() {
    let q4_0 = DType::from_ggml(2).expect("Q4_0");
    assert_eq!(q4_0.bytes_of(33), None);
    assert_eq!(DType::F32.bytes_of(usize::MAX), None);
    assert_eq!(q4_0.bytes_of(0), Some(0));
    let f4 = DType::from_safetensors("F4").expect("F4");
    assert_eq!(f4.bytes_of(6), Some(3));
}
