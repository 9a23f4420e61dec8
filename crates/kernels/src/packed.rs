//! A weight matrix re-laid for rows in lanes: same numbers, other places.

use std::fmt;
use std::ops::Range;

use crate::format::{Layout, with_layout};
use crate::memory::Memory;
use crate::{BLOCK, Format, LANES, Pool, RawBlock};

/// Where the rows of a matrix come from while it is re-laid.
pub trait RowSource: Sync {
    /// Fills `blocks` with row `row` of a quantised matrix.
    fn blocks(&self, row: usize, blocks: &mut [RawBlock]);
    /// Fills `bits` with row `row` of a float matrix, each number's bits in the low end.
    fn floats(&self, row: usize, bits: &mut [u32]);
    /// Told that these rows have been re-laid and are not asked for again.
    fn passed(&self, _rows: Range<usize>) {}
}

impl<S: RowSource + ?Sized> RowSource for &S {
    fn blocks(&self, row: usize, blocks: &mut [RawBlock]) {
        (**self).blocks(row, blocks);
    }

    fn floats(&self, row: usize, bits: &mut [u32]) {
        (**self).floats(row, bits);
    }

    fn passed(&self, rows: Range<usize>) {
        (**self).passed(rows);
    }
}

/// Why a matrix could not be re-laid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    #[error("a row of {columns} values is not a multiple of the {multiple} that its type needs")]
    RowLength { columns: usize, multiple: usize },
    #[error("a matrix of {rows} x {columns} values is larger than any memory")]
    TooLarge { rows: usize, columns: usize },
    #[error("re-laid weights of {bytes} bytes do not fit into memory")]
    OutOfMemory { bytes: usize },
}

/// One cache line.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// `(rows, columns)` weights in groups of sixteen rows; see `format` for the layout.
#[derive(Debug)]
pub struct PackedMatrix {
    shape: PackedShape,
    memory: Memory,
    /// Where the matrix begins in its memory, in bytes.
    start: usize,
}

/// What a matrix is, apart from its numbers.
#[derive(Debug, Clone, Copy)]
struct PackedShape {
    format: Format,
    rows: usize,
    columns: usize,
}

impl PackedShape {
    fn groups(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// Cache lines of one group.
    fn group_lines(&self) -> usize {
        self.format.group_bytes(self.columns) / 64
    }
}

/// Most bytes that one work item of a packing writes: small beside the caches, so that the file
/// pages it read are given back soon, and large beside the cost of giving them back.
const ITEM_BYTES_MAX: usize = 1 << 20;
/// Work items per thread that even a small matrix is cut into.
const ITEMS_PER_THREAD: usize = 4;

/// Matrices on their way into one piece of memory.
///
/// A matrix that `add` returns may be read once `finish` has returned.
#[derive(Default)]
pub struct Packing<'a> {
    memory: Memory,
    lines: usize,
    planned: Vec<(PackedShape, Box<dyn RowSource + 'a>)>,
}

impl fmt::Debug for Packing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packing").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl<'a> Packing<'a> {
    /// Bytes that the matrices take so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines * 64
    }

    /// Plans a matrix; nothing is read yet.
    ///
    /// # Errors
    /// `PackError` where the row length does not suit the format, or bytes cannot be counted.
    pub fn add(
        &mut self,
        format: Format,
        (rows, columns): (usize, usize),
        source: impl RowSource + 'a,
    ) -> Result<PackedMatrix, PackError> {
        let multiple = format.row_multiple();
        if columns == 0 || !columns.is_multiple_of(multiple) {
            return Err(PackError::RowLength { columns, multiple });
        }
        let shape = PackedShape { format, rows, columns };
        let start = self.bytes();
        // Half the address space, so that no sum of sizes overflows.
        let lines_max = isize::MAX.unsigned_abs() / 64;
        // The bits of a group, at the most that a number takes.
        let lines = columns
            .checked_mul(32 * LANES)
            .and_then(|_| shape.groups().checked_mul(shape.group_lines())?.checked_add(self.lines));
        let too_large = PackError::TooLarge { rows, columns };
        self.lines = lines.filter(|&lines| lines <= lines_max).ok_or(too_large)?;
        self.planned.push((shape, Box::new(source)));
        Ok(PackedMatrix { shape, memory: self.memory.clone(), start })
    }

    /// Takes the memory and re-lays every matrix, groups in parallel, in the order of `add`.
    ///
    /// # Errors
    /// `PackError::OutOfMemory`.
    pub fn finish(self, pool: &Pool) -> Result<(), PackError> {
        let bytes = self.bytes();
        self.memory.fill(bytes, |bytes| {
            let mut rest: &mut [Line] = bytemuck::cast_slice_mut(bytes);
            for (shape, source) in &self.planned {
                let (lines, others) = rest.split_at_mut(shape.groups() * shape.group_lines());
                pack_matrix(shape, lines, source.as_ref(), pool);
                rest = others;
            }
        })
    }
}

