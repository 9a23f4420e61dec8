//! Rows against the blocks that other programs make of them.

use serde_json::Value;

use super::{is_written, quantize};
use crate::DType;
use crate::quant::dequantize;

const ROWS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf_quant/quantize.json"));

fn bytes_of(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    let digits = (0..hex.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn rmse(values: &[f32], other: &[f32]) -> f64 {
    let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
    (values.iter().zip(other).map(square).sum::<f64>() / values.len() as f64).sqrt()
}

/// One row as one type: the same bytes, or for searched types no larger an error.
fn check(name: &str, dtype: DType, values: &[f32], want: &[u8]) {
    let mut got = vec![0; want.len()];
    quantize(dtype, values, &mut got).unwrap();
    if dtype.block_len() < 256 {
        assert_eq!(got, want, "{name}");
        return;
    }
    let [mut own, mut theirs] = [vec![0.0; values.len()], vec![0.0; values.len()]];
    dequantize(dtype, &got, &mut own).unwrap();
    dequantize(dtype, want, &mut theirs).unwrap();
    let (own, theirs) = (rmse(values, &own), rmse(values, &theirs));
    assert!(own <= theirs, "{name}: rmse {own}, another program reaches {theirs}");
}

#[test]
fn rows_have_the_bytes_or_the_error_of_the_reference() {
    let fixture: Value = serde_json::from_str(ROWS).unwrap();
    let rows = fixture["rows_f32_le_hex"].as_array().unwrap();
    for (name, blocks) in fixture["quantised"].as_object().unwrap() {
        let dtypes = [DType::F16, DType::Q8_0, DType::Q6_K, DType::Q5_K, DType::Q4_K];
        let legacy = [DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1];
        let mut dtypes = dtypes.into_iter().chain(legacy);
        let dtype = dtypes.find(|dtype| dtype.name() == name).unwrap();
        for (at, (row, want)) in rows.iter().zip(blocks.as_array().unwrap()).enumerate() {
            let values: Vec<f32> = bytes_of(row)
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
                .collect();
            check(&format!("{name} row {at}"), dtype, &values, &bytes_of(want));
        }
    }
}

#[test]
fn values_that_are_far_out_give_blocks_that_can_be_read() {
    let rows = [[0.0; 256], [1e-40; 256], [-65_504.0; 256], [3e-8; 256], [-1e-38; 256]];
    let mut mixed = [0.0_f32; 256];
    (mixed[0], mixed[255]) = (65_504.0, -1e-30);
    for dtype in [DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::Q8_0, DType::Q4_0, DType::Q5_1] {
        for row in rows.iter().chain([&mixed]) {
            let mut bytes = vec![0; dtype.bytes_of(256).unwrap()];
            quantize(dtype, row, &mut bytes).unwrap();
            let mut values = [0.0; 256];
            dequantize(dtype, &bytes, &mut values).unwrap();
            assert!(values.iter().all(|value| value.is_finite()), "{dtype}: {row:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |dtype, values: &[f32], bytes| {
        quantize(dtype, values, &mut vec![0; bytes]).unwrap_err().to_string()
    };
    assert_eq!(refused(DType::Q2_K, &[], 0), "the type Q2_K is not written");
    let want = "17 bytes are not a whole number of Q4_0 blocks of 18";
    assert_eq!(refused(DType::Q4_0, &[0.0; 32], 17), want);
    let want = "18 bytes of Q4_0 hold 32 values, 31 are wanted";
    assert_eq!(refused(DType::Q4_0, &[0.0; 31], 18), want);
    assert!(is_written(DType::Q4_K) && !is_written(DType::BF16));
}
