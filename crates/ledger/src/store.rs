//! The ledger's store: records in one SQLite file, written in transactions and checked when read.

mod body;
mod entry;
mod error;
mod filter;
mod insert;
mod pack;
mod row;
mod schema;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};

pub use self::entry::{Entry, Listed, ListedTimes, Tags};
pub use self::error::{PackError, RowError, StoreError};
pub use self::filter::Filter;
pub(crate) use self::insert::Prepared;
use self::schema::Found;
use crate::cache_key::question;
use crate::{CacheKey, Stored};

/// The store's name in the home.
pub const STORE_FILE_NAME: &str = "ledger.sqlite";

/// A ledger that is open. It may go to another thread; each thread that uses it opens its own.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the ledger at `path` to write and to read, and makes one where there is none.
    ///
    /// # Errors
    /// No such folder, a file that is no ledger or damaged, a newer schema version, a lock that
    /// does not end, a full disk, a read-only file or folder.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Self::open_with(path, path.as_os_str(), flags, true);
        match opened {
            Err(StoreError::Sql { source, .. }) if is_cannot_open(&source) => {
                Err(cannot_open(path, source))
            }
            opened => opened,
        }
    }

    /// Opens the ledger at `path` to read; makes none, and writes nothing.
    ///
    /// # Errors
    /// As `open`, and where there is no such file.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        match path.metadata() {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(StoreError::NotALedger { path: path.to_owned() }),
            Err(_) => return Err(StoreError::NotFound { what: "ledger", path: path.to_owned() }),
        }
        // A log is read with its index, which has to be made where no writer left it: that takes
        // a folder that may be written. Where it may not, and there is no log, none is needed.
        let read_write = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match Self::open_with(path, path.as_os_str(), read_write, false) {
            Err(StoreError::Sql { source, .. }) if is_cannot_open(&source) => {
                let log_bytes = beside(path, "-wal").metadata().map_or(0, |log| log.len());
                if log_bytes > 0 {
                    return Err(cannot_open(path, source));
                }
                let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI;
                Self::open_with(path, immutable_uri(path).as_ref(), read_only, false)
            }
            opened => opened,
        }
    }

    fn open_with(
        path: &Path,
        name: &std::ffi::OsStr,
        flags: OpenFlags,
        may_write: bool,
    ) -> Result<Self, StoreError> {
        let of_sql = |source| StoreError::of_sql(path, source);
        let mut connection = Connection::open_with_flags(name, flags).map_err(of_sql)?;
        match schema::prepare(&mut connection, may_write).map_err(of_sql)? {
            Found::Ready => {
                connection.pragma_update(None, "query_only", !may_write).map_err(of_sql)?;
                Ok(Self { connection, path: path.to_owned() })
            }
            Found::Foreign => Err(StoreError::NotALedger { path: path.to_owned() }),
            Found::Newer(found) => {
                let known = schema::VERSION;
                Err(StoreError::Newer { path: path.to_owned(), found, known })
            }
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses at once where another program holds a lock.
    #[cfg(test)]
    pub(crate) fn wait_for_no_lock(&self) {
        self.connection.busy_timeout(std::time::Duration::ZERO).expect("a timeout can be set");
    }

    fn of_sql(&self, source: rusqlite::Error) -> StoreError {
        StoreError::of_sql(&self.path, source)
    }

    /// The one record with this id, with an id that begins so, or with this request id.
    ///
    /// # Errors
    /// No such record, several of them, or a row that is not what was written.
    pub fn find(&self, name: &str) -> Result<Stored, StoreError> {
        let (seq, listed) = self.one(name)?;
        self.read(seq, &listed)
    }

    /// The record whose answer may be given again to this question, where there is one.
    ///
    /// Its seed is another where the policy is greedy. The caller treats an error as a miss.
    ///
    /// # Errors
    /// A ledger that cannot be read, or a row that is not what was written.
    pub fn find_cached(&self, key: &CacheKey) -> Result<Option<Stored>, StoreError> {
        let sql = "SELECT seq FROM result_cache WHERE cache_key = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.of_sql(e))?;
        let seq: Option<i64> = statement
            .query_row([key.scoped.to_string()], |row| row.get(0))
            .optional()
            .map_err(|e| self.of_sql(e))?;
        let Some(seq) = seq else {
            return Ok(None);
        };
        let listed = self.row(seq)?;
        let stored = self.read(seq, &listed)?;
        if question(&stored.record.start) != key.question || !stored.record.end.stop.is_natural() {
            return Err(self.bad_row(&listed.id, RowError::CacheKey));
        }
        Ok(Some(stored))
    }

    /// Hands each record that the filter takes to `each`, oldest first.
    ///
    /// # Errors
    /// As `list` and `find`, and whatever `each` returns.
    pub fn export<E: From<StoreError>>(
        &self,
        filter: &Filter,
        mut each: impl FnMut(Stored) -> Result<(), E>,
    ) -> Result<usize, E> {
        let seqs = self.seqs(filter)?;
        for seq in seqs.iter().rev() {
            each(self.read(*seq, &self.row(*seq)?)?)?;
        }
        Ok(seqs.len())
    }

    fn bad_row(&self, id: &impl ToString, source: RowError) -> StoreError {
        StoreError::Row { path: self.path.clone(), id: id.to_string(), source }
    }
}

fn is_cannot_open(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::CannotOpen)
}

/// Why SQLite could not open a file, which it does not say.
fn cannot_open(path: &Path, source: rusqlite::Error) -> StoreError {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return StoreError::NotFound { what: "folder for a ledger,", path: folder.to_owned() };
    }
    if path.is_dir() {
        return StoreError::NotALedger { path: path.to_owned() };
    }
    let tried = match path.exists() {
        true => File::options().append(true).open(path).map(drop),
        false => tempfile::tempfile_in(folder).map(drop),
    };
    let path = path.to_owned();
    match tried.map_err(|error| error.kind()) {
        Err(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            StoreError::ReadOnly { path }
        }
        Err(ErrorKind::StorageFull) => StoreError::Full { path },
        _ => StoreError::Sql { path, source },
    }
}

/// The file that SQLite keeps beside a database under this ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// A URI that asks for a file that nobody writes.
fn immutable_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests;
