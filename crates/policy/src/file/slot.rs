//! The kinds of value a policy field can hold: each reads itself from JSON and writes itself back.

use serde_json::{Value, json};

use crate::{Peer, Stage, Window};

/// Why a value does not fit its field; the reader adds the field's path.
#[derive(Debug)]
pub(super) enum Fault {
    Type { found: String, wanted: &'static str },
    Range { value: String, range: String },
    Word { value: String, choices: String },
    Repeated { value: String },
}

/// One field's value, behind the one interface that reader and writer share.
pub(super) trait Slot {
    /// Takes the value from JSON, or says why it does not fit.
    fn read(&mut self, value: &Value) -> Result<(), Fault>;
    /// The value as JSON; `Null` where the field is unset.
    fn write(&self) -> Value;
}

/// A number between two limits, both allowed unless `above` excludes the lower one.
pub(super) struct Number<'a> {
    pub value: &'a mut f64,
    pub min: f64,
    pub max: f64,
    pub above: bool,
}

impl Number<'_> {
    fn range(&self) -> String {
        let Self { min, max, above, .. } = self;
        if *above { format!("above {min} and at most {max}") } else { format!("{min} to {max}") }
    }
}

impl Slot for Number<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let Some(number) = value.as_f64() else { return wrong_type(value, "a number") };
        let too_low = if self.above { number <= self.min } else { number < self.min };
        if too_low || number > self.max || !number.is_finite() {
            return Err(Fault::Range { value: value.to_string(), range: self.range() });
        }
        // Adding zero turns -0.0 into 0.0, so that both have one canonical form.
        *self.value = number + 0.0;
        Ok(())
    }

    fn write(&self) -> Value {
        number(*self.value)
    }
}

/// A number as JSON; what JSON lacks becomes a text, which no number field takes back.
pub(super) fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string()) }
}

/// A number that may be left out; positive.
pub(super) struct MaybeNumber<'a>(pub &'a mut Option<f64>, pub f64);

impl Slot for MaybeNumber<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let mut number = 0.0;
        Number { value: &mut number, min: 0.0, max: self.1, above: true }.read(value)?;
        *self.0 = Some(number);
        Ok(())
    }

    fn write(&self) -> Value {
        self.0.map_or(Value::Null, number)
    }
}

/// A whole number between two limits.
pub(super) struct Count<'a> {
    pub value: &'a mut u64,
    pub min: u64,
    pub max: u64,
}

impl Slot for Count<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let count = whole(value, "a whole number", (self.min, self.max))?;
        *self.value = count;
        Ok(())
    }

    fn write(&self) -> Value {
        json!(*self.value)
    }
}

/// A whole number that may be left out.
pub(super) struct MaybeCount<'a>(pub &'a mut Option<u64>, pub u64, pub u64);

impl Slot for MaybeCount<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        *self.0 = Some(whole(value, "a whole number", (self.1, self.2))?);
        Ok(())
    }

    fn write(&self) -> Value {
        json!(*self.0)
    }
}

/// A switch.
pub(super) struct Flag<'a>(pub &'a mut bool);

impl Slot for Flag<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let Some(flag) = value.as_bool() else { return wrong_type(value, "true or false") };
        *self.0 = flag;
        Ok(())
    }

    fn write(&self) -> Value {
        json!(*self.0)
    }
}

/// True or false, or left to others.
pub(super) struct MaybeFlag<'a>(pub &'a mut Option<bool>);

impl Slot for MaybeFlag<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let mut flag = false;
        Flag(&mut flag).read(value)?;
        *self.0 = Some(flag);
        Ok(())
    }

    fn write(&self) -> Value {
        self.0.map_or(Value::Null, Value::Bool)
    }
}

/// A text of at most so many bytes; empty only where that means something.
pub(super) struct Text<'a> {
    pub value: &'a mut Option<String>,
    pub bytes_max: usize,
    pub may_be_empty: bool,
}

impl Slot for Text<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let text = as_text(value, self.bytes_max)?;
        if text.is_empty() && !self.may_be_empty {
            return Err(Fault::Range { value: "empty".into(), range: "a text".into() });
        }
        *self.value = Some(text);
        Ok(())
    }

    fn write(&self) -> Value {
        json!(*self.value)
    }
}

/// A SHA-256 as 64 hexadecimal digits, kept in lower case.
pub(super) struct Hash<'a>(pub &'a mut Option<String>);

impl Slot for Hash<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let text = as_text(value, 1024)?;
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let range = "64 hexadecimal digits".to_owned();
            return Err(Fault::Range { value: Value::from(text).to_string(), range });
        }
        *self.0 = Some(text.to_ascii_lowercase());
        Ok(())
    }

    fn write(&self) -> Value {
        json!(*self.0)
    }
}

/// A list of texts, none empty and none twice.
pub(super) struct Texts<'a> {
    pub value: &'a mut Vec<String>,
    pub count_max: usize,
    pub bytes_max: usize,
}

impl Slot for Texts<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let entries = as_list(value, "a list of texts", self.count_max)?;
        let mut texts: Vec<String> = Vec::with_capacity(entries.len());
        for entry in entries {
            let text = as_text(entry, self.bytes_max)?;
            if text.is_empty() {
                let range = "texts of at least one byte".to_owned();
                return Err(Fault::Range { value: "an empty text".into(), range });
            }
            if texts.contains(&text) {
                return Err(Fault::Repeated { value: entry.to_string() });
            }
            texts.push(text);
        }
        *self.value = texts;
        Ok(())
    }

    fn write(&self) -> Value {
        json!(*self.value)
    }
}

