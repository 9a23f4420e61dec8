//! Writes records: prepared apart from the file, then many of them in one transaction.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params_from_iter};

use super::body::{Body, SharedText};
use super::row::{COLUMNS, values};
use super::{Entry, Listed, Store, StoreError};
use crate::file::check_to_write;
use crate::{CacheKey, Sha256, WriteError};

/// A record that is checked, hashed and packed: all that can be done without the file.
pub(crate) struct Prepared {
    listed: Listed,
    body: Body,
    cache_key: Option<CacheKey>,
}

impl Prepared {
    /// Prepares an entry.
    ///
    /// # Errors
    /// A record that no file could hold, or that could not be read again.
    pub(crate) fn of(entry: Entry) -> Result<Self, WriteError> {
        let Entry { record, hashes, tags, cache_key } = entry;
        check_to_write(&record)?;
        let hashes = hashes.unwrap_or_else(|| (record.id(), record.answer_hash()));
        let listed = Listed::of(&record, hashes, tags);
        let cache_key = cache_key.filter(|_| record.end.stop.is_natural());
        Ok(Self { listed, body: Body::of(record), cache_key })
    }

    /// Bytes that it will take in the file.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.body.bytes()
    }

    /// The record's id.
    pub(crate) fn id(&self) -> Sha256 {
        self.listed.id
    }
}

impl Store {
    /// Writes one record and returns its id once it is on the disk. A record that is there
    /// already stays as it is.
    ///
    /// # Errors
    /// A record that no file could hold, a lock that does not end, a full disk, a ledger that is
    /// read-only or damaged; the ledger is as before.
    pub fn insert(&mut self, entry: impl Into<Entry>) -> Result<Sha256, StoreError> {
        let prepared =
            Prepared::of(entry.into()).map_err(|source| StoreError::Refused { source })?;
        self.insert_all([&prepared], &[], None)?;
        Ok(prepared.id())
    }

    /// Writes records and marks cached answers as used, all in one transaction; returns when it
    /// is on the disk. The result cache then keeps at most so
    /// many bytes of records; returns how many answers it forgot for that.
    ///
    /// # Errors
    /// As `insert`; none of the records is written then.
    pub(crate) fn insert_all<'p>(
        &mut self,
        batch: impl IntoIterator<Item = &'p Prepared>,
        used: &[Sha256],
        cache_bytes_max: Option<u64>,
    ) -> Result<u64, StoreError> {
        let path = self.path.clone();
        let of_sql = |source| StoreError::of_sql(&path, source);
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(of_sql)?;
        let write = || -> Result<u64, rusqlite::Error> {
            for prepared in batch {
                insert(&transaction, prepared, cache_bytes_max.is_some())?;
            }
            for key in used {
                touch(&transaction, key)?;
            }
            match cache_bytes_max {
                Some(bytes_max) => evict(&transaction, bytes_max),
                None => Ok(0),
            }
        };
        let evicted = write().map_err(of_sql)?;
        transaction.commit().map_err(of_sql)?;
        Ok(evicted)
    }
}

fn insert(
    connection: &Connection,
    prepared: &Prepared,
    keeps_results: bool,
) -> Result<(), rusqlite::Error> {
    let Prepared { listed, body, cache_key } = prepared;
    let id = listed.id.to_string();
    let sql = "SELECT seq FROM records WHERE id = ?1";
    let present =
        connection.prepare_cached(sql)?.query_row([&id], |row| row.get::<_, i64>(0)).optional()?;
    let seq = match present {
        Some(seq) => seq,
        None => insert_new(connection, listed, body)?,
    };
    if let (true, Some(key)) = (keeps_results, cache_key) {
        let bytes = i64::try_from(body.bytes()).unwrap_or(i64::MAX);
        let sql = "INSERT INTO result_cache (cache_key, seq, bytes, used) \
                   VALUES (?1, ?2, ?3, (SELECT coalesce(max(used), 0) + 1 FROM result_cache)) \
                   ON CONFLICT (cache_key) DO UPDATE \
                   SET seq = excluded.seq, bytes = excluded.bytes, used = excluded.used";
        let key = key.sha256().to_string();
        connection.prepare_cached(sql)?.execute((key, seq, bytes))?;
    }
    Ok(())
}

fn insert_new(
    connection: &Connection,
    listed: &Listed,
    body: &Body,
) -> Result<i64, rusqlite::Error> {
    let values = values(listed);
    let places = vec!["?"; values.len()].join(", ");
    let sql = format!("INSERT INTO records ({COLUMNS}) VALUES ({places})");
    let seq = connection.prepare_cached(&sql)?.insert(params_from_iter(values))?;
    let Body { start_json, template, policy, prompt, tokens, steps, answer, end_json } = body;
    for SharedText { sha256, text } in template.iter().chain([policy]) {
        let sql = "INSERT INTO texts (sha256, text) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        connection.prepare_cached(sql)?.execute((sha256.to_string(), text))?;
    }
    let sql = "INSERT INTO bodies (seq, start_json, template_sha256, policy_sha256, prompt, \
               tokens, steps, answer, end_json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.prepare_cached(sql)?.execute((
        seq,
        start_json,
        template.as_ref().map(|template| template.sha256.to_string()),
        policy.sha256.to_string(),
        prompt,
        tokens,
        steps,
        answer,
        end_json,
    ))?;
    Ok(seq)
}

/// Makes a cached answer the one that was used last.
fn touch(connection: &Connection, key: &Sha256) -> Result<(), rusqlite::Error> {
    let sql = "UPDATE result_cache SET used = (SELECT max(used) + 1 FROM result_cache) \
               WHERE cache_key = ?1";
    connection.prepare_cached(sql)?.execute([key.to_string()]).map(|_| ())
}

/// Forgets the answers that were used longest ago until the rest fits; their records stay.
fn evict(connection: &Connection, bytes_max: u64) -> Result<u64, rusqlite::Error> {
    let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    let mut evicted = 0;
    let sql = "SELECT coalesce(sum(bytes), 0) FROM result_cache";
    let mut bytes: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    while bytes > bytes_max {
        let sql = "SELECT cache_key, bytes FROM result_cache ORDER BY used, cache_key LIMIT 1";
        let oldest = connection
            .prepare_cached(sql)?
            .query_row([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
        let Some((key, oldest_bytes)) = oldest.optional()? else {
            break;
        };
        let sql = "DELETE FROM result_cache WHERE cache_key = ?1";
        connection.prepare_cached(sql)?.execute([key])?;
        bytes = bytes.saturating_sub(oldest_bytes);
        evicted += 1;
    }
    Ok(evicted)
}
