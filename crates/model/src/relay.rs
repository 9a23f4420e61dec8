//! Takes a tensor of a file apart into the rows that `kernels` re-lays; no number changes.

use std::ops::Range;

use causeway_kernels::{Format, RawBlock, RowSource};
use causeway_weights::quant::{
    BlockIQ4_NL, BlockIQ4_XS, BlockMXFP4, BlockQ2_K, BlockQ3_K, BlockQ4_0, BlockQ4_1, BlockQ4_K,
    BlockQ5_0, BlockQ5_1, BlockQ5_K, BlockQ6_K, BlockQ8_0, KScales, blocks, mxfp4,
};
use causeway_weights::{DType, ModelFile, Tensor};

/// The format that a tensor of this type is re-laid to.
pub(crate) fn format(dtype: DType) -> Option<Format> {
    match dtype {
        DType::F32 => Some(Format::F32),
        DType::F16 => Some(Format::F16),
        DType::BF16 => Some(Format::Bf16),
        DType::Q4_0 => Some(Format::Q4_0),
        DType::Q4_1 => Some(Format::Q4_1),
        DType::Q5_0 => Some(Format::Q5_0),
        DType::Q5_1 => Some(Format::Q5_1),
        DType::Q8_0 => Some(Format::Q8_0),
        DType::Q2_K => Some(Format::Q2K),
        DType::Q3_K => Some(Format::Q3K),
        DType::Q4_K => Some(Format::Q4K),
        DType::Q5_K => Some(Format::Q5K),
        DType::Q6_K => Some(Format::Q6K),
        // Their codes choose from a table of bytes, which is looked up here.
        DType::IQ4_NL | DType::MXFP4 => Some(Format::Q8_0),
        DType::IQ4_XS => Some(Format::Iq4Xs),
        DType::Q8_K | DType::U8 | DType::Listed(_) => None,
    }
}

/// Exponents of MXFP4 blocks whose half scale, a power of two, is an f16.
const F16_EXPONENTS: std::ops::RangeInclusive<u8> = 104..=143;

/// A block's scale that cannot be kept as it is, as a power of two.
pub(crate) fn scale_out_of_range(tensor: &Tensor<'_>) -> Option<i32> {
    if tensor.dtype != DType::MXFP4 {
        return None;
    }
    let blocks = blocks::<BlockMXFP4>(tensor.bytes).expect("invariant: a tensor is whole blocks");
    let is_lost = |block: &&BlockMXFP4| {
        !F16_EXPONENTS.contains(&block.exponent) && block.quants().iter().any(|q| *q != 0)
    };
    blocks.iter().find(is_lost).map(|block| i32::from(block.exponent) - 127)
}

/// Where the rows that are wanted lie in a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// From a row on, one after the other.
    Rows { first: usize },
    /// The same, with each head's rows as interleaved pairs (2i, 2i + 1) that are wanted as
    /// halves (i, i + d/2).
    Interleaved { head_dim: usize },
    /// Across `columns` rows from `first` on: number `offset + step * row` of each.
    Across { first: usize, offset: usize, step: usize },
}

/// Rows of a tensor, in the order the forward pass wants them.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    /// Where the tensor lies: its pages are let go once they are re-laid.
    pub(crate) file: &'a ModelFile,
    pub(crate) tensor: Tensor<'a>,
    pub(crate) place: Place,
}

impl Rows<'_> {
    fn source_row(&self, row: usize) -> usize {
        match self.place {
            Place::Rows { first } => first + row,
            Place::Interleaved { head_dim } => interleaved(row, head_dim),
            Place::Across { .. } => unreachable!("invariant: only floats are read across rows"),
        }
    }
}

/// Where row `row` of a head in halves lies among interleaved pairs.
pub(crate) fn interleaved(row: usize, head_dim: usize) -> usize {
    let (head, within) = (row / head_dim, row % head_dim);
    let (second, pair) = (within / (head_dim / 2), within % (head_dim / 2));
    head * head_dim + 2 * pair + second
}