/// How far back a penalty looks; unset takes the default of the rules in force.
pub(super) struct Reach<'a>(pub &'a mut Option<Window>);

impl Slot for Reach<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let choices = "`all`, `output` or a whole number of tokens";
        *self.0 = Some(match value.as_str() {
            Some("all") => Window::All,
            Some("output") => Window::Output,
            Some(word) => {
                return Err(Fault::Word { value: word.to_owned(), choices: choices.to_owned() });
            }
            None => Window::Last(whole(value, choices, (1, COUNT_MAX))?),
        });
        Ok(())
    }

    fn write(&self) -> Value {
        match *self.0 {
            None => Value::Null,
            Some(Window::All) => json!("all"),
            Some(Window::Output) => json!("output"),
            Some(Window::Last(count)) => json!(count),
        }
    }
}

/// One word out of a fixed few.
pub(super) struct Word<'a, T: Copy + PartialEq + 'static> {
    pub value: &'a mut T,
    pub words: &'static [(&'static str, T)],
}

impl<T: Copy + PartialEq + 'static> Slot for Word<'_, T> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let Some(word) = value.as_str() else { return wrong_type(value, "a word") };
        let Some(&(_, found)) = self.words.iter().find(|(name, _)| *name == word) else {
            let choices = listed(self.words.iter().map(|(name, _)| *name));
            return Err(Fault::Word { value: word.to_owned(), choices });
        };
        *self.value = found;
        Ok(())
    }

    fn write(&self) -> Value {
        json!(self.words.iter().find(|(_, value)| value == self.value).map(|(name, _)| name))
    }
}

/// The engine whose rules are followed.
pub(super) struct Like<'a>(pub &'a mut Option<Peer>);

impl Slot for Like<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let Some(name) = value.as_str() else { return wrong_type(value, "an engine's name") };
        let Some(peer) = Peer::from_name(name) else {
            let choices = listed(Peer::ALL.into_iter().map(Peer::name));
            return Err(Fault::Word { value: name.to_owned(), choices });
        };
        *self.0 = Some(peer);
        Ok(())
    }

    fn write(&self) -> Value {
        json!(self.0.map(Peer::name))
    }
}

/// The stages in the order they run.
pub(super) struct Order<'a>(pub &'a mut Option<Vec<Stage>>);

impl Slot for Order<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let entries = as_list(value, "a list of stage names", LIST_MAX)?;
        let mut order = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(name) = entry.as_str() else { return wrong_type(entry, "a stage name") };
            let Some(stage) = Stage::from_name(name) else {
                let choices = listed(Stage::DEFAULT_ORDER.into_iter().map(Stage::name));
                return Err(Fault::Word { value: name.to_owned(), choices });
            };
            if order.contains(&stage) {
                return Err(Fault::Repeated { value: format!("`{name}`") });
            }
            order.push(stage);
        }
        *self.0 = Some(order);
        Ok(())
    }

    fn write(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, |order| {
            json!(order.iter().map(|stage| stage.name()).collect::<Vec<_>>())
        })
    }
}

/// Most entries of any list; above every vocabulary in use (256,000 in 2026).
pub(super) const LIST_MAX: usize = 1 << 20;
/// Largest count of any field: a JSON number holds it exactly.
pub const COUNT_MAX: u64 = 1 << 40;

pub(super) fn wrong_type<T>(value: &Value, wanted: &'static str) -> Result<T, Fault> {
    Err(Fault::Type { found: kind_of(value), wanted })
}

/// A value in a message: short ones as they are, long ones by their kind.
pub(super) fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "not a number".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.len() <= 32 => value.to_string(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}

fn listed(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(super) fn whole(value: &Value, wanted: &'static str, limits: (u64, u64)) -> Result<u64, Fault> {
    let (min, max) = limits;
    // 5.0 is a whole number too: JSON writers differ in this.
    let from_float = || value.as_f64().filter(|float| float.is_finite() && float.fract() == 0.0);
    match value.as_u64() {
        Some(count) if (min..=max).contains(&count) => return Ok(count),
        Some(_) => {}
        None => match from_float() {
            #[expect(clippy::cast_possible_truncation, reason = "whole and inside the limits")]
            #[expect(clippy::cast_sign_loss, reason = "not below the lower limit")]
            #[expect(clippy::cast_precision_loss, reason = "limits are below 2^53 or u64::MAX")]
            Some(float) if float >= min as f64 && float <= (max.min(1 << 53)) as f64 => {
                return Ok(float as u64);
            }
            Some(_) => {}
            None => return wrong_type(value, wanted),
        },
    }
    Err(Fault::Range { value: value.to_string(), range: format!("{min} to {max}") })
}

fn as_text(value: &Value, bytes_max: usize) -> Result<String, Fault> {
    let Some(text) = value.as_str() else { return wrong_type(value, "a text") };
    if text.len() > bytes_max {
        let range = format!("at most {bytes_max} bytes long");
        return Err(Fault::Range { value: format!("{} bytes long", text.len()), range });
    }
    Ok(text.to_owned())
}

pub(super) fn as_list<'a>(
    value: &'a Value,
    wanted: &'static str,
    count_max: usize,
) -> Result<&'a [Value], Fault> {
    let Some(list) = value.as_array() else { return wrong_type(value, wanted) };
    if list.len() > count_max {
        let range = format!("a list of at most {count_max}");
        return Err(Fault::Range { value: format!("a list of {}", list.len()), range });
    }
    Ok(list)
}
