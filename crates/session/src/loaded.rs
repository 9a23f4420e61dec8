//! A model opened: its file, its weights and its text side.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use causeway_kernels::{Isa, Kernels};
use causeway_model::{Config, Model, ModelError, Settings};
use causeway_request::TokenId;
use causeway_text::Text;
use causeway_weights::ModelFile;

use crate::error::{PromptError, SessionError};

/// Which file is opened, under which name, and how it computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The name it was asked for by.
    pub name: String,
    pub path: PathBuf,
    pub settings: Settings,
}

impl Opening {
    /// Bytes of its weights on disk, which is about what they take in memory; those of the path
    /// itself where it is no model, and 0 where nothing is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let size = |_| std::fs::metadata(&self.path).map_or(0, |file| file.len());
        ModelFile::open(&self.path).map_or_else(size, |file| file.bytes())
    }

    /// What its file says of its sizes; no weight is read.
    ///
    /// # Errors
    /// A file that is no model.
    pub fn config(&self) -> Result<Config, SessionError> {
        let file = ModelFile::open(&self.path)?;
        Ok(Config::of(&file).map_err(ModelError::from).map_err(Box::new)?)
    }
}

/// A model ready to compute, with its text side.
#[derive(Debug)]
pub struct Loaded {
    pub name: String,
    pub path: PathBuf,
    pub file: Arc<ModelFile>,
    pub model: Model,
    /// `None` for a folder without a tokenizer: it takes token ids only.
    pub text: Option<Text>,
}

impl Loaded {
    /// Opens a model file or folder and lays its weights out for the kernels that
    /// `$CAUSEWAY_ISA` or the CPU chooses.
    ///
    /// # Errors
    /// A file that is no model, or none that this room can use.
    pub fn open(opening: Opening) -> Result<Self, SessionError> {
        let kernels = kernels_of_environment()?;
        let Opening { name, path, settings } = opening;
        let file = Arc::new(ModelFile::open(&path)?);
        let text = open_text(&file)?;
        let model = Model::load(Arc::clone(&file), settings, kernels).map_err(Box::new)?;
        if let Some(text) = &text {
            check_vocabulary(text, &model)?;
        }
        Ok(Self { name, path, file, model, text })
    }

    /// The text side, where it cannot be done without.
    ///
    /// # Errors
    /// A model that has none.
    pub fn text(&self) -> Result<&Text, PromptError> {
        self.text.as_ref().ok_or_else(|| PromptError::NoTokenizer { path: self.path.clone() })
    }

    /// The tokens that end an answer by the model's own word; a folder without a tokenizer has
    /// those that its `generation_config.json` names.
    ///
    /// # Errors
    /// A `generation_config.json` that cannot be read.
    pub fn end_tokens(&self) -> Result<Vec<TokenId>, SessionError> {
        match (&self.text, self.file.folder()) {
            (Some(text), _) => Ok(text.tokenizer.end_tokens().to_vec()),
            (None, Some(folder)) => {
                let mut ends: Vec<_> =
                    Text::generation_ends(folder)?.into_iter().map(TokenId).collect();
                ends.sort_unstable();
                ends.dedup();
                Ok(ends)
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The type that holds most of the weights' bytes.
    #[must_use]
    pub fn quantisation(&self) -> String {
        let mut by_type = std::collections::BTreeMap::<&str, usize>::new();
        for entry in self.file.tensors() {
            *by_type.entry(entry.dtype.name()).or_default() += entry.bytes;
        }
        let most = by_type.into_iter().max_by_key(|(_, bytes)| *bytes);
        most.map_or_else(String::new, |(name, _)| name.to_owned())
    }
}

/// The path that `$CAUSEWAY_ISA` or the CPU chooses.
///
/// # Errors
/// A path that is not known, or that this CPU lacks.
pub fn kernels_of_environment() -> Result<Kernels, SessionError> {
    let Some(name) = std::env::var_os("CAUSEWAY_ISA").filter(|name| !name.is_empty()) else {
        return Ok(Kernels::best());
    };
    let isa: Isa = name.to_string_lossy().parse()?;
    Ok(Kernels::with_isa(isa)?)
}

/// The text side; a folder may be without.
pub(crate) fn open_text(file: &ModelFile) -> Result<Option<Text>, SessionError> {
    let is_without = |folder: &Path| !folder.join("tokenizer.json").exists();
    if file.folder().is_some_and(is_without) {
        return Ok(None);
    }
    Ok(Some(Text::open(file)?))
}

/// A tokenizer may know fewer tokens than the model has rows (padding), never more.
fn check_vocabulary(text: &Text, model: &Model) -> Result<(), SessionError> {
    let (tokens, rows) = (text.tokenizer.vocab_size(), model.config().shape.vocab_size);
    if tokens <= rows { Ok(()) } else { Err(SessionError::Vocabulary { tokens, rows }) }
}

#[cfg(test)]
mod tests;
