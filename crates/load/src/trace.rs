//! Trace files: when real requests arrived, and how long their prompts and answers were.
//!
//! Four forms are read, told apart by their first line; `docs/load.md` has the table.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;

use crate::counts::COUNT_MAX;
use crate::error::TraceError;
use crate::plan::REQUESTS_MAX;

/// Most bytes of a trace file that are read.
const BYTES_MAX: u64 = 1 << 30;
/// Most blocks of a prompt's prefix.
const BLOCKS_MAX: usize = 1 << 16;

/// One request of a trace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Since the first request.
    pub(crate) at_us: u64,
    pub(crate) prompt_tokens: u32,
    pub(crate) output_tokens: u32,
    /// Ids of the blocks that the prompt is made of; equal ids mean equal text. May be empty.
    pub(crate) blocks: Vec<u64>,
}

/// The requests of a trace.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Trace {
    pub(crate) rows: Vec<Row>,
    /// Requests without a prompt or an answer, which are left out.
    pub(crate) skipped: u64,
}

/// Where the columns stand in a file of comma-separated values.
struct Columns {
    time: usize,
    /// Milliseconds in one unit of the time column, where that is a number.
    time_ms: f64,
    prompt: usize,
    output: usize,
    blocks: Option<usize>,
}

/// One line of the form of Mooncake's traces.
#[derive(Deserialize)]
struct JsonRow {
    timestamp: f64,
    input_length: f64,
    output_length: f64,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// A row whose numbers are not yet checked.
struct Raw {
    at_ms: f64,
    prompt: f64,
    output: f64,
    blocks: Vec<u64>,
}

/// Reads a trace.
pub(crate) fn read(path: &Path) -> Result<Trace, TraceError> {
    let unreadable = |source| TraceError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut columns = None;
    let mut trace = Trace::default();
    let mut first_ms = None;
    for (index, line) in BufReader::new(file.take(BYTES_MAX)).lines().enumerate() {
        let line = line.map_err(unreadable)?;
        let line = line.trim_start_matches('\u{feff}').trim();
        let bad = |column| TraceError::Line { path: path.to_owned(), line: index + 1, column };
        let raw = if line.is_empty() {
            continue;
        } else if line.starts_with('{') {
            let JsonRow { timestamp, input_length, output_length, hash_ids } =
                serde_json::from_str(line)
                    .map_err(|_| bad("timestamp, input_length and output_length"))?;
            Raw { at_ms: timestamp, prompt: input_length, output: output_length, blocks: hash_ids }
        } else if let Some(columns) = &columns {
            raw_of(line, columns).map_err(bad)?
        } else {
            let found = columns_of(line);
            columns = Some(found.ok_or_else(|| TraceError::Columns { path: path.to_owned() })?);
            continue;
        };
        let first_ms = *first_ms.get_or_insert(raw.at_ms);
        let at_us = us_since(raw.at_ms, first_ms).ok_or_else(|| bad("arrival"))?;
        if trace.rows.last().is_some_and(|last| last.at_us > at_us) || raw.at_ms < first_ms {
            return Err(TraceError::Order { path: path.to_owned(), line: index + 1 });
        }
        let prompt_tokens = count(raw.prompt).ok_or_else(|| bad("prompt"))?;
        let output_tokens = count(raw.output).ok_or_else(|| bad("output"))?;
        if prompt_tokens == 0 || output_tokens == 0 {
            trace.skipped += 1;
            continue;
        }
        if trace.rows.len() as u64 == REQUESTS_MAX {
            return Err(TraceError::Long { path: path.to_owned() });
        }
        trace.rows.push(Row { at_us, prompt_tokens, output_tokens, blocks: raw.blocks });
    }
    if trace.rows.is_empty() { Err(TraceError::Empty { path: path.to_owned() }) } else { Ok(trace) }
}

/// The columns that a first line names, in any of the spellings known.
fn columns_of(line: &str) -> Option<Columns> {
    let names: Vec<String> =
        line.split(',').map(|name| name.trim().trim_matches('"').to_lowercase()).collect();
    let place = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    let (time, time_ms) = place(&["arrival_ms"])
        .map(|time| (time, 1.0))
        .or_else(|| Some((place(&["timestamp"])?, 1_000.0)))?;
    Some(Columns {
        time,
        time_ms,
        prompt: place(&["prompt_tokens", "contexttokens", "request tokens"])?,
        output: place(&["output_tokens", "generatedtokens", "response tokens"])?,
        blocks: place(&["prefix_hash_ids"]),
    })
}

/// Reads one line; the error is the column that cannot be read.
fn raw_of(line: &str, columns: &Columns) -> Result<Raw, &'static str> {
    let fields: Vec<&str> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
    let field = |place: usize| fields.get(place).copied().unwrap_or_default();
    let number = |place| field(place).parse::<f64>().ok();
    let time = number(columns.time).map(|time| time * columns.time_ms);
    Ok(Raw {
        at_ms: time.or_else(|| date_ms(field(columns.time))).ok_or("arrival")?,
        prompt: number(columns.prompt).ok_or("prompt")?,
        output: number(columns.output).ok_or("output")?,
        blocks: columns
            .blocks
            .map_or(Some(Vec::new()), |place| runs(field(place)))
            .ok_or("blocks")?,
    })
}

/// Block ids as runs: `0-2 7` is 0, 1, 2 and 7.
fn runs(text: &str) -> Option<Vec<u64>> {
    let mut blocks = Vec::new();
    for run in text.split_whitespace() {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        let room = (BLOCKS_MAX - blocks.len()) as u64;
        if last < first || last - first >= room {
            return None;
        }
        blocks.extend(first..=last);
    }
    Some(blocks)
}

/// Milliseconds of `2023-11-16 18:17:03.9799600`, from the year 0.
fn date_ms(text: &str) -> Option<f64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u32>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.trim_end_matches('Z').splitn(3, ':');
    let hour = f64::from(time.next()?.parse::<u32>().ok()?);
    let minute = f64::from(time.next()?.parse::<u32>().ok()?);
    let second = time.next()?.parse::<f64>().ok()?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year > 9_999 {
        return None;
    }
    let days = f64::from(days_before(year, month) + day);
    Some((((days * 24.0 + hour) * 60.0 + minute) * 60.0 + second) * 1_000.0)
}

/// Days before a month of the Gregorian calendar: years begin in March, so that the leap day is
/// the last of its year.
fn days_before(year: u32, month: u32) -> u32 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.max(1) - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is checked to lie in range"
)]
fn us_since(at_ms: f64, first_ms: f64) -> Option<u64> {
    let us = ((at_ms - first_ms) * 1_000.0).round();
    (us < 1e15).then_some(us.max(0.0) as u64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is checked to be a count in range"
)]
fn count(number: f64) -> Option<u32> {
    let is_count = (0.0..=f64::from(COUNT_MAX)).contains(&number) && number.fract() == 0.0;
    is_count.then_some(number as u32)
}

#[cfg(test)]
mod tests;
