//! The chat templates of a model by their names, as its files hold them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use causeway_weights::{Metadata, ModelFile};
use serde_json::Value;

use crate::error::{NoTemplate, TextError};
use crate::gguf::TEMPLATE_KEY;
use crate::text::{read, read_json};

/// The template that is used where nothing else is said.
pub const DEFAULT_TEMPLATE: &str = "default";
/// The template that is used where tools are given; no other one is ever used by itself.
pub const TOOL_TEMPLATE: &str = "tool_use";
/// Most templates that are read from a folder of them; models that have several have three.
const TEMPLATES_MAX: usize = 64;

/// The sources of a model's chat templates; none of them is parsed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Templates {
    by_name: BTreeMap<String, String>,
}

impl Templates {
    /// The templates of a model file or folder; reads neither vocabulary nor weights.
    ///
    /// # Errors
    /// A file that cannot be read, or a key of another type than a text.
    pub fn of(model: &ModelFile) -> Result<Self, TextError> {
        match model.folder() {
            Some(folder) => Self::from_folder(folder),
            None => Self::from_metadata(model.metadata()),
        }
    }

    /// The template of `tokenizer.chat_template`, and those of `tokenizer.chat_template.NAME`.
    fn from_metadata(metadata: &Metadata) -> Result<Self, TextError> {
        let mut by_name = BTreeMap::new();
        for (key, _) in metadata.iter() {
            let name = match key.strip_prefix(TEMPLATE_KEY) {
                Some("") => Some(DEFAULT_TEMPLATE),
                Some(rest) => rest.strip_prefix('.').filter(|name| *name != DEFAULT_TEMPLATE),
                None => None,
            };
            let Some(name) = name else { continue };
            if let Some(source) = metadata.string(key)? {
                by_name.insert(name.to_owned(), source.to_owned());
            }
        }
        Ok(Self { by_name })
    }

    /// As `transformers` looks for them: `chat_template.jinja` and
    /// `additional_chat_templates/NAME.jinja` go before what `tokenizer_config.json` says, which
    /// is one text or a list of names and texts; `chat_template.json` comes last.
    pub(crate) fn from_folder(folder: &Path) -> Result<Self, TextError> {
        let default = read(&folder.join("chat_template.jinja"))?;
        let mut by_name = BTreeMap::new();
        if default.is_none() {
            let config = read_json(&folder.join("tokenizer_config.json"))?;
            by_name = of_config(&config["chat_template"]);
            if by_name.is_empty() {
                // Models that see and hear keep it beside their processor.
                let processors = read_json(&folder.join("chat_template.json"))?;
                by_name = of_config(&processors["chat_template"]);
            }
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        for name in additional(&folder.join("additional_chat_templates")) {
            let path = folder.join("additional_chat_templates").join(format!("{name}.jinja"));
            if let Some(bytes) = read(&path)? {
                by_name.insert(name, text(bytes));
            }
        }
        if let Some(bytes) = default {
            by_name.insert(DEFAULT_TEMPLATE.to_owned(), text(bytes));
        }
        Ok(Self { by_name })
    }

    /// Whether there is none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Names and sources, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, source)| (name.as_str(), source.as_str()))
    }

    /// The source of the template with this name.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// The source of the template with this name.
    ///
    /// # Errors
    /// A name that there is none of, with the names there are.
    pub fn named(&self, name: &str) -> Result<&str, NoTemplate> {
        self.source(name).ok_or_else(|| self.lacks(name))
    }

    /// What is said where the template `name` is looked for and not there.
    pub(crate) fn lacks(&self, name: &str) -> NoTemplate {
        if self.is_empty() {
            return NoTemplate::None;
        }
        let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        NoTemplate::Named { name: name.to_owned(), known: known.join("`, `") }
    }
}

/// One template, or several with names.
fn of_config(value: &Value) -> BTreeMap<String, String> {
    match value {
        Value::String(source) => BTreeMap::from([(DEFAULT_TEMPLATE.to_owned(), source.clone())]),
        Value::Array(entries) => {
            let entry = |entry: &Value| {
                let (name, source) = (entry["name"].as_str()?, entry["template"].as_str()?);
                Some((name.to_owned(), source.to_owned()))
            };
            entries.iter().take(TEMPLATES_MAX).filter_map(entry).collect()
        }
        _ => BTreeMap::new(),
    }
}

/// The names of the `.jinja` files of a folder, ascending; none where there is no such folder.
fn additional(folder: &Path) -> Vec<String> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let name = |file: fs::DirEntry| {
        let name = file.file_name().into_string().ok()?;
        Some(name.strip_suffix(".jinja")?.to_owned())
    };
    let mut names: Vec<String> = files.flatten().filter_map(name).collect();
    names.sort_unstable();
    names.truncate(TEMPLATES_MAX);
    names
}

#[cfg(test)]
mod tests;
