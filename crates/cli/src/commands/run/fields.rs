//! What each field of an answer took, as lines.

use std::fmt::Write as _;

use causeway_session::{FieldSpent, FieldsAccount};

/// A line for each field, and one for the field that was open at the end.
pub(super) fn table(account: Option<&FieldsAccount>) -> String {
    let Some(FieldsAccount { fields, open }) = account else {
        return "no fields: the policy asks for no JSON\n".to_owned();
    };
    let name = |path: &str| if path.is_empty() { "(whole)".to_owned() } else { path.to_owned() };
    let names: Vec<String> = fields.iter().map(|field| name(&field.path)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
    let mut lines = format!("{:width$}  chosen  forced  decode passes  decode ms\n", "field");
    for (name, field) in names.iter().zip(fields) {
        let FieldSpent { chosen, forced, decode_passes, decode_ns, .. } = field;
        let (ms, tenths) = (decode_ns / 1_000_000, decode_ns / 100_000 % 10);
        let _ = writeln!(
            lines,
            "{name:width$}  {chosen:>6}  {forced:>6}  {decode_passes:>13}  {:>9}",
            format!("{ms}.{tenths}")
        );
    }
    if let Some(open) = open {
        let _ = writeln!(lines, "open at the end: {}", name(open));
    }
    lines
}
