//! A record's row: its columns, written and read by name and covered by a hash of their own.

use rusqlite::{Row, params_from_iter, types::Value};

use super::{Filter, Listed, ListedTimes, RowError, Store, StoreError, Tags};
use crate::canonical::canonical_json;
use crate::{Passes, Sha256, Tokens};

/// The columns of `records` that a list shows, in the order in which they are written and read.
pub(super) const COLUMNS: &str = "id, answer_hash, request_id, owner, session, model, \
    model_sha256, policy, policy_sha256, choice, stop, prompt_tokens, prefilled_tokens, \
    cached_tokens, prefix_tokens, forced_tokens, reasoning_tokens, visible_tokens, \
    prefill_passes, decode_passes, scheduled_unix_ms, queued_ns, ttft_ns, tpot_ns, total_ns, \
    row_hash";

/// The columns' values. Every field is read by name, so that a new one cannot be forgotten.
pub(super) fn values(listed: &Listed) -> Vec<Value> {
    let Listed {
        id,
        answer_hash,
        tags: Tags { request_id, owner, session },
        model,
        model_sha256,
        policy,
        policy_sha256,
        choice,
        stop,
        tokens: Tokens { prompt, prefilled, cached, prefix, forced, reasoning, visible },
        passes: Passes { prefill, decode },
        times: ListedTimes { scheduled_unix_ms, queued_ns, ttft_ns, tpot_ns, total_ns },
    } = listed;
    let text = |text: &String| Value::from(text.clone());
    let text_or_null = |text: &Option<String>| Value::from(text.clone());
    let hash = |hash: &Sha256| Value::from(hash.to_string());
    let number = |number: u64| {
        Value::from(i64::try_from(number).expect("a listed number is at most 2^63 - 1"))
    };
    vec![
        hash(id),
        hash(answer_hash),
        text_or_null(request_id),
        text_or_null(owner),
        text_or_null(session),
        text(model),
        hash(model_sha256),
        text_or_null(policy),
        hash(policy_sha256),
        Value::from(*choice),
        text(stop),
        number(*prompt),
        number(*prefilled),
        number(*cached),
        number(*prefix),
        number(*forced),
        number(*reasoning),
        number(*visible),
        number(*prefill),
        number(*decode),
        number(*scheduled_unix_ms),
        number(*queued_ns),
        ttft_ns.map_or(Value::Null, number),
        tpot_ns.map_or(Value::Null, number),
        number(*total_ns),
        Value::from(row_hash(listed)),
    ]
}

/// SHA-256 over the columns, so that a row changed by hand is known before its body is read.
fn row_hash(listed: &Listed) -> String {
    Sha256::of(canonical_json(listed).as_bytes()).to_string()
}

/// Reads a row's columns from the one at `first` on; a refusal names the row by its own id.
pub(super) fn read(row: &Row<'_>, first: usize) -> Result<Listed, (String, RowError)> {
    let mut columns = Columns { row, next: first };
    let id: String = columns.text("id").map_err(|error| ("?".to_owned(), error))?;
    let read = listed(&mut columns, &id);
    read.map_err(|error| (id.chars().filter(|c| !c.is_control()).take(64).collect(), error))
}

fn listed(columns: &mut Columns<'_, '_>, id: &str) -> Result<Listed, RowError> {
    let id = Sha256::from_hex(id).map_err(|_| RowError::Column { column: "id" })?;
    let listed = Listed {
        id,
        answer_hash: columns.hash("answer_hash")?,
        tags: Tags {
            request_id: columns.text_or_null("request_id")?,
            owner: columns.text_or_null("owner")?,
            session: columns.text_or_null("session")?,
        },
        model: columns.text("model")?,
        model_sha256: columns.hash("model_sha256")?,
        policy: columns.text_or_null("policy")?,
        policy_sha256: columns.hash("policy_sha256")?,
        choice: columns.choice()?,
        stop: columns.text("stop")?,
        tokens: Tokens {
            prompt: columns.number("prompt_tokens")?,
            prefilled: columns.number("prefilled_tokens")?,
            cached: columns.number("cached_tokens")?,
            prefix: columns.number("prefix_tokens")?,
            forced: columns.number("forced_tokens")?,
            reasoning: columns.number("reasoning_tokens")?,
            visible: columns.number("visible_tokens")?,
        },
        passes: Passes {
            prefill: columns.number("prefill_passes")?,
            decode: columns.number("decode_passes")?,
        },
        times: ListedTimes {
            scheduled_unix_ms: columns.number("scheduled_unix_ms")?,
            queued_ns: columns.number("queued_ns")?,
            ttft_ns: columns.number_or_null("ttft_ns")?,
            tpot_ns: columns.number_or_null("tpot_ns")?,
            total_ns: columns.number("total_ns")?,
        },
    };
    let hash = columns.text("row_hash")?;
    if hash == row_hash(&listed) { Ok(listed) } else { Err(RowError::Columns) }
}

/// A row that is read from left to right.
struct Columns<'a, 'row> {
    row: &'a Row<'row>,
    next: usize,
}

impl Columns<'_, '_> {
    fn value<T: rusqlite::types::FromSql>(&mut self, column: &'static str) -> Result<T, RowError> {
        let index = self.next;
        self.next += 1;
        self.row.get(index).map_err(|_| RowError::Column { column })
    }

    fn text(&mut self, column: &'static str) -> Result<String, RowError> {
        self.value(column)
    }

