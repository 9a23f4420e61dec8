//! Keys and values of the positions already computed, kept in blocks.
//!
//! It knows no model by name and schedules nothing.
//! `blocks` counts who holds which block, `group` keeps what sequences leave behind, `prefix` names
//! it, `prefix_shelf` takes it out of memory and back, `store` holds the numbers, `table` says where a sequence's are, and `Cache` joins them.

mod blocks;
mod cache;
mod group;
mod prefix;
mod prefix_shelf;
mod store;
mod table;

pub use blocks::{BlockCounts, BlockId, Blocks};
pub use cache::{Cache, CacheError, KvShape, LayerShape};
pub use causeway_kernels::KvType;
pub use prefix::ChainHash;
pub use prefix_shelf::Shelf;
pub use store::{LayerView, OpenBlock};
pub use table::GroupTable;

/// Positions in one block.
pub const BLOCK_POSITIONS: usize = causeway_kernels::TILE;

#[cfg(test)]
mod tests;
