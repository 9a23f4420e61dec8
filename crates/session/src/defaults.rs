//! What a model file says about decoding, written as the policy that it would be.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use causeway_policy::PolicyFile;
use causeway_text::{Text, TextError};
use causeway_weights::{ModelFile, Value as Stored};
use serde_json::{Map, Value};

use crate::error::SessionError;

/// Most bytes of a `generation_config.json`; those in use have a few hundred.
const FILE_BYTES_MAX: u64 = 1 << 20;
const GENERATION: &str = "generation_config.json";
const SAMPLING: &str = "general.sampling.";
const TEMPLATE: &str = "tokenizer.chat_template";

/// Keys of `generation_config.json` that are fields of a policy in both ways of choosing.
const RULES: &[(&str, &str)] = &[
    ("repetition_penalty", "constraints.repetition_penalty"),
    ("no_repeat_ngram_size", "constraints.no_repeat_ngram"),
    ("min_new_tokens", "constraints.min_tokens"),
    ("suppress_tokens", "constraints.forbidden_tokens"),
    ("bad_words_ids", "constraints.bad_words"),
    ("max_new_tokens", "stop.tokens_max"),
];
/// Those that count where `do_sample` is true only.
const SHAPES: &[(&str, &str)] = &[
    ("temperature", "shape.temperature"),
    ("top_k", "shape.top_k"),
    ("top_p", "shape.top_p"),
    ("min_p", "shape.min_p"),
    ("typical_p", "shape.typical_p"),
    ("epsilon_cutoff", "shape.epsilon_cutoff"),
    ("eta_cutoff", "shape.eta_cutoff"),
];
/// Keys below `general.sampling.` that are fields of a policy.
const SAMPLING_RULES: &[(&str, &str)] = &[
    ("penalty_repeat", "constraints.repetition_penalty"),
    ("penalty_last_n", "constraints.repetition_window"),
    ("temp", "shape.temperature"),
    ("top_k", "shape.top_k"),
    ("top_p", "shape.top_p"),
    ("min_p", "shape.min_p"),
];
/// Keys of `generation_config.json` that say nothing about choosing, or that are told elsewhere.
const SILENT: &[&str] = &[
    "_from_model_config",
    "transformers_version",
    "bos_token_id",
    "pad_token_id",
    "eos_token_id",
    "decoder_start_token_id",
    "do_sample",
    "use_cache",
];
/// Markers of a thought, as the templates of models that think spell them.
const THOUGHTS: &[(&str, &str)] =
    &[("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>")];

/// One thing that a model file says, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The field of a policy file, such as `shape.top_p`; `None` for what no policy takes over.
    pub field: Option<&'static str>,
    /// The field's value as TOML, or a sentence where there is no field.
    pub value: String,
    /// The key, and where it has one the file.
    pub origin: String,
}

/// All that a model file says about decoding, in the order of a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    pub said: Vec<Said>,
}

impl Defaults {
    /// Reads what a model file or folder says; no weight is read.
    ///
    /// # Errors
    /// A text side or a `generation_config.json` that cannot be read.
    pub fn of(file: &ModelFile) -> Result<Self, SessionError> {
        let mut defaults = Self::default();
        match file.folder() {
            Some(folder) => defaults.read_folder(&generation(folder)?),
            None => defaults.read_gguf(file),
        }
        let text = crate::loaded::open_text(file)?;
        if let Some(text) = &text {
            defaults.read_text(text, file)?;
        }
        defaults.said.sort_by_key(|said| said.field.is_none());
        let problems = PolicyFile::from_toml(&defaults.to_toml("model"));
        if let Err(error) = problems {
            let sentence = format!("together they are refused: {error}");
            defaults.note(sentence, "the policy file's rules".to_owned());
        }
        Ok(defaults)
    }

    /// The policy file, each line with its origin behind it; what no policy takes over is a
    /// comment at its end.
    #[must_use]
    pub fn to_toml(&self, model: &str) -> String {
        let name = Value::from(format!("{model}: the model's own"));
        let mut text = format!("schema = 1\nname = {name}\n");
        let fields =
            || self.said.iter().filter_map(|said| Some((said.field?.split_once('.')?, said)));
        for section in ["constraints", "shape", "choose", "stop", "reasoning"] {
            let mut lines = fields().filter(|((of, _), _)| *of == section).peekable();
            if lines.peek().is_some() {
                text.push_str(&format!("\n[{section}]\n"));
            }
            for ((_, field), Said { value, origin, .. }) in lines {
                text.push_str(&format!("{field} = {value} # {origin}\n"));
            }
        }
        let notes = self.said.iter().filter(|said| said.field.is_none());
        for (place, Said { value, origin, .. }) in notes.enumerate() {
            let lead = if place == 0 { "\n" } else { "" };
            text.push_str(&format!("{lead}# {value} ({origin})\n"));
        }
        text
    }

