//! What each field of a JSON answer took: tokens chosen and forced, passes, time.

use causeway_constraint::{FieldId, FieldWalker, Part};
use causeway_ledger::{Record, Shown, Step, StepCause, Stop};
use causeway_request::TokenId;
use causeway_text::Tokenizer;
use serde::Serialize;
use serde_json::Value;

/// The account of an answer by its fields, in the order in which they began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldsAccount {
    pub fields: Vec<FieldSpent>,
    /// The innermost field that was not finished, where the answer was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
}

/// What one field took; what lies inside it is counted there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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

/// The account of a record by fields; `None` where its policy asks for no JSON.
///
/// A pass belongs to the field of its last token, the one that it was run to choose; what is laid
/// beside that token costs no pass of its own. The prefill is nobody's.
#[must_use]
pub fn fields_of(record: &Record, tokenizer: &Tokenizer) -> Option<FieldsAccount> {
    if !asks_for_json(&record.start.policy.canonical) {
        return None;
    }
    let visible: Vec<&Step> =
        record.steps.iter().filter(|step| step.shown == Shown::Visible).collect();
    let mut walker = FieldWalker::default();
    let prefilled = &record.start.request.effective.prefilled_tokens;
    for token in prefilled {
        walker.token(tokenizer.piece(TokenId(*token)).unwrap_or_default());
    }
    visible.iter().for_each(|step| walker.token(&step.piece.0));
    let mut fields: Vec<(FieldId, FieldSpent)> = Vec::new();
    for (index, written) in walker.written().iter().enumerate().skip(prefilled.len()) {
        let place = fields.iter().position(|(field, _)| *field == written.field);
        let place = place.unwrap_or_else(|| {
            let path = walker.path(written.field).to_owned();
            fields.push((written.field, FieldSpent { path, ..FieldSpent::default() }));
            fields.len() - 1
        });
        let spent = &mut fields[place].1;
        let index = index - prefilled.len();
        let step = visible[index];
        match written.part {
            Part::Key => spent.key_tokens += 1,
            Part::Value => spent.value_tokens += 1,
            Part::Punctuation => spent.punctuation_tokens += 1,
        }
        match step.cause {
            StepCause::Forced => spent.forced += 1,
            _ => spent.chosen += 1,
        }
        let is_last = visible.get(index + 1).is_none_or(|next| next.pass != step.pass);
        if let Some(before) = before(&record.steps, step).filter(|_| is_last) {
            spent.decode_passes += 1;
            spent.decode_ns += step.since_arrival_ns.saturating_sub(before.since_arrival_ns);
        }
    }
    let is_cut = !matches!(
        record.end.stop,
        Stop::SchemaComplete {} | Stop::Eos { .. } | Stop::StopToken { .. }
    );
    let open = is_cut.then(|| walker.path(walker.open()).to_owned());
    let mut fields: Vec<FieldSpent> = fields.into_iter().map(|(_, spent)| spent).collect();
    // The whole answer begins first, and is told first.
    fields.sort_by_key(|spent| !spent.path.is_empty());
    Some(FieldsAccount { fields, open })
}

/// The last step of the pass before this step's; `None` in the first pass, which is the prefill.
fn before<'r>(steps: &'r [Step], step: &Step) -> Option<&'r Step> {
    let first = steps.iter().position(|other| other.pass == step.pass)?;
    steps.get(first.checked_sub(1)?)
}

/// Whether a policy's canonical form asks for JSON.
fn asks_for_json(canonical: &str) -> bool {
    if !canonical.contains("\"constraints\"") {
        return false;
    }
    let tree: Value = serde_json::from_str(canonical).unwrap_or_default();
    ["schema", "json_object"].iter().any(|field| !tree["constraints"][field].is_null())
}

#[cfg(test)]
mod tests;
