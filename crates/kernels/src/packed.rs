//! A weight matrix re-laid for rows in lanes: same numbers, other places.

use std::ops::Range;

use crate::format::{Layout, with_layout};
use crate::{BLOCK, Format, LANES, Pool, RawBlock};

/// Where the rows of a matrix come from while it is re-laid.
pub trait RowSource: Sync {
    /// Fills `blocks` with row `row` of a quantised matrix.
    fn blocks(&self, row: usize, blocks: &mut [RawBlock]);
    /// Fills `bits` with row `row` of a float matrix, each number's bits in the low end.
    fn floats(&self, row: usize, bits: &mut [u32]);
}

/// Why a matrix could not be re-laid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    #[error("a row of {columns} values is not a multiple of the {multiple} that its type needs")]
    RowLength { columns: usize, multiple: usize },
    #[error("a matrix of {rows} x {columns} values does not fit into memory")]
    TooLarge { rows: usize, columns: usize },
}

/// One cache line.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// `(rows, columns)` weights in groups of sixteen rows; see `format` for the layout.
#[derive(Debug)]
pub struct PackedMatrix {
    format: Format,
    rows: usize,
    columns: usize,
    lines: Vec<Line>,
}

impl PackedMatrix {
    /// Re-lays a matrix, groups in parallel.
    ///
    /// # Errors
    /// `PackError` where the row length does not suit the format or memory does not suffice.
    pub fn pack(
        format: Format,
        (rows, columns): (usize, usize),
        source: &dyn RowSource,
        pool: &Pool,
    ) -> Result<Self, PackError> {
        let multiple = format.row_multiple();
        if columns == 0 || !columns.is_multiple_of(multiple) {
            return Err(PackError::RowLength { columns, multiple });
        }
        let too_large = PackError::TooLarge { rows, columns };
        let groups = rows.div_ceil(LANES);
        let lines_per_group = format.group_bytes(columns) / 64;
        let count = groups.checked_mul(lines_per_group).ok_or(too_large)?;
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).map_err(|_| too_large)?;
        lines.resize(count, Line([0; 64]));
        let rows_of = |group: usize| group * LANES..rows.min((group + 1) * LANES);
        pool.chunks(&mut lines, lines_per_group, &|group, lines| {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(lines);
            with_layout!(
                format,
                L => pack_group::<L>(bytes, rows_of(group), columns, source),
                else pack_float_group(format.bits() / 8, bytes, rows_of(group), columns, source)
            );
        });
        Ok(Self { format, rows, columns, lines })
    }

    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Output rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs of a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.len() * 64
    }

    pub(crate) fn groups(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// The bytes of one group.
    pub(crate) fn group(&self, group: usize) -> &[u8] {
        let lines = self.format.group_bytes(self.columns) / 64;
        bytemuck::cast_slice(&self.lines[group * lines..(group + 1) * lines])
    }

    /// One row's share of one block, as it was before it was re-laid.
    ///
    /// # Panics
    /// On a float matrix, or outside the matrix.
    #[must_use]
    pub fn block(&self, row: usize, block: usize) -> RawBlock {
        assert!(row < self.rows && block * BLOCK < self.columns, "inside the matrix");
        let (bytes, lane) = (self.group(row / LANES), row % LANES);
        with_layout!(self.format, L => unpack_block::<L>(bytes, lane, block),
            else unreachable!("invariant: only quantised matrices have blocks"))
    }

    /// Bits of one number of a float matrix.
    pub(crate) fn float_bits(&self, row: usize, column: usize) -> u32 {
        let size = self.format.bits() / 8;
        let at = (column * LANES + row % LANES) * size;
        let bytes = &self.group(row / LANES)[at..at + size];
        bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u32::from(byte))
    }
}

