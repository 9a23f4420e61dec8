//! A model whose answers are a script: tests of the server fix every token with it.
//!
//! It runs in the real engine, under the real scheduler, cache and policy; only the logits are
//! written down. Its tokens are `<|…|>` marks, one token for each byte, and the script's pieces.

mod model;

use causeway_ledger::{Model as Named, Numerics, Sha256};
use causeway_policy::{FileError, PolicyFile};
use causeway_session::About;
use causeway_text::{
    SpecialIds, Template, Text, TextError, TokenType, Tokenizer, Vocabulary, VocabularyError,
};
use serde::Deserialize;

use crate::memory::Memory;
use crate::options::Sizing;
use crate::served::{ServeModelError, Served, Watched};

/// Tokens that stand before the bytes.
const MARKS: [(&str, TokenType); 7] = [
    ("<unk>", TokenType::Unknown),
    ("<|eos|>", TokenType::Control),
    ("<|system|>", TokenType::Control),
    ("<|user|>", TokenType::Control),
    ("<|assistant|>", TokenType::Control),
    ("<|tool|>", TokenType::Control),
    ("<|turn|>", TokenType::Control),
];
/// The end of an answer.
const EOS: u32 = 1;
/// The template where a script has none.
const TEMPLATE: &str = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\
<|turn|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

/// A script as its file states it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    #[serde(default = "default_name")]
    name: String,
    #[serde(default = "default_context")]
    context_len: usize,
    /// A chat template in place of the plain one.
    template: Option<String>,
    /// Text begins with a space of the vocabulary's own, as SentencePiece has it.
    #[serde(default)]
    space_prefix: bool,
    /// Bytes that its weights, its keys and values and its workspace are said to take.
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    kv_bytes: u64,
    #[serde(default)]
    workspace_bytes: u64,
    /// Milliseconds that its loading takes.
    #[serde(default)]
    load_ms: u64,
    /// A policy file that the model makes of itself.
    own_policy: Option<String>,
    answers: Vec<Answer>,
    #[serde(skip)]
    own: Option<PolicyFile>,
    /// SHA-256 of the script's text.
    #[serde(skip)]
    sha256: Option<Sha256>,
}

/// One answer and how it comes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    /// Text that the prompt must contain; the first answer whose text it contains is given.
    when: String,
    /// One token each.
    pieces: Vec<Piece>,
    /// One token for each byte, after the pieces.
    text: String,
    /// Begins again where it would end.
    repeats: bool,
    /// Milliseconds that a pass with a part of this answer takes.
    delay_ms: u64,
    /// Milliseconds that a pass with a part of its prompt takes.
    prefill_delay_ms: u64,
    /// The step whose pass is an error.
    fails_at: Option<usize>,
    /// The step whose pass panics.
    panics_at: Option<usize>,
    /// The step whose logits are not numbers.
    nan_at: Option<usize>,
    /// The step whose pass takes `hang_ms`.
    hangs_at: Option<usize>,
    hang_ms: u64,
}

/// The text of a token, or its one byte.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Byte { byte: u8 },
}

/// A script that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("the script is not valid JSON of a script")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error(transparent)]
    Policy(#[from] FileError),
}

impl ScriptError {
    /// Always: a script is the caller's own text.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

fn default_name() -> String {
    "scripted".to_owned()
}

fn default_context() -> usize {
    2_048
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// What is no script, or one whose vocabulary or template cannot be used.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let mut script: Self = serde_json::from_str(text)?;
        script.sha256 = Some(Sha256::of(text.as_bytes()));
        script.own = script.own_policy.as_deref().map(PolicyFile::from_toml).transpose()?;
        script.text()?;
        Ok(script)
    }

    /// The name it is asked for by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn own(&self) -> Option<&PolicyFile> {
        self.own.as_ref()
    }

    pub(crate) fn memory(&self) -> Memory {
        Memory { weights: self.bytes, kv: self.kv_bytes, workspace: self.workspace_bytes }
    }

    /// The spellings of all tokens, in order of id.
    fn tokens(&self) -> Vec<String> {
        let mut tokens = Vocabulary::of_bytes(&MARKS).tokens;
        for piece in self.answers.iter().flat_map(|answer| &answer.pieces) {
            if let Piece::Text(text) = piece {
                let spelled = spelled(text);
                if !tokens.contains(&spelled) {
                    tokens.push(spelled);
                }
            }
        }
        tokens
    }

    fn text(&self) -> Result<Text, TextError> {
        let mut vocabulary = Vocabulary {
            special: SpecialIds { eos: Some(EOS), unknown: Some(0), ..SpecialIds::default() },
            add_space_prefix: self.space_prefix,
            ..Vocabulary::of_bytes(&MARKS)
        };
        vocabulary.tokens = self.tokens();
        vocabulary.types.resize(vocabulary.tokens.len(), TokenType::Normal);
        vocabulary.scores.resize(vocabulary.tokens.len(), 0.0);
        let tokenizer = Tokenizer::from_vocabulary(&vocabulary)
            .map_err(|error: VocabularyError| TextError::from(error))?;
        let template = Template::new(self.template.as_deref().unwrap_or(TEMPLATE))?;
        Ok(Text::new(tokenizer, Some(template)))
    }
}

impl Answer {
    /// The tokens of the answer, without its end.
    fn tokens(&self, vocabulary: &[String]) -> Vec<u32> {
        let byte = |byte: u8| u32::try_from(MARKS.len()).unwrap_or(0) + u32::from(byte);
        let piece = |piece: &Piece| match piece {
            Piece::Byte { byte: value } => byte(*value),
            Piece::Text(text) => {
                let spelled = spelled(text);
                let found = vocabulary.iter().position(|token| *token == spelled);
                let id = found.expect("invariant: every piece is in the vocabulary");
                u32::try_from(id).expect("invariant: a script is far below 2^32 tokens")
            }
        };
        let text = self.text.bytes().map(byte);
        self.pieces.iter().map(piece).chain(text).collect()
    }
}

/// SentencePiece's spelling: spaces are marks.
fn spelled(text: &str) -> String {
    text.replace(' ', "\u{2581}")
}

/// Serves a script.
///
/// # Errors
/// A system that gives no more threads.
pub(crate) fn open(
    script: &Script,
    sizing: &Sizing,
    watched: Watched,
) -> Result<Served, ServeModelError> {
    std::thread::sleep(std::time::Duration::from_millis(script.load_ms));
    let text = script.text().map_err(causeway_session::SessionError::from)?;
    let about = About {
        model: Named {
            name: script.name.clone(),
            sha256: script.sha256.unwrap_or(Sha256([0; 32])),
            tokenizer_sha256: None,
            quantisation: "none".to_owned(),
            settings: std::collections::BTreeMap::new(),
        },
        numerics: Numerics { version: 0, kv_type: "f32".to_owned() },
        path: std::path::PathBuf::new(),
        vocab_size: text.tokenizer.vocab_size(),
        context_len: script.context_len,
        end_tokens: text.tokenizer.end_tokens().to_vec(),
        has_text: true,
        isa: "none",
        threads: 1,
    };
    Served::around(model::Scripted::new(script), about, text, sizing, watched)
}
