//! Records as JSON files: written whole or not at all, read as what they are: hostile input.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::builder::follows;
use crate::{End, RECEIVED_BYTES_MAX, Reasons, Record, SCHEMA, Sha256, Start, Step, StepError};

/// Most bytes of a record file; a step takes about 450, so this is room for 140,000 of them.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// A record as it stands in a file, beside the hashes that were written with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub record: Record,
    /// The record's id as the file says it.
    pub id: Sha256,
    /// The answer's hash as the file says it.
    pub answer_hash: Sha256,
}

/// A file that cannot be read as a record.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is no record `{path}`")]
    NotFound { path: PathBuf },
    #[error("`{path}` is a folder, not a record")]
    Folder { path: PathBuf },
    #[error("record `{path}` cannot be read")]
    Io { path: PathBuf, source: io::Error },
    #[error("record `{path}` is damaged")]
    Damaged { path: PathBuf, source: FormError },
}

/// Bytes that are no record.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    #[error("more than {limit} bytes, the limit of a record")]
    TooLarge { limit: usize },
    #[error("byte {offset} is not UTF-8")]
    NotUtf8 { offset: usize },
    #[error("not a record in JSON")]
    Malformed { source: serde_json::Error },
    #[error("no `schema` in it, where schema {SCHEMA} is due")]
    NoSchema,
    #[error("schema {schema}, where only schema {SCHEMA} is known")]
    UnknownSchema { schema: u64 },
    #[error("its steps do not fit together")]
    Step { source: StepError },
}

/// A record that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("`{path}` is not a file, so no record can take its place")]
    NotAFile { path: PathBuf },
    #[error("there is no folder `{folder}` to write a record into")]
    NoFolder { folder: PathBuf },
    #[error("record `{path}` ({bytes} bytes) cannot be written")]
    Io { path: PathBuf, bytes: usize, source: io::Error },
    #[error("a record of {bytes} bytes, where {limit} are the limit")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a request of {bytes} bytes as received, where a record holds {limit}")]
    ReceivedTooLarge { bytes: usize, limit: usize },
    #[error("the record cannot be written")]
    Step { source: StepError },
}

impl ReadError {
    /// Whether the caller named a file that is not there, rather than one that went bad.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::NotFound { .. } | Self::Folder { .. } => true,
            Self::Io { .. } | Self::Damaged { .. } => false,
        }
    }
}

impl FormError {
    /// Never so: a record is written by a program.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        false
    }
}

impl WriteError {
    /// Whether the caller named a place where no file can be.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        match self {
            Self::NotAFile { .. } | Self::NoFolder { .. } | Self::ReceivedTooLarge { .. } => true,
            Self::Io { .. } | Self::TooLarge { .. } | Self::Step { .. } => false,
        }
    }
}

impl Stored {
    /// Whether the record is what was written: a file edited by hand keeps its old id.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.edited().is_none()
    }

    /// What shows that the record is not what was written, if anything does; the hashes alone
    /// are known, and not which of them or of the rest was changed.
    #[must_use]
    pub fn edited(&self) -> Option<&'static str> {
        let has_id = self.record.id() == self.id;
        let has_answer_hash = self.record.answer_hash() == self.answer_hash;
        match (has_id, has_answer_hash) {
            (true, true) => None,
            (false, true) => Some("its `id` is not its content's"),
            (true, false) => Some("its `answer_hash` is not its content's"),
            (false, false) => Some("its `id` and `answer_hash` are not its content's"),
        }
    }
}

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordFile {
    #[serde(rename = "schema")]
    _schema: u64,
    id: Sha256,
    answer_hash: Sha256,
    start: Start,
    steps: Vec<Step>,
    end: End,
}

/// The one field that every schema has; unparsed, so that nothing large is built from it.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<Box<RawValue>>,
}

