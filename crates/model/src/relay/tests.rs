//! What is re-laid is worth, number by number, what the file says.

use causeway_kernels::{PackedMatrix, Pool, RawBlock};
use causeway_weights::quant::mxfp4;
use causeway_weights::{DType, ModelFile, Tensor, dequantize};

use super::{Order, Place, Rows};

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
    let order = head.map_or(Order::OneByOne, |head_dim| Order::Paired { head_dim });
    let place = Place { order, ..Place::from(0) };
    let source = Rows { file: &file, tensor, scales: None, place };
    let format = source.format().unwrap();
    let packed = PackedMatrix::pack(format, (rows, columns), &source, &Pool::new(2)).unwrap();
    let mut want = vec![0.0; columns];
    for index in 0..rows {
        tensor.dequantize_row(place.row(index), &mut want).unwrap();
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
fn mxfp4_codes_and_scales_apart_keep_their_numbers() {
    let (rows, blocks) = (6, 2);
    let codes = random_bytes(7, rows * blocks * 16);
    let exponents: Vec<u8> =
        random_bytes(8, rows * blocks).iter().map(|byte| 104 + byte % 40).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    // Any file serves: both tensors are only bytes.
    std::fs::write(&path, gguf(24, (1, 32), &[0; 32])).unwrap();
    let file = ModelFile::open(&path).unwrap();
    let (shape, dtype) = ([rows, blocks, 16], DType::U8);
    let tensor = Tensor { name: "blocks", dtype, shape: &shape, bytes: &codes };
    let scales = Tensor { name: "scales", dtype, shape: &shape[..2], bytes: &exponents };
    for (first, step, count) in [(0, 1, 6), (0, 2, 3), (1, 2, 3)] {
        let place = Place { first, step, order: Order::OneByOne };
        let source = Rows { file: &file, tensor, scales: Some(scales), place };
        let (format, shape) = (source.format().unwrap(), (count, 32 * blocks));
        let packed = PackedMatrix::pack(format, shape, &source, &Pool::new(1)).unwrap();
        for index in 0..count {
            let row_of = |of: &[u8], len: usize| of[(first + step * index) * len..][..len].to_vec();
            let nibbles = row_of(&codes, 16 * blocks).into_iter().flat_map(|b| [b & 15, b >> 4]);
            let scales = row_of(&exponents, blocks).into_iter().flat_map(|scale| [scale; 32]);
            let want: Vec<f32> =
                nibbles.zip(scales).map(|(code, scale)| mxfp4(code, scale)).collect();
            let got = row(DType::MXFP4, &packed, index);
            // A zero has no sign among whole numbers.
            assert_eq!(got, want, "row {index} of each {step} from {first}");
        }
    }
}
