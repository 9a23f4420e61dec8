//! Philox 4x32-10, a counter-based generator (Salmon et al., "Parallel random numbers", SC'11).

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

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

/// Four counters at once, a lane each: the same words, in a form that fills vector registers.
#[inline(always)]
pub(crate) fn philox_lanes(counters: [[u32; 4]; 4], key: [u32; 2]) -> [[u32; 4]; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counters;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let (mut n0, mut n1, mut n2, mut n3) = ([0; 4], [0; 4], [0; 4], [0; 4]);
        for lane in 0..4 {
            let (high0, low0) = multiply(MULTIPLIERS[0], c0[lane]);
            let (high1, low1) = multiply(MULTIPLIERS[1], c2[lane]);
            n0[lane] = high1 ^ c1[lane] ^ k0;
            n1[lane] = low1;
            n2[lane] = high0 ^ c3[lane] ^ k1;
            n3[lane] = low0;
        }
        (c0, c1, c2, c3) = (n0, n1, n2, n3);
        k0 = k0.wrapping_add(KEY_STEPS[0]);
        k1 = k1.wrapping_add(KEY_STEPS[1]);
    }
    [c0, c1, c2, c3]
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the product")]
fn multiply(left: u32, right: u32) -> (u32, u32) {
    let product = u64::from(left) * u64::from(right);
    ((product >> 32) as u32, product as u32)
}

#[cfg(test)]
mod tests;
