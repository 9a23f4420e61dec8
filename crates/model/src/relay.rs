//! Takes a tensor of a file apart into the rows that `kernels` re-lays; no number changes.

use std::ops::Range;

use causeway_kernels::{Format, RawBlock, RowSource};
use causeway_weights::quant::{
    Block, BlockIQ4_NL, BlockIQ4_XS, BlockMXFP4, BlockQ2_K, BlockQ3_K, BlockQ4_0, BlockQ4_1,
    BlockQ4_K, BlockQ5_0, BlockQ5_1, BlockQ5_K, BlockQ6_K, BlockQ8_0, Half, KScales, blocks, mxfp4,
};
use causeway_weights::{DType, ModelFile, Tensor};

/// The format that a tensor of this type is re-laid to.
fn format(dtype: DType) -> Option<Format> {
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

/// Which of a tensor's rows are wanted: row `row` is number `first + step * row`, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) first: usize,
    pub(crate) step: usize,
    pub(crate) order: Order,
}

/// How rows lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    OneByOne,
    /// Each head's rows as interleaved pairs (2i, 2i + 1) that are wanted as halves (i, i + d/2).
    Paired {
        head_dim: usize,
    },
    /// As the columns of one matrix after the other.
    Across,
}

impl Place {
    /// One by one from a row on.
    pub(crate) fn from(first: usize) -> Self {
        Self { first, step: 1, order: Order::OneByOne }
    }

    /// Where row `row` lies.
    pub(crate) fn row(&self, row: usize) -> usize {
        let row = match self.order {
            Order::Paired { head_dim } => {
                let (head, within) = (row / head_dim, row % head_dim);
                let (second, pair) = (within / (head_dim / 2), within % (head_dim / 2));
                head * head_dim + 2 * pair + second
            }
            Order::OneByOne | Order::Across => row,
        };
        self.first + self.step * row
    }

    /// Which row lies in each of `rows` places, where they fill them.
    pub(crate) fn backwards(self, rows: usize) -> Vec<usize> {
        let mut wanted = vec![0; rows];
        (0..rows).for_each(|row| wanted[self.row(row)] = row);
        wanted
    }
}

/// Rows of a tensor, in the order the forward pass wants them.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    /// Where the tensor lies: its pages are let go once they are re-laid.
    pub(crate) file: &'a ModelFile,
    pub(crate) tensor: Tensor<'a>,
    /// MXFP4's scales, `(…, rows, columns / 32)`, where they lie apart from its codes, which are
    /// then `(…, rows, columns / 32, 16)`, two numbers a byte, the first in its low half.
    pub(crate) scales: Option<Tensor<'a>>,
    pub(crate) place: Place,
}

impl<'a> Rows<'a> {
    /// Those of a tensor of this name, whose scales may lie apart.
    pub(crate) fn of(file: &'a ModelFile, name: &str, place: Place) -> Option<Self> {
        if let Some(tensor) = file.tensor(name) {
            return Some(Self { file, tensor, scales: None, place });
        }
        let [tensor, scales] = ["blocks", "scales"].map(|part| format!("{name}_{part}"));
        let (tensor, scales) = (file.tensor(&tensor)?, Some(file.tensor(&scales)?));
        Some(Self { file, tensor, scales, place: Place { order: Order::OneByOne, ..place } })
    }

    /// Their type in files of blocks.
    pub(crate) fn dtype(&self) -> DType {
        if self.scales.is_some() { DType::MXFP4 } else { self.tensor.dtype }
    }

    /// Appends a row of so many numbers as files of blocks have it.
    pub(crate) fn append(&self, row: usize, columns: usize, out: &mut Vec<u8>) {
        if self.scales.is_some() {
            for BlockMXFP4 { exponent, qs } in self.mxfp4(row) {
                out.push(exponent);
                out.extend(qs);
            }
        } else if self.place.order == Order::Across {
            let (mut bits, size) = (vec![0; columns], self.tensor.dtype.block_bytes());
            self.floats(row, &mut bits);
            bits.iter().for_each(|bits| out.extend(&bits.to_le_bytes()[..size]));
        } else {
            out.extend(self.bytes(row));
        }
    }