fn pack_float_group(
    size: usize,
    bytes: &mut [u8],
    rows: Range<usize>,
    columns: usize,
    source: &dyn RowSource,
) {
    let mut bits = vec![0u32; columns];
    for (lane, row) in rows.enumerate() {
        source.floats(row, &mut bits);
        for (column, value) in bits.iter().enumerate() {
            let at = (column * LANES + lane) * size;
            bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
}

fn pack_group<L: Layout>(
    bytes: &mut [u8],
    rows: Range<usize>,
    columns: usize,
    source: &dyn RowSource,
) {
    let mut blocks = vec![RawBlock::default(); columns / BLOCK];
    for (lane, row) in rows.enumerate() {
        source.blocks(row, &mut blocks);
        for (index, block) in blocks.iter().enumerate() {
            let start = index / L::SUPER * L::BYTES;
            pack_block::<L>(&mut bytes[start..start + L::BYTES], lane, index % L::SUPER, block);
        }
    }
}

/// Byte and shift of the `bits`-wide plane field of input `i`, in planes that start at `at`.
fn field(at: usize, bits: usize, lane: usize, input: usize) -> (usize, usize) {
    let (step, i) = (input / 4, input % 4);
    let (plane, slot) = place(bits, step);
    (at + plane * 64 + lane * 4 + i, slot * bits)
}

/// The plane of a step, and its place in each byte of it.
fn place(bits: usize, step: usize) -> (usize, usize) {
    // Four-bit planes pair step k with k + 4; narrower ones take steps in order.
    if bits == 4 { (step % 4, step / 4) } else { (step * bits / 8, step % (8 / bits)) }
}

/// The planes of a code: (offset of the planes, their width, lowest bit of the code they hold).
fn planes(bits: usize) -> &'static [(usize, usize, usize)] {
    match bits {
        2 => &[(0, 2, 0)],
        3 => &[(0, 2, 0), (128, 1, 2)],
        4 => &[(0, 4, 0)],
        5 => &[(0, 4, 0), (256, 1, 4)],
        6 => &[(0, 4, 0), (256, 2, 4)],
        8 => &[(0, 8, 0)],
        _ => unreachable!("invariant: layouts have 2, 3, 4, 5, 6 or 8 bits"),
    }
}

fn pack_block<L: Layout>(bytes: &mut [u8], lane: usize, index: usize, block: &RawBlock) {
    let d_index = if L::K { 0 } else { index };
    let half = |at: usize| at + (d_index * LANES + lane) * 2;
    bytes[half(0)..half(0) + 2].copy_from_slice(&block.d.to_le_bytes());
    if L::MINIMUM {
        bytes[half(L::M_AT)..half(L::M_AT) + 2].copy_from_slice(&block.m.to_le_bytes());
    }
    if L::K {
        for sub in 0..L::SUBS {
            let at = (index * L::SUBS + sub) * LANES + lane;
            bytes[L::SCALES_AT + at] = block.scales[sub].to_le_bytes()[0];
            if L::MINIMUM {
                bytes[L::MINIMA_AT + at] = block.minima[sub];
            }
        }
    }
    let start = L::PLANES_AT + index * L::PLANES + lane * 4;
    for &(offset, width, low) in planes(L::BITS) {
        // Four codes at a time: shifts stay inside their bytes, masks keep it so.
        let mask = u32::from_le_bytes([u8::MAX >> (8 - width); 4]);
        let mut words = [0u32; 8];
        for (step, codes) in block.codes.as_chunks::<4>().0.iter().enumerate() {
            let (plane, slot) = place(width, step);
            words[plane] |= ((u32::from_le_bytes(*codes) >> low) & mask) << (slot * width);
        }
        for (plane, word) in words[..width].iter().enumerate() {
            let at = start + offset + plane * 64;
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
}

fn unpack_block<L: Layout>(bytes: &[u8], lane: usize, block: usize) -> RawBlock {
    let start = block / L::SUPER * L::BYTES;
    let bytes = &bytes[start..start + L::BYTES];
    let index = block % L::SUPER;
    let d_index = if L::K { 0 } else { index };
    let half = |at: usize| {
        let at = at + (d_index * LANES + lane) * 2;
        u16::from_le_bytes([bytes[at], bytes[at + 1]])
    };
    let mut raw = RawBlock { d: half(0), ..RawBlock::default() };
    if L::MINIMUM {
        raw.m = half(L::M_AT);
    }
    for sub in 0..2 {
        let at = (index * L::SUBS + sub.min(L::SUBS - 1)) * LANES + lane;
        if L::K {
            raw.scales[sub] = i8::from_le_bytes([bytes[L::SCALES_AT + at]]);
        }
        if L::K && L::MINIMUM {
            raw.minima[sub] = bytes[L::MINIMA_AT + at];
        }
    }
    let start = L::PLANES_AT + index * L::PLANES;
    for (input, code) in raw.codes.iter_mut().enumerate() {
        for &(offset, width, low) in planes(L::BITS) {
            let (at, shift) = field(start + offset, width, lane, input);
            *code |= ((bytes[at] >> shift) & (u8::MAX >> (8 - width))) << low;
        }
    }
    raw
}
