//! Chooses the path once, at start, and names it.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls functions compiled for instructions the CPU reported")
)]

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::activations::{ActivationBlock, ActivationTile, Finite};
use crate::attention::{HeadQueries, KvSlab, Seen};
use crate::format::with_layout;
use crate::sink::Sink;
use crate::{PackedMatrix, Work, scalar};
#[cfg(target_arch = "x86_64")]
use crate::{avx2, avx512, avx512vnni, avxvnni};

/// An instruction set that has a path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    Scalar,
    Avx2,
    AvxVnni,
    Avx512,
    Avx512Vnni,
}

/// Why a path cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    #[error("unknown instruction set `{name}`: scalar, avx2, avxvnni, avx512 and avx512vnni exist")]
    Unknown { name: String },
    #[error("instruction set `{name}` was asked for, but this CPU lacks it")]
    Lacking { name: &'static str },
}

impl Isa {
    /// Every path, the slowest first.
    pub const ALL: [Self; 5] =
        [Self::Scalar, Self::Avx2, Self::AvxVnni, Self::Avx512, Self::Avx512Vnni];

    /// The name on the command line, in the log and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avxvnni",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "avx512vnni",
        }
    }

    /// Whether this CPU (and its operating system) has what the path needs.
    #[cfg(target_arch = "x86_64")]
    #[must_use]
    pub fn is_present(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = || has!("avx2") && has!("fma") && has!("f16c");
        let avx512 = || has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        match self {
            Self::Scalar => true,
            Self::Avx2 => avx2(),
            Self::AvxVnni => avx2() && has!("avxvnni"),
            Self::Avx512 => avx512(),
            Self::Avx512Vnni => avx512() && has!("avx512vnni"),
        }
    }

    /// As above: other processors have the scalar path only.
    #[cfg(not(target_arch = "x86_64"))]
    #[must_use]
    pub fn is_present(self) -> bool {
        self == Self::Scalar
    }

    /// The fastest path this CPU has.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL.into_iter().rev().find(|isa| isa.is_present()).unwrap_or(Self::Scalar)
    }

    /// Does the work on vectors of this path's width, or as plain code where the CPU lacks them.
    pub fn run<W: Work>(self, work: W) -> W::Out {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the CPU reports the instructions.
            Self::Avx2 | Self::AvxVnni if self.is_present() => unsafe { avx2::run(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Self::Avx512 | Self::Avx512Vnni if self.is_present() => unsafe { avx512::run(work) },
            _ => work.run(),
        }
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Self, IsaError> {
        let known = Self::ALL.into_iter().find(|isa| isa.name() == name);
        known.ok_or_else(|| IsaError::Unknown { name: name.to_owned() })
    }
}

/// Quantises one block of a row, times a scale and by weights.
type QuantiseNormed = fn(&[f32; 32], (&[f32; 32], f32), &mut ActivationBlock) -> Finite;

/// The chosen path: one function for each thing it computes.
#[derive(Clone, Copy)]
pub struct Kernels {
    pub(crate) isa: Isa,
    pub(crate) tile_product: fn(&PackedMatrix, Range<usize>, ActivationTile<'_>, &mut Sink<'_, '_>),
    pub(crate) group_float: fn(&PackedMatrix, usize, &[f32], &mut Sink<'_, '_>),
    pub(crate) quantise_block: fn(&[f32; 32], &mut ActivationBlock) -> Finite,
    pub(crate) quantise_normed: QuantiseNormed,
    pub(crate) rms_norm: fn(&mut [f32], &[f32], f32),
    pub(crate) rms_scale: fn(&[f32], f32) -> f32,
    pub(crate) add: fn(&mut [f32], &[f32]),
    pub(crate) silu_mul: fn(&mut [f32], &[f32]),
    pub(crate) gelu_mul: fn(&mut [f32], &[f32]),
    pub(crate) clamped_swiglu: fn(&mut [f32], &[f32]),
    pub(crate) soft_cap: fn(&mut [f32], f32),
    pub(crate) attend: fn(HeadQueries<'_>, &KvSlab<'_>, &mut [f32]),
    pub(crate) attend_segments: fn(HeadQueries<'_>, &KvSlab<'_>, Range<usize>, &mut [f32]),
    pub(crate) merge_segments: fn(Seen<'_>, &[f32], &mut [f32]),
    pub(crate) dot_rounds: fn(usize) -> u8,
    pub(crate) read_through: fn(&[u8]) -> u8,
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").field("isa", &self.isa).finish_non_exhaustive()
    }
}

/// A table whose products come from one module and whose other functions from another.
#[cfg(target_arch = "x86_64")]
macro_rules! table {
    ($isa:expr, $matmul:ident, $ops:ident) => {
        Kernels {
            isa: $isa,
            tile_product: |weights, groups, x, out| {
                let groups = (groups.start, weights.groups_of(groups));
                with_layout!(weights.format(),
                    // SAFETY: the caller of `table!` saw the CPU report the path's instructions.
                    L => unsafe { $matmul::tile_product::<L>(groups, x, out) },
                    else unreachable!("invariant: a quantised product has quantised weights"))
            },
            group_float: |weights, group, x, out| {
                let (format, columns) = (weights.format(), weights.columns());
                let group = (group, weights.group(group));
                // SAFETY: the caller of `table!` saw the CPU report the path's instructions.
                unsafe { $matmul::group_float(format, group, x, columns, out) }
            },
            // SAFETY: the caller of `table!` saw the CPU report the path's instructions.
            quantise_block: |x, to| unsafe { $ops::quantise_block(x, to) },
            // SAFETY: as above.
            quantise_normed: |x, norm, to| unsafe { $ops::quantise_normed(x, norm, to) },
            // SAFETY: as above.
            rms_norm: |x, weight, eps| unsafe { $ops::rms_norm(x, weight, eps) },
            // SAFETY: as above.
            rms_scale: |x, eps| unsafe { $ops::rms_scale(x, eps) },
            // SAFETY: as above.
            add: |x, y| unsafe { $ops::add(x, y) },
            // SAFETY: as above.
            silu_mul: |gate, up| unsafe { $ops::silu_mul(gate, up) },
            // SAFETY: as above.
            gelu_mul: |gate, up| unsafe { $ops::gelu_mul(gate, up) },
            // SAFETY: as above.
            clamped_swiglu: |gate, up| unsafe { $ops::clamped_swiglu(gate, up) },
            // SAFETY: as above.
            soft_cap: |x, cap| unsafe { $ops::soft_cap(x, cap) },
            // SAFETY: as above.
            attend: |queries, slab, out| unsafe { $ops::attend(queries, slab, out) },
            attend_segments: |queries, slab, segments, out| {
                // SAFETY: as above.
                unsafe { $ops::attend_segments(queries, slab, segments, out) }
            },
            // SAFETY: as above.
            merge_segments: |seen, parts, out| unsafe { $ops::merge_segments(seen, parts, out) },
            // SAFETY: as above.
            dot_rounds: |rounds| unsafe { $matmul::dot_rounds(rounds) },
            // SAFETY: as above.
            read_through: |bytes| unsafe { $matmul::read_through(bytes) },
        }
    };
}

impl Kernels {
    /// The path asked for.
    ///
    /// # Errors
    /// `IsaError::Lacking` if this CPU cannot run it.
    pub fn with_isa(isa: Isa) -> Result<Self, IsaError> {
        if !isa.is_present() {
            return Err(IsaError::Lacking { name: isa.name() });
        }
        Ok(match isa {
            Isa::Scalar => Self {
                isa,
                tile_product: |weights, groups, x, out| {
                    with_layout!(weights.format(),
                        L => scalar::tile_product::<L>(weights, groups, x, out),
                        else unreachable!("invariant: a quantised product has quantised weights"))
                },
                group_float: |weights, group, x, out| scalar::group_float(weights, group, x, out),
                quantise_block: scalar::quantise_block,
                quantise_normed: scalar::quantise_normed,
                rms_norm: scalar::rms_norm,
                rms_scale: scalar::rms_scale,
                add: scalar::add,
                silu_mul: scalar::silu_mul,
                gelu_mul: scalar::gelu_mul,
                clamped_swiglu: scalar::clamped_swiglu,
                soft_cap: scalar::soft_cap,
                attend: scalar::attend,
                attend_segments: scalar::attend_segments,
                merge_segments: scalar::merge_segments,
                dot_rounds: scalar::dot_rounds,
                read_through: scalar::read_through,
            },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => table!(isa, avx2, avx2),
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => table!(isa, avxvnni, avx2),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => table!(isa, avx512, avx512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => table!(isa, avx512vnni, avx512),
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("invariant: only the scalar path is present"),
        })
    }

    /// The fastest path this CPU has.
    #[must_use]
    pub fn best() -> Self {
        Self::with_isa(Isa::best()).expect("invariant: the best path is one the CPU has")
    }

    /// Which path this is.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }
}