    /// The format that they are re-laid to.
    pub(crate) fn format(&self) -> Option<Format> {
        format(self.dtype())
    }

    /// A scale in the first `rows` rows that cannot be kept as it is, as a power of two.
    pub(crate) fn scale_out_of_range(&self, rows: usize) -> Option<i32> {
        if !self.is_mxfp4() {
            return None;
        }
        let is_lost = |block: &BlockMXFP4| {
            !F16_EXPONENTS.contains(&block.exponent) && block.quants().iter().any(|q| *q != 0)
        };
        let lost = (0..rows).flat_map(|row| self.mxfp4(row)).find(is_lost);
        lost.map(|block| i32::from(block.exponent) - 127)
    }

    fn is_mxfp4(&self) -> bool {
        self.dtype() == DType::MXFP4
    }

    fn bytes(&self, row: usize) -> &[u8] {
        self.tensor.row_bytes(self.place.row(row))
    }

    fn mxfp4(&self, row: usize) -> Vec<BlockMXFP4> {
        let Some(scales) = self.scales else {
            return whole::<BlockMXFP4>(self.bytes(row)).to_vec();
        };
        let row = self.place.row(row);
        let scales = scales.row_bytes(row);
        let codes = &self.tensor.bytes[row * scales.len() * 16..];
        let block = |(&exponent, codes): (&u8, &[u8; 16])| {
            let nibble = |i: usize| codes[i / 2] >> (4 * (i % 2)) & 15;
            // Files of blocks have numbers i and i + 16 in one byte.
            let qs = std::array::from_fn(|i| nibble(i) | nibble(i + 16) << 4);
            BlockMXFP4 { exponent, qs }
        };
        scales.iter().zip(codes.as_chunks::<16>().0).map(block).collect()
    }
}

impl RowSource for Rows<'_> {
    fn blocks(&self, row: usize, out: &mut [RawBlock]) {
        if self.is_mxfp4() {
            // Half the scale, since the quants are doubled; one that is lost serves zeros only.
            let half =
                |exponent| if F16_EXPONENTS.contains(&exponent) { mxfp4(1, exponent) } else { 0.0 };
            let parts = |b: &BlockMXFP4| plain(Half::from_f32(half(b.exponent)), b.quants());
            return lay(&self.mxfp4(row), out, 128, parts);
        }
        let bytes = self.bytes(row);
        match self.tensor.dtype {
            DType::Q4_0 => lay(whole(bytes), out, 8, |b: &BlockQ4_0| plain(b.d, b.quants())),
            DType::Q5_0 => lay(whole(bytes), out, 16, |b: &BlockQ5_0| plain(b.d, b.quants())),
            DType::Q8_0 => lay(whole(bytes), out, 128, |b: &BlockQ8_0| plain(b.d, b.qs)),
            DType::IQ4_NL => lay(whole(bytes), out, 128, |b: &BlockIQ4_NL| plain(b.d, b.quants())),
            DType::Q4_1 => lay(whole(bytes), out, 0, |b: &BlockQ4_1| Parts {
                m: b.m,
                ..plain(b.d, b.quants())
            }),
            DType::Q5_1 => lay(whole(bytes), out, 0, |b: &BlockQ5_1| Parts {
                m: b.m,
                ..plain(b.d, b.quants())
            }),
            DType::Q2_K => lay(whole(bytes), out, 0, |b: &BlockQ2_K| Parts {
                m: b.dmin,
                scales: b.scales().map(u8::cast_signed),
                minima: b.mins(),
                ..plain(b.d, b.quants())
            }),
            DType::Q3_K => lay(whole(bytes), out, 4, |b: &BlockQ3_K| Parts {
                scales: b.scales(),
                ..plain(b.d, b.quants())
            }),
            DType::Q4_K => lay(whole(bytes), out, 0, |b: &BlockQ4_K| Parts {
                m: b.dmin,
                ..by_32(plain(b.d, b.quants()), &b.scales)
            }),
            DType::Q5_K => lay(whole(bytes), out, 0, |b: &BlockQ5_K| Parts {
                m: b.dmin,
                ..by_32(plain(b.d, b.quants()), &b.scales)
            }),
            DType::Q6_K => lay(whole(bytes), out, 32, |b: &BlockQ6_K| Parts {
                scales: b.scales,
                ..plain(b.d, b.quants())
            }),
            DType::IQ4_XS => lay(whole(bytes), out, 128, |b: &BlockIQ4_XS| Parts {
                scales: twice(b.scales()),
                ..plain(b.d, b.quants())
            }),
            _ => unreachable!("invariant: only quantised tensors are asked for blocks"),
        }
    }

    fn floats(&self, row: usize, bits: &mut [u32]) {
        let size = self.tensor.dtype.block_bytes();
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u32::from(byte));
        if self.place.order == Order::Across {
            let (row, columns) = (self.place.row(row), bits.len());
            let (matrix, at) = (row / self.tensor.columns(), row % self.tensor.columns() * size);
            for (column, bits) in bits.iter_mut().enumerate() {
                *bits = number(&self.tensor.row_bytes(matrix * columns + column)[at..at + size]);
            }
            return;
        }
        let bytes = self.bytes(row);
        for (bits, bytes) in bits.iter_mut().zip(bytes.chunks_exact(size)) {
            *bits = number(bytes);
        }
    }

    fn passed(&self, rows: Range<usize>) {
        let first = match self.place {
            Place { step: 1, order: Order::OneByOne, first } if self.scales.is_none() => first,
            // Rows that change places lie anywhere in the tensor until all have passed.
            Place { order: Order::Paired { .. }, .. } if rows.len() == self.tensor.rows() => 0,
            _ => return,
        };
        let row_bytes = self.tensor.bytes.len() / self.tensor.rows().max(1);
        let (start, end) = (first + rows.start, first + rows.end);
        self.file.release(&self.tensor.bytes[start * row_bytes..end * row_bytes]);
    }
}