impl RowSource for Rows<'_> {
    fn blocks(&self, row: usize, out: &mut [RawBlock]) {
        let bytes = self.tensor.row_bytes(self.source_row(row));
        match self.tensor.dtype {
            DType::Q4_0 => simple::<BlockQ4_0>(bytes, out, |b| (b.d.to_bits(), 0, b.quants()), 8),
            DType::Q5_0 => simple::<BlockQ5_0>(bytes, out, |b| (b.d.to_bits(), 0, b.quants()), 16),
            DType::Q8_0 => simple::<BlockQ8_0>(bytes, out, |b| (b.d.to_bits(), 0, b.qs), 128),
            DType::IQ4_NL => {
                simple::<BlockIQ4_NL>(bytes, out, |b| (b.d.to_bits(), 0, b.quants()), 128);
            }
            DType::MXFP4 => {
                let half = |b: &BlockMXFP4| half_power(i32::from(b.exponent) - 128);
                simple::<BlockMXFP4>(bytes, out, |b| (half(b), 0, b.quants()), 128);
            }
            DType::IQ4_XS => k_type(bytes, out, |b: &BlockIQ4_XS| {
                let scales = b.scales();
                KParts {
                    d: b.d.to_bits(),
                    m: 0,
                    scales: std::array::from_fn(|i| scales[i / 2]),
                    minima: [0; 16],
                    codes: b.quants().map(|q| q.cast_unsigned().wrapping_add(128)),
                }
            }),
            DType::Q4_1 => {
                let parts = |b: &BlockQ4_1| (b.d.to_bits(), b.m.to_bits(), b.quants());
                simple(bytes, out, parts, 0);
            }
            DType::Q5_1 => {
                let parts = |b: &BlockQ5_1| (b.d.to_bits(), b.m.to_bits(), b.quants());
                simple(bytes, out, parts, 0);
            }
            DType::Q2_K => k_type(bytes, out, |b: &BlockQ2_K| KParts {
                d: b.d.to_bits(),
                m: b.dmin.to_bits(),
                scales: b.scales().map(u8::cast_signed),
                minima: b.mins(),
                codes: b.quants().map(i8::cast_unsigned),
            }),
            DType::Q3_K => k_type(bytes, out, |b: &BlockQ3_K| KParts {
                d: b.d.to_bits(),
                m: 0,
                scales: b.scales(),
                minima: [0; 16],
                codes: b.quants().map(|q| (q + 4).cast_unsigned()),
            }),
            DType::Q4_K => k_type(bytes, out, |b: &BlockQ4_K| {
                let codes = b.quants().map(i8::cast_unsigned);
                k_parts(b.d.to_bits(), b.dmin.to_bits(), &b.scales, codes)
            }),
            DType::Q5_K => k_type(bytes, out, |b: &BlockQ5_K| {
                let codes = b.quants().map(i8::cast_unsigned);
                k_parts(b.d.to_bits(), b.dmin.to_bits(), &b.scales, codes)
            }),
            DType::Q6_K => k_type(bytes, out, |b: &BlockQ6_K| KParts {
                d: b.d.to_bits(),
                m: 0,
                scales: b.scales,
                minima: [0; 16],
                codes: b.quants().map(|q| (q + 32).cast_unsigned()),
            }),
            DType::F32 | DType::F16 | DType::BF16 | DType::Q8_K | DType::U8 | DType::Listed(_) => {
                unreachable!("invariant: only quantised tensors are asked for blocks")
            }
        }
    }

    fn floats(&self, row: usize, bits: &mut [u32]) {
        let size = self.tensor.dtype.block_bytes();
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u32::from(byte));
        if let Place::Across { first, offset, step } = self.place {
            let at = (offset + step * row) * size;
            for (column, bits) in bits.iter_mut().enumerate() {
                *bits = number(&self.tensor.row_bytes(first + column)[at..at + size]);
            }
            return;
        }
        let bytes = self.tensor.row_bytes(self.source_row(row));
        for (bits, bytes) in bits.iter_mut().zip(bytes.chunks_exact(size)) {
            *bits = number(bytes);
        }
    }

    fn passed(&self, rows: Range<usize>) {
        let first = match self.place {
            Place::Rows { first } => first,
            // Rows that change places lie anywhere in the tensor until all have passed.
            Place::Interleaved { .. } if rows.len() == self.tensor.rows() => 0,
            Place::Interleaved { .. } | Place::Across { .. } => return,
        };
        let row_bytes = self.tensor.bytes.len() / self.tensor.rows().max(1);
        let (start, end) = (first + rows.start, first + rows.end);
        self.file.release(&self.tensor.bytes[start * row_bytes..end * row_bytes]);
    }
}