/// Reads a record file.
///
/// # Errors
/// No such file, a folder, a file that cannot be read, or one that holds no record of a known
/// schema.
pub fn read(path: &Path) -> Result<Stored, ReadError> {
    let io_error = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ReadError::NotFound { path: path.to_owned() },
        io::ErrorKind::IsADirectory => ReadError::Folder { path: path.to_owned() },
        _ => ReadError::Io { path: path.to_owned(), source },
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(io_error)?;
    // One byte above the limit is enough to know that there are too many.
    file.take(RECORD_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(io_error)?;
    from_slice(&bytes).map_err(|source| ReadError::Damaged { path: path.to_owned(), source })
}

/// Reads a record from the bytes of its file.
///
/// # Errors
/// Too many bytes, not UTF-8, not JSON, another schema, an unknown field, a missing one, or
/// steps that do not follow one another.
pub fn from_slice(bytes: &[u8]) -> Result<Stored, FormError> {
    if bytes.len() > RECORD_BYTES_MAX {
        return Err(FormError::TooLarge { limit: RECORD_BYTES_MAX });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| FormError::NotUtf8 { offset: error.valid_up_to() })?;
    let malformed = |source| FormError::Malformed { source };
    // The schema comes first: what another schema means by its fields is not known here.
    let SchemaOnly { schema } = serde_json::from_str(text).map_err(malformed)?;
    let schema = schema.ok_or(FormError::NoSchema)?;
    let schema: u64 = serde_json::from_str(schema.get()).map_err(malformed)?;
    if schema != SCHEMA {
        return Err(FormError::UnknownSchema { schema });
    }
    let RecordFile { _schema, id, answer_hash, start, steps, end } =
        serde_json::from_str(text).map_err(malformed)?;
    let record = Record { start, steps, end };
    check(&record)?;
    Ok(Stored { record, id, answer_hash })
}

/// Refuses a record whose steps do not follow one another.
pub(crate) fn check(record: &Record) -> Result<(), FormError> {
    for pair in record.steps.windows(2) {
        follows(&pair[0], &pair[1]).map_err(|source| FormError::Step { source })?;
    }
    Ok(())
}

/// Refuses a record that no file could hold, or that could not be read again.
pub(crate) fn check_to_write(record: &Record) -> Result<(), WriteError> {
    // Room for a step's names, numbers and punctuation, and for what stands around all parts.
    const STEP_BYTES_MAX: usize = 640;
    const FRAME_BYTES_MAX: usize = 1 << 10;
    check_steps(record)?;
    check_received(record)?;
    let Record { start, steps, end } = record;
    let length = |name: &Option<String>| name.as_ref().map_or(0, String::len);
    let texts = |step: &Step| {
        let Reasons { removed_by, forced_by, .. } = &step.reasons;
        step.piece.0.len() + length(removed_by) + length(forced_by)
    };
    // A byte that is escaped takes six.
    let steps_bytes: usize = steps.iter().map(|step| STEP_BYTES_MAX + 6 * texts(step)).sum();
    let bytes_at_most = FRAME_BYTES_MAX + line(start).len() + steps_bytes + line(end).len();
    // Nearly every record is far below the limit; only the others are written out to be measured.
    if bytes_at_most > RECORD_BYTES_MAX { to_json(record).map(|_| ()) } else { Ok(()) }
}

/// Refuses steps that do not follow one another, and numbers that JSON cannot hold.
fn check_steps(record: &Record) -> Result<(), WriteError> {
    let steps = &record.steps;
    for pair in steps.windows(2) {
        follows(&pair[0], &pair[1]).map_err(|source| WriteError::Step { source })?;
    }
    let not_finite = |step: &Step| step.not_finite().map(|found| (step.step, found));
    match steps.iter().find_map(not_finite) {
        Some((step, (field, value))) => {
            let source = StepError::NotFinite { step, field, value };
            Err(WriteError::Step { source })
        }
        None => Ok(()),
    }
}

/// Refuses a request that would be too long to read again.
fn check_received(record: &Record) -> Result<(), WriteError> {
    let received_bytes = line(&record.start.request.received).len();
    if received_bytes > RECEIVED_BYTES_MAX {
        let limit = RECEIVED_BYTES_MAX;
        return Err(WriteError::ReceivedTooLarge { bytes: received_bytes, limit });
    }
    Ok(())
}

/// The record as its file holds it: one JSON object, one line for each step.
///
/// # Errors
/// A number that JSON cannot hold, steps out of order, or more bytes than `read` would take.
pub fn to_json(record: &Record) -> Result<String, WriteError> {
    check_steps(record)?;
    check_received(record)?;
    let Record { start, steps, end } = record;
    let json = format!(
        "{{\"schema\":{SCHEMA},\n\"id\":{},\n\"answer_hash\":{},\n\"start\":{},\n\
         \"steps\":[{}\n],\n\"end\":{}}}\n",
        line(&record.id()),
        line(&record.answer_hash()),
        line(start),
        steps.iter().map(|step| format!("\n{}", line(step))).collect::<Vec<_>>().join(","),
        line(end),
    );
    if json.len() > RECORD_BYTES_MAX {
        return Err(WriteError::TooLarge { bytes: json.len(), limit: RECORD_BYTES_MAX });
    }
    Ok(json)
}

/// A part of a record as JSON in one line.
fn line(part: &impl Serialize) -> String {
    serde_json::to_string(part).expect("a record's parts have a JSON form")
}

/// Writes a record file, whole or not at all: beside its destination first, then to the disk,
/// then into place in one step.
///
/// # Errors
/// A destination that is no file, a folder that is missing or read-only, a full disk. Nothing
/// is left behind, and a file that was there before is as before.
pub fn write(record: &Record, path: &Path) -> Result<(), WriteError> {
    let json = to_json(record)?;
    let bytes = json.len();
    beside_to_place(path, bytes, |file| {
        let written = file.write_all(json.as_bytes());
        written.map_err(|source| WriteError::Io { path: path.to_owned(), bytes, source })
    })
}

/// Has a file filled beside its destination, and puts it in place once it is on the disk.
pub(crate) fn beside_to_place<E: From<WriteError>>(
    path: &Path,
    bytes: usize,
    fill: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let (target, folder) = destination(path)?;
    let io_error = |source| io_error(path, &folder, bytes, source);
    let mut beside = open_beside(&folder).map_err(io_error)?;
    fill(beside.as_file_mut())?;
    beside.as_file().sync_all().map_err(io_error)?;
    beside.persist(&target).map_err(|error| io_error(error.error))?;
    // The new name is on the disk only when the folder is. Some file systems cannot be asked.
    File::open(&folder).and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

/// Finds out whether a record could be written, before a long run is spent on it.
///
/// # Errors
/// As `write`, for an empty record.
pub fn probe(path: &Path) -> Result<(), WriteError> {
    let (_, folder) = destination(path)?;
    match open_beside(&folder) {
        Ok(_dropped_and_so_removed) => Ok(()),
        Err(source) => Err(io_error(path, &folder, 0, source)),
    }
}

/// The file to put in place and its folder. Follows links, so that a link stays one.
fn destination(path: &Path) -> Result<(PathBuf, PathBuf), WriteError> {
    // Under these folders a name may lead to the file that this command prints into.
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return Err(WriteError::NotAFile { path: path.to_owned() });
    }
    let target = match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(WriteError::NotAFile { path: path.to_owned() });
        }
        Ok(_) => fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        Err(_) if path.file_name().is_none() => {
            return Err(WriteError::NotAFile { path: path.to_owned() });
        }
        Err(_) => path.to_owned(),
    };
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((target, folder))
}

/// A file beside the destination, removed again unless it is put into place. It may be read by
/// whom the caller's mask allows, as any file that a command writes.
fn open_beside(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut code = None;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".causeway-record-").suffix(".part");
    let opened = builder.make_in(folder, |beside| {
        let opened = File::options().write(true).create_new(true).open(beside);
        opened.inspect_err(|error| code = error.raw_os_error())
    });
    // The system's own error, without the name of a file that the caller knows nothing of.
    opened.map_err(|error| code.map_or(error, io::Error::from_raw_os_error))
}

fn io_error(path: &Path, folder: &Path, bytes: usize, source: io::Error) -> WriteError {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            WriteError::NoFolder { folder: folder.to_owned() }
        }
        _ => WriteError::Io { path: path.to_owned(), bytes, source },
    }
}

#[cfg(test)]
mod tests;
