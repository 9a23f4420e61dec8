//! Keys and values of the positions already computed, kept in blocks.
//!
//! It knows no model by name and schedules nothing.
//! `blocks` counts who holds which block, `store` holds the numbers, `Cache` joins the two.

mod blocks;
mod cache;
mod store;

pub use blocks::{BlockId, Blocks};
pub use cache::{Cache, CacheError, GroupTable, KvShape, LayerShape};
pub use causeway_kernels::KvType;
pub use store::Layer;

/// Positions in one block.
pub const BLOCK_POSITIONS: usize = causeway_kernels::TILE;

#[cfg(test)]
mod tests;
