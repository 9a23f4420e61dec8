//! Memory that re-laid weights lie in, one piece for a whole model, and what is asked of memory.
#![cfg_attr(
    any(target_os = "linux", target_arch = "x86_64"),
    expect(unsafe_code, reason = "calls that merge pages, and an instruction that is a hint")
)]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use memmap2::MmapMut;

use crate::PackError;
#[cfg(target_arch = "x86_64")]
use crate::attention::LINE;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
/// What a thread that merges pages is niced to.
#[cfg(target_os = "linux")]
const LOW_PRIORITY: i32 = 10;
/// From here on memory may become huge pages: what the last one wastes is little beside it.
const HUGE_FROM: usize = 4 * HUGE;

/// Zeroed memory that is filled once and then shared for reading.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<OnceLock<MmapMut>>);

impl Memory {
    /// Memory as weights lie in it, every byte of one value: to measure reads of.
    ///
    /// # Errors
    /// `PackError::OutOfMemory`.
    pub fn filled(bytes: usize, value: u8) -> Result<Self, PackError> {
        let memory = Self::default();
        memory.fill(bytes, |bytes| bytes.fill(value))?;
        wait_for_merging();
        Ok(memory)
    }

    /// The bytes, on a page's edge.
    ///
    /// # Panics
    /// Before `fill`.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.get().expect("invariant: a packing is finished before its matrices are used")
    }

    /// Takes `bytes` bytes, has them written, and shares them.
    pub(crate) fn fill(
        &self,
        bytes: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), PackError> {
        let is_huge = bytes >= HUGE_FROM;
        let rounded =
            if is_huge { bytes.checked_next_multiple_of(HUGE) } else { Some(bytes.max(1)) };
        let map = rounded.and_then(|len| MmapMut::map_anon(len).ok());
        let mut map = map.ok_or(PackError::OutOfMemory { bytes })?;
        write(&mut map[..bytes]);
        self.0.set(map).expect("invariant: a packing is finished once");
        #[cfg(target_os = "linux")]
        if is_huge {
            merge_pages_beside(self.clone());
        }
        Ok(())
    }
}

/// Has the system merge the pages of `memory` into huge ones, by a thread of low priority.
///
/// Weights in huge pages are read by a sixth faster. A first touch of huge pages would cost a
/// virtual machine whose host has not backed its free memory up to seconds, before the first
/// token; beside the work it costs a tenth of a core for a second or two.
#[cfg(target_os = "linux")]
fn merge_pages_beside(memory: Memory) {
    let merge = move || {
        // SAFETY: takes numbers only; 0 is the calling thread, whose priority alone changes.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOW_PRIORITY) };
        let bytes = memory.bytes();
        let skipped = bytes.as_ptr().align_offset(HUGE).min(bytes.len());
        for page in bytes[skipped..].chunks_exact(HUGE) {
            // SAFETY: the pages are a part of a mapping that `memory` keeps alive; merging them
            // leaves every byte as it is, and readers wait for the moment that it takes.
            unsafe { libc::madvise(page.as_ptr().cast_mut().cast(), HUGE, libc::MADV_COLLAPSE) };
        }
    };
    // Without the thread, or on a system that does not merge, the pages stay small.
    if let Ok(thread) = std::thread::Builder::new().name("causeway-pages".to_owned()).spawn(merge) {
        MERGING.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }
}

/// The threads that merge pages, and those that have ended and were not waited for.
static MERGING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Waits until no pages are being merged, so that no figure is taken beside it.
pub fn wait_for_merging() {
    let threads = std::mem::take(&mut *MERGING.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in threads {
        // It has nothing to panic with.
        let _ = thread.join();
    }
}

/// Asks for memory that is written soon: writes are done in their order, and without it each
/// would wait for a line of its own.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no hint"))]
pub fn ask_to_write(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: every processor of this kind has the instruction, and it changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(line.as_ptr().cast()) };
    }
}
