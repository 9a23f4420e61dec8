//! Sizes, overlaps, and names as sentences show them.

use super::{TensorEntry, check_together, shown, tensor_bytes};
use crate::DType;

/// The size of a tensor, or what is wrong with it.
fn check_bytes(dtype: DType, shape: &[usize], want: Result<usize, &str>) {
    let got = tensor_bytes(dtype, shape).map_err(|fault| fault.to_string());
    assert_eq!(got, want.map_err(str::to_owned), "{dtype} {shape:?}");
}

#[test]
fn sizes_are_whole_rows_of_blocks() {
    check_bytes(DType::F32, &[], Ok(4));
    check_bytes(DType::F32, &[3, 2], Ok(24));
    check_bytes(DType::Q4_0, &[2, 64], Ok(72));
    check_bytes(DType::Q6_K, &[4, 3, 256], Ok(2520));
    check_bytes(DType::F16, &[0, 5], Ok(0));
    // A whole number of blocks in all, but not in each row.
    check_bytes(
        DType::Q4_0,
        &[4, 16],
        Err("has rows of 16 elements, not a multiple of the 32 of a Q4_0 block"),
    );
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let shapes: [&[usize]; 5] = [
        &[(1 << 42) + 1, 1 << 24],
        &[1 << 32, 1 << 32],
        &[usize::MAX],
        &[usize::MAX, usize::MAX, usize::MAX],
        &[1 << 60, 4],
    ];
    for shape in shapes {
        let want = format!("has the shape {shape:?}, whose size in bytes does not fit in 64 bits");
        check_bytes(DType::F32, shape, Err(&want));
    }
    let fits_in_bytes_but_not_in_bits = 1 << 61;
    assert!(tensor_bytes(DType::F16, &[fits_in_bytes_but_not_in_bits]).is_err());
}

fn entry(name: &str, offset: usize, bytes: usize, shard: usize) -> TensorEntry {
    let (name, shape) = (name.to_owned(), vec![bytes]);
    TensorEntry { name, dtype: DType::U8, shape, offset, bytes, shard }
}

/// What is said of tensors that lie so.
fn check_layout(entries: &[TensorEntry], want: &str) {
    let got = match check_together(entries) {
        Ok(by_name) => format!("{by_name:?}"),
        Err(fault) => fault.to_string(),
    };
    assert_eq!(got, want);
}

#[test]
fn tensors_may_touch_but_not_overlap() {
    check_layout(&[entry("b", 0, 8, 0), entry("a", 8, 4, 0)], "[1, 0]");
    check_layout(&[entry("b", 0, 9, 0), entry("a", 8, 4, 0)], "tensor `a` overlaps tensor `b`");
    check_layout(&[entry("b", 0, 9, 0), entry("a", 8, 4, 1)], "[1, 0]");
    check_layout(&[entry("b", 0, 9, 0), entry("a", 8, 0, 0)], "[1, 0]");
    check_layout(&[entry("b", 0, 9, 0), entry("b", 9, 1, 1)], "tensor `b` is listed twice");
}

#[test]
fn names_are_shown_on_one_line_and_not_at_length() {
    assert_eq!(shown("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
    assert_eq!(shown("Grüße 世界"), "Grüße 世界");
    assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
    assert_eq!(shown(&"x".repeat(1000)), format!("{}…", "x".repeat(80)));
}
