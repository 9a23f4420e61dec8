//! Opens a GGUF model that lies in several files, `name-00001-of-00003.gguf` and so on, as one.

use std::path::{Path, PathBuf};

use crate::file::Shard;
use crate::gguf::{Directory, GgufFault};
use crate::layout::{TENSORS_MAX, check_together, shown};
use crate::{Metadata, TensorEntry, Value, WeightsError};

/// Most parts of one model; the largest published ones have some dozens.
const PARTS_MAX: usize = 1024;

/// How many parts there are, by each of them: an integer.
const COUNT: &str = "split.count";
/// Which of them it is, counted from 0.
const NUMBER: &str = "split.no";
/// Tensors of all parts together.
const TENSORS: &str = "split.tensors.count";
/// Keys that each part has for itself.
const OWN_KEYS: [&str; 2] = [NUMBER, "general.alignment"];

/// What is wrong with one part of a split model, or with all of them together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitFault {
    #[error(
        "it is one of the {count} parts of a split model, and the others are found by names that \
         end in -00001-of-{count:05}.gguf and so on, as its own does not: give it that name back"
    )]
    Unnamed { count: usize },
    #[error(
        "its name says that there are {named} parts, its key `split.count` says {count}: \
         give the parts back the names that they were made with"
    )]
    Count { named: usize, count: usize },
    #[error("it is one of {count} parts, the limit is {limit}")]
    TooMany { count: usize, limit: usize },
    #[error(
        "it is one of the {count} parts of a split model, and `{}` is missing: \
         all of them belong into one folder", shown(.part)
    )]
    Missing { part: String, count: usize },
    #[error("it has no key `{key}`, so it is no part of the split model that its name is of")]
    Unmarked { key: &'static str },
    #[error(
        "it is part {named} by its name, and part {found} by its key `split.no`: \
         give the parts back the names that they were made with"
    )]
    Number { named: usize, found: usize },
    #[error(
        "its key `{}` is {found}, and {first} in the first part: these are parts of different \
         models, so fetch all of one model", shown(.key)
    )]
    Differs { key: String, found: String, first: String },
    #[error(
        "it holds tensor `{}`, which `{}` holds too: these are parts of different models, so \
         fetch all of one model", shown(.tensor), shown(.part)
    )]
    Twice { tensor: String, part: String },
    #[error(
        "the {parts} parts hold {found} tensors, and `split.tensors.count` is {declared}: \
         one of them is of another model or was changed, so fetch all of one model"
    )]
    Tensors { parts: usize, found: usize, declared: usize },
}

/// The parts of a split model, opened.
pub(crate) struct Joined {
    pub(crate) version: u32,
    /// The first part's.
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorEntry>,
    pub(crate) by_name: Vec<usize>,
    pub(crate) shards: Vec<Shard>,
}

/// How many parts the model has that a file with this metadata is of; 1 for a whole one.
pub(crate) fn parts(metadata: &Metadata) -> Result<usize, WeightsError> {
    Ok(metadata.u32(COUNT)?.map_or(1, |count| count as usize).max(1))
}

/// Opens the model of `count` parts of which the file at `path` is any.
pub(crate) fn open(path: &Path, count: usize) -> Result<Joined, WeightsError> {
    let fault = |path: &Path, fault| WeightsError::Gguf {
        path: path.to_owned(),
        source: GgufFault::Split(fault),
    };
    let names = Names::of(path).ok_or_else(|| fault(path, SplitFault::Unnamed { count }))?;
    if names.count != count {
        return Err(fault(path, SplitFault::Count { named: names.count, count }));
    }
    if count > PARTS_MAX {
        return Err(fault(path, SplitFault::TooMany { count, limit: PARTS_MAX }));
    }
    // Asked first, so that what is said does not hang on which part was named.
    if let Some(missing) = (1..=count).map(|n| names.path(n)).find(|part| !is_there(part)) {
        let part = missing.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(fault(path, SplitFault::Missing { part, count }));
    }
    let first = Shard::open(names.path(1))?;
    let Directory { version, metadata, mut tensors, .. } = directory(&first)?;
    check_part(&metadata, 1, &metadata).map_err(|error| error.at(&first.path))?;
    let mut shards = vec![first];
    for number in 2..=count {
        let shard = Shard::open(names.path(number))?;
        let Directory { metadata: own, tensors: entries, .. } = directory(&shard)?;
        check_part(&own, number, &metadata).map_err(|error| error.at(&shard.path))?;
        let index = shards.len();
        tensors.extend(entries.into_iter().map(|entry| TensorEntry { shard: index, ..entry }));
        shards.push(shard);
        check_count(&metadata, count, tensors.len(), number == count)
            .map_err(|error| error.at(&shards[index].path))?;
    }
    let by_name = check_together(&tensors).map_err(|twice| {
        let places: Vec<usize> =
            tensors.iter().filter(|entry| entry.name == twice.name).map(|e| e.shard).collect();
        let path_of = |index: Option<&usize>| &shards[index.copied().unwrap_or_default()].path;
        let part = path_of(places.first()).file_name().unwrap_or_default();
        let part = part.to_string_lossy().into_owned();
        fault(path_of(places.last()), SplitFault::Twice { tensor: twice.name, part })
    })?;
    Ok(Joined { version, metadata, tensors, by_name, shards })
}

