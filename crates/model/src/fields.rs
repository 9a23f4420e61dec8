//! What a model file says of its model, field by field; where the formats' own words meet.

use std::borrow::Cow;

use causeway_weights::{Format, ModelFile, Value};
use serde_json::{Map, Value as Json};

use crate::ConfigError;
use crate::config::LAYERS_MAX;
use crate::families::Family;

/// A field: its key in GGUF files, under the architecture's prefix, and its key in a folder's
/// `config.json`; empty where a format has none.
pub(crate) type Field = (&'static str, &'static str);

/// The fields of a file, or of an object in a folder's `config.json`.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    values: Cow<'a, Json>,
    /// What stands before each key of a GGUF file; `None` for a folder.
    prefix: Option<&'static str>,
}

impl<'a> Fields<'a> {
    /// The fields of a file and the family that it names.
    ///
    /// # Errors
    /// `ConfigError` where it names none, or one that is not there.
    pub(crate) fn of(file: &'a ModelFile) -> Result<(Self, Family), ConfigError> {
        let missing = |key: &str| ConfigError::Missing { key: key.to_owned() };
        if file.format() == Format::Safetensors {
            let root = file.config().ok_or_else(|| missing("config.json"))?;
            // A model that sees too keeps what is of its text in an object of its own.
            let values = Cow::Borrowed(root.get("text_config").unwrap_or(root));
            let mut fields = Self { values, prefix: None };
            let name = fields.text(("", "model_type"))?.ok_or_else(|| missing("model_type"))?;
            let family = Family::find(name, |family| family.hugging_face)?;
            let defaults: Map<String, Json> =
                serde_json::from_str(family.defaults).expect("invariant: a family's is an object");
            let of_all = ["quantization_config", "tie_word_embeddings"]
                .into_iter()
                .filter_map(|key| Some((key.to_owned(), root.get(key)?.clone())));
            for (key, value) in of_all.chain(defaults) {
                let own = fields.values.to_mut().as_object_mut();
                own.map(|own| own.entry(key).or_insert(value));
            }
            return Ok((fields, family));
        }
        let key = "general.architecture";
        let family = match file.metadata().value(key).ok_or_else(|| missing(key))? {
            Value::String(name) => Family::find(name, |family| family.gguf)?,
            other => {
                let (key, value) = (key.to_owned(), other.value_type().to_string());
                return Err(ConfigError::Value { key, value, wanted: "a string".to_owned() });
            }
        };
        let own = file.metadata().iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(family.gguf)?.strip_prefix('.')?;
            Some((key.to_owned(), json(value)))
        });
        let values = Cow::Owned(Json::Object(own.collect()));
        Ok((Self { values, prefix: Some(family.gguf) }, family))
    }

    /// An object of a folder with nothing in it.
    pub(crate) fn none() -> Self {
        Self { values: Cow::Owned(Json::Null), prefix: None }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.prefix.is_none()
    }

    fn key(&self, (gguf, hugging_face): Field) -> &'static str {
        if self.is_folder() { hugging_face } else { gguf }
    }

    /// The value, where it is there and not null.
    pub(crate) fn at(&self, field: Field) -> Option<&Json> {
        self.values.get(self.key(field)).filter(|value| !value.is_null())
    }

    fn name(&self, field: Field) -> String {
        let key = self.key(field);
        self.prefix.map_or_else(|| key.to_owned(), |prefix| format!("{prefix}.{key}"))
    }

    pub(crate) fn missing(&self, field: Field) -> ConfigError {
        ConfigError::Missing { key: self.name(field) }
    }

    pub(crate) fn wrong(
        &self,
        field: Field,
        value: impl ToString,
        wanted: impl Into<String>,
    ) -> ConfigError {
        let (key, value, wanted) = (self.name(field), value.to_string(), wanted.into());
        ConfigError::Value { key, value, wanted }
    }

    fn read<'s, T>(
        &'s self,
        field: Field,
        wanted: &'static str,
        read: impl FnOnce(&'s Json) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let read = |value| read(value).ok_or_else(|| self.wrong(field, value, wanted));
        self.at(field).map(read).transpose()
    }

    pub(crate) fn size(&self, field: Field) -> Result<Option<usize>, ConfigError> {
        let size = |value: &Json| usize::try_from(value.as_u64()?).ok();
        self.read(field, "a whole number", size)
    }

    pub(crate) fn wanted_size(&self, field: Field) -> Result<usize, ConfigError> {
        self.size(field)?.ok_or_else(|| self.missing(field))
    }

    /// A number above 0, as all are but caps.
    pub(crate) fn number(&self, field: Field) -> Result<Option<f32>, ConfigError> {
        self.read(field, "a positive number", positive)
    }

    pub(crate) fn number_or(&self, field: Field, default: f32) -> Result<f32, ConfigError> {
        Ok(self.number(field)?.unwrap_or(default))
    }

    /// A number that may be 0, which is what null means.
    pub(crate) fn cap(&self, field: Field, default: f32) -> Result<f32, ConfigError> {
        let is_null = self.values.get(self.key(field)).is_some_and(Json::is_null);
        let zero = |value: &Json| (value.as_f64() == Some(0.0)).then_some(0.0);
        let cap =
            self.read(field, "0 or a positive number", |v| zero(v).or_else(|| positive(v)))?;
        Ok(cap.unwrap_or(if is_null { 0.0 } else { default }))
    }

    pub(crate) fn wanted_number(&self, field: Field) -> Result<f32, ConfigError> {
        self.number(field)?.ok_or_else(|| self.missing(field))
    }

    pub(crate) fn text(&self, field: Field) -> Result<Option<&str>, ConfigError> {
        self.read(field, "a string", Json::as_str)
    }

    pub(crate) fn flag(&self, field: Field) -> Result<Option<bool>, ConfigError> {
        self.read(field, "true or false", Json::as_bool)
    }

    /// A list with an entry for each layer.
    pub(crate) fn list(&self, field: Field, len: usize) -> Result<Option<&[Json]>, ConfigError> {
        let wanted = "a list with an entry a layer";
        self.read(field, wanted, |value| {
            value.as_array().filter(|list| list.len() == len).map(Vec::as_slice)
        })
    }

    pub(crate) fn numbers(&self, field: Field) -> Result<Option<Vec<f32>>, ConfigError> {
        let list = |value: &Json| value.as_array()?.iter().map(positive).collect();
        self.read(field, "a list of positive numbers", list)
    }

    /// An object in a folder's config.
    pub(crate) fn object(&self, key: &'static str) -> Result<Option<Fields<'a>>, ConfigError> {
        let values = self.read(("", key), "an object", Json::as_object)?.cloned();
        Ok(values.map(|values| Fields { values: Cow::Owned(Json::Object(values)), prefix: None }))
    }
}

fn positive(number: &Json) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "config numbers are rounded once")]
    let number = number.as_f64()? as f32;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// A GGUF value as JSON; what JSON has no number for, and lists that no model needs, as text.
fn json(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::from(text.as_str()),
        Value::Bool(flag) => Json::from(*flag),
        Value::F32(number) => float(f64::from(*number)),
        Value::F64(number) => float(*number),
        Value::Array(list) if list.len() <= LAYERS_MAX => {
            (0..list.len()).filter_map(|index| list.element(index)).map(|one| json(&one)).collect()
        }
        Value::Array(list) => Json::from(format!("a list of {}", list.len())),
        whole => {
            let whole = whole.as_integer().expect("invariant: all that is left are integers");
            let small = i64::try_from(whole).map(Json::from);
            small.unwrap_or_else(|_| Json::from(u64::try_from(whole).unwrap_or(u64::MAX)))
        }
    }
}

fn float(number: f64) -> Json {
    if number.is_finite() { Json::from(number) } else { Json::from(number.to_string()) }
}
