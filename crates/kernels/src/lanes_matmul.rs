//! The matrix products of every SIMD path, written once over sixteen output rows in lanes.

/// A loop of at most sixteen rounds, each written out: the compiler would keep it as a loop where
/// the rounds are long, and what they add to in memory.
macro_rules! written_out {
    ($at:ident below $count:ident $body:block) => {
        written_out!($at below $count $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($at:ident below $count:ident $body:block $($round:literal)*) => {$(
        if $round < $count {
            let $at = $round;
            $body
        }
    )*};
}
pub(crate) use written_out;

/// Products of re-laid weights with quantised or float activations.
macro_rules! lane_matmul {
    ($features:literal, tile $tile:literal) => {
        use crate::activations::{ActivationBlock, ActivationTile};
        use crate::format::Layout;
        use crate::lanes_matmul::written_out;
        use crate::sink::Sink;

        /// The eight vectors of a block's codes, step by step.
        #[target_feature(enable = $features)]
        #[inline]
        fn unpack<L: Layout>(planes: &[u8]) -> [I; 8] {
            let plane = |at: usize| i_load(planes[at * 64..].first_chunk().expect("a plane"));
            let mut codes = [i_splat(0); 8];
            match L::BITS {
                8 => codes = std::array::from_fn(plane),
                4..=6 => {
                    let low = i_splat(0x0f0f_0f0f);
                    for k in 0..4 {
                        let both = plane(k);
                        codes[k] = i_and(both, low);
                        codes[k + 4] = i_and(i_shr16::<4>(both), low);
                    }
                }
                _ => {
                    let low = i_splat(0x0303_0303);
                    for half in 0..2 {
                        let four = plane(half);
                        codes[half * 4] = i_and(four, low);
                        codes[half * 4 + 1] = i_and(i_shr16::<2>(four), low);
                        codes[half * 4 + 2] = i_and(i_shr16::<4>(four), low);
                        codes[half * 4 + 3] = i_and(i_shr16::<6>(four), low);
                    }
                }
            }
            match L::BITS {
                5 => or_bit_plane::<0x10>(&mut codes, plane(4), 4),
                3 => or_bit_plane::<0x04>(&mut codes, plane(2), 2),
                6 => {
                    let mask = i_splat(0x3030_3030);
                    for half in 0..2 {
                        let four = plane(4 + half);
                        let at = half * 4;
                        codes[at] = i_or(codes[at], i_and(i_shl16::<4>(four), mask));
                        codes[at + 1] = i_or(codes[at + 1], i_and(i_shl16::<2>(four), mask));
                        codes[at + 2] = i_or(codes[at + 2], i_and(four, mask));
                        codes[at + 3] = i_or(codes[at + 3], i_and(i_shr16::<2>(four), mask));
                    }
                }
                _ => {}
            }
            codes
        }

        /// Adds bit `step` of every byte of `plane` to the codes, moved to `MASK`'s place.
        #[target_feature(enable = $features)]
        #[inline]
        fn or_bit_plane<const MASK: i32>(codes: &mut [I; 8], plane: I, place: usize) {
            let mask = i_splat(MASK * 0x0101_0101);
            let moved: [I; 8] = if place == 4 {
                [
                    i_shl16::<4>(plane),
                    i_shl16::<3>(plane),
                    i_shl16::<2>(plane),
                    i_shl16::<1>(plane),
                    plane,
                    i_shr16::<1>(plane),
                    i_shr16::<2>(plane),
                    i_shr16::<3>(plane),
                ]
            } else {
                [
                    i_shl16::<2>(plane),
                    i_shl16::<1>(plane),
                    plane,
                    i_shr16::<1>(plane),
                    i_shr16::<2>(plane),
                    i_shr16::<3>(plane),
                    i_shr16::<4>(plane),
                    i_shr16::<5>(plane),
                ]
            };
            for (code, bit) in codes.iter_mut().zip(moved) {
                *code = i_or(*code, i_and(bit, mask));
            }
        }

        /// The four bytes of one word of codes, to be met by every lane.
        #[target_feature(enable = $features)]
        #[inline]
        fn word(codes: [i8; 4]) -> i32 {
            i32::from_le_bytes(codes.map(i8::cast_unsigned))
        }

        /// Integer part of one block for one row of activations: all codes against all codes.
        #[target_feature(enable = $features)]
        #[inline]
        fn whole_dot<L: Layout, const T: usize>(codes: &[I; 8], x: &ActivationBlock) -> I {
            let mut even = i_splat(-L::OFFSET * x.sum);
            // The chains of four and eight rows keep the units busy; of fewer, each needs two,
            // and of sixteen two are 3 % faster. Integers: the sum is the same.
            if T == 4 || T == 8 {
                for (codes, x) in codes.iter().zip(&x.codes) {
                    even = dot_any::<L>(even, *codes, word(*x));
                }
                return even;
            }
            let mut odd = i_splat(0);
            for k in 0..4 {
                even = dot_any::<L>(even, codes[2 * k], word(x.codes[2 * k]));
                odd = dot_any::<L>(odd, codes[2 * k + 1], word(x.codes[2 * k + 1]));
            }
            i_add(even, odd)
        }

        /// As `whole_dot`, per 16 inputs and times the sub-block scales; `offsets` are what each
        /// sum of 16 activation codes takes part with.
        #[target_feature(enable = $features)]
        #[inline]
        fn sub_dot<L: Layout>(
            codes: &[I; 8],
            (scales, offsets): ([I; 2], I),
            x: &ActivationBlock,
        ) -> I {
            let mut dots = [i_splat(0); 2];
            for k in 0..4 {
                dots[0] = dot_any::<L>(dots[0], codes[k], word(x.codes[k]));
                dots[1] = dot_any::<L>(dots[1], codes[k + 4], word(x.codes[k + 4]));
            }
            let total = i_add(i_mul(dots[0], scales[0]), i_mul(dots[1], scales[1]));
            if L::OFFSET == 0 { total } else { dot_pairs(total, offsets, bytemuck::cast(x.halves)) }
        }

        /// Two numbers of sixteen bits side by side in each lane.
        #[target_feature(enable = $features)]
        #[inline]
        fn pairs(low: I, high: I) -> I {
            i_or(i_and(low, i_splat(0xffff)), i_mul(high, i_splat(1 << 16)))
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn dot_any<L: Layout>(sum: I, codes: I, x: i32) -> I {
            if L::BITS == 8 { dot_wide(sum, codes, x) } else { dot(sum, codes, x) }
        }

        /// What one block multiplies its integers with.
        #[derive(Clone, Copy)]
        struct Factors {
            /// Scale, times that of the block where a K type has one for all 32 inputs.
            scale: F,
            /// Minimum, that of a K type likewise and with its sign changed.
            minimum: F,
            /// Of a type with two scales a block: each of them.
            scales: [I; 2],
            /// Of such a type, a pair in each lane: what the sums of 16 activation codes are
            /// multiplied by for the codes' offset, and for the minima.
            offsets: I,
            minima: I,
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn factors<L: Layout>(block: &[u8], index: usize) -> Factors {
            let lanes = |from: usize, sub: usize| {
                block[from + (index * L::SUBS + sub) * 16..].first_chunk().expect("one of each lane")
            };
            let at = if L::K { 0 } else { index * 32 };
            let half = |at: usize| f_half(block[at..].first_chunk().expect("sixteen halves"));
            let none = i_splat(0);
            let mut factors = Factors {
                scale: half(at),
                minimum: if L::MINIMUM { half(L::M_AT + at) } else { f_splat(0.0) },
                scales: [none; 2],
                offsets: none,
                minima: none,
            };
            if !L::K {
                return factors;
            }
            factors.minimum = f_sub(f_splat(-0.0), factors.minimum);
            if L::SUBS == 1 {
                let scale = f_from_i(i_bytes(lanes(L::SCALES_AT, 0)));
                factors.scale = f_mul(factors.scale, scale);
                if L::MINIMUM {
                    let minimum = f_from_i(i_ubytes(lanes(L::MINIMA_AT, 0)));
                    factors.minimum = f_mul(factors.minimum, minimum);
                }
                return factors;
            }
            factors.scales = [0, 1].map(|sub| i_bytes(lanes(L::SCALES_AT, sub)));
            let [low, high] = factors.scales.map(|scale| i_mul(scale, i_splat(-L::OFFSET)));
            factors.offsets = pairs(low, high);
            if L::MINIMUM {
                let [low, high] = [0, 1].map(|sub| i_ubytes(lanes(L::MINIMA_AT, sub)));
                factors.minima = pairs(low, high);
            }
            factors
        }

        /// Adds one block to the sums of `T` rows of activations. The first tile of a matrix
        /// brings the weights in, the others find them.
        #[target_feature(enable = $features)]
        #[inline]
        fn add_block<L: Layout, const T: usize, const BRINGS: bool>(
            block: &[u8],
            index: usize,
            x: &[ActivationBlock; T],
            sums: &mut [F; T],
        ) {
            if BRINGS {
                ask_ahead::<L>(block, index);
            }
            let planes = &block[L::PLANES_AT + index * L::PLANES..][..L::PLANES];
            let codes = unpack::<L>(planes);
            let factors = factors::<L>(block, index);
            written_out!(row below T {
                sums[row] = add_row::<L, T>(&codes, factors, &x[row], sums[row]);
            });
        }

        /// The sum of one row of activations with one block added.
        #[target_feature(enable = $features)]
        #[inline]
        fn add_row<L: Layout, const T: usize>(
            codes: &[I; 8],
            factors: Factors,
            x: &ActivationBlock,
            sum: F,
        ) -> F {
            let d = f_splat(x.scale);
            let dot = if L::SUBS == 2 {
                sub_dot::<L>(codes, (factors.scales, factors.offsets), x)
            } else {
                whole_dot::<L, T>(codes, x)
            };
            let sum = f_fma(f_mul(factors.scale, d), f_from_i(dot), sum);
            if L::MINIMUM && L::SUBS == 2 {
                let offset = dot_pairs(i_splat(0), factors.minima, bytemuck::cast(x.halves));
                f_fma(f_mul(factors.minimum, d), f_from_i(offset), sum)
            } else if L::MINIMUM {
                f_fma(factors.minimum, f_splat(x.scaled_sum), sum)
            } else {
                sum
            }
        }

        /// Asks for one block's share of what lies `AHEAD` bytes further on. The processor's own
        /// prefetching stops at every page, and a block's arithmetic is too long for it to look
        /// past; what lies beyond the matrix is never read, so that any address will do.
        #[target_feature(enable = $features)]
        #[inline]
        fn ask_ahead<L: Layout>(bytes: &[u8], index: usize) {
            // With half of it eight rows wait longer for their weights; with twice as much, one does.
            const AHEAD: usize = 8192;
            let share = L::BYTES / L::SUPER;
            for line in (index * share..(index + 1) * share).step_by(64) {
                prefetch(bytes.as_ptr().wrapping_add(AHEAD + line));
            }
        }

        /// Sixteen output rows for rows `at..at + T` of a tile.
        #[target_feature(enable = $features)]
        #[inline]
        fn tile<L: Layout, const T: usize, const BRINGS: bool>(
            group: &[u8],
            at: usize,
            x: ActivationTile<'_>,
        ) -> [F; T] {
            let mut sums = [f_splat(0.0); T];
            // One call for the blocks of whole superblocks and of the last: it is long, and stays
            // part of this function only where nothing else calls it.
            for (block, x) in x.blocks.chunks_exact(x.places).enumerate() {
                let bytes = &group[block / L::SUPER * L::BYTES..][..L::BYTES];
                let index = block % L::SUPER;
                let x = x[at..].first_chunk().expect("a row each");
                add_block::<L, T, BRINGS>(bytes, index, x, &mut sums);
            }
            sums
        }

        /// Hands the outputs of one group on, sixteen of each row from `row` on. Kept apart, so
        /// that it is the same code for every type and the loops before it stay small.
        #[target_feature(enable = $features)]
        #[inline(never)]
        fn put(lanes: &[[f32; 16]], (group, row): (usize, usize), out: &mut Sink<'_, '_>) {
            for (row, lanes) in (row..).zip(lanes) {
                let adds = out.adds(row);
                match out.place(group, row) {
                    Some(to) if adds => f_store(f_add(f_load(to), f_load(lanes)), to),
                    Some(to) => f_store(f_load(lanes), to),
                    None => out.put_part(group, row, lanes),
                }
            }
        }

        /// `tile`, its outputs handed on.
        #[target_feature(enable = $features)]
        fn rows<L: Layout, const T: usize>(
            (index, group): (usize, &[u8]),
            at: usize,
            x: ActivationTile<'_>,
            out: &mut Sink<'_, '_>,
        ) {
            let mut lanes = [[0.0f32; 16]; T];
            let sums = if x.first + at == 0 {
                tile::<L, T, true>(group, at, x)
            } else {
                tile::<L, T, false>(group, at, x)
            };
            for (lanes, sum) in lanes.iter_mut().zip(sums) {
                f_store(sum, lanes);
            }
            put(&lanes[..T.min(x.rows - at)], (index, x.first + at), out);
        }

        /// Some groups, the first of them numbered `first`, against one tile of activations.
        #[target_feature(enable = $features)]
        pub(crate) fn tile_product<L: Layout>(
            (first, groups): (usize, std::slice::ChunksExact<'_, u8>),
            x: ActivationTile<'_>,
            out: &mut Sink<'_, '_>,
        ) {
            for group in groups.enumerate().map(|(index, group)| (first + index, group)) {
                for at in (0..x.places).step_by($tile) {
                    match $tile.min(x.places) {
                        1 => rows::<L, 1>(group, at, x, out),
                        2 => rows::<L, 2>(group, at, x, out),
                        4 => rows::<L, 4>(group, at, x, out),
                        8 => rows::<L, 8>(group, at, x, out),
                        _ => rows::<L, $tile>(group, at, x, out),
                    }
                }
            }
        }

        /// `rounds` times twelve independent int8 dot products, for measuring their peak.
        #[target_feature(enable = $features)]
        pub(crate) fn dot_rounds(rounds: usize) -> u8 {
            let mut sums = [i_splat(0); 12];
            let (codes, mut x) = (i_splat(0x0706_0504), 0x0302_0100);
            for _ in 0..rounds {
                // The compiler must not find out that every round is the same.
                x = std::hint::black_box(x);
                for sum in &mut sums {
                    *sum = dot(*sum, codes, x);
                }
            }
            fold(sums)
        }

        /// Reads every byte once and returns something that depends on all of them.
        #[target_feature(enable = $features)]
        pub(crate) fn read_through(bytes: &[u8]) -> u8 {
            let mut sums = [i_splat(0); 12];
            let (lines, _) = bytes.as_chunks::<64>();
            for lines in lines.chunks(12) {
                for (sum, line) in sums.iter_mut().zip(lines) {
                    *sum = i_or(*sum, i_load(line));
                }
            }
            fold(sums)
        }

        #[target_feature(enable = $features)]
        fn fold(sums: [I; 12]) -> u8 {
            let all = sums.into_iter().fold(i_splat(0), |a, b| i_or(a, b));
            let mut bytes = [0i8; 16];
            i_store_bytes(all, &mut bytes);
            bytes.iter().fold(0, |a, b| a | b.cast_unsigned())
        }

        /// One group of float weights against all rows of `x`: one chain over the inputs.
        #[target_feature(enable = $features)]
        pub(crate) fn group_float(
            format: crate::Format,
            (index, group): (usize, &[u8]),
            x: &[f32],
            columns: usize,
            out: &mut Sink<'_, '_>,
        ) {
            let size = format.bits() * 2;
            let weights = |at: usize| {
                let bytes = &group[at * size..][..size];
                match format {
                    crate::Format::F32 => {
                        f_load(bytemuck::cast_slice(bytes).first_chunk().expect("sixteen numbers"))
                    }
                    crate::Format::F16 => f_half(bytes.first_chunk().expect("sixteen halves")),
                    _ => f_bf16(bytes.first_chunk().expect("sixteen halves")),
                }
            };
            for (tile, rows) in x.chunks(columns * $tile).enumerate() {
                let count = rows.len() / columns;
                let mut sums = [f_splat(0.0); $tile];
                for column in 0..columns {
                    let w = weights(column);
                    for (t, sum) in sums.iter_mut().enumerate().take(count) {
                        *sum = f_fma(w, f_splat(rows[t * columns + column]), *sum);
                    }
                }
                let mut lanes = [[0.0f32; 16]; $tile];
                for (lanes, &sum) in lanes.iter_mut().zip(&sums) {
                    f_store(sum, lanes);
                }
                put(&lanes[..count], (index, tile * $tile), out);
            }
        }
    };
}
pub(crate) use lane_matmul;
