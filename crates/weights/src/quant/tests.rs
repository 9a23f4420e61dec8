//! Blocks against the values that other programs read from them, bit for bit.

use serde_json::Value;

use super::{ValuesError, dequantize};
use crate::DType;

const BLOCKS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf_quant/dequantize.json"));

fn bytes_of(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    let digits = (0..hex.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn every_block_has_the_bits_of_the_reference() {
    let fixture: Value = serde_json::from_str(BLOCKS).unwrap();
    let types = fixture.as_object().unwrap();
    assert_eq!(types.len(), 15, "types in the fixture");
    for (name, reference) in types {
        let id = u32::try_from(reference["type_id"].as_u64().unwrap()).unwrap();
        let dtype = DType::from_ggml(id).unwrap();
        assert_eq!(dtype.name(), name);
        let blocks = reference["blocks"].as_array().unwrap();
        assert_eq!(blocks.len(), 4, "{name}");
        let raw: Vec<u8> = blocks.iter().flat_map(|block| bytes_of(&block["raw"])).collect();
        let want: Vec<u8> =
            blocks.iter().flat_map(|block| bytes_of(&block["f32_le_hex"])).collect();
        let mut values = vec![0.0_f32; want.len() / 4];
        dequantize(dtype, &raw, &mut values).unwrap();
        let got: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(got == want, "{name} differs: {values:?}");
    }
}

#[test]
fn the_values_of_a_block_of_q8_k_are_its_bytes_times_its_scale() {
    let mut block = 0.25_f32.to_le_bytes().to_vec();
    block.extend((0..=255_u8).map(|byte| byte.wrapping_sub(128)));
    block.extend([0xff; 32]);
    let mut values = [0.0; 256];
    dequantize(DType::Q8_K, &block, &mut values).unwrap();
    let want: Vec<f32> = (-128_i16..128).map(|q| 0.25 * f32::from(q)).collect();
    assert_eq!(values.as_slice(), want);
}

#[test]
fn singles_and_bytes_are_read_as_they_are() {
    let mut values = [0.0; 3];
    let singles: Vec<u8> = [1.5_f32, -0.0, f32::MIN_POSITIVE / 4.0]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    dequantize(DType::F32, &singles, &mut values).unwrap();
    assert_eq!(values.map(f32::to_bits), [0x3fc0_0000, 0x8000_0000, 0x0020_0000]);
    dequantize(DType::U8, &[0, 7, 255], &mut values).unwrap();
    assert_eq!(values.map(f32::to_bits), [0.0_f32, 7.0, 255.0].map(f32::to_bits));
}

/// What is said of `bytes` zero bytes read into `wanted` places.
fn check_refused(dtype: DType, bytes: usize, wanted: usize, want: &str) {
    let mut out = vec![0.0; wanted];
    let got = dequantize(dtype, &vec![0; bytes], &mut out).unwrap_err();
    assert_eq!(got.to_string(), want);
}

#[test]
fn what_is_not_whole_blocks_is_refused() {
    check_refused(DType::Q4_0, 17, 32, "17 bytes are not a whole number of Q4_0 blocks of 18");
    check_refused(DType::F32, 6, 2, "6 bytes are not a whole number of F32 blocks of 4");
    check_refused(DType::Q6_K, 420, 256, "420 bytes of Q6_K hold 512 values, 256 are wanted");
    check_refused(DType::Q8_0, 0, 32, "0 bytes of Q8_0 hold 0 values, 32 are wanted");
}

#[test]
fn listed_types_are_refused_by_name() {
    for (id, name) in [(16, "IQ2_XXS"), (40, "NVFP4"), (34, "TQ1_0"), (26, "I32"), (28, "F64")] {
        let dtype = DType::from_ggml(id).unwrap();
        let refused = dequantize(dtype, &[], &mut []);
        assert_eq!(refused, Err(ValuesError::Unreadable { dtype }));
        check_refused(dtype, 0, 0, &format!("the type {name} is not read, only listed"));
    }
}
