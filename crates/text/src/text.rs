//! A model's whole text side: its tokenizer and its chat template, opened together.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use causeway_request::TokenId;
use causeway_weights::ModelFile;
use serde_json::Value;

use crate::detokenizer::{DetokenizeOptions, Detokenizer};
use crate::error::TextError;
use crate::gguf;
use crate::json::JsonTokenizer;
use crate::template::{Chat, Names, Rendered, Template};
use crate::templates::{DEFAULT_TEMPLATE, TOOL_TEMPLATE, Templates};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::SpecialIds;

/// Most bytes of one file of a model folder that are read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What turns messages into a model's tokens and its tokens into text.
#[derive(Debug)]
pub struct Text {
    /// Shared, since constraints read it too.
    pub tokenizer: Arc<Tokenizer>,
    /// The one named `default`. Absent where the model has none: such a model completes text, it
    /// does not chat.
    pub template: Option<Template>,
    /// The one named `tool_use`, for chats with tools; absent too where it cannot be read.
    tool_template: Option<Template>,
    templates: Templates,
}

impl Text {
    /// A text side with one chat template, or with none.
    #[must_use]
    pub fn new(tokenizer: Tokenizer, template: Option<Template>) -> Self {
        let (tool_template, templates) = (None, Templates::default());
        Self { tokenizer: Arc::new(tokenizer), template, tool_template, templates }
    }

    pub(crate) fn with_templates(
        tokenizer: Tokenizer,
        templates: Templates,
    ) -> Result<Self, TextError> {
        let template = templates.source(DEFAULT_TEMPLATE).map(Template::new).transpose()?;
        // One that nobody asks for keeps no model from answering.
        let tool_template = templates.source(TOOL_TEMPLATE).and_then(|of| Template::new(of).ok());
        Ok(Self { tokenizer: Arc::new(tokenizer), template, tool_template, templates })
    }

    /// The same with `template` for every chat, with tools and without.
    #[must_use]
    pub fn with_template(self, template: Template) -> Self {
        let Self { tokenizer, template: _, tool_template: _, templates: _ } = self;
        let (tool_template, templates) = (None, Templates::default());
        Self { tokenizer, template: Some(template), tool_template, templates }
    }

    /// Opens the text side of a model file or folder.
    ///
    /// # Errors
    /// A vocabulary or a template that is missing, damaged or of an unknown kind.
    pub fn open(model: &ModelFile) -> Result<Self, TextError> {
        match model.folder() {
            Some(folder) => Self::from_folder(folder),
            None => {
                let metadata = model.metadata();
                Self::with_templates(gguf::tokenizer(metadata)?, Templates::of(model)?)
            }
        }
    }

    /// Opens the text side of a Hugging Face folder: `tokenizer.json`, and beside it what
    /// `tokenizer_config.json`, `generation_config.json` and the chat templates' files say.
    ///
    /// # Errors
    /// A missing `tokenizer.json`, or a file that cannot be read.
    pub fn from_folder(folder: &Path) -> Result<Self, TextError> {
        let path = folder.join("tokenizer.json");
        let bytes =
            read(&path)?.ok_or_else(|| TextError::NoTokenizer { folder: folder.to_path_buf() })?;
        let json = JsonTokenizer::from_bytes(&bytes)
            .map_err(|source| TextError::TokenizerJson { path, source })??;
        let config = read_json(&folder.join("tokenizer_config.json"))?;
        let special = special_ids(&config, &json);
        let ends = folder_ends(folder)?;
        let tokenizer = Tokenizer::from_json(json, special, &ends);
        Self::with_templates(tokenizer, Templates::from_folder(folder)?)
    }

