//! Values as Python prints them: `str`, `repr` and `json.dumps`.

use std::fmt::Write as _;
use std::sync::LazyLock;

use minijinja::value::{Value, ValueKind};
use regex::Regex;

/// Characters that Python's `repr` escapes: all but letters, marks, numbers, signs and the space.
static UNPRINTABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\p{C}\p{Z}]$").expect("the expression is valid"));

/// Deepest nesting that is printed; `json.dumps` gives up near a thousand.
const DEPTH_MAX: usize = 200;

/// Most bytes that printing fills: a list that holds one list twice, and so on, doubles its text
/// with every level.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Why a value is not printed.
#[derive(Debug)]
pub(super) enum Unprintable {
    /// Nested deeper than `DEPTH_MAX`.
    Deep,
    /// Longer than `TEXT_BYTES_MAX`.
    Long,
}

/// How `tojson` lays its text out.
#[derive(Debug, Clone)]
pub(super) struct JsonLayout {
    /// What one level is indented by; nothing for one line.
    pub(super) indent: Option<String>,
    pub(super) item_separator: String,
    pub(super) key_separator: String,
    pub(super) ensure_ascii: bool,
    pub(super) sort_keys: bool,
}

pub(super) fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

pub(super) fn is_map(value: &Value) -> bool {
    value.kind() == ValueKind::Map
}

/// The pairs of a mapping, in order.
pub(super) fn entries(map: &Value) -> Vec<(Value, Value)> {
    let keys = map.try_iter().into_iter().flatten();
    keys.map(|key| (key.clone(), map.get_item(&key).unwrap_or_default())).collect()
}

/// The mapping with one value replaced or added.
pub(super) fn with_entry(map: &Value, key: &str, value: Value) -> Value {
    let mut pairs = entries(map);
    match pairs.iter_mut().find(|(name, _)| name.as_str() == Some(key)) {
        Some(pair) => pair.1 = value,
        None => pairs.push((Value::from(key), value)),
    }
    Value::from_pairs(pairs)
}

/// Python's `str`: a string as it is, everything else as `repr`; an undefined value is empty.
pub(super) fn push_str(value: &Value, text: &mut String) -> Result<(), Unprintable> {
    match value.as_str() {
        Some(string) => text.push_str(string),
        None if value.is_undefined() => {}
        None => push_repr(value, text, DEPTH_MAX)?,
    }
    Ok(())
}

fn push_repr(value: &Value, text: &mut String, depth: usize) -> Result<(), Unprintable> {
    let depth = depth.checked_sub(1).ok_or(Unprintable::Deep)?;
    check_length(text)?;
    match value.kind() {
        ValueKind::None => text.push_str("None"),
        ValueKind::Bool => text.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => push_number(value, text, ["inf", "-inf", "nan"]),
        ValueKind::String => push_quoted(value.as_str().unwrap_or_default(), text),
        ValueKind::Map => {
            text.push('{');
            for (index, (key, item)) in entries(value).into_iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                push_repr(&key, text, depth)?;
                text.push_str(": ");
                push_repr(&item, text, depth)?;
            }
            text.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            text.push('[');
            for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                push_repr(&item, text, depth)?;
            }
            text.push(']');
        }
        _ => {
            let _ = write!(text, "{value}");
        }
    }
    Ok(())
}

fn check_length(text: &str) -> Result<(), Unprintable> {
    if text.len() > TEXT_BYTES_MAX { Err(Unprintable::Long) } else { Ok(()) }
}

/// A number as Python's `repr` has it; `odd` spells infinity, minus infinity and not-a-number.
fn push_number(value: &Value, text: &mut String, odd: [&str; 3]) {
    if value.is_integer() {
        let _ = write!(text, "{value}");
        return;
    }
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    if number.is_nan() {
        text.push_str(odd[2]);
    } else if number.is_infinite() {
        text.push_str(odd[usize::from(number < 0.0)]);
    } else {
        push_float(number, text);
    }
}

