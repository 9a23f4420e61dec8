//! The policy file as text: read from TOML or JSON, written in canonical form, hashed.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::bind::Binder;
use super::problem::{FileError, Problem, Problems};
use super::slot::kind_of;
use super::{PolicyFile, Window};
use crate::like::Rules;
use crate::limits;

/// The only layout of the tree so far.
const SCHEMA: u64 = 1;

impl PolicyFile {
    /// Reads a policy file; `schema = 1` must be in it.
    ///
    /// # Errors
    /// [`FileError`] with every mistake in the file, each one sentence.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        let table: toml::Table =
            toml::from_str(text).map_err(|source| FileError::Toml { source: Box::new(source) })?;
        let tree = Value::Object(table.into_iter().map(|(k, v)| (k, lower_toml(v))).collect());
        if tree.get("schema").is_none() {
            let missing = Problem::Missing { path: "schema", wanted: "1" };
            return Err(Problems(vec![missing]).into());
        }
        Ok(Self::from_json(&tree)?)
    }

    /// Reads the same tree as JSON; `schema` may be left out.
    ///
    /// # Errors
    /// Every mistake in the tree, each one sentence.
    pub fn from_json(tree: &Value) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let Some(table) = tree.as_object() else {
            let (path, found) = ("policy".to_owned(), kind_of(tree));
            return Err(Problems(vec![Problem::WrongType { path, found, wanted: "a table" }]));
        };
        let mut table = table.clone();
        check_schema(table.remove("schema"), &mut problems);
        let known = written(&mut Self::default());
        lengthen(&mut table, &known, &mut problems);
        let mut file = Self::default();
        let mut reader = Binder::reader(table, &mut problems);
        file.bind(&mut reader);
        reader.finish();
        name_nearest(&mut problems);
        limits::check(&file, &mut problems);
        if problems.is_empty() { Ok(file) } else { Err(Problems(problems)) }
    }

    /// The canonical form: JSON on one line, keys ascending, defaults left out.
    ///
    /// Two files that mean the same have the same form; see `docs/policy.md`.
    #[must_use]
    pub fn to_canonical_json(&self) -> String {
        let rules = Rules::of(self.like);
        let mut file = self.to_normal().unwrap_or_else(|_| self.clone());
        drop_default(&mut file.constraints.repetition_window, rules.repetition_window);
        drop_default(&mut file.constraints.penalty_window, rules.penalty_window);
        drop_default(&mut file.constraints.dry.window, rules.dry_window);
        if file.order.as_deref() == Some(rules.order) {
            file.order = None;
        }
        let mut tree = written(&mut file);
        without(&mut tree, &written(&mut Self::default()));
        tree.insert("schema".to_owned(), json!(SCHEMA));
        let mut tree = Value::Object(tree);
        // Whether the library keeps keys sorted depends on a feature that any crate may set.
        tree.sort_all_objects();
        tree.to_string()
    }

    /// The whole tree as JSON with every default filled in.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rules = Rules::of(self.like);
        let mut file = self.clone();
        file.constraints.repetition_window.get_or_insert(rules.repetition_window);
        file.constraints.penalty_window.get_or_insert(rules.penalty_window);
        file.constraints.dry.window.get_or_insert(rules.dry_window);
        file.order.get_or_insert_with(|| rules.order.to_vec());
        let mut tree = written(&mut file);
        tree.insert("schema".to_owned(), json!(SCHEMA));
        Value::Object(tree)
    }

    /// SHA-256 of the canonical form: the policy's identity.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.to_canonical_json().as_bytes()).into()
    }

    /// The hash as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn hash_hex(&self) -> String {
        self.hash().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Checks a file put together in code as if it had been read: ranges, rules and all.
    ///
    /// # Errors
    /// Every mistake, each one sentence.
    pub fn check(&self) -> Result<(), Problems> {
        self.to_normal().map(|_| ())
    }

    /// The file as it would be read back: checked, with its sets sorted.
    pub(crate) fn to_normal(&self) -> Result<Self, Problems> {
        Self::from_json(&Value::Object(written(&mut self.clone())))
    }
}

