//! Names the contents of a block by all that they depend on: a chain of hashes.

use causeway_kernels::NUMERICS_VERSION;
use causeway_request::TokenId;
use sha2::{Digest as _, Sha256};

use crate::BLOCK_POSITIONS;

/// A link of the chain: SHA-256 over everything from the chain's root to the end of a block.
///
/// Equal links are equal contents: a hash that can be steered to collide would let one sequence
/// read another's keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// The root of a chain: what keys and values depend on beside the tokens.
    ///
    /// `model` covers the weights and what was fixed when they were loaded, `kv_type` is the
    /// number format's name, and a sequence without salt differs from one with an empty salt.
    /// The version of the numerics is in it too: blocks outlive the program that computed them.
    #[must_use]
    pub fn root(model: &[u8; 32], kv_type: &str, salt: Option<&str>) -> Self {
        Self::root_under(NUMERICS_VERSION, model, kv_type, salt)
    }

    /// The root under any version of the numerics.
    pub(crate) fn root_under(
        numerics_version: u32,
        model: &[u8; 32],
        kv_type: &str,
        salt: Option<&str>,
    ) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"causeway kv prefix 2\0");
        hasher.update(numerics_version.to_le_bytes());
        hasher.update(model);
        // Each part after its length, so that no two lists of parts read the same.
        for part in [Some(kv_type), salt] {
            hasher.update([u8::from(part.is_some())]);
            let bytes = part.unwrap_or_default().as_bytes();
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
        Self(hasher.finalize().into())
    }

    /// The link after this one, for the next whole block of tokens.
    ///
    /// # Panics
    /// If `tokens` is not one block.
    #[must_use]
    pub fn next(&self, tokens: &[TokenId]) -> Self {
        assert_eq!(tokens.len(), BLOCK_POSITIONS, "a link covers one block");
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        for token in tokens {
            hasher.update(token.0.to_le_bytes());
        }
        Self(hasher.finalize().into())
    }

    /// The name, outside memory, of the block that one group of layers has under this name.
    ///
    /// The number in it goes up when the bytes of a block are laid out otherwise.
    #[must_use]
    pub fn in_group(&self, index: usize) -> Self {
        let hasher = Sha256::new().chain_update(b"causeway kv group 1\0");
        let hasher = hasher.chain_update((index as u64).to_le_bytes()).chain_update(self.0);
        Self(hasher.finalize().into())
    }
}
