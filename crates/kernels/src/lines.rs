//! Cache lines that the processor is asked for before they are met.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the hint has no safe call"))]

#[cfg(target_arch = "x86_64")]
use crate::attention::LINE;

/// Asks for memory that is written soon: writes are done in their order, and without it each
/// would wait for a line of its own.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no hint"))]
pub fn ask_to_write(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: every processor of this kind has the instruction, a hint that changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(line.as_ptr().cast()) };
    }
}
