//! Which of a repository's files make the model that was asked for.

use std::collections::BTreeMap;

use super::name::{Wanted, is_gguf};

/// What is taken of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// A GGUF file, or its parts in order.
    Gguf(Vec<String>),
    /// A folder of safetensors: all of these, the weights last.
    Folder(Vec<String>),
}

/// Why a repository's files give no one model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceFault {
    #[error("the repository has neither GGUF nor safetensors files")]
    NoModel,
    #[error("no file has the quantisation `{quant}`: there are {}", listed(known))]
    NoQuant { quant: String, known: Vec<String> },
    #[error(
        "which file is meant? There are {}; name one as :quant or as /file.gguf",
        listed(known)
    )]
    Ambiguous { known: Vec<String> },
    #[error("the repository has no file `{file}`")]
    NoFile { file: String },
    #[error("the split file `{file}` has {found} of {count} parts")]
    PartsMissing { file: String, found: usize, count: usize },
}

/// Taken where no quantisation is named: small, and close to the whole.
const QUANT_BY_DEFAULT: &str = "Q4_K_M";

/// The word that asks for the folder where a repository has GGUF files too.
pub(crate) const SAFETENSORS: &str = "safetensors";

/// Most files that a refusal lists.
const LISTED_MAX: usize = 24;

/// Files of a safetensors folder beside its weights.
const BESIDE: &[&str] = &[
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.json",
    "chat_template.jinja",
];

const INDEX: &str = "model.safetensors.index.json";
const WHOLE: &str = "model.safetensors";

/// Chooses among `files`, which are paths inside one repository.
///
/// GGUF files go before safetensors. Of them, a quantisation is matched letter for letter first,
/// then without regard to case; without one it is `Q4_K_M`, or else the only one there is.
///
/// # Errors
/// Each lists what there is.
pub fn choose(files: &[String], wanted: &Wanted) -> Result<Chosen, ChoiceFault> {
    let groups = groups(files);
    match wanted {
        Wanted::File(file) => the_file(files, &groups, file),
        Wanted::Quant(quant) if quant.eq_ignore_ascii_case(SAFETENSORS) => folder(files),
        Wanted::Quant(quant) => match of_quant(&groups, quant).as_slice() {
            [] => {
                let known = groups.iter().map(Group::quant).map(str::to_owned).collect();
                Err(ChoiceFault::NoQuant { quant: quant.clone(), known })
            }
            [one] => one.whole(),
            several => Err(ambiguous(several)),
        },
        Wanted::Default if groups.is_empty() => folder(files),
        Wanted::Default => {
            let all: Vec<&Group<'_>> = groups.iter().collect();
            let preferred = of_quant(&groups, QUANT_BY_DEFAULT);
            match if preferred.is_empty() { all } else { preferred }.as_slice() {
                [one] => one.whole(),
                several => Err(ambiguous(several)),
            }
        }
    }
}

/// One GGUF model of a repository: a file, or the parts of a split one.
#[derive(Debug)]
struct Group<'f> {
    /// The path without `-00001-of-0000N` and `.gguf`.
    stem: &'f str,
    /// Parts there ought to be.
    count: usize,
    parts: BTreeMap<usize, &'f str>,
}

impl Group<'_> {
    /// What the name says of the quantisation: what follows its last `-`, `.` or `/`.
    fn quant(&self) -> &str {
        self.stem.rsplit(['-', '.', '/']).next().unwrap_or(self.stem)
    }

    /// Whether the name ends in `quant`, which `_` may set apart too.
    fn ends_in(&self, quant: &str) -> bool {
        let Some(start) = self.stem.len().checked_sub(quant.len()).filter(|start| *start > 0)
        else {
            return false;
        };
        let digit = quant.chars().any(|c| c.is_ascii_digit());
        let sets_apart = |c: u8| matches!(c, b'-' | b'.' | b'/') || (c == b'_' && digit);
        self.stem.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(quant))
            && sets_apart(self.stem.as_bytes()[start - 1])
            && quant.starts_with(|c: char| c.is_ascii_alphabetic())
    }

    fn whole(&self) -> Result<Chosen, ChoiceFault> {
        let (found, count) = (self.parts.len(), self.count);
        if found < count {
            let file = self.stem.to_owned();
            return Err(ChoiceFault::PartsMissing { file, found, count });
        }
        Ok(Chosen::Gguf(self.parts.values().map(|&file| file.to_owned()).collect()))
    }
}

