//! Arithmetic on quantised weights, the same bits on every path.
//!
//! It knows nothing of what a tensor means, and does no I/O.
//! Rows of activations are quantised once, weights lie with sixteen output rows in lanes, and
//! every reduction has one order, stated in `docs/numerics.md`; `scalar` is its definition.
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "what only lanes read; other processors compute with `scalar`")
)]

mod activations;
mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512vnni;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
mod dispatch;
mod format;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod lanes_attention;
#[cfg(target_arch = "x86_64")]
mod lanes_matmul;
mod math;
mod memory;
mod ops;
mod packed;
mod parallel;
mod scalar;
mod scratch;
mod sink;
mod work;

pub use activations::{NonFinite, QuantisedRows};
pub use attention::{
    HeadQueries, KV_BLOCK, KvSlab, KvType, SEGMENT, STATE, TILE, narrow_kv, quantise_kv,
};
pub use dispatch::{Isa, IsaError, Kernels};
pub use format::{Format, RawBlock};
pub use math::{exp, gelu, sigmoid, silu};
pub use memory::{Memory, ask_to_write, wait_for_merging};
pub use ops::{Activation, NormStep, PutRow};
pub use packed::{PackError, PackedMatrix, Packing, RowSource};
pub use parallel::{Cell, Cut, Pool, Tile, Tiled};
pub use scratch::Scratch;
pub use work::{Work, widest};

/// Output rows that lie side by side in the lanes of one weight group.
pub const LANES: usize = 16;

/// Activations that share one scale.
pub const BLOCK: usize = 32;

/// Changes whenever any bit of any result may change; part of every record.
pub const NUMERICS_VERSION: u32 = 1;

#[cfg(test)]
mod tests;