    /// The ids of end tokens that `generation_config.json` names, one or several; empty where it
    /// names none.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn generation_ends(folder: &Path) -> Result<Vec<u32>, TextError> {
        Ok(end_ids(&read_json(&folder.join("generation_config.json"))?["eos_token_id"]))
    }

    /// The template of a chat: `tool_use` where it has tools and the model such a template, else
    /// `default`.
    ///
    /// # Errors
    /// A model without a template, or one whose `tool_use` cannot be read.
    pub fn template_of(&self, chat: &Chat) -> Result<&Template, TextError> {
        match self.templates.source(TOOL_TEMPLATE).filter(|_| chat.has_tools()) {
            None => {
                self.template.as_ref().ok_or_else(|| self.templates.lacks(DEFAULT_TEMPLATE).into())
            }
            Some(source) => match &self.tool_template {
                Some(template) => Ok(template),
                // Reading it again says what is wrong with it.
                None => Err(match Template::new(source) {
                    Err(error) => error.into(),
                    Ok(_) => self.templates.lacks(TOOL_TEMPLATE).into(),
                }),
            },
        }
    }

    /// The source of the template that chats with tools have.
    #[must_use]
    pub fn tool_template_source(&self) -> Option<&str> {
        self.tool_template.as_ref().or(self.template.as_ref()).map(Template::source)
    }

    /// Every template of the model by its name; none where a caller's is in their place.
    #[must_use]
    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// Messages to the tokens of a prompt.
    ///
    /// Control tokens come from the template only: what a message spells stays text. BOS stands
    /// first exactly once where the model adds one or the template prints one.
    ///
    /// # Errors
    /// A model without a template, the template's refusal, or a text that is too long.
    pub fn chat(&self, chat: &Chat) -> Result<Vec<TokenId>, TextError> {
        let Rendered { text, users } = self.render(chat)?;
        let mut tokens = self.tokenizer.encode_guarded(&text, &users)?;
        if self.tokenizer.adds_bos()
            && let Some(bos) = self.tokenizer.special().bos.map(TokenId)
            && tokens.first() != Some(&bos)
        {
            tokens.insert(0, bos);
        }
        Ok(tokens)
    }

    /// How many tokens at the end of a prompt are response prefill: those of a final message that
    /// is continued, behind the prompt of the messages before it. 0 where none is continued.
    #[must_use]
    pub fn prefilled(&self, chat: &Chat, prompt: &[TokenId]) -> usize {
        let Some(before) = chat.before_final() else { return 0 };
        let Ok(before) = self.chat(&before) else { return 0 };
        let same = prompt.iter().zip(&before).take_while(|(a, b)| a == b).count();
        prompt.len() - same
    }

    /// Messages to text, with the parts of it that a user wrote.
    ///
    /// # Errors
    /// As `chat`.
    pub fn render(&self, chat: &Chat) -> Result<Rendered, TextError> {
        let template = self.template_of(chat)?;
        let markers = self.tokenizer.control_texts();
        Ok(template.render_guarded(chat, &self.tokenizer.names(), markers)?)
    }

    /// A detokenizer for an answer: control tokens leave no text.
    #[must_use]
    pub fn detokenizer(&self) -> Detokenizer<'_> {
        let options = DetokenizeOptions { show_control: false, continues: false };
        Detokenizer::new(&self.tokenizer, options)
    }
}

impl Tokenizer {
    /// The special tokens as a template names them.
    #[must_use]
    pub fn names(&self) -> Names {
        let SpecialIds { bos, eos, unknown, padding, .. } = self.special();
        let named = [
            ("bos_token", bos),
            ("eos_token", eos),
            ("unk_token", unknown),
            ("pad_token", padding),
        ];
        let text = |id| Some(String::from_utf8_lossy(self.piece(TokenId(id?)).ok()?).into_owned());
        named.into_iter().filter_map(|(name, id)| Some((name, text(id)?))).collect()
    }
}

pub(crate) fn special_ids(config: &Value, json: &JsonTokenizer) -> SpecialIds {
    let id = |name: &str| {
        let token = &config[name];
        let text = token.as_str().or_else(|| token["content"].as_str())?;
        json.token(text)
    };
    SpecialIds {
        bos: id("bos_token"),
        eos: id("eos_token"),
        unknown: id("unk_token"),
        padding: id("pad_token"),
        eot: id("eot_token"),
        eom: None,
    }
}

/// The end tokens that a folder names.
pub(crate) fn folder_ends(folder: &Path) -> Result<Vec<u32>, TextError> {
    let ends = Text::generation_ends(folder)?;
    if !ends.is_empty() {
        return Ok(ends);
    }
    Ok(end_ids(&read_json(&folder.join("config.json"))?["eos_token_id"]))
}

/// One id or a list of them.
fn end_ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(ids) => ids.iter().filter_map(id).collect(),
        other => id(other).into_iter().collect(),
    }
}

/// A file of a model folder, or nothing where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, TextError> {
    let unreadable = |source| TextError::Read { path: path.to_path_buf(), source };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        let path = path.to_path_buf();
        return Err(TextError::FileLength { path, bytes, limit: FILE_BYTES_MAX });
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(unreadable)?;
    Ok(Some(content))
}

/// A JSON file of a model folder; `null` where there is none.
pub(crate) fn read_json(path: &Path) -> Result<Value, TextError> {
    let Some(bytes) = read(path)? else { return Ok(Value::Null) };
    serde_json::from_slice(&bytes)
        .map_err(|source| TextError::Json { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests;