/// A block of any type taken apart.
struct Parts<const N: usize> {
    d: Half,
    m: Half,
    /// Per 16 values, in types that have them.
    scales: [i8; 16],
    minima: [u8; 16],
    quants: [i8; N],
}

/// A block with one scale.
fn plain<const N: usize>(d: Half, quants: [i8; N]) -> Parts<N> {
    Parts { d, m: Half::from_bits(0), scales: [0; 16], minima: [0; 16], quants }
}

/// A block whose scales and minima each serve 32 values.
fn by_32(parts: Parts<256>, packed: &KScales) -> Parts<256> {
    let scales = twice(packed.scales()).map(u8::cast_signed);
    Parts { scales, minima: twice(packed.mins()), ..parts }
}

fn twice<T: Copy>(list: [T; 8]) -> [T; 16] {
    std::array::from_fn(|index| list[index / 2])
}

fn whole<B: Block>(row: &[u8]) -> &[B] {
    blocks(row).expect("invariant: a row is whole blocks")
}

/// Lays blocks out in pieces of 32; `offset` makes their quants unsigned.
fn lay<B, const N: usize>(
    blocks: &[B],
    out: &mut [RawBlock],
    offset: i16,
    parts: impl Fn(&B) -> Parts<N>,
) {
    for (out, block) in out.chunks_exact_mut(N / 32).zip(blocks) {
        let Parts { d, m, scales, minima, quants } = parts(block);
        let (d, m) = (d.to_bits(), m.to_bits());
        let codes = quants.map(|q| (i16::from(q) + offset).to_le_bytes()[0]);
        for (index, (out, &codes)) in out.iter_mut().zip(codes.as_chunks().0).enumerate() {
            let two = [2 * index, 2 * index + 1];
            let (scales, minima) = (two.map(|at| scales[at]), two.map(|at| minima[at]));
            *out = RawBlock { codes, d, m, scales, minima };
        }
    }
}

#[cfg(test)]
mod tests;
