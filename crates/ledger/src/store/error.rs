//! What can go wrong between a ledger and its file, each in one clear sentence.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::{FormError, Sha256, WriteError};

/// How long a statement waits for another program's transaction to end, in milliseconds.
pub(crate) const BUSY_MS: u64 = 5_000;

/// A ledger that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no {what} `{path}`")]
    NotFound { what: &'static str, path: PathBuf },
    #[error("`{path}` is not a ledger")]
    NotALedger { path: PathBuf },
    #[error(
        "ledger `{path}` has schema version {found}, where this program knows up to {known}: a \
         newer causeway wrote it"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("ledger `{path}` is damaged")]
    Damaged { path: PathBuf, source: rusqlite::Error },
    #[error("ledger `{path}` is locked by another program, and was for {BUSY_MS} ms")]
    Locked { path: PathBuf },
    #[error("ledger `{path}` cannot be written: the disk is full")]
    Full { path: PathBuf },
    #[error("ledger `{path}` cannot be written: the file or its folder is read-only")]
    ReadOnly { path: PathBuf },
    #[error("ledger `{path}` cannot be used")]
    Sql { path: PathBuf, source: rusqlite::Error },
    #[error("there is no record `{name}` in ledger `{path}`")]
    NoRecord { path: PathBuf, name: String },
    #[error("`{name}` names several records, such as {first} and {second}: give more of the id")]
    Ambiguous { name: String, first: Sha256, second: Sha256 },
    #[error("record `{id}` of ledger `{path}` is not what was written")]
    Row { path: PathBuf, id: String, source: RowError },
    #[error("the record cannot be stored")]
    Refused { source: WriteError },
}

/// Why a row is no record.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    #[error("its columns do not match their hash")]
    Columns,
    #[error("its column `{column}` holds what no such column can")]
    Column { column: &'static str },
    #[error("its content has the id {found}")]
    Id { found: Sha256 },
    #[error("its content belongs to other columns")]
    Summary,
    #[error("its `{part}` is not what this version writes")]
    Json { part: &'static str, source: serde_json::Error },
    #[error("its `{part}` cannot be unpacked")]
    Packed { part: &'static str, source: PackError },
    #[error("text {sha256} that it names is missing or another")]
    Text { sha256: String },
    #[error("it has no body")]
    NoBody,
    #[error("it answers another request than its key in the result cache says")]
    CacheKey,
    #[error("it is no record")]
    Form { source: FormError },
}

/// Packed bytes that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    #[error("it ends at byte {offset}, inside a value")]
    Short { offset: usize },
    #[error("{count} bytes follow its end")]
    Long { count: usize },
    #[error("packing version {found}, where only {known} is known")]
    Version { found: u8, known: u8 },
    #[error("a count of {count} does not fit into {bytes} bytes")]
    Count { count: u64, bytes: usize },
    #[error("a number at byte {offset} is out of range")]
    Range { offset: usize },
    #[error("a text at byte {offset} is not UTF-8")]
    NotUtf8 { offset: usize },
    #[error("a fraction at byte {offset} is not finite")]
    NotFinite { offset: usize },
}

impl StoreError {
    /// Whether the caller named something that is not there, or that is no ledger.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::NotALedger { .. }
            | Self::NoRecord { .. }
            | Self::Ambiguous { .. } => true,
            Self::Refused { source } => source.is_callers_mistake(),
            Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::Locked { .. }
            | Self::Full { .. }
            | Self::ReadOnly { .. }
            | Self::Sql { .. }
            | Self::Row { .. } => false,
        }
    }

    /// Whether a later try may succeed without any change to the record: a lock or a full disk
    /// passes, a record that no store can hold does not.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Refused { .. } => false,
            Self::Sql { source, .. } => !matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
            ),
            _ => true,
        }
    }

    /// Sorts what SQLite says of the ledger at `path`.
    pub(crate) fn of_sql(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotALedger { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            _ => Self::Sql { path, source },
        }
    }
}

impl RowError {
    /// Never so: rows are written by this program.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}

impl PackError {
    /// Never so: what is packed is packed by this program.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}