fn pack_matrix(shape: &PackedShape, lines: &mut [Line], source: &dyn RowSource, pool: &Pool) {
    let PackedShape { format, rows, columns } = *shape;
    let group_lines = shape.group_lines();
    let most = (ITEM_BYTES_MAX / 64 / group_lines).max(1);
    let per_item = shape.groups().div_ceil(pool.threads() * ITEMS_PER_THREAD).clamp(1, most);
    pool.chunks(lines, per_item * group_lines, &|item, lines| {
        let first = item * per_item * LANES;
        for (group, lines) in lines.chunks_exact_mut(group_lines).enumerate() {
            let start = first + group * LANES;
            let rows = start..rows.min(start + LANES);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(lines);
            with_layout!(
                format,
                L => pack_group::<L>(bytes, rows, columns, source),
                else pack_float_group(format.bits() / 8, bytes, rows, columns, source)
            );
        }
        source.passed(first..rows.min(first + per_item * LANES));
    });
    source.passed(0..rows);
}

impl PackedMatrix {
    /// Re-lays one matrix into memory of its own, groups in parallel.
    ///
    /// # Errors
    /// `PackError` where the row length does not suit the format or memory does not suffice.
    pub fn pack(
        format: Format,
        shape: (usize, usize),
        source: &dyn RowSource,
        pool: &Pool,
    ) -> Result<Self, PackError> {
        let mut packing = Packing::default();
        let matrix = packing.add(format, shape, source)?;
        packing.finish(pool)?;
        Ok(matrix)
    }

    #[must_use]
    pub fn format(&self) -> Format {
        self.shape.format
    }

    /// Output rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Inputs of a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.shape.columns
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shape.groups() * self.shape.group_lines() * 64
    }

    pub(crate) fn groups(&self) -> usize {
        self.shape.groups()
    }

    /// The bytes of one group, on the edge of a cache line.
    pub(crate) fn group(&self, group: usize) -> &[u8] {
        assert!(group < self.groups(), "inside the matrix");
        let start = self.start + group * self.group_bytes();
        &self.memory.bytes()[start..start + self.group_bytes()]
    }

    /// The bytes of some groups, group by group.
    pub(crate) fn groups_of(&self, groups: Range<usize>) -> std::slice::ChunksExact<'_, u8> {
        assert!(groups.start <= groups.end && groups.end <= self.groups(), "inside the matrix");
        let bytes = self.group_bytes();
        let start = self.start + groups.start * bytes;
        self.memory.bytes()[start..start + groups.len() * bytes].chunks_exact(bytes)
    }

    /// Bytes of one group.
    pub(crate) fn group_bytes(&self) -> usize {
        self.shape.group_lines() * 64
    }

    /// One row's share of one block, as it was before it was re-laid.
    ///
    /// # Panics
    /// On a float matrix, or outside the matrix.
    #[must_use]
    pub fn block(&self, row: usize, block: usize) -> RawBlock {
        assert!(row < self.rows() && block * BLOCK < self.columns(), "inside the matrix");
        let (bytes, lane) = (self.group(row / LANES), row % LANES);
        with_layout!(self.shape.format, L => unpack_block::<L>(bytes, lane, block),
            else unreachable!("invariant: only quantised matrices have blocks"))
    }

    /// Bits of one number of a float matrix, in the low end.
    ///
    /// # Panics
    /// Outside the matrix.
    #[must_use]
    pub fn float_bits(&self, row: usize, column: usize) -> u32 {
        let size = self.shape.format.bits() / 8;
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

#[cfg(test)]
mod tests;
