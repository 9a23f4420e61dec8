//! What a model file says about decoding, written as the policy that it would be.

mod own;
mod sampling;
mod sources;

use causeway_policy::PolicyFile;
use causeway_request::TokenId;
use causeway_text::{DEFAULT_TEMPLATE, TOOL_TEMPLATE, Templates, Text, Tokenizer};
use causeway_weights::ModelFile;
use serde_json::{Value, json};

use crate::error::SessionError;
pub use sampling::sampling_keys;

/// Markers of a thought, as the templates of models that think spell them.
const THOUGHTS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<thought>", "</thought>"),
    ("◁think▷", "◁/think▷"),
];
/// Where reasoning markers are read from.
const IN_TEMPLATE: &str = "the chat template";

/// One thing that a model file says, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The field of a policy file, such as `shape.top_p`; `None` for what no policy takes over.
    pub field: Option<&'static str>,
    /// The field's value as TOML, or a sentence where there is no field.
    pub value: String,
    /// The file or the group of keys that it was read from.
    pub source: &'static str,
    /// The key below the source; empty where it has none.
    pub key: String,
}

/// All that a model file says about decoding, in the order of a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    pub said: Vec<Said>,
    /// Keys that would change answers and that no policy takes over.
    pub unheeded: Vec<String>,
    /// The tokens that end an answer, with their spelling where there is a tokenizer.
    pub ends: Vec<(TokenId, Option<String>)>,
    /// The chat templates by name, with the bytes that each one has.
    pub templates: Vec<(String, usize)>,
}

impl Said {
    /// The key with its source.
    fn origin(&self) -> String {
        match (self.source, self.key.as_str()) {
            (source, "") => source.to_owned(),
            (sources::SAMPLING, key) => format!("{}.{key}", sources::SAMPLING),
            (source, key) => format!("{source}: {key}"),
        }
    }
}

impl Defaults {
    /// Reads all that a model file or folder says; no weight is read.
    ///
    /// # Errors
    /// A text side or a `generation_config.json` that cannot be read.
    pub fn of(file: &ModelFile) -> Result<Self, SessionError> {
        let text = crate::loaded::open_text(file)?;
        let mut defaults = Self::decoding(file, text.as_ref())?;
        match (&text, file.folder()) {
            (Some(text), _) => {
                let spelled = |&id| Ok((id, Some(spelling(&text.tokenizer, id)?)));
                let ends = text.tokenizer.end_tokens().iter().map(spelled);
                defaults.ends = ends.collect::<Result<_, SessionError>>()?;
            }
            (None, Some(folder)) => {
                let ends = Text::generation_ends(folder)?.into_iter();
                defaults.ends = ends.map(|id| (TokenId(id), None)).collect();
            }
            (None, None) => {}
        }
        let templates = Templates::of(file)?;
        let named = templates.iter().map(|(name, of)| (one_line(name), of.len()));
        defaults.templates = named.collect();
        Ok(defaults)
    }

    /// Reads what is a part of a policy: how tokens are taken, and how reasoning is told apart
    /// where there is a text side.
    ///
    /// # Errors
    /// A `generation_config.json` that cannot be read.
    pub fn decoding(file: &ModelFile, text: Option<&Text>) -> Result<Self, SessionError> {
        let mut defaults = Self::default();
        match file.folder() {
            Some(folder) => defaults.read_folder(&sources::generation(folder)?),
            None => defaults.read_gguf(file),
        }
        match text {
            Some(text) => defaults.read_thought(text)?,
            None => defaults.drop_texts(),
        }
        defaults.said.sort_by_key(|said| said.field.is_none());
        if let Err(error) = PolicyFile::from_toml(&defaults.to_toml()) {
            // Each is in its range, so this is a rule about several of them.
            defaults.said.iter_mut().for_each(|said| said.field = None);
            let sentence = format!("together they are refused: {error}");
            defaults.note(one_line(&sentence), "the policy file's rules", String::new());
        }
        Ok(defaults)
    }

    /// The same of a file whose text side nobody has opened yet; it is opened only where the
    /// chat template spells a thought.
    ///
    /// # Errors
    /// As `decoding`, and a text side that cannot be read.
    pub fn of_file(file: &ModelFile) -> Result<Self, SessionError> {
        let templates = Templates::of(file)?;
        let source = templates.source(DEFAULT_TEMPLATE).unwrap_or_default();
        let thinks = THOUGHTS.iter().any(|(open, close)| is_spoken(source, open, close));
        let text = if thinks { crate::loaded::open_text(file)? } else { None };
        Self::decoding(file, text.as_ref())
    }

