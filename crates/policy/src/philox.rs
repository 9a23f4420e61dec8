//! Philox 4x32-10, a counter-based generator (Salmon et al., "Parallel random numbers", SC'11).

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;
/// The bits of a word in a lane.
const WORD: u64 = 0xffff_ffff;

/// Four words of noise for one counter under one key.
#[inline(always)]
pub(crate) fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let (high0, low0) = multiply(MULTIPLIERS[0], c0);
        let (high1, low1) = multiply(MULTIPLIERS[1], c2);
        (c0, c1, c2, c3) = (high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0);
        k0 = k0.wrapping_add(KEY_STEPS[0]);
        k1 = k1.wrapping_add(KEY_STEPS[1]);
    }
    [c0, c1, c2, c3]
}

/// Counters that one turn of [`philox_lanes`] takes together.
pub(crate) const LANES: usize = 8;

/// Eight counters at once, a lane each: the same words, in a form that fills vector registers.
///
/// A lane is 64 bits wide, so that a product needs no shuffle to find its halves; what stands
/// above a word's 32 bits is left over from a product and never read.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the words are the low halves")]
pub(crate) fn philox_lanes(counters: [[u64; LANES]; 4], key: [u32; 2]) -> [[u32; LANES]; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counters;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        for lane in 0..LANES {
            let product0 = (c0[lane] & WORD) * u64::from(MULTIPLIERS[0]);
            let product1 = (c2[lane] & WORD) * u64::from(MULTIPLIERS[1]);
            c0[lane] = (product1 >> 32) ^ c1[lane] ^ u64::from(k0);
            c2[lane] = (product0 >> 32) ^ c3[lane] ^ u64::from(k1);
            c1[lane] = product1;
            c3[lane] = product0;
        }
        k0 = k0.wrapping_add(KEY_STEPS[0]);
        k1 = k1.wrapping_add(KEY_STEPS[1]);
    }
    [c0, c1, c2, c3].map(|words| words.map(|word| word as u32))
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the product")]
fn multiply(left: u32, right: u32) -> (u32, u32) {
    let product = u64::from(left) * u64::from(right);
    ((product >> 32) as u32, product as u32)
}

#[cfg(test)]
mod tests;
