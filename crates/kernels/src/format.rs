//! How each weight type lies in memory once sixteen rows share the lanes.
//!
//! A matrix is cut into groups of 16 output rows, a group into superblocks, a superblock into
//! blocks of 32 inputs:
//!
//! ```text
//! superblock: d, 16 f16 each   one per block, or one per superblock of 8 (K types)
//!             m, 16 f16 each   types with a minimum, as many as d
//!             sc, 16 x i8      K types, one or two (per 16 inputs) a block
//!             mn, 16 x u8      K types with a minimum, as many as sc
//!             padding          to a multiple of 64 bytes
//!             planes           per block, `bits` x 64 bytes
//! ```
//!
//! A plane is 64 bytes; byte `4 * lane + i` belongs to output row `lane` and to the inputs
//! `4 * step + i` of the block, step 0 to 7. Four-bit planes hold step `k` low and step `k + 4`
//! high, two-bit planes four steps, one-bit planes all eight, eight-bit planes one.

use crate::{BLOCK, LANES};

/// A weight type, as it lies re-laid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    /// Codes of eight bits under the scales of a K type.
    Iq4Xs,
}

/// One row's share of a block of 32 inputs, before it is re-laid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawBlock {
    /// Unsigned codes, in input order, each below `2^bits`.
    pub codes: [u8; BLOCK],
    /// Scale, f16 bits.
    pub d: u16,
    /// Minimum (added) or scale of the minimum (subtracted, K types), f16 bits.
    pub m: u16,
    /// Sub-block scales of K types, one per 16 inputs (equal where one serves all 32).
    pub scales: [i8; 2],
    /// Sub-block minima of K types, likewise.
    pub minima: [u8; 2],
}

/// The numbers that describe a quantised layout; each type below is one.
pub(crate) trait Layout {
    /// Bits of a code.
    const BITS: usize;
    /// Blocks of 32 inputs in a superblock.
    const SUPER: usize;
    /// `d` and `m` given once per superblock, and sub-block scales present.
    const K: bool;
    /// Whether there is a minimum.
    const MINIMUM: bool;
    /// Sub-blocks with a scale of their own in a block: 1 or 2.
    const SUBS: usize;
    /// What a code of 0 stands for is `-OFFSET`.
    const OFFSET: i32;

    /// How many `d` a superblock has.
    const DS: usize = if Self::K { 1 } else { Self::SUPER };
    const M_AT: usize = Self::DS * 2 * LANES;
    const SCALES_AT: usize = Self::M_AT * if Self::MINIMUM { 2 } else { 1 };
    const SCALES: usize = if Self::K { Self::SUPER * Self::SUBS * LANES } else { 0 };
    const MINIMA_AT: usize = Self::SCALES_AT + Self::SCALES;
    const MINIMA: usize = if Self::MINIMUM { Self::SCALES } else { 0 };
    const PLANES_AT: usize = (Self::MINIMA_AT + Self::MINIMA).next_multiple_of(64);
    /// Bytes of the planes of one block.
    const PLANES: usize = Self::BITS * 64;
    /// Bytes of one superblock of sixteen rows.
    const BYTES: usize = Self::PLANES_AT + Self::SUPER * Self::PLANES;
}

macro_rules! layout {
    ($name:ident, bits $bits:literal, blocks $super:literal, k $k:literal,
     minimum $minimum:literal, subs $subs:literal, offset $offset:literal) => {
        #[derive(Debug)]
        pub(crate) struct $name;
        impl Layout for $name {
            const BITS: usize = $bits;
            const SUPER: usize = $super;
            const K: bool = $k;
            const MINIMUM: bool = $minimum;
            const SUBS: usize = $subs;
            const OFFSET: i32 = $offset;
        }
        const _: () = assert!($name::BYTES % 64 == 0);
    };
}

// Types without a minimum pair their blocks, so that every plane starts a cache line.
layout!(Q4_0, bits 4, blocks 2, k false, minimum false, subs 1, offset 8);
layout!(Q4_1, bits 4, blocks 1, k false, minimum true, subs 1, offset 0);
layout!(Q5_0, bits 5, blocks 2, k false, minimum false, subs 1, offset 16);
layout!(Q5_1, bits 5, blocks 1, k false, minimum true, subs 1, offset 0);
layout!(Q8_0, bits 8, blocks 2, k false, minimum false, subs 1, offset 128);
layout!(Q2K, bits 2, blocks 8, k true, minimum true, subs 2, offset 0);
layout!(Q3K, bits 3, blocks 8, k true, minimum false, subs 2, offset 4);
layout!(Q4K, bits 4, blocks 8, k true, minimum true, subs 1, offset 0);
layout!(Q5K, bits 5, blocks 8, k true, minimum true, subs 1, offset 0);
layout!(Q6K, bits 6, blocks 8, k true, minimum false, subs 2, offset 32);
layout!(Iq4Xs, bits 8, blocks 8, k true, minimum false, subs 1, offset 128);

/// Runs `$body` with `$L` bound to the layout of a quantised `$format`; else `$float`.
macro_rules! with_layout {
    ($format:expr, $L:ident => $body:expr, else $float:expr) => {
        match $format {
            $crate::Format::Q4_0 => {
                type $L = $crate::format::Q4_0;
                $body
            }
            $crate::Format::Q4_1 => {
                type $L = $crate::format::Q4_1;
                $body
            }
            $crate::Format::Q5_0 => {
                type $L = $crate::format::Q5_0;
                $body
            }
            $crate::Format::Q5_1 => {
                type $L = $crate::format::Q5_1;
                $body
            }
            $crate::Format::Q8_0 => {
                type $L = $crate::format::Q8_0;
                $body
            }
            $crate::Format::Q2K => {
                type $L = $crate::format::Q2K;
                $body
            }
            $crate::Format::Q3K => {
                type $L = $crate::format::Q3K;
                $body
            }
            $crate::Format::Q4K => {
                type $L = $crate::format::Q4K;
                $body
            }
            $crate::Format::Q5K => {
                type $L = $crate::format::Q5K;
                $body
            }
            $crate::Format::Q6K => {
                type $L = $crate::format::Q6K;
                $body
            }
            $crate::Format::Iq4Xs => {
                type $L = $crate::format::Iq4Xs;
                $body
            }
            $crate::Format::F32 | $crate::Format::F16 | $crate::Format::Bf16 => $float,
        }
    };
}
pub(crate) use with_layout;

impl Format {
    /// Every format, for tests and tables.
    pub const ALL: [Self; 14] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::Iq4Xs,
    ];

    /// Whether activations meet this type as int8; float types take them as they are.
    #[must_use]
    pub fn is_quantised(self) -> bool {
        !matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Bits of a code; of a number, for float types.
    #[must_use]
    pub fn bits(self) -> usize {
        with_layout!(self, L => L::BITS, else if self == Self::F32 { 32 } else { 16 })
    }

    /// A row's length is a multiple of this: 32 for simple types, 256 for K types, 1 for floats.
    #[must_use]
    pub fn row_multiple(self) -> usize {
        with_layout!(self, L => if L::K { L::SUPER * BLOCK } else { BLOCK }, else 1)
    }

    /// Bytes of one group of sixteen rows of `columns` inputs.
    #[must_use]
    pub fn group_bytes(self, columns: usize) -> usize {
        with_layout!(
            self,
            L => columns.div_ceil(BLOCK).div_ceil(L::SUPER) * L::BYTES,
            else (columns * LANES * self.bits() / 8).next_multiple_of(64)
        )
    }
}
