//! What is re-laid is worth, number by number, what the file says.

use causeway_kernels::{PackedMatrix, Pool, RawBlock};
use causeway_weights::quant::mxfp4;
use causeway_weights::{DType, ModelFile, dequantize};

use super::{Place, Rows, format, interleaved};

/// SplitMix64 (Steele, Lea, Flood 2014), a byte at a time.
fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let byte = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ bits >> 31).to_le_bytes()[0]
    };
    std::iter::repeat_with(byte).take(count).collect()
}

/// A GGUF file of one tensor, `w`; its bytes begin at a multiple of 32.
fn gguf(ggml: u32, (rows, columns): (usize, usize), bytes: &[u8]) -> Vec<u8> {
    let mut file = b"GGUF".to_vec();
    file.extend(3u32.to_le_bytes());
    file.extend([1u64, 0, 1].into_iter().flat_map(u64::to_le_bytes));
    file.push(b'w');
    file.extend(2u32.to_le_bytes());
    file.extend([columns as u64, rows as u64].into_iter().flat_map(u64::to_le_bytes));
    file.extend(ggml.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend(bytes);
    file
}

/// The value of an f16's bits, as the room `weights` reads them.
fn half(bits: u16) -> f32 {
    let mut value = [0.0];
    dequantize(DType::F16, &bits.to_le_bytes(), &mut value).unwrap();
    value[0]
}

/// The values of a block, in the order of steps that the room `weights` states for the type.
fn values(dtype: DType, block: &RawBlock) -> Vec<f32> {
    let (d, m) = (half(block.d), half(block.m));
    let code = |i: usize, offset: i16| f32::from(i16::from(block.codes[i]) - offset);
    let value = |i: usize| {
        let (scale, minimum) = (f32::from(block.scales[i / 16]), f32::from(block.minima[i / 16]));
        match dtype {
            DType::Q4_0 => code(i, 8) * d,
            DType::Q5_0 => code(i, 16) * d,
            DType::Q8_0 | DType::IQ4_NL | DType::MXFP4 => code(i, 128) * d,
            DType::IQ4_XS => (d * scale) * code(i, 128),
            DType::Q4_1 | DType::Q5_1 => code(i, 0) * d + m,
            DType::Q2_K | DType::Q4_K | DType::Q5_K => (d * scale) * code(i, 0) - m * minimum,
            DType::Q3_K => (d * scale) * code(i, 4),
            DType::Q6_K => (d * scale) * code(i, 32),
            _ => unreachable!("only quantised types have blocks"),
        }
    };
    (0..32).map(value).collect()
}

/// A row of the re-laid matrix as values.
fn row(dtype: DType, packed: &PackedMatrix, row: usize) -> Vec<f32> {
    if packed.format().is_quantised() {
        let blocks = (0..packed.columns() / 32).map(|index| packed.block(row, index));
        return blocks.flat_map(|block| values(dtype, &block)).collect();
    }
    let size = dtype.block_bytes();
    let bits = (0..packed.columns()).map(|column| packed.float_bits(row, column).to_le_bytes());
    let bytes: Vec<u8> = bits.flat_map(|bytes| bytes[..size].to_vec()).collect();
    let mut values = vec![0.0; packed.columns()];
    dequantize(dtype, &bytes, &mut values).unwrap();
    values
}

/// Bits, with every NaN alike: its payload is no part of a value.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| if v.is_nan() { u32::MAX } else { v.to_bits() }).collect()
}

/// A tensor of any bytes, re-laid, has the file's values, rows turned where heads are.
fn check(ggml: u32, (rows, blocks): (usize, usize), head: Option<usize>) {
    let dtype = DType::from_ggml(ggml).unwrap();
    let columns = dtype.block_len() * blocks;
    let seed = u64::from(ggml) * 1000 + rows as u64;
    let mut bytes = random_bytes(seed, rows * blocks * dtype.block_bytes());
    if dtype == DType::MXFP4 {
        // Others are refused when a model is loaded.
        bytes.iter_mut().step_by(17).for_each(|exponent| *exponent = 104 + *exponent % 40);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, gguf(ggml, (rows, columns), &bytes)).unwrap();
    let file = ModelFile::open(&path).unwrap();
    let tensor = file.tensor("w").unwrap();
    let in_order = Place::Rows { first: 0 };
    let place = head.map_or(in_order, |head_dim| Place::Interleaved { head_dim });
    let source = Rows { file: &file, tensor, place };
    let format = format(dtype).unwrap();
    let packed = PackedMatrix::pack(format, (rows, columns), &source, &Pool::new(2)).unwrap();
    let mut want = vec![0.0; columns];
    for index in 0..rows {
        let from = head.map_or(index, |head| interleaved(index, head));
        tensor.dequantize_row(from, &mut want).unwrap();
        let got = bits(&row(dtype, &packed, index));
        assert_eq!(got, bits(&want), "{dtype} {rows}x{columns} row {index}");
    }
}

/// GGUF's numbers of every type that is computed with.
const TYPES: [u32; 16] = [0, 1, 30, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 39];

#[test]
fn every_type_keeps_its_values_in_every_shape() {
    for ggml in TYPES {
        for shape in [(1, 1), (3, 2), (16, 1), (17, 3), (50, 5), (130, 1)] {
            check(ggml, shape, None);
        }
    }
}

#[test]
fn rows_of_heads_are_turned_and_nothing_else() {
    for ggml in TYPES {
        check(ggml, (48, 2), Some(16));
        check(ggml, (64, 1), Some(64));
    }
}

#[test]
fn mxfp4_numbers_are_exact_in_bf16() {
    for (code, scale, want) in [
        (0, 127, 0.0_f32),
        (1, 127, 0.5),
        (7, 127, 6.0),
        (9, 128, -1.0),
        (15, 126, -3.0),
        (1, 0, f32::from_bits(0x0020_0000)),
        (2, 0, f32::from_bits(0x0040_0000)),
        (5, 1, f32::from_bits(0x0140_0000)),
    ] {
        assert_eq!(mxfp4(code, scale).to_bits(), want.to_bits(), "code {code} scale {scale}");
    }
    for code in 0..16 {
        for scale in 0..=255 {
            let bits = mxfp4(code, scale).to_bits();
            assert_eq!(bits & 0xffff, 0, "code {code} scale {scale}");
        }
        assert!(mxfp4(code, 255).is_nan(), "scale 255 is no number");
    }
}
