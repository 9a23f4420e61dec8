//! Memory that re-laid weights lie in: one piece for a whole model.

use std::sync::{Arc, OnceLock};

use memmap2::MmapMut;

use crate::PackError;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
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
        #[cfg(target_os = "linux")]
        if is_huge {
            // Advice, and only once the memory is written: the system may then merge pages in its
            // own time, whereas a first touch of huge pages can cost a virtual machine seconds.
            map.advise(memmap2::Advice::HugePage).unwrap_or_default();
        }
        self.0.set(map).expect("invariant: a packing is finished once");
        Ok(())
    }
}
