//! Records out of a store into files that are read without it.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::file::{beside_to_place, to_json, write};
use crate::{Filter, Store, StoreError, Stored, WriteError};

/// An export that stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("`{path}` cannot be written")]
    Io { path: PathBuf, source: io::Error },
    #[error("the output cannot be written")]
    Output { source: io::Error },
}

impl ExportError {
    /// Whether the caller named a place where nothing can be written, or no ledger.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::Store(error) => error.is_callers_mistake(),
            Self::Write(error) => error.is_callers_mistake(),
            Self::Io { .. } | Self::Output { .. } => false,
        }
    }
}

/// Writes each record as a line of JSON, oldest first; returns how many. A line holds what the
/// record's file holds, and is read as one.
///
/// # Errors
/// A ledger that cannot be read, a row that is not what was written, an output that fails.
pub fn export_lines(
    store: &Store,
    filter: &Filter,
    output: &mut dyn Write,
) -> Result<usize, ExportError> {
    let failed = |source| ExportError::Output { source };
    let count = store.export(filter, |stored| {
        let line = json_line(&stored)?;
        output.write_all(line.as_bytes()).map_err(failed)
    })?;
    output.flush().map_err(failed)?;
    Ok(count)
}

/// `export_lines` into a file, which is put in place whole or not at all.
///
/// # Errors
/// As `export_lines`, and a place where no file can be.
pub fn export_file(store: &Store, filter: &Filter, path: &Path) -> Result<usize, ExportError> {
    let mut count = 0;
    beside_to_place(path, 0, |file| {
        let mut output = BufWriter::new(file);
        count = export_lines(store, filter, &mut output)?;
        let of_io = |source| ExportError::Io { path: path.to_owned(), source };
        output.into_inner().map_err(|error| of_io(error.into_error()))?;
        Ok::<_, ExportError>(())
    })?;
    Ok(count)
}

/// Writes each record into a file of its own below `folder`, named by its id; makes the folder
/// where it is not there.
///
/// # Errors
/// A ledger that cannot be read, a row that is not what was written, a folder that cannot be
/// written.
pub fn export_folder(store: &Store, filter: &Filter, folder: &Path) -> Result<usize, ExportError> {
    let of_io = |source| ExportError::Io { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(of_io)?;
    store.export(filter, |stored| {
        write(&stored.record, &folder.join(format!("{}.json", stored.id)))?;
        Ok(())
    })
}

/// The record's file in one line; its strings have no line feed that is not escaped.
fn json_line(stored: &Stored) -> Result<String, WriteError> {
    let mut line = to_json(&stored.record)?.replace('\n', "");
    line.push('\n');
    Ok(line)
}

#[cfg(test)]
mod tests;
