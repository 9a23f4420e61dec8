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

/// Whole numbers of a linear congruence, and what is made of them: 64 blocks of one kind.
struct Rows(u32);

impl Rows {
    /// From 0 to 1, in 16 bits.
    fn even(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) as f32 / 65_536.0
    }

    /// Twelve of them, which come near a normal distribution.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.even()).sum::<f32>() - 6.0
    }

    fn values(of: impl Fn(&mut Self, usize) -> f32) -> Vec<f32> {
        let mut rows = Self(1);
        (0..64 * 256).map(|at| of(&mut rows, at)).collect()
    }
}

/// The sum of squared errors over that of squares, each value weighed as the search weighs it.
fn weighed_loss(values: &[f32], again: &[f32], group: usize) -> f64 {
    let (mut lost, mut all) = (0.0, 0.0);
    for (values, again) in values.chunks(group).zip(again.chunks(group)) {
        let square = |value: f32| f64::from(value).powi(2);
        let mean = values.iter().map(|&value| square(value)).sum::<f64>() / group as f64;
        for (&value, &again) in values.iter().zip(again) {
            let weight = 1.0 + 0.1 * square(value) / mean;
            lost += weight * (f64::from(value) - f64::from(again)).powi(2);
            all += weight * square(value);
        }
    }
    lost / all
}

#[test]
fn searches_lose_no_more_than_they_did() {
    let kinds: [(&str, Vec<f32>, [f64; 3]); 5] = [
        ("even", Rows::values(|rows, _| rows.even() * 2.0 - 1.0), [2.64e-3, 6.36e-4, 1.529e-4]),
        ("normal", Rows::values(|rows, _| rows.normal()), [4.05e-3, 9.85e-4, 2.491e-4]),
        ("heavy tails", Rows::values(|rows, _| cube(rows.normal())), [3.27e-3, 8.93e-4, 3.156e-4]),
        (
            "one far out in each block",
            Rows::values(|rows, at| rows.normal() * if at % 256 == 77 { 100.0 } else { 1.0 }),
            [5.9e-4, 3.58e-4, 2.833e-4],
        ),
        ("far from zero", Rows::values(|rows, _| rows.even() + 3.0), [3.74e-4, 8.75e-5, 7.46e-5]),
    ];
    let types = [(DType::Q4_K, 32), (DType::Q5_K, 32), (DType::Q6_K, 16)];
    for (kind, values, most) in kinds {
        for ((dtype, group), most) in types.into_iter().zip(most) {
            let mut bytes = vec![0; dtype.bytes_of(values.len()).unwrap()];
            quantize(dtype, &values, &mut bytes).unwrap();
            let mut again = vec![0.0; values.len()];
            dequantize(dtype, &bytes, &mut again).unwrap();
            let loss = weighed_loss(&values, &again, group);
            assert!(loss <= most, "{kind} as {dtype}: {loss:e}, was {most:e}");
        }
    }
}

fn cube(value: f32) -> f32 {
    value * value * value
}

#[test]
fn values_on_a_grid_of_a_block_are_found_again() {
    // Groups whose integers reach both ends, or leave the first or last ones out.
    for levels in [[0, 15], [1, 15], [0, 14]] {
        let of = |at: usize| (3 + 5 * (at / 32)) as f32 / 8.0;
        let spread = |at: usize| levels[0] + at * 7 % 32 * (levels[1] - levels[0]) / 31;
        let values: Vec<f32> = (0..256).map(|at| of(at) * (spread(at) as f32 - 8.0)).collect();
        let mut bytes = vec![0; 144];
        quantize(DType::Q4_K, &values, &mut bytes).unwrap();
        let mut again = vec![0.0; 256];
        dequantize(DType::Q4_K, &bytes, &mut again).unwrap();
        let loss = weighed_loss(&values, &again, 32);
        assert!(loss < 1e-4, "{levels:?}: {loss:e}");
    }
}

#[test]
fn values_that_are_no_numbers_do_not_stop_a_search() {
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE] {
        for places in [1, 7, 256] {
            let values: Vec<f32> =
                (0..256).map(|at| if at % places == 0 { odd } else { 0.5 }).collect();
            for dtype in [DType::Q4_K, DType::Q5_K, DType::Q6_K] {
                let mut bytes = vec![0; dtype.bytes_of(256).unwrap()];
                quantize(dtype, &values, &mut bytes).unwrap();
            }
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
