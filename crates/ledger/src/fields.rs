//! What each field of a JSON answer took, as its record keeps it.

use serde::{Deserialize, Serialize};

use crate::End;
use crate::names::shown_name;
use crate::report::add_line;

/// The account of an answer by its fields, in the order in which they began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsAccount {
    pub fields: Vec<FieldSpent>,
    /// The innermost field that was not finished, where the answer was cut.
    pub open: Option<String>,
}

/// What one field took; what lies inside it is counted there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldSpent {
    /// A JSON pointer with `*` for every item of an array; the whole answer is the empty path.
    pub path: String,
    /// Tokens of its name, of its value, and of brackets, colons, commas and white space.
    pub key_tokens: u64,
    pub value_tokens: u64,
    pub punctuation_tokens: u64,
    /// Of all these, those that were chosen and those that the form left no choice about.
    pub chosen: u64,
    pub forced: u64,
    /// Decode passes whose last token is one of its tokens.
    pub decode_passes: u64,
    /// Nanoseconds of these passes, from the token before to their last token.
    pub decode_ns: u64,
}

impl End {
    /// Writes down what each field took, or that the answer has none.
    pub fn set_fields(&mut self, account: Option<FieldsAccount>) {
        (self.fields, self.open_field) = match account {
            Some(FieldsAccount { fields, open }) => (Some(fields), open),
            None => (None, None),
        };
    }

    /// What each field took; `None` where the answer has no form in JSON, or the record was
    /// written before records said it.
    #[must_use]
    pub fn fields_account(&self) -> Option<FieldsAccount> {
        let fields = self.fields.clone()?;
        Some(FieldsAccount { fields, open: self.open_field.clone() })
    }
}

/// A line for each field under a line of headings, and one for the field that was open at the
/// end; `None` for an answer without fields.
#[must_use]
pub fn fields_table(end: &End) -> Option<String> {
    let fields = end.fields.as_ref()?;
    let name = |path: &str| if path.is_empty() { "(whole)".to_owned() } else { shown_name(path) };
    let names: Vec<String> = fields.iter().map(|field| name(&field.path)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
    let heads = format_args!("{:width$}  chosen  forced  decode passes  decode ms", "field");
    let mut lines = String::new();
    add_line(&mut lines, heads);
    for (name, field) in names.iter().zip(fields) {
        let FieldSpent { chosen, forced, decode_passes, decode_ns, .. } = field;
        let ms = format!("{}.{}", decode_ns / 1_000_000, decode_ns / 100_000 % 10);
        let cells =
            format_args!("{name:width$}  {chosen:>6}  {forced:>6}  {decode_passes:>13}  {ms:>9}");
        add_line(&mut lines, cells);
    }
    if let Some(open) = &end.open_field {
        add_line(&mut lines, format_args!("open at the end: {}", name(open)));
    }
    Some(lines)
}
