//! The 6-bit scales and minimums that Q4_K and Q5_K pack into 12 bytes.

use bytemuck::{Pod, Zeroable};

use super::assert_size;

/// Eight scales and eight minimums of 6 bits, one of each per group of 32 elements.
///
/// ```text
/// byte      bits 7 6                      bits 5 … 0
/// 0 … 3     scale 4 … 7, upper two bits   scale 0 … 3
/// 4 … 7     min 4 … 7, upper two bits     min 0 … 3
/// byte      bits 7 … 4                    bits 3 … 0
/// 8 … 11    min 4 … 7, lower four bits    scale 4 … 7, lower four bits
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct KScales(pub [u8; 12]);

assert_size!(KScales, 12);

impl KScales {
    /// Packs eight scales and eight minimums, 0 to 63 each.
    #[must_use]
    pub fn pack(scales: [u8; 8], mins: [u8; 8]) -> Self {
        let mut bytes = [0; 12];
        for group in 0..4 {
            bytes[group] = scales[group] & 0x3f | scales[group + 4] >> 4 << 6;
            bytes[group + 4] = mins[group] & 0x3f | mins[group + 4] >> 4 << 6;
            bytes[group + 8] = scales[group + 4] & 0x0f | mins[group + 4] << 4;
        }
        Self(bytes)
    }

    /// The eight scales, 0 to 63.
    #[must_use]
    pub fn scales(&self) -> [u8; 8] {
        let bytes = &self.0;
        std::array::from_fn(|group| match group {
            0..4 => bytes[group] & 0x3f,
            _ => bytes[group + 4] & 0x0f | bytes[group - 4] >> 6 << 4,
        })
    }

    /// The eight minimums, 0 to 63.
    #[must_use]
    pub fn mins(&self) -> [u8; 8] {
        let bytes = &self.0;
        std::array::from_fn(|group| match group {
            0..4 => bytes[group + 4] & 0x3f,
            _ => bytes[group + 4] >> 4 | bytes[group] >> 6 << 4,
        })
    }
}

#[cfg(test)]
mod tests;
