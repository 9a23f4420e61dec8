//! Keys and values of the positions already computed, kept in blocks.
