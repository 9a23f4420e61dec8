//! Bodies shared by every SIMD path, written once over sixteen lanes.
//!
//! A path brings the types `F` (16 f32), `I` (16 i32, or 64 bytes) and the primitives named in
//! `avx2`; each macro below turns into functions compiled for that path's instructions. They
//! repeat `scalar` and `math` operation for operation.

/// Element-wise functions, norms and the quantising of activations.
macro_rules! lane_ops {
    ($features:literal) => {
        use crate::activations::{AMAX_MIN, Finite};

        /// As `Isa::run`.
        #[target_feature(enable = $features)]
        pub(crate) fn run<W: crate::Work>(work: W) -> W::Out {
            work.run()
        }

        /// `math::exp` in lanes.
        #[target_feature(enable = $features)]
        #[inline]
        fn f_exp(x: F) -> F {
            use crate::math::{EXP_MAX, EXP_MIN, EXP_POLY, LN2_HI, LN2_LO, LOG2_E};
            let x = f_max(f_min(x, f_splat(EXP_MAX)), f_splat(EXP_MIN));
            let n = f_round(f_mul(x, f_splat(LOG2_E)));
            let r = f_fma(n, f_splat(-LN2_HI), x);
            let r = f_fma(n, f_splat(-LN2_LO), r);
            let mut q = f_splat(EXP_POLY[0]);
            for &c in &EXP_POLY[1..] {
                q = f_fma(q, r, f_splat(c));
            }
            f_scale(f_add(f_fma(q, f_mul(r, r), r), f_splat(1.0)), n)
        }

        /// Applies `op` to `x` and `y` in place, the tail by way of a padded copy.
        #[target_feature(enable = $features)]
        #[inline]
        fn zip_lanes(x: &mut [f32], y: &[f32], op: impl Fn(F, F) -> F) {
            let (xs, x_tail) = x.as_chunks_mut::<16>();
            let (ys, y_tail) = y.as_chunks::<16>();
            for (x, y) in xs.iter_mut().zip(ys) {
                let z = op(f_load(x), f_load(y));
                f_store(z, x);
            }
            if !x_tail.is_empty() {
                let (mut a, mut b) = ([0.0f32; 16], [0.0f32; 16]);
                a[..x_tail.len()].copy_from_slice(x_tail);
                b[..y_tail.len()].copy_from_slice(y_tail);
                let z = op(f_load(&a), f_load(&b));
                f_store(z, &mut a);
                x_tail.copy_from_slice(&a[..x_tail.len()]);
            }
        }

        /// As `scalar::silu_mul`.
        #[target_feature(enable = $features)]
        pub(crate) fn silu_mul(gate: &mut [f32], up: &[f32]) {
            zip_lanes(gate, up, |g, u| {
                let e = f_exp(f_sub(f_splat(-0.0), g));
                f_mul(f_div(g, f_add(f_splat(1.0), e)), u)
            });
        }

        /// As `scalar::gelu_mul`.
        #[target_feature(enable = $features)]
        pub(crate) fn gelu_mul(gate: &mut [f32], up: &[f32]) {
            use crate::math::{GELU_CUBIC, GELU_SCALE};
            zip_lanes(gate, up, |g, u| {
                let cubic = f_mul(f_mul(f_splat(GELU_CUBIC), g), g);
                let inner = f_fma(cubic, g, g);
                let scaled = f_mul(f_splat(GELU_SCALE), inner);
                let e = f_exp(f_sub(f_splat(-0.0), scaled));
                f_mul(f_div(g, f_add(f_splat(1.0), e)), u)
            });
        }

        /// As `scalar::clamped_swiglu`.
        #[target_feature(enable = $features)]
        pub(crate) fn clamped_swiglu(gate: &mut [f32], up: &[f32]) {
            use crate::math::{CLAMP, CLAMPED_SLOPE};
            let (one, clamp) = (f_splat(1.0), f_splat(CLAMP));
            zip_lanes(gate, up, |g, u| {
                let g = f_min(clamp, g);
                let u = f_max(f_splat(-CLAMP), f_min(clamp, u));
                let e = f_exp(f_sub(f_splat(-0.0), f_mul(f_splat(CLAMPED_SLOPE), g)));
                f_mul(f_div(g, f_add(one, e)), f_add(u, one))
            });
        }

        /// `math::soft_cap` in lanes.
        #[target_feature(enable = $features)]
        #[inline]
        fn f_soft_cap(x: F, cap: f32) -> F {
            let e = f_exp(f_mul(x, f_splat(2.0 / cap)));
            let share = f_div(f_splat(cap + cap), f_add(e, f_splat(1.0)));
            f_add(f_sub(f_splat(cap), share), f_mul(x, f_splat(0.0)))
        }

        /// As `scalar::soft_cap`.
        #[target_feature(enable = $features)]
        pub(crate) fn soft_cap(x: &mut [f32], cap: f32) {
            let (chunks, tail) = x.as_chunks_mut::<16>();
            for chunk in chunks {
                let capped = f_soft_cap(f_load(chunk), cap);
                f_store(capped, chunk);
            }
            tail.iter_mut().for_each(|x| *x = crate::math::soft_cap(*x, cap));
        }

        /// As `scalar::rms_norm`.
        #[target_feature(enable = $features)]
        pub(crate) fn rms_norm(x: &mut [f32], weight: &[f32], eps: f32) {
            let scale = f_splat(rms_scale(x, eps));
            zip_lanes(x, weight, |x, w| f_mul(f_mul(x, scale), w));
        }

        /// As `scalar::rms_scale`.
        #[target_feature(enable = $features)]
        pub(crate) fn rms_scale(x: &[f32], eps: f32) -> f32 {
            let (chunks, tail) = x.as_chunks::<16>();
            let mut squares = f_splat(0.0);
            for chunk in chunks {
                let v = f_load(chunk);
                squares = f_fma(v, v, squares);
            }
            if !tail.is_empty() {
                let mut padded = [0.0f32; 16];
                padded[..tail.len()].copy_from_slice(tail);
                let v = f_load(&padded);
                squares = f_fma(v, v, squares);
            }
            crate::scalar::norm_scale(f_tree_sum(squares), x.len(), eps)
        }

        /// As `scalar::add`.
        #[target_feature(enable = $features)]
        pub(crate) fn add(x: &mut [f32], y: &[f32]) {
            zip_lanes(x, y, |x, y| f_add(x, y));
        }

        /// As `scalar::quantise_normed`.
        #[target_feature(enable = $features)]
        pub(crate) fn quantise_normed(
            x: &[f32; 32],
            (weight, scale): (&[f32; 32], f32),
            to: &mut crate::activations::ActivationBlock,
        ) -> Finite {
            let (x, weight) = (x.as_chunks::<16>().0, weight.as_chunks::<16>().0);
            let normed =
                |half: usize| f_mul(f_mul(f_load(&x[half]), f_splat(scale)), f_load(&weight[half]));
            quantise_lanes(normed(0), normed(1), to)
        }

        /// As `scalar::quantise_block`.
        #[target_feature(enable = $features)]
        pub(crate) fn quantise_block(
            x: &[f32; 32],
            to: &mut crate::activations::ActivationBlock,
        ) -> Finite {
            let (halves, _) = x.as_chunks::<16>();
            quantise_lanes(f_load(&halves[0]), f_load(&halves[1]), to)
        }

        /// The block whose halves are `a` and `b`.
        #[target_feature(enable = $features)]
        #[inline]
        fn quantise_lanes(a: F, b: F, to: &mut crate::activations::ActivationBlock) -> Finite {
            let largest = i_max_abs_bits(a, b);
            if largest >= crate::scalar::INFINITY_BITS {
                return Finite(false);
            }
            let amax = f32::from_bits(largest);
            if amax < AMAX_MIN {
                *to = Default::default();
                return Finite(true);
            }
            let inverse = f_splat(127.0 / amax);
            let codes: &mut [[i8; 16]] = bytemuck::cast_slice_mut(to.codes.as_mut_slice());
            let first = i_store_bytes(i_from_f(f_round(f_mul(a, inverse))), &mut codes[0]);
            let second = i_store_bytes(i_from_f(f_round(f_mul(b, inverse))), &mut codes[1]);
            to.finish(amax / 127.0, [first, second].map(|bytes| i_sum_bytes(bytes)));
            Finite(true)
        }
    };
}
pub(crate) use lane_ops;
