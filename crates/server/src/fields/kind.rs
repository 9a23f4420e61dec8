//! What a field may hold: its type, its range, and the sentence that says so.

use serde_json::{Value, json};

use crate::error::ApiError;

/// Most bytes of a value that an error repeats.
const SHOWN_BYTES: usize = 80;

/// What a field may hold.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A number between two bounds; `above` leaves the lower one out.
    Number {
        min: f64,
        max: f64,
        above: bool,
    },
    /// A whole number between two bounds.
    Count {
        min: u64,
        max: u64,
    },
    Flag,
    Text {
        bytes_max: usize,
    },
    /// One text or a list of them.
    Texts {
        count_max: usize,
        bytes_max: usize,
    },
    /// A list of texts, also where it has one.
    TextList {
        count_max: usize,
        bytes_max: usize,
    },
    Word(&'static [&'static str]),
    /// Token ids.
    Tokens {
        count_max: usize,
    },
    /// Token ids to numbers, as an object.
    Biases {
        count_max: usize,
        max: f64,
    },
    Object,
    List {
        count_max: usize,
    },
    /// Checked by the route.
    Any,
}

impl Kind {
    /// Refuses a value of another type or outside the range.
    ///
    /// # Errors
    /// One sentence with the value and what it must be.
    pub fn check(self, name: &str, value: &Value) -> Result<(), ApiError> {
        if self.holds(value) {
            return Ok(());
        }
        Err(wrong(name, value, &self.wanted()))
    }

    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Number { min, max, above } => value
                .as_f64()
                .is_some_and(|number| number <= max && (number > min || (number >= min && !above))),
            Self::Count { min, max } => is_count(value, min, max),
            Self::Flag => value.is_boolean(),
            Self::Text { bytes_max } => is_text(value, bytes_max),
            Self::Texts { count_max, bytes_max } => {
                is_text(value, bytes_max) || are_texts(value, count_max, bytes_max)
            }
            Self::TextList { count_max, bytes_max } => are_texts(value, count_max, bytes_max),
            Self::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Tokens { count_max } => value
                .as_array()
                .is_some_and(|list| list.len() <= count_max && list.iter().all(is_token)),
            Self::Biases { count_max, max } => value.as_object().is_some_and(|biases| {
                biases.len() <= count_max
                    && biases.iter().all(|(token, bias)| {
                        is_spelled_token(token)
                            && bias.as_f64().is_some_and(|bias| bias.abs() <= max)
                    })
            }),
            Self::Object => value.is_object(),
            Self::List { count_max } => {
                value.as_array().is_some_and(|list| list.len() <= count_max)
            }
            Self::Any => true,
        }
    }

    fn wanted(self) -> String {
        match self {
            Self::Number { min, max, above: false } => format!("a number between {min} and {max}"),
            Self::Number { min, max, above: true } => {
                format!("a number above {min} and at most {max}")
            }
            Self::Count { min, max } => format!("a whole number between {min} and {max}"),
            Self::Flag => "true or false".to_owned(),
            Self::Text { bytes_max } => format!("a text of at most {bytes_max} bytes"),
            Self::Texts { count_max, bytes_max } => format!(
                "a text or a list of at most {count_max} texts, each of at most {bytes_max} bytes"
            ),
            Self::TextList { count_max, bytes_max } => {
                format!("a list of at most {count_max} texts, each of at most {bytes_max} bytes")
            }
            Self::Word(words) => format!("one of `{}`", words.join("`, `")),
            Self::Tokens { count_max } => {
                format!("a list of at most {count_max} token ids, each a whole number of 32 bits")
            }
            Self::Biases { count_max, max } => format!(
                "an object of at most {count_max} token ids, each with a number between -{max} and {max}"
            ),
            Self::Object => "an object".to_owned(),
            Self::List { count_max } => format!("a list of at most {count_max}"),
            Self::Any => "any value".to_owned(),
        }
    }

    /// The value as the policy file spells it.
    pub(super) fn lower(self, value: &Value) -> Value {
        match (self, value) {
            (Self::Texts { .. }, Value::String(text)) => json!([text]),
            _ => value.clone(),
        }
    }
}

/// What is said of a value that a field cannot have; one that is missing is null.
pub(crate) fn wrong(name: &str, value: &Value, wanted: &str) -> ApiError {
    let found = if value.is_null() { "missing".to_owned() } else { shown(value) };
    let text = format!("`{name}` is {found}, must be {wanted}");
    ApiError::field(name, text).with_code("invalid_value")
}

fn is_text(value: &Value, bytes_max: usize) -> bool {
    value.as_str().is_some_and(|text| text.len() <= bytes_max)
}

fn are_texts(value: &Value, count_max: usize, bytes_max: usize) -> bool {
    let is_list = |list: &Vec<Value>| {
        list.len() <= count_max && list.iter().all(|text| is_text(text, bytes_max))
    };
    value.as_array().is_some_and(is_list)
}

/// Whether a name is a token id, in its one spelling: no sign and no zero before it.
fn is_spelled_token(name: &str) -> bool {
    name.parse().is_ok_and(|id: u32| id.to_string() == name)
}

fn is_token(value: &Value) -> bool {
    is_count(value, 0, u64::from(u32::MAX))
}

fn is_count(value: &Value, min: u64, max: u64) -> bool {
    value.as_u64().is_some_and(|count| (min..=max).contains(&count))
}

/// A value as a sentence shows it: short, and a long one by its type.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= SHOWN_BYTES {
        return match value {
            Value::String(text) => format!("the text \"{text}\""),
            _ => text,
        };
    }
    match value {
        Value::String(text) => format!("a text of {} bytes", text.len()),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(fields) => format!("an object of {} fields", fields.len()),
        _ => "a long number".to_owned(),
    }
}
