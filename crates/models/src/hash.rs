//! SHA-256 of files, remembered so that no start pays for it twice.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::Digest as _;

use crate::ModelsError;

/// A SHA-256, shown as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// Reads 64 hexadecimal digits written in the source.
    ///
    /// # Panics
    /// When the text is anything else; constants are checked as they are compiled.
    #[must_use]
    pub const fn literal(hex: &str) -> Self {
        match Self::from_hex(hex) {
            Some(sha256) => sha256,
            None => panic!("a SHA-256 is 64 hexadecimal digits"),
        }
    }

    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub const fn from_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        let mut index = 0;
        while index < 32 {
            match (nibble(digits[2 * index]), nibble(digits[2 * index + 1])) {
                (Some(high), Some(low)) => bytes[index] = high << 4 | low,
                _ => return None,
            }
            index += 1;
        }
        Some(Self(bytes))
    }

    /// Hashes all that `reader` gives.
    ///
    /// # Errors
    /// The reader's own.
    pub fn of(reader: &mut impl Read) -> io::Result<Self> {
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(count) => hasher.update(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

/// Most files whose hash is remembered; the memory starts afresh beyond it.
const FILES_MAX: usize = 4096;

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    /// Nanoseconds since 1970, negative before.
    modified_ns: i128,
    /// 0 where the platform has none.
    inode: u64,
}

/// The hashes of files seen before, kept as lines of text in one file.
///
/// A line is `sha256 bytes modified_ns inode path`. What cannot be read is not an error: the
/// hash is computed again. What cannot be written is not one either: it is computed next time.
#[derive(Debug, Clone)]
pub struct Hashes {
    memory: PathBuf,
}

impl Hashes {
    /// The hashes remembered in the file `memory`, which need not exist.
    #[must_use]
    pub fn new(memory: impl Into<PathBuf>) -> Self {
        Self { memory: memory.into() }
    }

    /// SHA-256 of the file at `path`: remembered where path, size, time and inode are the same,
    /// computed and remembered otherwise.
    ///
    /// # Errors
    /// [`ModelsError::File`] when the file cannot be read.
    pub fn sha256_of(&self, path: &Path) -> Result<Sha256, ModelsError> {
        let failed =
            |source| ModelsError::File { operation: "read", path: path.to_owned(), source };
        let absolute = fs::canonicalize(path).map_err(failed)?;
        let stamp = Stamp::of(&fs::metadata(&absolute).map_err(failed)?);
        let known = self.read();
        if let Some((_, sha256)) = known.get(&absolute).filter(|(seen, _)| *seen == stamp) {
            return Ok(*sha256);
        }
        let sha256 = File::open(&absolute).and_then(|mut f| Sha256::of(&mut f)).map_err(failed)?;
        self.write(known, absolute, stamp, sha256);
        Ok(sha256)
    }

    /// Remembers the hash of a file that was hashed while it was written.
    pub(crate) fn remember(&self, path: &Path, sha256: Sha256) {
        let Ok(absolute) = fs::canonicalize(path) else {
            return;
        };
        let Ok(metadata) = fs::metadata(&absolute) else {
            return;
        };
        self.write(self.read(), absolute, Stamp::of(&metadata), sha256);
    }

    fn read(&self) -> BTreeMap<PathBuf, (Stamp, Sha256)> {
        let text = fs::read_to_string(&self.memory).unwrap_or_default();
        text.lines().filter_map(parse_line).take(FILES_MAX).collect()
    }

    fn write(
        &self,
        mut known: BTreeMap<PathBuf, (Stamp, Sha256)>,
        path: PathBuf,
        stamp: Stamp,
        sha256: Sha256,
    ) {
        if known.len() >= FILES_MAX {
            known.clear();
        }
        known.insert(path, (stamp, sha256));
        let lines: String = known.iter().filter_map(line).collect();
        // Renamed into place, so that a reader never sees half of it; the process id keeps two
        // writers apart, and the last one wins.
        let draft = self.memory.with_extension(format!("{}.draft", std::process::id()));
        let parent = self.memory.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(parent)
            .and_then(|()| fs::write(&draft, lines))
            .and_then(|()| fs::rename(&draft, &self.memory));
        if written.is_err() {
            // Forgetting costs one hash at the next start, so it is no error.
            fs::remove_file(&draft).ok();
        }
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        let modified_ns = metadata.modified().ok().map_or(0, |time| {
            let since = time.duration_since(std::time::UNIX_EPOCH);
            let before = |e: std::time::SystemTimeError| -nanoseconds(e.duration());
            since.map_or_else(before, nanoseconds)
        });
        Self { bytes: metadata.len(), modified_ns, inode }
    }
}

fn nanoseconds(duration: std::time::Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

fn parse_line(line: &str) -> Option<(PathBuf, (Stamp, Sha256))> {
    let mut words = line.splitn(5, ' ');
    let sha256 = Sha256::from_hex(words.next()?)?;
    let stamp = Stamp {
        bytes: words.next()?.parse().ok()?,
        modified_ns: words.next()?.parse().ok()?,
        inode: words.next()?.parse().ok()?,
    };
    Some((PathBuf::from(words.next()?), (stamp, sha256)))
}

/// One line of the memory; none for a path that a line of text cannot hold.
fn line((path, (stamp, sha256)): (&PathBuf, &(Stamp, Sha256))) -> Option<String> {
    let path = path.to_str().filter(|path| !path.contains(['\n', '\r']))?;
    let Stamp { bytes, modified_ns, inode } = stamp;
    Some(format!("{sha256} {bytes} {modified_ns} {inode} {path}\n"))
}

#[cfg(test)]
mod tests;
