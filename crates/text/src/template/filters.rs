//! Functions and filters of chat templates where Jinja's own differ from minijinja's.

use std::fmt;

use minijinja::value::{Kwargs, Rest, Value};
use minijinja::{Environment, Error, ErrorKind, Output, State};

use super::civil_time::CivilTime;
use super::python::{self, JsonLayout, Unprintable};

/// What a template said with `raise_exception`.
#[derive(Debug)]
pub(super) struct Raised(pub(super) String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

impl From<Unprintable> for Error {
    fn from(reason: Unprintable) -> Self {
        invalid(match reason {
            Unprintable::Deep => "a value is nested too deeply to be printed",
            Unprintable::Long => "a value is too long to be printed: more than 16 MiB",
        })
    }
}

/// Adds them all, and Python's methods of strings, lists and mappings.
pub(super) fn install(environment: &mut Environment<'static>) {
    environment.set_formatter(print);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", raise_exception);
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: &Value| string(value));
    environment.add_filter("truncate", truncate);
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_test("iterable", is_iterable);
}

/// `strftime_now(format)` at the time the caller gave.
pub(super) fn strftime_now(now: CivilTime) -> Value {
    Value::from_function(move |format: &str| now.strftime(format))
}

fn print(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        out.write_str(text)?;
    } else {
        out.write_str(&string(value)?)?;
    }
    Ok(())
}

fn string(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    python::push_str(value, &mut text)?;
    Ok(text)
}

/// MarkupSafe's escapes.
fn escape(value: &Value) -> Result<String, Error> {
    let text = string(value)?;
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\'' => escaped.push_str("&#39;"),
            '"' => escaped.push_str("&#34;"),
            other => escaped.push(other),
        }
    }
    Ok(escaped)
}

/// What Python's `iter` takes; none is not among it.
fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = string(message)?;
    Err(Error::new(ErrorKind::InvalidOperation, "the template refuses")
        .with_source(Raised(message)))
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`, as transformers
/// defines it.
fn to_json(value: &Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(invalid("an undefined value has no JSON"));
    }
    let argument = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        match positional.get(index) {
            Some(value) => Ok(Some(value.clone())),
            None => named.get::<Option<Value>>(name),
        }
    };
    let ensure_ascii = argument(0, "ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = match argument(1, "indent")? {
        None => None,
        Some(value) if value.is_none() => None,
        Some(value) => Some(match (value.as_str(), value.as_usize()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(width)) if width <= 64 => " ".repeat(width),
            _ => return Err(invalid("the indent of tojson must be text or 0 to 64")),
        }),
    };
    let mut layout = JsonLayout {
        item_separator: if indent.is_some() { "," } else { ", " }.to_owned(),
        key_separator: ": ".to_owned(),
        indent,
        ensure_ascii,
        sort_keys: argument(3, "sort_keys")?.is_some_and(|value| value.is_true()),
    };
    if let Some(separators) = argument(2, "separators")?.filter(|value| !value.is_none()) {
        let pair: Vec<Value> = separators.try_iter()?.collect();
        let [item, key] = &pair[..] else {
            return Err(invalid("the separators of tojson are two"));
        };
        layout.item_separator = string(item)?;
        layout.key_separator = string(key)?;
    }
    named.assert_all_used()?;
    let mut text = String::new();
    python::push_json(value, &layout, 0, &mut text)?;
    Ok(text)
}

/// `truncate(length=255, killwords=False, end='...', leeway=5)`, as Jinja defines it.
fn truncate(value: &Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let argument = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        match positional.get(index) {
            Some(value) => Ok(Some(value.clone())),
            None => named.get::<Option<Value>>(name),
        }
    };
    let count = |value: Option<Value>, otherwise: usize| match value.filter(|v| !v.is_none()) {
        None => Ok(otherwise),
        Some(value) => value.as_usize().ok_or_else(|| invalid("truncate counts characters")),
    };
    let text = string(value)?;
    let length = count(argument(0, "length")?, 255)?;
    let kills_words = argument(1, "killwords")?.is_some_and(|value| value.is_true());
    let end = argument(2, "end")?.map_or_else(|| Ok("...".to_owned()), |end| string(&end))?;
    let leeway = count(argument(3, "leeway")?, 5)?;
    named.assert_all_used()?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let kept = length.checked_sub(end.chars().count());
    let kept = kept.ok_or_else(|| invalid("truncate is shorter than its own end"))?;
    let short: String = text.chars().take(kept).collect();
    let words = if kills_words { None } else { short.rsplit_once(' ') };
    Ok(format!("{}{end}", words.map_or(short.as_str(), |(words, _)| words)))
}