/// The shortest digits that read back as `number`; exponents from 1e16 up and below 1e-4.
fn push_float(number: f64, text: &mut String) {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || (-4..16).contains(&exponent) {
        let plain = number.to_string();
        text.push_str(&plain);
        if !plain.contains('.') {
            text.push_str(".0");
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(text, "{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
}

/// A string in quotes: single ones, unless it holds single and no double ones.
fn push_quoted(string: &str, text: &mut String) {
    let quote = if string.contains('\'') && !string.contains('"') { '"' } else { '\'' };
    text.push(quote);
    for letter in string.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if letter == quote => text.extend(['\\', quote]),
            ' '..='~' => text.push(letter),
            _ if UNPRINTABLE.is_match(letter.encode_utf8(&mut [0; 4])) => {
                let code = letter as u32;
                let _ = match code {
                    0..=0xFF => write!(text, "\\x{code:02x}"),
                    0x100..=0xFFFF => write!(text, "\\u{code:04x}"),
                    _ => write!(text, "\\U{code:08x}"),
                };
            }
            _ => text.push(letter),
        }
    }
    text.push(quote);
}

/// `json.dumps`: keys in their own order unless sorted, nothing escaped for HTML.
///
/// An undefined value cannot be written; the caller has refused it at the top level.
pub(super) fn push_json(
    value: &Value,
    layout: &JsonLayout,
    level: usize,
    text: &mut String,
) -> Result<(), Unprintable> {
    if level >= DEPTH_MAX {
        return Err(Unprintable::Deep);
    }
    check_length(text)?;
    match value.kind() {
        ValueKind::Bool => text.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => push_number(value, text, ["Infinity", "-Infinity", "NaN"]),
        ValueKind::String => push_json_string(value.as_str().unwrap_or_default(), layout, text),
        ValueKind::Map => {
            let mut pairs = entries(value);
            if layout.sort_keys {
                pairs.sort_by_key(|(key, _)| key.to_string());
            }
            push_items(pairs, ['{', '}'], layout, level, text, |(key, item), text| {
                push_key(key, layout, text);
                text.push_str(&layout.key_separator);
                push_json(item, layout, level + 1, text)
            })?;
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter().into_iter().flatten().collect();
            push_items(items, ['[', ']'], layout, level, text, |item, text| {
                push_json(item, layout, level + 1, text)
            })?;
        }
        _ => text.push_str("null"),
    }
    Ok(())
}

fn push_items<T>(
    items: Vec<T>,
    brackets: [char; 2],
    layout: &JsonLayout,
    level: usize,
    text: &mut String,
    push: impl Fn(&T, &mut String) -> Result<(), Unprintable>,
) -> Result<(), Unprintable> {
    text.push(brackets[0]);
    let line = |level: usize, text: &mut String| {
        if let Some(indent) = &layout.indent {
            text.push('\n');
            text.extend(std::iter::repeat_n(indent.as_str(), level));
        }
    };
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push_str(&layout.item_separator);
        }
        line(level + 1, text);
        push(item, text)?;
    }
    if !items.is_empty() {
        line(level, text);
    }
    text.push(brackets[1]);
    Ok(())
}

/// A key is always a string in JSON; Python's other keys are written as their JSON in quotes.
fn push_key(key: &Value, layout: &JsonLayout, text: &mut String) {
    let spelled = match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => key.is_true().to_string(),
        _ => {
            let mut spelled = String::new();
            push_number(key, &mut spelled, ["Infinity", "-Infinity", "NaN"]);
            spelled
        }
    };
    push_json_string(&spelled, layout, text);
}

fn push_json_string(string: &str, layout: &JsonLayout, text: &mut String) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\0'..='\u{1f}' => {
                let _ = write!(text, "\\u{:04x}", letter as u32);
            }
            _ if layout.ensure_ascii && letter > '~' => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            _ => text.push(letter),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests;
