//! The decoding loop: plan, compute, choose, commit, emit.
//!
//! One thread drives it; no I/O and no clock: time is an argument. It knows no text, no sockets, no files.
//! `submit(submission)` → `step()` → an output for each token that was due, and one per end.
//! Masks are worked out on a thread beside the pass, in `masks`.

mod account;
mod admission;
mod choosing;
mod drafts;
mod engine;
mod forward;
mod masks;
mod room;
mod run;
mod step;
mod submission;

pub use account::{Ended, Load, Output, Pass, PassAccount};
pub use admission::Refusal;
pub use causeway_kv_cache::{ChainHash, Shelf};
pub use drafts::Drafts;
pub use engine::Engine;
pub use forward::Forward;
pub use submission::{Limits, Submission};

use causeway_request::Digest;

/// The digest of a step: XXH3-128 (Collet 2019) over the little-endian bits of a row of logits.
#[must_use]
pub fn digest(logits: &[f32]) -> Digest {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let mut bytes = [0u8; 4096];
    for chunk in logits.chunks(bytes.len() / 4) {
        for (to, logit) in bytes.chunks_exact_mut(4).zip(chunk) {
            to.copy_from_slice(&logit.to_le_bytes());
        }
        hasher.update(&bytes[..chunk.len() * 4]);
    }
    Digest(hasher.digest128())
}

#[cfg(test)]
mod tests;