    fn read_folder(&mut self, config: &Map<String, Value>) {
        if config.is_empty() {
            return;
        }
        let origin = |key: &str| format!("{GENERATION}: {key}");
        let draws = config.get("do_sample") == Some(&Value::Bool(true));
        let method = if draws { "\"sample\"" } else { "\"greedy\"" };
        self.take("choose.method", method.to_owned(), origin("do_sample"));
        for (key, value) in config.iter().filter(|(_, value)| !value.is_null()) {
            let field = |rules: &[(_, &'static str)]| {
                rules.iter().find(|(name, _)| name == key).map(|(_, field)| *field)
            };
            match (field(RULES), field(SHAPES)) {
                (Some(field), _) => self.take(field, value.to_string(), origin(key)),
                (_, Some(field)) if draws => self.take(field, value.to_string(), origin(key)),
                (_, Some(_)) => {
                    let sentence = format!("{key} = {value} is of no effect without do_sample");
                    self.note(one_line(&sentence), origin(key));
                }
                _ if SILENT.contains(&key.as_str()) => {}
                _ => self.note(one_line(&format!("{key} = {value} is no field")), origin(key)),
            }
        }
    }

    fn read_gguf(&mut self, file: &ModelFile) {
        let found = file
            .metadata()
            .iter()
            .filter_map(|(key, value)| Some((key, key.strip_prefix(SAMPLING)?, number(value))));
        let mut is_first = true;
        for (key, name, value) in found {
            if is_first {
                self.take("choose.method", "\"sample\"".to_owned(), format!("{SAMPLING}*"));
                is_first = false;
            }
            let rule = SAMPLING_RULES.iter().find(|(of, _)| *of == name);
            match (rule, value) {
                (Some((_, field)), Some(value)) => {
                    let is_all = *field == "constraints.repetition_window" && value == "-1";
                    let value = if is_all { "\"all\"".to_owned() } else { value };
                    self.take(field, value, key.to_owned());
                }
                (_, value) => {
                    let value = value.map_or_else(String::new, |value| format!(" = {value}"));
                    self.note(one_line(&format!("{name}{value} is no field")), one_line(key));
                }
            }
        }
    }

    fn read_text(&mut self, text: &Text, file: &ModelFile) -> Result<(), SessionError> {
        let tokenizer = &text.tokenizer;
        for token in tokenizer.end_tokens() {
            let spelled = String::from_utf8_lossy(tokenizer.piece(*token)?).into_owned();
            let sentence = format!("token {} `{spelled}` ends an answer", token.0);
            self.note(one_line(&sentence), "the tokenizer and the ids of end tokens".to_owned());
        }
        for (key, _) in file.metadata().iter() {
            if let Some(name) = key.strip_prefix(TEMPLATE).and_then(|rest| rest.strip_prefix('.')) {
                let sentence = format!("chat template `{name}`, not used");
                self.note(one_line(&sentence), one_line(key));
            }
        }
        let Some(template) = &text.template else { return Ok(()) };
        let source = template.source();
        let sentence = format!("a chat template of {} bytes", source.len());
        self.note(sentence, "the model's own".to_owned());
        for (open, close) in THOUGHTS {
            let is_spoken = source.contains(open) || source.contains(close);
            let is_spelled = tokenizer.spell(open)?.is_some() && tokenizer.spell(close)?.is_some();
            if is_spoken && is_spelled {
                let origin = || "the chat template".to_owned();
                self.take("reasoning.open", Value::from(*open).to_string(), origin());
                self.take("reasoning.close", Value::from(*close).to_string(), origin());
                break;
            }
        }
        Ok(())
    }

    /// A field, or a note where the policy file refuses its value.
    fn take(&mut self, field: &'static str, value: String, origin: String) {
        let mut alone = format!("schema = 1\n{field} = {value}\n");
        // A marker is refused without its other half.
        if field.starts_with("reasoning.") {
            alone = "schema = 1\n".to_owned();
        }
        match PolicyFile::from_toml(&alone) {
            Ok(_) => self.said.push(Said { field: Some(field), value, origin }),
            Err(error) => {
                let problem = error.problems().first().map(ToString::to_string);
                let problem = problem.unwrap_or_else(|| format!("{field} = {value} is refused"));
                self.note(one_line(&problem), origin);
            }
        }
    }

    fn note(&mut self, value: String, origin: String) {
        self.said.push(Said { field: None, value, origin });
    }
}

/// What `generation_config.json` says; nothing where there is none.
fn generation(folder: &Path) -> Result<Map<String, Value>, SessionError> {
    let path = folder.join(GENERATION);
    let unreadable = |source| TextError::Read { path: path.clone(), source };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(unreadable(error).into()),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let bytes = bytes.len() as u64;
        return Err(TextError::FileLength { path, bytes, limit: FILE_BYTES_MAX }.into());
    }
    serde_json::from_slice(&bytes).map_err(|source| TextError::Json { path, source }.into())
}

/// A stored number as TOML spells it; `None` for anything else.
fn number(value: &Stored) -> Option<String> {
    let real = |text: String| if text.contains(['.', 'e']) { text } else { format!("{text}.0") };
    Some(match value {
        Stored::U8(n) => n.to_string(),
        Stored::I8(n) => n.to_string(),
        Stored::U16(n) => n.to_string(),
        Stored::I16(n) => n.to_string(),
        Stored::U32(n) => n.to_string(),
        Stored::I32(n) => n.to_string(),
        Stored::U64(n) => n.to_string(),
        Stored::I64(n) => n.to_string(),
        Stored::F32(x) if x.is_finite() => real(x.to_string()),
        Stored::F64(x) if x.is_finite() => real(x.to_string()),
        Stored::Bool(flag) => flag.to_string(),
        _ => return None,
    })
}

/// At most 200 characters, none of which ends a line or moves a cursor.
fn one_line(text: &str) -> String {
    let shown = text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c });
    shown.collect()
}

#[cfg(test)]
mod tests;
