//! The ledger's tables, their versions, and how a file is opened for them.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, limits::Limit};

use crate::RECORD_BYTES_MAX;
use crate::store::error::BUSY_MS;

/// Marks a SQLite file as a ledger: "CAUS" in ASCII.
const APPLICATION_ID: i64 = 0x4341_5553;

/// One script for each version, the first from an empty file to version 1.
///
/// Types are those that PostgreSQL has too: TEXT, BIGINT and a blob (its BYTEA); times are
/// numbers, hashes lower-case hexadecimal text, and no column needs a function of SQLite's.
/// What comes later joins without a change to what is here: an index for full text reads
/// `bodies.prompt` and `bodies.answer`; outcomes refer to `records.id`, which a client knows;
/// prices multiply the token columns by `model_sha256` and time; sessions group by `session`.
const MIGRATIONS: &[&str] = &["
CREATE TABLE migrations (
    version BIGINT PRIMARY KEY,
    engine TEXT NOT NULL
);
CREATE TABLE texts (
    sha256 TEXT PRIMARY KEY,
    text TEXT NOT NULL
);
CREATE TABLE records (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    answer_hash TEXT NOT NULL,
    request_id TEXT,
    owner TEXT,
    session TEXT,
    model TEXT NOT NULL,
    model_sha256 TEXT NOT NULL,
    policy TEXT,
    policy_sha256 TEXT NOT NULL,
    choice BIGINT NOT NULL,
    stop TEXT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    prefilled_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    prefix_tokens BIGINT NOT NULL,
    forced_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    visible_tokens BIGINT NOT NULL,
    prefill_passes BIGINT NOT NULL,
    decode_passes BIGINT NOT NULL,
    scheduled_unix_ms BIGINT NOT NULL,
    queued_ns BIGINT NOT NULL,
    ttft_ns BIGINT,
    tpot_ns BIGINT,
    total_ns BIGINT NOT NULL,
    row_hash TEXT NOT NULL
);
CREATE INDEX records_by_time ON records (scheduled_unix_ms);
CREATE INDEX records_by_request ON records (request_id) WHERE request_id IS NOT NULL;
CREATE TABLE bodies (
    seq BIGINT PRIMARY KEY REFERENCES records (seq),
    start_json TEXT NOT NULL,
    template_sha256 TEXT REFERENCES texts (sha256),
    policy_sha256 TEXT NOT NULL REFERENCES texts (sha256),
    prompt TEXT,
    tokens BLOB NOT NULL,
    steps BLOB NOT NULL,
    answer TEXT NOT NULL,
    end_json TEXT NOT NULL
);
CREATE TABLE result_cache (
    cache_key TEXT PRIMARY KEY,
    seq BIGINT NOT NULL REFERENCES records (seq),
    bytes BIGINT NOT NULL,
    used BIGINT NOT NULL
);
CREATE INDEX result_cache_by_use ON result_cache (used);
"];

/// The newest schema version, which is the one this program writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A ledger of the version that this program writes.
    Ready,
    /// A database of someone else's, or an empty one that may not be made a ledger.
    Foreign,
    /// A ledger of a newer version.
    Newer(i64),
}

/// Makes a connection safe and durable, and its file a ledger of the newest version.
///
/// Write-ahead log, so that readers do not wait for the writer. `synchronous = FULL`: a commit
/// returns when the log is on the disk, since an acknowledged record must outlive the loss of
/// power; the writer's thread pays for it once a batch, so that it costs the caller nothing.
pub(crate) fn prepare(
    connection: &mut Connection,
    may_write: bool,
) -> Result<Found, rusqlite::Error> {
    connection.busy_timeout(std::time::Duration::from_millis(BUSY_MS))?;
    // A row may hold what a record may hold, and nothing in the file may run by itself.
    let bytes_max = i32::try_from(RECORD_BYTES_MAX).expect("a record is below 2 GiB");
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes_max)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    let found = look(connection)?;
    if let Some(version) = found {
        match version {
            0 if !may_write => return Ok(Found::Foreign),
            newer if newer > VERSION => return Ok(Found::Newer(newer)),
            _ => {}
        }
    } else {
        return Ok(Found::Foreign);
    }
    if may_write {
        // Where the file system knows no shared memory it stays a rollback journal: as durable.
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(connection)?;
    }
    Ok(Found::Ready)
}

/// The ledger's version, 0 for an empty database; `None` for a database of someone else's.
fn look(connection: &Connection) -> Result<Option<i64>, rusqlite::Error> {
    let mark: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (mark, tables) {
        (0, 0) => Ok(Some(0)),
        (APPLICATION_ID, _) => version(connection).map(|version| version.or(Some(i64::MAX))),
        _ => Ok(None),
    }
}

fn version(connection: &Connection) -> Result<Option<i64>, rusqlite::Error> {
    connection.query_row("SELECT max(version) FROM migrations", [], |row| row.get(0))
}

/// Runs the scripts that a file lacks, all in one transaction.
fn migrate(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    let is_there = |connection: &Connection| {
        let sql = "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'";
        connection.query_row(sql, [], |_| Ok(())).optional()
    };
    let present = |connection: &Connection| match is_there(connection)? {
        Some(()) => version(connection).map(|version| version.unwrap_or(0)),
        None => Ok(0),
    };
    if present(connection)? >= VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Looked at again: another program may have been faster.
    let present = present(&transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    for (version, script) in (1_i64..).zip(MIGRATIONS) {
        if version > present {
            transaction.execute_batch(script)?;
            transaction.execute(
                "INSERT INTO migrations (version, engine) VALUES (?1, ?2)",
                (version, env!("CARGO_PKG_VERSION")),
            )?;
        }
    }
    transaction.commit()
}
