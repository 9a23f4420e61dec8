//! The catalogue's file: TOML, read whole, checked name by name, each fault with its line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::{
    Alias, Carrier, Catalogue, CatalogueError, Entry, EntryFault, Model, Origin, Part, Source,
};
use crate::Sha256;
use crate::hub::HubName;

/// Longest file that is read: some thousand models.
const BYTES_MAX: u64 = 1 << 20;

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 128;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: Spanned<u32>,
    #[serde(default)]
    model: Vec<WrittenModel>,
    #[serde(default)]
    alias: BTreeMap<Spanned<String>, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenModel {
    name: Spanned<String>,
    #[serde(default)]
    summary: String,
    path: Option<PathBuf>,
    hf: Option<String>,
    url: Option<String>,
    parts: Option<Vec<Part>>,
    file: Option<String>,
    bytes: Option<u64>,
    sha256: Option<String>,
}

/// The text of the file at `path`.
pub(super) fn read(path: &Path) -> Result<String, CatalogueError> {
    let failed = |source| CatalogueError::File { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(CatalogueError::Length { path: path.to_owned(), limit: BYTES_MAX });
    }
    Ok(text)
}

/// Adds the names of a file to those that are known; all of them, or none.
pub(super) fn add(
    known: Catalogue,
    path: &Path,
    text: &str,
    origin: Origin,
) -> Result<Catalogue, CatalogueError> {
    let written: Written = toml::from_str(text).map_err(|fault| {
        let place = fault.span().map_or(0, |span| span.start);
        let (path, line) = (path.to_owned(), line_of(text, place));
        CatalogueError::Toml { path, line, fault: Box::new(fault) }
    })?;
    let Written { schema, model, alias } = written;
    if *schema.get_ref() != 1 {
        let (line, found) = (line_of(text, schema.span().start), *schema.get_ref());
        return Err(CatalogueError::Schema { path: path.to_owned(), line, found });
    }
    let mut reader = Reader { known, path, text, lines: BTreeMap::new() };
    for written in model {
        reader.add_model(written, origin)?;
    }
    reader.add_aliases(alias)?;
    Ok(reader.known)
}

struct Reader<'a> {
    known: Catalogue,
    path: &'a Path,
    text: &'a str,
    /// Where each name of this file stands.
    lines: BTreeMap<String, usize>,
}

impl Reader<'_> {
    fn add_model(&mut self, written: WrittenModel, origin: Origin) -> Result<(), CatalogueError> {
        let line = line_of(self.text, written.name.span().start);
        let name = written.name.get_ref().clone();
        self.take_name(&name, line)?;
        let refuse = |fault| self.refusal(&name, line, fault);
        let summary = written.summary.clone();
        let source = source_of(written, self.path).map_err(refuse)?;
        if let Source::File(entry) = &source {
            let owner = self.known.models.iter().find(|model| {
                matches!(&model.source, Source::File(other) if other.file_name == entry.file_name)
            });
            if let Some(owner) = owner.map(|model| model.name.clone()) {
                let file = entry.file_name.clone();
                return Err(self.refusal(&name, line, EntryFault::FileTaken { file, owner }));
            }
        }
        self.known.models.push(Model { name, summary, source, origin });
        Ok(())
    }

    fn add_aliases(
        &mut self,
        written: BTreeMap<Spanned<String>, String>,
    ) -> Result<(), CatalogueError> {
        for (name, of) in written {
            let line = line_of(self.text, name.span().start);
            let name = name.into_inner();
            self.take_name(&name, line)?;
            self.known.aliases.push(Alias { name, of });
        }
        for alias in &self.known.aliases {
            // Those of another file were followed when it was read.
            let Some(line) = self.lines.get(&alias.name) else { continue };
            self.follow(alias).map_err(|fault| self.refusal(&alias.name, *line, fault))?;
        }
        Ok(())
    }

    /// Whether an alias leads to a model.
    fn follow(&self, alias: &Alias) -> Result<(), EntryFault> {
        let mut way = vec![alias.name.clone()];
        let mut of = &alias.of;
        loop {
            if HubName::is_meant_by(of) {
                let read = HubName::parse(of).map(drop);
                return read.map_err(|fault| EntryFault::Hub { fault: Box::new(fault) });
            }
            if self.known.models.iter().any(|model| model.name == *of) {
                return Ok(());
            }
            let is_loop = way.contains(of);
            way.push(of.clone());
            match self.known.aliases.iter().find(|next| next.name == *of) {
                Some(next) if !is_loop => of = &next.of,
                found => {
                    let mut nearest = self.known.nearest(of).into_iter();
                    // An alias that leads nowhere is nobody's way out of another.
                    let nearest = nearest.find(|name| !way.contains(name));
                    let nearest = nearest.filter(|_| found.is_none());
                    return Err(EntryFault::Alias { way, nearest });
                }
            }
        }
    }

    fn take_name(&mut self, name: &str, line: usize) -> Result<(), CatalogueError> {
        let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.chars().all(is_known)
            && !HubName::is_meant_by(name)
            && !name.to_ascii_lowercase().ends_with(".gguf");
        if !is_name {
            let fault = EntryFault::Name { limit: NAME_BYTES_MAX };
            return Err(self.refusal(name, line, fault));
        }
        if let Some(&first) = self.lines.get(name) {
            return Err(self.refusal(name, line, EntryFault::Twice { line: first }));
        }
        let is_taken = self.known.models.iter().any(|model| model.name == name)
            || self.known.aliases.iter().any(|alias| alias.name == name);
        if is_taken {
            return Err(self.refusal(name, line, EntryFault::BuiltIn));
        }
        self.lines.insert(name.to_owned(), line);
        Ok(())
    }

    fn refusal(&self, name: &str, line: usize, fault: EntryFault) -> CatalogueError {
        let (path, name) = (self.path.to_owned(), name.to_owned());
        CatalogueError::Entry { path, line, name, fault }
    }
}

