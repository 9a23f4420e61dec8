//! Where a model's defaults are read from: `generation_config.json`, and keys of a GGUF file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use causeway_text::TextError;
use causeway_weights::{ModelFile, Value as Stored};
use serde_json::{Map, Value};

use super::{Defaults, one_line};
use crate::error::SessionError;

/// The file of a folder.
pub(super) const GENERATION: &str = "generation_config.json";
/// What the keys of a GGUF file begin with.
pub(super) const SAMPLING: &str = "general.sampling";
/// Most bytes of a `generation_config.json`; those in use have a few hundred.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Keys of `generation_config.json` that are fields of a policy in both ways of choosing.
const RULES: &[(&str, &str)] = &[
    ("repetition_penalty", "constraints.repetition_penalty"),
    ("no_repeat_ngram_size", "constraints.no_repeat_ngram"),
    ("min_new_tokens", "constraints.min_tokens"),
    ("suppress_tokens", "constraints.forbidden_tokens"),
    ("bad_words_ids", "constraints.bad_words"),
    ("max_new_tokens", "stop.tokens_max"),
    ("stop_strings", "stop.strings"),
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

/// Keys of `generation_config.json` that change answers and are no field of a policy.
const UNHEEDED: &[&str] = &[
    "num_beams",
    "penalty_alpha",
    "guidance_scale",
    "sequence_bias",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "exponential_decay_length_penalty",
    "encoder_repetition_penalty",
    "top_h",
];
/// Keys below `general.sampling.` that only say how strong another one is.
const STRENGTHS: &[&str] = &["mirostat_tau", "mirostat_eta", "xtc_threshold"];

impl Defaults {
    pub(super) fn read_folder(&mut self, config: &Map<String, Value>) {
        let draws = config.get("do_sample") == Some(&Value::Bool(true));
        let says = |key: &str| config.get(key).is_some_and(|value| !value.is_null());
        // A file of ids alone says nothing of how a token is taken.
        if says("do_sample") || SHAPES.iter().any(|(key, _)| says(key)) {
            let method = if draws { "\"sample\"" } else { "\"greedy\"" };
            let key = if says("do_sample") { "do_sample" } else { "no do_sample" };
            self.take("choose.method", method.to_owned(), GENERATION, key.to_owned());
        }
        for (key, value) in config.iter().filter(|(_, value)| !value.is_null()) {
            let field = |rules: &[(_, &'static str)]| {
                rules.iter().find(|(name, _)| name == key).map(|(_, field)| *field)
            };
            let name = one_line(key);
            let fails = |why: &str| one_line(&format!("{key} = {value} {why}"));
            match (field(RULES), field(SHAPES)) {
                (Some(field), _) => {
                    // One text is a list of one.
                    let is_alone = field == "stop.strings" && value.is_string();
                    let value = if is_alone { format!("[{value}]") } else { value.to_string() };
                    self.take(field, value, GENERATION, name);
                }
                (_, Some(field)) if draws => {
                    self.take(field, value.to_string(), GENERATION, name);
                }
                (_, Some(_)) => {
                    self.note(fails("is of no effect without do_sample"), GENERATION, name);
                }
                _ if SILENT.contains(&key.as_str()) => {}
                _ if UNHEEDED.contains(&key.as_str()) && !is_off(&value.to_string()) => {
                    self.unheeded.push(name.clone());
                    self.note(fails("is no field, and not taken"), GENERATION, name);
                }
                _ => self.note(fails("is no field, and not taken"), GENERATION, name),
            }
        }
    }

    pub(super) fn read_gguf(&mut self, file: &ModelFile) {
        let key = |key| -> Option<&str> { str::strip_prefix(key, SAMPLING)?.strip_prefix('.') };
        let keys = file.metadata().iter();
        self.read_sampling(keys.filter_map(|(name, value)| Some((key(name)?, value))));
    }

    /// Takes the keys below `general.sampling.`, with their values.
    pub(super) fn read_sampling<'a>(&mut self, keys: impl Iterator<Item = (&'a str, &'a Stored)>) {
        let mut draws = false;
        let mut looks_nowhere = false;
        for (key, value) in keys {
            let rule = SAMPLING_RULES.iter().find(|(name, _)| *name == key).map(|(_, of)| *of);
            let (name, told) = (one_line(key), told(value));
            match (rule, number(value)) {
                (Some("constraints.repetition_window"), Some(last)) if last == "0" => {
                    looks_nowhere = true;
                    let sentence = "penalty_last_n = 0 turns the repetition penalty off";
                    self.note(sentence.to_owned(), SAMPLING, name);
                }
                (Some(field), Some(value)) => {
                    let is_all = field == "constraints.repetition_window" && value == "-1";
                    let value = if is_all { "\"all\"".to_owned() } else { value };
                    let is_taken = self.take(field, value, SAMPLING, name);
                    draws |= is_taken && field.starts_with("shape.");
                }
                (_, number) => {
                    if !STRENGTHS.contains(&key) && number.is_none_or(|number| !is_zero(&number)) {
                        self.unheeded.push(name.clone());
                    }
                    let sentence = format!("{key}{told} is no field, and not taken");
                    self.note(one_line(&sentence), SAMPLING, name);
                }
            }
        }
        if looks_nowhere {
            self.said.retain(|said| said.field != Some("constraints.repetition_penalty"));
        }
        if draws {
            self.take("choose.method", "\"sample\"".to_owned(), SAMPLING, "*".to_owned());
        }
    }
}

/// What `generation_config.json` says; nothing where there is none.
pub(super) fn generation(folder: &Path) -> Result<Map<String, Value>, SessionError> {
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

/// Whether a value of `generation_config.json` turns its rule off: one beam is none.
fn is_off(value: &str) -> bool {
    is_zero(value) || ["1", "1.0", "false", "[]", "{}"].contains(&value)
}

fn is_zero(number: &str) -> bool {
    number == "0" || number == "0.0"
}

/// A value as a sentence has it: numbers and texts, nothing for anything else.
fn told(value: &Stored) -> String {
    match value {
        Stored::String(text) => format!(" = \"{text}\""),
        other => number(other).map_or_else(String::new, |number| format!(" = {number}")),
    }
}

/// A stored number as TOML spells it; `None` for anything else.
pub(super) fn number(value: &Stored) -> Option<String> {
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