    /// The policy file, each line with its origin behind it; what no policy takes over is a
    /// comment at its end.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = "schema = 1\n".to_owned();
        if let Some(name) = self.name() {
            text.push_str(&format!("name = {}\n", Value::from(name)));
        }
        let fields =
            || self.said.iter().filter_map(|said| Some((said.field?.split_once('.')?, said)));
        for section in ["constraints", "shape", "choose", "stop", "reasoning"] {
            let mut lines = fields().filter(|((of, _), _)| *of == section).peekable();
            if lines.peek().is_some() {
                text.push_str(&format!("\n[{section}]\n"));
            }
            for ((_, field), said) in lines {
                text.push_str(&format!("{field} = {} # {}\n", said.value, said.origin()));
            }
        }
        let notes = self.notes();
        for (place, (note, origin)) in notes.iter().enumerate() {
            let lead = if place == 0 { "\n" } else { "" };
            text.push_str(&format!("{lead}# {note} ({origin})\n"));
        }
        text
    }

    /// The same as one object: `policy` is what is taken, `null` where nothing is.
    #[must_use]
    pub fn to_json(&self, model: &str) -> Value {
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        let said = self.said.iter().filter_map(|said| {
            let origin = said.origin();
            Some(json!({ "field": said.field?, "value": value(&said.value), "origin": origin }))
        });
        let not_taken = self.said.iter().filter(|said| said.field.is_none());
        let not_taken =
            not_taken.map(|said| json!({ "sentence": said.value, "origin": said.origin() }));
        let ends = self.ends.iter().map(|(id, text)| json!({ "id": id.0, "text": text }));
        let templates = self.templates.iter();
        let templates = templates
            .map(|(name, bytes)| json!({ "name": name, "bytes": bytes, "used": used(name) }));
        let policy = self.policy();
        let canonical = policy.as_ref().map(PolicyFile::to_canonical_json);
        let tree = canonical.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        json!({
            "model": model,
            "policy": tree,
            "sha256": policy.as_ref().map(PolicyFile::hash_hex),
            "said": said.collect::<Vec<_>>(),
            "not_taken": not_taken.collect::<Vec<_>>(),
            "end_tokens": ends.collect::<Vec<_>>(),
            "templates": templates.collect::<Vec<_>>(),
        })
    }

    /// What no policy takes over, a sentence each and where it stands.
    fn notes(&self) -> Vec<(String, String)> {
        let notes = self.said.iter().filter(|said| said.field.is_none());
        let mut notes: Vec<_> = notes.map(|said| (said.value.clone(), said.origin())).collect();
        for (id, text) in &self.ends {
            let spelled = text.as_ref().map(|text| format!(" `{text}`")).unwrap_or_default();
            let sentence = format!("token {}{spelled} ends an answer", id.0);
            notes.push((sentence, "the tokenizer and the ids of end tokens".to_owned()));
        }
        for (name, bytes) in &self.templates {
            let sentence = format!("chat template `{name}`, {bytes} bytes, for {}", used(name));
            notes.push((sentence, "the model's own".to_owned()));
        }
        notes
    }

    fn read_thought(&mut self, text: &Text) -> Result<(), SessionError> {
        let Some(template) = &text.template else { return Ok(()) };
        let (source, tokenizer) = (template.source(), &text.tokenizer);
        for (open, close) in THOUGHTS {
            if is_spoken(source, open, close)
                && tokenizer.spell(open)?.is_some()
                && tokenizer.spell(close)?.is_some()
            {
                let quoted = |marker: &str| Value::from(marker).to_string();
                self.take("reasoning.open", quoted(open), IN_TEMPLATE, String::new());
                self.take("reasoning.close", quoted(close), IN_TEMPLATE, String::new());
                break;
            }
        }
        Ok(())
    }

    /// Turns what a model without a tokenizer cannot heed into a note.
    fn drop_texts(&mut self) {
        for said in self.said.iter_mut().filter(|said| said.field == Some("stop.strings")) {
            said.field = None;
            said.value = format!("{} {}: there is no tokenizer", said.key, said.value);
        }
    }

    /// A field, or a note where the policy file refuses its value; says whether it was taken.
    fn take(
        &mut self,
        field: &'static str,
        value: String,
        source: &'static str,
        key: String,
    ) -> bool {
        match PolicyFile::from_toml(&format!("schema = 1\n{field} = {value}\n")) {
            Ok(_) => {
                self.said.push(Said { field: Some(field), value, source, key });
                true
            }
            Err(error) => {
                let problem = error.problems().first().map(ToString::to_string);
                let problem = problem.unwrap_or_else(|| format!("{field} = {value} is refused"));
                self.unheeded.push(key.clone());
                self.note(one_line(&problem), source, key);
                false
            }
        }
    }

    fn note(&mut self, value: String, source: &'static str, key: String) {
        self.said.push(Said { field: None, value, source, key });
    }
}

/// Whether a template spells one of the markers.
fn is_spoken(source: &str, open: &str, close: &str) -> bool {
    source.contains(open) || source.contains(close)
}

/// Which chats a template is for.
fn used(name: &str) -> &'static str {
    match name {
        DEFAULT_TEMPLATE => "every chat",
        TOOL_TEMPLATE => "chats with tools",
        _ => "none but by its name",
    }
}

fn spelling(tokenizer: &Tokenizer, token: TokenId) -> Result<String, SessionError> {
    Ok(one_line(&String::from_utf8_lossy(tokenizer.piece(token)?)))
}

/// At most 200 characters, none of which ends a line or moves a cursor.
fn one_line(text: &str) -> String {
    let shown = text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c });
    shown.collect()
}

#[cfg(test)]
mod tests;