/// Where a model comes from, by the one key that says it.
fn source_of(written: WrittenModel, catalogue: &Path) -> Result<Source, EntryFault> {
    let WrittenModel { name, summary: _, path, hf, url, parts, file, bytes, sha256 } = written;
    let (name, parts) = (name.into_inner(), parts.filter(|parts| !parts.is_empty()));
    let given = [path.is_some(), hf.is_some(), url.is_some(), parts.is_some()];
    let count = given.into_iter().filter(|is_given| *is_given).count();
    if count != 1 {
        return Err(EntryFault::Sources { count });
    }
    if let Some(source_key) = path.as_ref().map(|_| "path").or(hf.as_ref().map(|_| "hf")) {
        let keys =
            [("file", file.is_some()), ("bytes", bytes.is_some()), ("sha256", sha256.is_some())];
        if let Some((key, _)) = keys.into_iter().find(|(_, is_given)| *is_given) {
            return Err(EntryFault::Surplus { key, source_key });
        }
    }
    if let Some(path) = path {
        return Ok(Source::Path(catalogue.parent().unwrap_or(Path::new("")).join(path)));
    }
    if let Some(hf) = hf {
        let read = HubName::parse(&hf).map_err(|fault| EntryFault::Hub { fault: Box::new(fault) });
        return read.map(Source::Hub);
    }
    let sha256 = sha256.ok_or(EntryFault::Lacks { key: "sha256" })?;
    let sha256 = Sha256::from_hex(&sha256).ok_or(EntryFault::Hash)?;
    // A wheel may unpack to anything; an address announces its length.
    if url.is_none() && bytes.is_none() {
        return Err(EntryFault::Lacks { key: "bytes" });
    }
    let file_name = file.unwrap_or_else(|| format!("{}.gguf", name.replace(':', "-")));
    if !is_file_name(&file_name) {
        return Err(EntryFault::FileName { file: file_name });
    }
    let carrier = match (url, parts) {
        (Some(url), _) if is_address(&url) => Carrier::Url(url),
        (Some(url), _) => return Err(EntryFault::Url { url }),
        (None, parts) => Carrier::Packages(parts.unwrap_or_default()),
    };
    Ok(Source::File(Entry { name, file_name, bytes, sha256, carrier }))
}

/// Whether a name stays in the models folder, and is none of its own files.
fn is_file_name(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.len() <= NAME_BYTES_MAX + ".gguf".len()
        && name.chars().all(is_known)
        && name.ends_with(".gguf")
        && !name.starts_with('.')
}

fn is_address(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_plain = |c: char| c.is_ascii_graphic();
    host.is_some_and(|host| {
        !host.is_empty() && !host.starts_with('/') && host.chars().all(is_plain)
    })
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, place: usize) -> usize {
    let before = text.as_bytes().get(..place).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
