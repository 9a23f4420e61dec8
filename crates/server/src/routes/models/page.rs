//! A page of models, as Anthropic's clients ask for one: so many, before or behind a name.

use crate::error::ApiError;
use crate::short::short;

/// Models of a page where no number is asked for, and at most.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 1_000;

/// Which page is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    limit: usize,
    after: Option<String>,
    before: Option<String>,
}

impl Page {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// A parameter that is unknown or out of range, or two places at once.
    pub(super) fn read(query: &str) -> Result<Self, ApiError> {
        let mut page = Self { limit: LIMIT, after: None, before: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value);
            match name {
                "limit" => page.limit = limit(&value)?,
                "after_id" => page.after = Some(value),
                "before_id" => page.before = Some(value),
                // Clients of a beta say so here, and get the same.
                "beta" => {}
                other => {
                    let shown = short(&decoded(other));
                    let text = format!("unknown parameter `{shown}`");
                    return Err(ApiError::field(shown, text).with_code("unknown_parameter"));
                }
            }
        }
        if page.after.is_some() && page.before.is_some() {
            let text = "`after_id` and `before_id` are given: give one of them";
            return Err(ApiError::field("before_id", text));
        }
        Ok(page)
    }

    /// The names of this page, and whether there are more on its far side.
    ///
    /// # Errors
    /// A place that no model has.
    pub(super) fn of<'n>(&self, names: &[&'n str]) -> Result<(Vec<&'n str>, bool), ApiError> {
        let Self { limit, after, before } = self;
        let place = |field: &'static str, name: &str| {
            names.iter().position(|known| *known == name).ok_or_else(|| {
                let shown = short(name);
                ApiError::field(field, format!("`{field}` is `{shown}`, which no model is called"))
            })
        };
        let (start, end) = match (after, before) {
            (Some(name), _) => (place("after_id", name)? + 1, names.len()),
            (None, Some(name)) => (0, place("before_id", name)?),
            (None, None) => (0, names.len()),
        };
        let count = (end - start).min(*limit);
        let has_more = count < end - start;
        let first = if before.is_some() { end - count } else { start };
        Ok((names[first..first + count].to_vec(), has_more))
    }
}

fn limit(value: &str) -> Result<usize, ApiError> {
    let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| {
        let shown = short(value);
        let text =
            format!("`limit` is `{shown}`, must be a whole number between 1 and {LIMIT_MAX}");
        ApiError::field("limit", text).with_code("invalid_value")
    })
}

/// A value of a query without its escapes; a broken escape is text.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, escaped) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
