//! What each field of a JSON answer took: tokens chosen and forced, passes, time.

use std::collections::BTreeMap;

use causeway_constraint::{FieldId, FieldWalker, Part};
use causeway_ledger::{FieldSpent, FieldsAccount, Record, Shown, Step, StepCause, Stop};
use causeway_request::TokenId;
use causeway_text::Tokenizer;
use serde_json::Value;

/// The account of a record by fields; `None` where its policy asks for no JSON.
///
/// A pass belongs to the field of its last token, the one that it was run to choose; what is laid
/// beside that token costs no pass of its own. The prefill is nobody's.
#[must_use]
pub fn fields_of(record: &Record, tokenizer: &Tokenizer) -> Option<FieldsAccount> {
    if !asks_for_json(&record.start.policy.canonical) {
        return None;
    }
    let answer = &record.steps[opening_steps(record)..];
    let visible: Vec<&Step> = answer.iter().filter(|step| step.shown == Shown::Visible).collect();
    let mut walker = FieldWalker::default();
    let prefilled = &record.start.request.effective.prefilled_tokens;
    for token in prefilled {
        walker.token(tokenizer.piece(TokenId(*token)).unwrap_or_default());
    }
    visible.iter().for_each(|step| walker.token(&step.piece.0));
    // Fields are numbered as they begin, the whole answer first.
    let mut fields: BTreeMap<FieldId, FieldSpent> = BTreeMap::new();
    let written = &walker.written()[prefilled.len()..];
    let ends = pass_ends(&record.steps);
    for (index, (written, step)) in written.iter().zip(&visible).enumerate() {
        let spent = fields.entry(written.field).or_insert_with(|| {
            let path = walker.path(written.field).to_owned();
            FieldSpent { path, ..FieldSpent::default() }
        });
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
        let before_ns = ends.range(..step.pass).next_back().map(|(_, end_ns)| *end_ns);
        if let Some(before_ns) = before_ns.filter(|_| is_last) {
            spent.decode_passes += 1;
            spent.decode_ns += step.since_arrival_ns.saturating_sub(before_ns);
        }
    }
    let is_cut = !matches!(
        record.end.stop,
        Stop::SchemaComplete {} | Stop::Eos { .. } | Stop::StopToken { .. }
    );
    let open = is_cut.then(|| walker.path(walker.open()).to_owned());
    Some(FieldsAccount { fields: fields.into_values().collect(), open })
}

/// The record with its account by fields in it, as it is kept.
#[must_use]
pub fn with_fields(mut record: Record, tokenizer: &Tokenizer) -> Record {
    let account = fields_of(&record, tokenizer);
    record.end.set_fields(account);
    record
}

/// When each pass of the run gave its tokens, by its number; the first one is the prefill.
fn pass_ends(steps: &[Step]) -> BTreeMap<u64, u64> {
    steps.iter().map(|step| (step.pass, step.since_arrival_ns)).collect()
}

/// How many steps opened a thought where the answer begins: until their marker was whole, they
/// were shown as a part of the answer.
fn opening_steps(record: &Record) -> usize {
    let first = record.steps.iter().position(|step| step.shown == Shown::Reasoning);
    let Some(count) = first.map(|index| index + 1).filter(|count| *count > 1) else { return 0 };
    let tree: Value = serde_json::from_str(&record.start.policy.canonical).unwrap_or_default();
    let marker = tree["reasoning"]["open"].as_str().unwrap_or_default();
    let pieces = record.steps[..count].iter().flat_map(|step| step.piece.0.iter().copied());
    let written: Vec<u8> = pieces.collect();
    let is_marker = written.trim_ascii_start() == marker.as_bytes();
    if is_marker { count } else { 0 }
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
