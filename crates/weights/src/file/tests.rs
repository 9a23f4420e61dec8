//! Rows of tensors, and the values that cannot be read.

use super::Tensor;
use crate::{DType, WeightsError};

fn tensor<'a>(dtype: DType, shape: &'a [usize], bytes: &'a [u8]) -> Tensor<'a> {
    Tensor { name: "w", dtype, shape, bytes }
}

/// Rows, columns and elements of a shape.
fn check_sizes(shape: &[usize], want: (usize, usize, usize)) {
    let tensor = tensor(DType::U8, shape, &[]);
    let got = (tensor.rows(), tensor.columns(), tensor.elements());
    assert_eq!(got, want, "{shape:?}");
}

#[test]
fn rows_are_all_but_the_innermost_dimension() {
    check_sizes(&[], (1, 1, 1));
    check_sizes(&[7], (1, 7, 7));
    check_sizes(&[3, 7], (3, 7, 21));
    check_sizes(&[2, 3, 7], (6, 7, 42));
    check_sizes(&[0, 7], (0, 7, 0));
    check_sizes(&[1 << 60, 0], (0, 0, 0));
}

#[test]
fn a_row_is_its_own_blocks() {
    let mut bytes = [0; 2 * 2 * 34];
    // The scale 1.0 and a first element that tells the four blocks apart.
    for (number, block) in (10..).zip(bytes.chunks_exact_mut(34)) {
        block[..3].copy_from_slice(&[0x00, 0x3c, number]);
    }
    let tensor = tensor(DType::Q8_0, &[2, 64], &bytes);
    assert_eq!(tensor.row_bytes(1), &bytes[68..]);
    let mut row = [0.0; 64];
    tensor.dequantize_row(1, &mut row).unwrap();
    assert_eq!((row[0], row[1], row[32]), (12.0, 0.0, 13.0));
    let all = tensor.to_f32().unwrap();
    assert_eq!(all[64..], row);
}

#[test]
fn values_that_cannot_be_read_name_their_tensor() {
    let listed = DType::from_ggml(40).unwrap();
    let listed = tensor(listed, &[64], &[0; 36]).to_f32().unwrap_err();
    let WeightsError::Values { name, source } = listed else {
        panic!("{listed}");
    };
    assert_eq!(name, "w");
    assert_eq!(source.to_string(), "the type NVFP4 is not read, only listed");
    let mut short = [0.0; 31];
    let refused = tensor(DType::Q4_0, &[32], &[0; 18]).dequantize(&mut short).unwrap_err();
    assert_eq!(refused.to_string(), "the values of tensor `w` cannot be read");
    assert!(!refused.is_callers_mistake());
}