fn check_schema(schema: Option<Value>, problems: &mut Vec<Problem>) {
    match schema {
        None | Some(Value::Null) => {}
        Some(value) if value.as_u64() == Some(SCHEMA) => {}
        Some(value) => problems.push(Problem::OutOfRange {
            path: "schema".to_owned(),
            value: kind_of(&value),
            range: SCHEMA.to_string(),
        }),
    }
}

fn drop_default(window: &mut Option<Window>, default: Window) {
    if *window == Some(default) {
        *window = None;
    }
}

/// Every field of the file, defaults included.
fn written(file: &mut PolicyFile) -> Map<String, Value> {
    let mut problems = Vec::new();
    let mut writer = Binder::writer(&mut problems);
    file.bind(&mut writer);
    writer.finish()
}

/// Takes out of `tree` what `defaults` has too, and sections that are then empty.
fn without(tree: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    tree.retain(|name, value| {
        match (value, defaults.get(name)) {
            (Value::Object(inner), Some(Value::Object(defaults))) if !defaults.is_empty() => {
                without(inner, defaults);
                !inner.is_empty()
            }
            // A table of a list has no default: what is unset in it goes.
            (Value::Array(rows), _) => {
                rows.iter_mut().filter_map(Value::as_object_mut).for_each(|row| {
                    row.retain(|_, value| !value.is_null());
                });
                !rows.is_empty() || defaults.get(name) != Some(&json!([]))
            }
            (value, default) => Some(&*value) != default,
        }
    });
}

/// Moves fields in short form (`temperature` for `shape.temperature`) into their sections.
///
/// Only names that one section alone has, and that are no top-level names, have a short form.
fn lengthen(
    table: &mut Map<String, Value>,
    known: &Map<String, Value>,
    problems: &mut Vec<Problem>,
) {
    let names: Vec<String> =
        table.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
    for name in names {
        let mut owners = known.iter().filter(|(section, fields)| {
            *section != "failure_modes" && fields.get(&name).is_some() && is_section(section)
        });
        let (Some((section, _)), None) = (owners.next(), owners.next()) else { continue };
        let home = table.entry(section.clone()).or_insert_with(|| json!({}));
        if home.is_null() {
            *home = json!({});
        }
        let Some(home) = home.as_object_mut() else { continue };
        if home.get(&name).is_some_and(|value| !value.is_null()) {
            problems.push(Problem::GivenTwice { name: name.clone(), section: section.clone() });
        }
        if let Some(value) = table.remove(&name)
            && let Some(home) = table.get_mut(section).and_then(Value::as_object_mut)
        {
            home.insert(name, value);
        }
    }
}

/// The sections whose fields have a short form.
fn is_section(name: &str) -> bool {
    matches!(name, "prompt" | "constraints" | "shape" | "choose" | "stop" | "account" | "delivery")
}

/// Fills in, for each unknown field, the known one that is spelled most like it.
fn name_nearest(problems: &mut [Problem]) {
    for problem in problems {
        if let Problem::UnknownField { path, nearest } = problem {
            *nearest = super::nearest::nearest(path);
        }
    }
}

/// TOML as JSON; what JSON lacks (infinities, dates) becomes a text, which no number field takes.
fn lower_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => json!(number),
        toml::Value::Float(number) if number.is_finite() => json!(number),
        toml::Value::Float(number) => json!(number.to_string()),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(date) => json!(date.to_string()),
        toml::Value::Array(list) => Value::Array(list.into_iter().map(lower_toml).collect()),
        toml::Value::Table(table) => {
            Value::Object(table.into_iter().map(|(k, v)| (k, lower_toml(v))).collect())
        }
    }
}
