//! What is fused gives the bits of its parts, on every path and however it is shared out.

use crate::ops::{Activation, NormStep};
use crate::parallel::Cut;
use crate::{Format, Isa, Kernels, PackedMatrix, Pool, QuantisedRows, RawBlock, RowSource};

/// Numbers that are a function of their place.
struct Places;

impl RowSource for Places {
    fn blocks(&self, row: usize, blocks: &mut [RawBlock]) {
        for (index, block) in blocks.iter_mut().enumerate() {
            let code = |i: usize| u8::try_from((row * 7 + index * 13 + i * 5) % 16).unwrap();
            block.codes = std::array::from_fn(code);
            block.d = 0x2c00 + u16::try_from(row % 300).unwrap();
            block.m = 0xa000 + u16::try_from(index % 300).unwrap();
        }
    }

    fn floats(&self, _: usize, _: &mut [u32]) {}
}

fn packed(rows: usize, columns: usize, pool: &Pool) -> PackedMatrix {
    PackedMatrix::pack(Format::Q4_1, (rows, columns), &Places, pool).unwrap()
}

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let number = |i: usize| (((i * 37 + seed * 11) % 211) as f32 - 105.0) / 32.0;
    (0..count).map(number).collect()
}

fn paths() -> impl Iterator<Item = Kernels> {
    Isa::ALL.into_iter().filter_map(|isa| Kernels::with_isa(isa).ok())
}

/// Calls `case` for every path, some thread counts and some counts of rows.
fn each(case: impl Fn(&Kernels, &Pool, usize)) {
    for kernels in paths() {
        for threads in 1..=3 {
            let pool = Pool::new(threads);
            [1, 3, 8, 14, 16, 21, 37].into_iter().for_each(|rows| case(&kernels, &pool, rows));
        }
    }
}

#[test]
fn a_gated_product_is_its_parts() {
    each(|kernels, pool, rows| {
        let (columns, ffn_dim) = (96, 160);
        let (gate, up) = (packed(ffn_dim, columns, pool), packed(ffn_dim, columns, pool));
        let mut x = QuantisedRows::default();
        kernels.quantise(&numbers(rows * columns, 1), columns, &mut x, pool).unwrap();
        for activation in [Activation::Silu, Activation::Gelu] {
            let (mut gates, mut ups) = (vec![0.0; rows * ffn_dim], vec![0.0; rows * ffn_dim]);
            kernels.matmul(&mut [(&gate, &mut gates), (&up, &mut ups)], &x, pool);
            kernels.activate(activation, &mut gates, &ups);
            let (mut want, mut got) = (QuantisedRows::default(), QuantisedRows::default());
            kernels.quantise(&gates, ffn_dim, &mut want, pool).unwrap();
            kernels.gated((&gate, &up), activation, &x, &mut got, pool).unwrap();
            assert_eq!(got.tiles, want.tiles, "{activation:?} {kernels:?} {rows}");
        }
    });
}

#[test]
fn a_norm_step_is_its_parts() {
    each(|kernels, pool, rows| {
        for row_len in [32, 80, 576] {
            let (x, added) = (numbers(rows * row_len, 2), numbers(rows * row_len, 3));
            let (norm, added_norm) = (numbers(row_len, 4), numbers(row_len, 5));
            for (added, added_norm) in
                [(&[][..], &[][..]), (&added, &[]), (&added, added_norm.as_slice())]
            {
                let mut sum = added.to_vec();
                if !added_norm.is_empty() {
                    kernels.rms_norm(&mut sum, added_norm, 1e-5);
                }
                let sums = x.iter().enumerate().map(|(i, x)| sum.get(i).map_or(*x, |y| x + y));
                let want_x: Vec<f32> = sums.collect();
                let mut normed = want_x.clone();
                kernels.rms_norm(&mut normed, &norm, 1e-5);
                let (mut want, mut got) = (QuantisedRows::default(), QuantisedRows::default());
                kernels.quantise(&normed, row_len, &mut want, pool).unwrap();
                let mut got_x = x.clone();
                let step = NormStep { added, added_norm, norm: &norm, eps: 1e-5 };
                kernels.norm_step((&mut got_x, row_len), &step, &mut got, pool).unwrap();
                assert_eq!((&got_x, &got.tiles), (&want_x, &want.tiles), "{kernels:?} {rows}");
            }
        }
    });
}

#[test]
fn rows_with_their_rest_add_up_in_one_product() {
    each(|kernels, pool, rows| {
        let (columns, outputs) = (96, 70);
        let weights = packed(outputs, columns, pool);
        let mut pairs = QuantisedRows::default();
        kernels.quantise_with_rest(&numbers(rows * columns, 6), columns, &mut pairs, pool).unwrap();
        let mut apart = vec![0.0; 2 * rows * outputs];
        kernels.matmul(&mut [(&weights, &mut apart)], &pairs, pool);
        let want = apart.chunks_exact(2 * outputs).flat_map(|pair| {
            let (codes, rest) = pair.split_at(outputs);
            codes.iter().zip(rest).map(|(a, b)| a + b)
        });
        let mut got = vec![0.0; rows * outputs];
        kernels.matmul_pairs((&weights, &mut got), &pairs, pool);
        assert_eq!(got, want.collect::<Vec<_>>(), "{kernels:?} {rows}");
    });
}

#[test]
fn cells_of_any_cut_are_the_whole() {
    each(|kernels, pool, rows| {
        let columns = 160;
        let x = numbers(rows * columns, 7);
        let (mut want, mut got) = (QuantisedRows::default(), QuantisedRows::default());
        kernels.quantise(&x, columns, &mut want, pool).unwrap();
        let bounds: Vec<usize> = (0..rows).step_by(5).chain([rows]).collect();
        let cut = Cut { rows: &bounds, width: 64 };
        let piece = |row: usize, from: usize| {
            &x[row * columns + from..(row * columns + from + 64).min((row + 1) * columns)]
        };
        let across = columns.div_ceil(64);
        let rows_of = |item: usize| bounds[item / across]..bounds[item / across + 1];
        let put_all = |item: usize, put: &mut crate::PutRow<'_>| {
            rows_of(item).for_each(|row| put(row, piece(row, item % across * 64)));
        };
        kernels.quantised_cells(&mut got, (rows, columns), cut, pool, &put_all).unwrap();
        assert_eq!(got.tiles, want.tiles, "{kernels:?} {rows}");
        let mut copy = vec![0.0; x.len()];
        pool.cells((&mut copy, columns), cut, &|item, cell| {
            for row in rows_of(item) {
                cell.row(row).copy_from_slice(piece(row, item % across * 64));
            }
        });
        assert_eq!(copy, x);
    });
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    each(|kernels, pool, rows| {
        let mut x = numbers(rows * 64, 8);
        x[rows * 64 - 20] = f32::NAN;
        x[rows * 64 - 3] = f32::INFINITY;
        let mut out = QuantisedRows::default();
        let error = kernels.quantise_with_rest(&x, 64, &mut out, pool).unwrap_err();
        assert_eq!((error.row, error.column), (rows - 1, 44), "{kernels:?}");
    });
}