/// The GGUF models among `files`, without what is no language model by its name.
fn groups(files: &[String]) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(&str, usize), Group<'_>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_gguf(file) && !is_beside(file)) {
        let stem = &file[..file.len() - ".gguf".len()];
        let (stem, number, count) = split(stem).unwrap_or((stem, 1, 1));
        let group = groups.entry((stem, count)).or_insert_with(|| Group {
            stem,
            count,
            parts: BTreeMap::new(),
        });
        group.parts.insert(number, file);
    }
    groups.into_values().collect()
}

/// Projectors of pictures and importance matrices are GGUF files, too.
pub(crate) fn is_beside(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    name.starts_with("mmproj") || name.contains("imatrix")
}

/// `stem-00002-of-00003` as its stem, 2 and 3.
fn split(stem: &str) -> Option<(&str, usize, usize)> {
    let (rest, count) = stem.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let read = |digits: &str| (digits.len() == 5).then(|| digits.parse::<usize>().ok()).flatten();
    let (number, count) = (read(number)?, read(count)?);
    (1..=count).contains(&number).then_some((stem, number, count))
}

fn of_quant<'g, 'f>(groups: &'g [Group<'f>], quant: &str) -> Vec<&'g Group<'f>> {
    let rules: [&dyn Fn(&Group<'_>) -> bool; 3] = [
        &|group| group.quant() == quant,
        &|group| group.quant().eq_ignore_ascii_case(quant),
        &|group| group.ends_in(quant),
    ];
    let found = rules.iter().map(|rule| groups.iter().filter(|group| rule(group)).collect());
    found.into_iter().find(|found: &Vec<_>| !found.is_empty()).unwrap_or_default()
}

fn the_file(files: &[String], groups: &[Group<'_>], file: &str) -> Result<Chosen, ChoiceFault> {
    if !files.iter().any(|known| known == file) {
        return Err(ChoiceFault::NoFile { file: file.to_owned() });
    }
    // Any part stands for its whole.
    match groups.iter().find(|group| group.parts.values().any(|part| *part == file)) {
        Some(group) => group.whole(),
        None => Ok(Chosen::Gguf(vec![file.to_owned()])),
    }
}

/// The files that make a safetensors folder.
fn folder(files: &[String]) -> Result<Chosen, ChoiceFault> {
    let has = |name: &str| files.iter().any(|file| file == name);
    let weights: Vec<String> = if has(INDEX) {
        files.iter().filter(|file| is_shard(file)).cloned().collect()
    } else {
        files.iter().filter(|file| *file == WHOLE).cloned().collect()
    };
    if weights.is_empty() || !has("config.json") {
        return Err(ChoiceFault::NoModel);
    }
    let mut chosen: Vec<String> = files.iter().filter(|file| goes_along(file)).cloned().collect();
    chosen.extend(has(INDEX).then(|| INDEX.to_owned()));
    chosen.extend(weights);
    Ok(Chosen::Folder(chosen))
}

/// Whether a file of a safetensors folder is taken beside its weights.
fn goes_along(file: &str) -> bool {
    let is_template = file.starts_with("additional_chat_templates/") && file.ends_with(".jinja");
    is_template || BESIDE.contains(&file)
}

/// `model-00001-of-00003.safetensors`, in the repository's root.
fn is_shard(file: &str) -> bool {
    file.strip_suffix(".safetensors").and_then(split).is_some_and(|(stem, ..)| stem == "model")
}

fn ambiguous(groups: &[&Group<'_>]) -> ChoiceFault {
    let named: Vec<String> = groups.iter().map(|group| group.quant().to_owned()).collect();
    let mut distinct = named.clone();
    distinct.sort();
    distinct.dedup();
    let known = if distinct.len() == named.len() {
        named
    } else {
        groups.iter().map(|group| format!("{}.gguf", group.stem)).collect()
    };
    ChoiceFault::Ambiguous { known }
}

fn listed(known: &[String]) -> String {
    let mut shown: Vec<String> =
        known.iter().take(LISTED_MAX).map(|name| format!("`{name}`")).collect();
    if known.len() > LISTED_MAX {
        shown.push(format!("{} more", known.len() - LISTED_MAX));
    }
    match shown.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests;