    fn text_or_null(&mut self, column: &'static str) -> Result<Option<String>, RowError> {
        self.value(column)
    }

    fn hash(&mut self, column: &'static str) -> Result<Sha256, RowError> {
        Sha256::from_hex(&self.text(column)?).map_err(|_| RowError::Column { column })
    }

    fn number(&mut self, column: &'static str) -> Result<u64, RowError> {
        let number: i64 = self.value(column)?;
        u64::try_from(number).map_err(|_| RowError::Column { column })
    }

    fn number_or_null(&mut self, column: &'static str) -> Result<Option<u64>, RowError> {
        let number: Option<i64> = self.value(column)?;
        let whole = number.map(u64::try_from).transpose();
        whole.map_err(|_| RowError::Column { column })
    }

    fn choice(&mut self) -> Result<u32, RowError> {
        u32::try_from(self.number("choice")?).map_err(|_| RowError::Column { column: "choice" })
    }
}

impl Store {
    /// The records that the filter takes, newest first; of equal times the last written first.
    ///
    /// # Errors
    /// A ledger that cannot be read, or a row whose columns are not what was written.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Listed>, StoreError> {
        let (conditions, values) = conditions(filter);
        let sql = format!("SELECT seq, {COLUMNS} FROM records{conditions}");
        Ok(self.query(&sql, values)?.into_iter().map(|(_, listed)| listed).collect())
    }

    /// The numbers of the rows that `list` reads, in its order.
    pub(super) fn seqs(&self, filter: &Filter) -> Result<Vec<i64>, StoreError> {
        let of_sql = |source| self.of_sql(source);
        let (conditions, values) = conditions(filter);
        let sql = format!("SELECT seq FROM records{conditions}");
        let mut statement = self.connection.prepare_cached(&sql).map_err(of_sql)?;
        let seqs = statement.query_map(params_from_iter(values), |row| row.get(0));
        seqs.and_then(Iterator::collect).map_err(of_sql)
    }

    /// The row of this number.
    pub(super) fn row(&self, seq: i64) -> Result<Listed, StoreError> {
        let sql = format!("SELECT seq, {COLUMNS} FROM records WHERE seq = ?");
        let found = self.query(&sql, vec![Value::from(seq)])?.pop();
        let (_, listed) = found.ok_or_else(|| self.bad_row(&seq, RowError::NoBody))?;
        Ok(listed)
    }

    /// The one row that `name` names.
    pub(super) fn one(&self, name: &str) -> Result<(i64, Listed), StoreError> {
        let is_hex = name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut found = Vec::new();
        if is_hex && (1..=64).contains(&name.len()) {
            // `g` is above every digit, so the range holds all ids that begin so.
            let sql = format!(
                "SELECT seq, {COLUMNS} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT 2"
            );
            found = self.query(&sql, vec![name.to_owned().into(), format!("{name}g").into()])?;
        }
        if found.is_empty() {
            let sql = format!(
                "SELECT seq, {COLUMNS} FROM records WHERE request_id = ? ORDER BY choice LIMIT 2"
            );
            found = self.query(&sql, vec![name.to_owned().into()])?;
        }
        match found.as_slice() {
            [] => Err(StoreError::NoRecord { path: self.path.clone(), name: name.to_owned() }),
            [_] => Ok(found.remove(0)),
            [(_, first), (_, second), ..] => Err(StoreError::Ambiguous {
                name: name.to_owned(),
                first: first.id,
                second: second.id,
            }),
        }
    }

    fn query(&self, sql: &str, values: Vec<Value>) -> Result<Vec<(i64, Listed)>, StoreError> {
        let of_sql = |source| self.of_sql(source);
        let mut statement = self.connection.prepare_cached(sql).map_err(of_sql)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(of_sql)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(of_sql)? {
            let seq = row.get(0).map_err(of_sql)?;
            let listed = read(row, 1).map_err(|(id, error)| self.bad_row(&id, error))?;
            found.push((seq, listed));
        }
        Ok(found)
    }
}

/// The filter, the order and the limit as SQL, and the values of its places.
fn conditions(filter: &Filter) -> (String, Vec<Value>) {
    let Filter { model, policy, stop, request_id, owner, session, since_unix_ms, limit } = filter;
    let mut parts = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    for (column, hash_column, wanted) in
        [("model", "model_sha256", model), ("policy", "policy_sha256", policy)]
    {
        if let Some(wanted) = wanted {
            parts.push(format!("({column} = ? OR ({hash_column} >= ? AND {hash_column} < ?))"));
            values.push(wanted.clone().into());
            values.push(wanted.clone().into());
            values.push(format!("{wanted}g").into());
        }
    }
    for (column, wanted) in
        [("stop", stop), ("request_id", request_id), ("owner", owner), ("session", session)]
    {
        if let Some(wanted) = wanted {
            parts.push(format!("{column} = ?"));
            values.push(wanted.clone().into());
        }
    }
    let whole = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    if let Some(since) = since_unix_ms {
        parts.push("scheduled_unix_ms >= ?".to_owned());
        values.push(whole(*since));
    }
    // A negative limit is none.
    values.push(limit.map_or(Value::from(-1_i64), |limit| whole(limit as u64)));
    let filtered = if parts.is_empty() { "" } else { " WHERE " };
    let parts = parts.join(" AND ");
    (format!("{filtered}{parts} ORDER BY scheduled_unix_ms DESC, seq DESC LIMIT ?"), values)
}