/// The bits of `2^power` as an f16; 0 where there is no such f16.
fn half_power(power: i32) -> u16 {
    match power {
        -24..=-15 => 1 << (power + 24),
        -14..=15 => u16::try_from((power + 15) << 10).expect("invariant: at most 30 << 10"),
        _ => 0,
    }
}

/// Rows of MXFP4 numbers whose blocks and scales lie in two tensors, as bf16: none is rounded.
#[derive(Debug)]
pub(crate) struct Mxfp4Rows<'a> {
    /// `(…, rows, columns / 32, 16)`, two numbers a byte, the first in its low half.
    pub(crate) codes: Tensor<'a>,
    /// `(…, rows, columns / 32)`, exponents plus 127.
    pub(crate) scales: Tensor<'a>,
    /// Row `row` is number `first + step * row`.
    pub(crate) first: usize,
    pub(crate) step: usize,
}

impl RowSource for Mxfp4Rows<'_> {
    fn blocks(&self, _: usize, _: &mut [RawBlock]) {
        unreachable!("invariant: only quantised tensors are asked for blocks")
    }

    fn floats(&self, row: usize, bits: &mut [u32]) {
        let row = self.first + self.step * row;
        let scales = self.scales.row_bytes(row);
        let codes = &self.codes.bytes[row * scales.len() * 16..];
        for (index, bits) in bits.iter_mut().enumerate() {
            let code = codes[index / 2] >> (4 * (index % 2)) & 15;
            *bits = mxfp4(code, scales[index / 32]).to_bits() >> 16;
        }
    }
}

/// Blocks of 32 with one scale and perhaps a minimum: `parts` gives d, m and signed quants.
fn simple<B: causeway_weights::quant::Block>(
    bytes: &[u8],
    out: &mut [RawBlock],
    parts: impl Fn(&B) -> (u16, u16, [i8; 32]),
    offset: i16,
) {
    let blocks = blocks::<B>(bytes).expect("invariant: a row is whole blocks");
    for (out, block) in out.iter_mut().zip(blocks) {
        let (d, m, quants) = parts(block);
        let codes = quants.map(|q| (i16::from(q) + offset).to_le_bytes()[0]);
        *out = RawBlock { codes, d, m, ..RawBlock::default() };
    }
}

/// A superblock of 256, taken apart.
struct KParts {
    d: u16,
    m: u16,
    /// Per 16 values.
    scales: [i8; 16],
    minima: [u8; 16],
    codes: [u8; 256],
}

/// The types whose eight scales and minima each serve 32 values.
fn k_parts(d: u16, m: u16, packed: &KScales, codes: [u8; 256]) -> KParts {
    let (scales, minima) = (packed.scales(), packed.mins());
    KParts {
        d,
        m,
        scales: std::array::from_fn(|i| scales[i / 2].cast_signed()),
        minima: std::array::from_fn(|i| minima[i / 2]),
        codes,
    }
}

fn k_type<B: causeway_weights::quant::Block>(
    bytes: &[u8],
    out: &mut [RawBlock],
    parts: impl Fn(&B) -> KParts,
) {
    let blocks = blocks::<B>(bytes).expect("invariant: a row is whole blocks");
    for (out, block) in out.chunks_exact_mut(8).zip(blocks) {
        let KParts { d, m, scales, minima, codes } = parts(block);
        let (codes, _) = codes.as_chunks::<32>();
        for (index, (out, &codes)) in out.iter_mut().zip(codes).enumerate() {
            let sub = index * 2;
            let scales = [scales[sub], scales[sub + 1]];
            *out = RawBlock { codes, d, m, scales, minima: [minima[sub], minima[sub + 1]] };
        }
    }
}

#[cfg(test)]
mod tests;
