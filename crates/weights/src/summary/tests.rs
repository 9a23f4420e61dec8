//! Summaries of small tensors, worked out by hand.

use super::Summary;
use crate::{DType, Tensor};

fn check(values: &[f32], shape: &[usize], want: Summary) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = Tensor { name: "w", dtype: DType::F32, shape, bytes: &bytes };
    assert_eq!(tensor.summary().unwrap(), want);
    assert_eq!(tensor.first_values(3).unwrap().len(), values.len().min(3));
}

#[test]
fn values_are_summed_over_all_rows() {
    let want = Summary { range: Some((-4.0, 3.0)), mean: 0.5, rms: 3.0, non_finite: 0 };
    check(
        &[1.0, -4.0, 3.0, 3.0, 3.0, -3.0],
        &[3, 2],
        Summary { rms: 53_f64.sqrt() / 6_f64.sqrt(), ..want },
    );
    check(
        &[3.0, -3.0, 3.0, -3.0],
        &[2, 2],
        Summary { range: Some((-3.0, 3.0)), mean: 0.0, ..want },
    );
}

#[test]
fn what_is_not_finite_is_counted_apart() {
    let want = Summary { range: Some((2.0, 2.0)), mean: 2.0, rms: 2.0, non_finite: 3 };
    check(&[f32::NAN, 2.0, f32::INFINITY, f32::NEG_INFINITY], &[4], want);
    check(&[f32::NAN], &[], Summary { range: None, mean: 0.0, rms: 0.0, non_finite: 1 });
}

#[test]
fn a_tensor_without_elements_has_an_empty_summary() {
    let want = Summary { range: None, mean: 0.0, rms: 0.0, non_finite: 0 };
    check(&[], &[0, 5], want);
    check(&[], &[1 << 60, 0], want);
}
