//! Re-laid numbers are the numbers that went in, wherever they lie and whoever lies beside them.

use std::ops::Range;
use std::sync::Mutex;

use super::{PackError, PackedMatrix, Packing, RowSource};
use crate::tests::Random;
use crate::{BLOCK, Format, Pool, RawBlock};

/// Rows of any bits at all, which remember who asked and what was passed.
#[derive(Debug)]
struct AnyRows {
    format: Format,
    seed: u64,
    passed: Mutex<Vec<Range<usize>>>,
}

impl AnyRows {
    fn new(format: Format, seed: u64) -> Self {
        Self { format, seed, passed: Mutex::default() }
    }

    fn random(&self, row: usize) -> Random {
        Random(self.seed ^ (row as u64) << 20)
    }
}

impl RowSource for AnyRows {
    fn blocks(&self, row: usize, blocks: &mut [RawBlock]) {
        let mut random = self.random(row);
        let mask = u8::MAX >> (8 - self.format.bits());
        let (has_minimum, is_k) = match self.format {
            Format::Q4_1 | Format::Q5_1 => (true, false),
            Format::Q2K | Format::Q4K | Format::Q5K => (true, true),
            Format::Q3K | Format::Q6K => (false, true),
            _ => (false, false),
        };
        let is_halved = matches!(self.format, Format::Q2K | Format::Q3K | Format::Q6K);
        let per_d = self.format.row_multiple() / BLOCK;
        let mut half = || u16::from_le_bytes([random.byte(), random.byte()]);
        let ds: Vec<(u16, u16)> =
            (0..blocks.len().div_ceil(per_d)).map(|_| (half(), half())).collect();
        for (index, block) in blocks.iter_mut().enumerate() {
            let mut pair = || {
                let first = random.byte();
                [first, if is_halved { random.byte() } else { first }]
            };
            let (scales, minima) = (pair(), pair());
            let (d, m) = ds[index / per_d];
            *block = RawBlock {
                codes: std::array::from_fn(|_| random.byte() & mask),
                d,
                m: if has_minimum { m } else { 0 },
                scales: if is_k { scales.map(u8::cast_signed) } else { [0; 2] },
                minima: if is_k && has_minimum { minima } else { [0; 2] },
            };
        }
    }

    fn floats(&self, row: usize, bits: &mut [u32]) {
        let mut random = self.random(row);
        let mask = u32::MAX >> (32 - self.format.bits());
        bits.fill_with(|| u32::from_le_bytes(std::array::from_fn(|_| random.byte())) & mask);
    }

    fn passed(&self, rows: Range<usize>) {
        self.passed.lock().unwrap().push(rows);
    }
}

/// Every row comes out as it went in.
fn check(packed: &PackedMatrix, source: &AnyRows) {
    let (format, columns) = (packed.format(), packed.columns());
    let mut blocks = vec![RawBlock::default(); columns / BLOCK];
    let mut bits = vec![0; columns];
    for row in 0..packed.rows() {
        let place = format!("{format:?} {}x{columns} row {row}", packed.rows());
        if format.is_quantised() {
            source.blocks(row, &mut blocks);
            let got: Vec<_> = (0..blocks.len()).map(|index| packed.block(row, index)).collect();
            assert_eq!(got, blocks, "{place}");
        } else {
            source.floats(row, &mut bits);
            let got: Vec<_> = (0..columns).map(|column| packed.float_bits(row, column)).collect();
            assert_eq!(got, bits, "{place}");
        }
    }
}

/// Row counts around whole groups, and more than one work item.
const ROWS: [usize; 7] = [1, 15, 16, 17, 31, 48, 1030];

#[test]
fn every_type_and_shape_comes_back_as_it_went_in() {
    for threads in [1, 3] {
        let pool = Pool::new(threads);
        for format in Format::ALL {
            for (index, rows) in ROWS.into_iter().enumerate() {
                let columns = format.row_multiple() * (1 + index % 4 * 3);
                let source = AnyRows::new(format, rows as u64);
                let packed = PackedMatrix::pack(format, (rows, columns), &source, &pool).unwrap();
                check(&packed, &source);
            }
        }
    }
}

#[test]
fn matrices_of_one_memory_do_not_touch_each_other() {
    let pool = Pool::new(2);
    let planned: Vec<(Format, usize, AnyRows)> = Format::ALL
        .into_iter()
        .zip(ROWS.into_iter().cycle())
        .map(|(format, rows)| (format, rows, AnyRows::new(format, rows as u64 * 3)))
        .collect();
    let mut packing = Packing::default();
    let packed: Vec<PackedMatrix> = planned
        .iter()
        .map(|(format, rows, source)| {
            packing.add(*format, (*rows, format.row_multiple() * 2), source).unwrap()
        })
        .collect();
    let bytes = packed.iter().map(PackedMatrix::bytes).sum::<usize>();
    assert_eq!(packing.bytes(), bytes);
    packing.finish(&pool).unwrap();
    for (packed, (_, _, source)) in packed.iter().zip(&planned) {
        check(packed, source);
    }
}

#[test]
fn every_row_is_passed_once_on_the_way_and_all_at_the_end() {
    let pool = Pool::new(3);
    for rows in ROWS {
        let source = AnyRows::new(Format::Q8_0, 1);
        PackedMatrix::pack(Format::Q8_0, (rows, 64), &source, &pool).unwrap();
        let mut passed = source.passed.into_inner().unwrap();
        assert_eq!(passed.pop(), Some(0..rows));
        passed.sort_by_key(|rows| rows.start);
        assert_eq!(
            passed.iter().flat_map(Clone::clone).collect::<Vec<_>>(),
            (0..rows).collect::<Vec<_>>()
        );
    }
}

#[test]
fn what_no_memory_holds_is_refused_with_its_size() {
    let rows = |format| AnyRows::new(format, 1);
    let mut packing = Packing::default();
    for columns in [usize::MAX / 64 * 64, 1 << 60, 1 << 57] {
        let error = packing.add(Format::F32, (1 << 20, columns), rows(Format::F32)).unwrap_err();
        assert_eq!(error, PackError::TooLarge { rows: 1 << 20, columns });
    }
    // 2^56 bytes: more than any address space of a process, less than numbers overflow at.
    let matrix = packing.add(Format::F32, (1 << 20, 1 << 34), rows(Format::F32)).unwrap();
    assert_eq!(matrix.bytes(), 1 << 56);
    let error = packing.finish(&Pool::new(1)).unwrap_err();
    assert_eq!(error, PackError::OutOfMemory { bytes: 1 << 56 });
    assert!(error.to_string().contains("72057594037927936"));
}
