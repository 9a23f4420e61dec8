//! A record's body: what a list does not show, packed, and put together again when it is read.

use rusqlite::{OptionalExtension as _, Row};

use super::pack::{pack_steps, pack_tokens, unpack_steps, unpack_tokens};
use super::{Listed, RowError, Store, StoreError};
use crate::file::check;
use crate::{End, Record, Sha256, Start, Stored};

/// The columns of one row of `bodies`, and the texts that it shares with other rows.
pub(crate) struct Body {
    /// The start in JSON, without what follows.
    pub(super) start_json: String,
    pub(super) template: Option<SharedText>,
    pub(super) policy: SharedText,
    pub(super) prompt: Option<String>,
    pub(super) tokens: Vec<u8>,
    pub(super) steps: Vec<u8>,
    pub(super) answer: String,
    /// The end in JSON, without the answer.
    pub(super) end_json: String,
}

/// A text that many records have, under the hash of what it really is.
pub(crate) struct SharedText {
    pub(super) sha256: Sha256,
    pub(super) text: String,
}

impl SharedText {
    fn of(text: String) -> Self {
        Self { sha256: Sha256::of(text.as_bytes()), text }
    }
}

impl Body {
    /// Takes a record apart. What has a column of its own is left empty in the JSON.
    pub(super) fn of(record: Record) -> Self {
        let Record { mut start, steps, mut end } = record;
        let Start { request, template, policy, .. } = &mut start;
        let effective = &mut request.effective;
        let prompt = effective.prompt.take();
        let tokens = pack_tokens(&[&effective.prompt_tokens, &effective.prefilled_tokens]);
        (effective.prompt_tokens, effective.prefilled_tokens) = (Vec::new(), Vec::new());
        let policy = SharedText::of(std::mem::take(&mut policy.canonical));
        let template =
            template.as_mut().map(|template| SharedText::of(std::mem::take(&mut template.text)));
        let answer = std::mem::take(&mut end.text);
        let json = |part: Result<String, _>| part.expect("a record's parts have a JSON form");
        Self {
            start_json: json(serde_json::to_string(&start)),
            template,
            policy,
            prompt,
            tokens,
            steps: pack_steps(&steps),
            answer,
            end_json: json(serde_json::to_string(&end)),
        }
    }

    /// Bytes that the record takes in the file, shared texts not counted.
    pub(super) fn bytes(&self) -> u64 {
        let Self { start_json, template: _, policy: _, prompt, tokens, steps, answer, end_json } =
            self;
        let texts = start_json.len() + answer.len() + end_json.len();
        (texts + prompt.as_ref().map_or(0, String::len) + tokens.len() + steps.len()) as u64
    }

    fn read(row: &Row<'_>) -> Result<Self, RowError> {
        fn column<T: rusqlite::types::FromSql>(
            row: &Row<'_>,
            column: &'static str,
        ) -> Result<T, RowError> {
            row.get(column).map_err(|_| RowError::Column { column })
        }
        let shared = |sha256: String, text: Option<String>| {
            let found = text.map(SharedText::of);
            let found = found.filter(|found| found.sha256.to_string() == sha256);
            found.ok_or_else(|| RowError::Text { sha256: printable(&sha256) })
        };
        let template: Option<String> = column(row, "template_sha256")?;
        let template = match template {
            Some(sha256) => Some(shared(sha256, column(row, "template_text")?)?),
            None => None,
        };
        Ok(Self {
            start_json: column(row, "start_json")?,
            template,
            policy: shared(column(row, "policy_sha256")?, column(row, "policy_text")?)?,
            prompt: column(row, "prompt")?,
            tokens: column(row, "tokens")?,
            steps: column(row, "steps")?,
            answer: column(row, "answer")?,
            end_json: column(row, "end_json")?,
        })
    }

    /// Puts the record together again, and checks that it is one.
    fn into_record(self) -> Result<Record, RowError> {
        let Self { start_json, template, policy, prompt, tokens, steps, answer, end_json } = self;
        let json = |part| move |source| RowError::Json { part, source };
        let packed = |part| move |source| RowError::Packed { part, source };
        let mut start: Start = serde_json::from_str(&start_json).map_err(json("start_json"))?;
        let mut end: End = serde_json::from_str(&end_json).map_err(json("end_json"))?;
        let [prompt_tokens, prefilled_tokens] = unpack_tokens(&tokens).map_err(packed("tokens"))?;
        let effective = &mut start.request.effective;
        effective.prompt = prompt;
        effective.prompt_tokens = prompt_tokens;
        effective.prefilled_tokens = prefilled_tokens;
        start.policy.canonical = policy.text;
        if let (Some(of_start), Some(template)) = (&mut start.template, template) {
            of_start.text = template.text;
        }
        end.text = answer;
        let record = Record { start, steps: unpack_steps(&steps).map_err(packed("steps"))?, end };
        check(&record).map_err(|source| RowError::Form { source })?;
        Ok(record)
    }
}

/// The beginning of a text from the file, without control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(64).collect()
}

impl Store {
    /// Reads the record of a row, and proves that it is the one that was written.
    pub(super) fn read(&self, seq: i64, listed: &Listed) -> Result<Stored, StoreError> {
        let sql = "SELECT b.*, t.text AS template_text, p.text AS policy_text FROM bodies b \
                   LEFT JOIN texts t ON t.sha256 = b.template_sha256 \
                   LEFT JOIN texts p ON p.sha256 = b.policy_sha256 WHERE b.seq = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.of_sql(e))?;
        let body = statement
            .query_row([seq], |row| Ok(Body::read(row)))
            .optional()
            .map_err(|e| self.of_sql(e))?
            .unwrap_or(Err(RowError::NoBody));
        body.and_then(Body::into_record)
            .and_then(|record| proved(record, listed))
            .map_err(|error| self.bad_row(&listed.id, error))
    }
}

/// The record beside its hashes, if they are those of its row, and so is everything listed.
fn proved(record: Record, listed: &Listed) -> Result<Stored, RowError> {
    let stored = Stored::new(record);
    if stored.id != listed.id {
        return Err(RowError::Id { found: stored.id });
    }
    let hashes = (stored.id, stored.answer_hash);
    if Listed::of(&stored.record, hashes, listed.tags.clone()) != *listed {
        return Err(RowError::Summary);
    }
    Ok(stored)
}