fn directory(shard: &Shard) -> Result<Directory, WeightsError> {
    Directory::parse(shard.mapping.bytes())
        .map_err(|source| WeightsError::Gguf { path: shard.path.clone(), source })
}

/// Whether there is anything of this name, a broken link included.
fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// A fault of a part, or of one of its keys.
enum Broken {
    Split(SplitFault),
    Key(WeightsError),
}

impl Broken {
    fn at(self, path: &Path) -> WeightsError {
        match self {
            Self::Key(error) => error,
            Self::Split(fault) => {
                WeightsError::Gguf { path: path.to_owned(), source: GgufFault::Split(fault) }
            }
        }
    }
}

impl From<SplitFault> for Broken {
    fn from(fault: SplitFault) -> Self {
        Self::Split(fault)
    }
}

impl From<WeightsError> for Broken {
    fn from(error: WeightsError) -> Self {
        Self::Key(error)
    }
}

/// Refuses a part whose keys say that it is another one, or of another model: whatever stands in
/// it and in the first part too must be the same.
fn check_part(own: &Metadata, number: usize, first: &Metadata) -> Result<(), Broken> {
    if own.u32(COUNT)?.is_none() {
        return Err(SplitFault::Unmarked { key: COUNT }.into());
    }
    let found = own.u32(NUMBER)?.ok_or(SplitFault::Unmarked { key: NUMBER })? as usize + 1;
    if found != number {
        return Err(SplitFault::Number { named: number, found }.into());
    }
    for (key, value) in own.iter().filter(|(key, _)| !OWN_KEYS.contains(key)) {
        let Some(other) = first.value(key) else { continue };
        let is_same = match (value.as_integer(), other.as_integer()) {
            (Some(value), Some(other)) => value == other,
            _ => value == other,
        };
        if !is_same {
            let (key, found, first) = (key.to_owned(), told(value), told(other));
            return Err(SplitFault::Differs { key, found, first }.into());
        }
    }
    Ok(())
}

/// Refuses tensors beyond the number that the first part declares, or beyond the limit, as soon
/// as they are read, and fewer of them at the end.
fn check_count(first: &Metadata, parts: usize, found: usize, is_last: bool) -> Result<(), Broken> {
    let declared = match first.u32(TENSORS)? {
        Some(declared) => declared as usize,
        None if found > TENSORS_MAX => TENSORS_MAX,
        None => return Ok(()),
    };
    if found > declared || (is_last && found < declared) {
        return Err(SplitFault::Tensors { parts, found, declared }.into());
    }
    Ok(())
}

/// A value as a sentence can carry it; a list or a number with a fraction by its type alone.
fn told(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", shown(text)),
        Value::Bool(truth) => truth.to_string(),
        other => match other.as_integer() {
            Some(integer) => integer.to_string(),
            None => format!("another {}", other.value_type()),
        },
    }
}

/// The names of all parts, by that of one.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    folder: PathBuf,
    stem: String,
    count: usize,
    ending: String,
}

impl Names {
    /// Takes `name-00002-of-00003.gguf` apart.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (rest, ending) = name.rsplit_once('.')?;
        let (rest, count) = rest.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let read = |digits: &str| {
            let is_number = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<usize>().ok()).flatten()
        };
        let (number, count) = (read(number)?, read(count)?);
        (1..=count).contains(&number).then(|| Self {
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            stem: stem.to_owned(),
            count,
            ending: ending.to_owned(),
        })
    }

    fn path(&self, number: usize) -> PathBuf {
        let Self { folder, stem, count, ending } = self;
        folder.join(format!("{stem}-{number:05}-of-{count:05}.{ending}"))
    }
}

#[cfg(test)]
mod tests;
