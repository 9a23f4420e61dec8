//! Maps a file into memory, read only; the one unsafe corner of this room.
//!
//! The limit of what can be promised: the bytes are the file's, not ours. Every length is taken
//! from the mapping once, at opening, so a file that is *replaced* or *extended* later changes
//! nothing here. A file that someone truncates or rewrites in place while it is mapped is beyond
//! what any mapping can guard: a page past the new end ends the program with a bus error, and
//! rewritten bytes are seen as they then are. [`Mapping::is_unchanged`] notices both before the
//! bytes are read, and readers that need more copy the bytes out and let the pages go.

#![expect(unsafe_code, reason = "mapping a file and dropping its pages are unsafe calls")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use memmap2::Mmap;

/// A whole file, readable as bytes.
#[derive(Debug)]
pub(crate) struct Mapping {
    file: File,
    /// `None` for an empty file, which has no pages to map.
    map: Option<Mmap>,
    modified: Option<SystemTime>,
}

impl Mapping {
    /// Maps the file at `path`; anything but a regular file is refused before it is opened, since
    /// opening a pipe would wait for its writer.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let map = match metadata.len() {
            0 => None,
            // SAFETY: the mapping is private to this value and read only. Another program may
            // still change the file; the module's first comment says what follows from that.
            bytes => Some(unsafe { Mmap::map(&file) }.map_err(|error| unmapped(bytes, error))?),
        };
        Ok(Self { file, map, modified: metadata.modified().ok() })
    }

    /// The file's bytes, as many as there were at opening.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Whether the file still has the length and the modification time of its opening.
    pub(crate) fn is_unchanged(&self) -> io::Result<bool> {
        let metadata = self.file.metadata()?;
        let same_length = usize::try_from(metadata.len()) == Ok(self.bytes().len());
        Ok(same_length && metadata.modified().ok() == self.modified)
    }

    /// Copies bytes of the file out and takes no page of it in: where a few are wanted here and
    /// there, the system would bring in many pages around each.
    #[cfg(unix)]
    pub(crate) fn copy_out(&self, from: usize, to: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, to, from as u64)
    }

    /// Copies bytes out.
    #[cfg(not(unix))]
    pub(crate) fn copy_out(&self, from: usize, to: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes().get(from..from + to.len());
        to.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Lets the kernel drop the pages read so far; the next read brings them back from the file.
    pub(crate) fn release_pages(&self) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            // SAFETY: the mapping is shared, backed by a file and never written, so a dropped
            // page is refilled with the same bytes and no reference can see a difference.
            unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) }?;
        }
        Ok(())
    }

    /// Does the same for a part of `bytes()`, and for what else lies on its first and last page.
    pub(crate) fn release_part(&self, part: Range<usize>) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(map) = self.map.as_ref().filter(|_| !part.is_empty()) {
            // SAFETY: as in `release_pages`; a part outside the mapping is refused by the system.
            unsafe {
                map.unchecked_advise_range(
                    memmap2::UncheckedAdvice::DontNeed,
                    part.start,
                    part.len(),
                )
            }?;
        }
        Ok(())
    }

    /// Tells the kernel that the whole file will be read soon, so that it reads ahead.
    pub(crate) fn will_need(&self) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(map) = &self.map {
            map.advise(memmap2::Advice::WillNeed)?;
        }
        Ok(())
    }
}

/// Says how much room a file wanted that could not be mapped.
fn unmapped(bytes: u64, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("its {bytes} bytes cannot be mapped: {error}"))
}

#[cfg(test)]
mod tests;
