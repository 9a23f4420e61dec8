//! Tokens, passes and times of a small answer, by its fields.

use std::sync::Arc;

use causeway_ledger::{FieldsAccount, Measured, RecordBuilder, Store};
use causeway_request::{Cause, Choice, Digest, RequestId, StepOutput, StopReason};

use super::*;
use crate::toy;

/// A record whose answer is `text`, a token a byte, all in passes of their own but those that
/// stand between brackets, which are laid behind the token before them.
fn record(toml: &str, prefill: &str, text: &str, stop: StopReason) -> Record {
    let side = Arc::new(toy::text());
    let (_, start, _) = toy::begun(&side, toml, prefill).unwrap();
    let first = u32::try_from(start.request.effective.prefilled_tokens.len()).unwrap();
    let mut builder = RecordBuilder::new(start);
    let (mut pass, mut is_laid, mut step) = (0, false, first);
    for byte in text.bytes() {
        match byte {
            b'<' | b'>' => {
                is_laid = byte == b'<';
                continue;
            }
            _ => {}
        }
        // What is laid is computed in the pass of the token that is chosen behind it.
        let own = pass;
        pass += u64::from(!is_laid);
        let token = toy::tokens(&side, &char::from(byte).to_string())[0];
        let cause = if is_laid { Cause::Forced } else { Cause::Chosen };
        let output = StepOutput {
            request: RequestId(1),
            step,
            choice: Choice {
                token,
                logprob: -1.0,
                rank: 1,
                probability: 1.0,
                survivors: 1,
                entropy: 0.0,
                raw_best: token,
                removed_by: None,
                runner_up: None,
                cause,
                forced_by: None,
            },
            pass: own,
            rows: 1,
            since_arrival_ns: 100 + 10 * own,
            digest: Digest(0),
            top: Vec::new(),
            stop: None,
        };
        builder.push(&output, [byte]).unwrap();
        step += 1;
    }
    builder.finish(&stop, &Measured::default(), text.replace(['<', '>'], ""))
}

const JSON: &str = "[constraints]\njson_object = true\n";

fn fields(record: &Record) -> FieldsAccount {
    fields_of(record, &toy::text().tokenizer).unwrap()
}

#[test]
fn tokens_passes_and_times_belong_to_fields() {
    let record = record(JSON, "", r#"<{"a":>12<,"b":">x<"}>"#, StopReason::SchemaComplete);
    let FieldsAccount { fields, open } = fields(&record);
    assert_eq!(open, None);
    let told: Vec<_> = fields
        .iter()
        .map(|f| (f.path.as_str(), f.chosen, f.forced, f.decode_passes, f.decode_ns))
        .collect();
    // The first choice is the prefill's; the brace at the end has a pass of its own.
    let want = [("", 0, 3, 1, 10), ("/a", 2, 4, 1, 10), ("/b", 1, 6, 1, 10)];
    assert_eq!(told, want);
    let b = &fields[2];
    assert_eq!((b.key_tokens, b.value_tokens, b.punctuation_tokens), (3, 3, 1));
}

#[test]
fn a_cut_answer_names_its_open_field_and_a_prefill_is_nobodys() {
    let tokens_max = 2;
    let record = record(JSON, r#"{"a":"#, "\"x", StopReason::MaxTokens { tokens_max });
    let FieldsAccount { fields, open } = fields(&record);
    assert_eq!(open.as_deref(), Some("/a"));
    let told: Vec<_> = fields.iter().map(|f| (f.path.as_str(), f.chosen)).collect();
    assert_eq!(told, [("/a", 2)]);
}

#[test]
fn an_answer_that_is_no_json_by_its_policy_has_no_fields() {
    let record = record("", "", "{}", StopReason::Eos { token: TokenId(1) });
    assert_eq!(fields_of(&record, &toy::text().tokenizer), None);
    assert_eq!(with_fields(record, &toy::text().tokenizer).end.fields, None);
    assert!(!asks_for_json(r#"{"constraints":{"min_tokens":3},"schema":1}"#));
}

#[test]
fn what_opens_a_thought_is_no_fields() {
    let toml = format!("{JSON}[reasoning]\nopen = \"(t)\"\nclose = \"(/t)\"\n");
    let mut record = record(&toml, "", r#"(t)so(/t){"a":1}"#, StopReason::SchemaComplete);
    // The marker is known as one with its last token.
    for step in &mut record.steps[2..9] {
        step.shown = Shown::Reasoning;
    }
    let FieldsAccount { fields, .. } = fields(&record);
    let told: Vec<_> = fields.iter().map(|f| (f.path.as_str(), f.chosen)).collect();
    assert_eq!(told, [("", 2), ("/a", 5)]);
}

#[test]
fn a_record_keeps_what_is_derived_from_it_and_replays_as_it_would_without() {
    let tokens_max = 12;
    let stop = StopReason::MaxTokens { tokens_max };
    let cut = record(JSON, "", r#"<{"a":>12<,"b":">x"#, stop);
    let whole = record(JSON, "", r#"<{"a":>1<}>"#, StopReason::SchemaComplete);
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    for old in [cut, whole] {
        let kept = with_fields(old.clone(), &toy::text().tokenizer);
        assert_eq!(kept.end.fields_account(), Some(fields(&old)));
        assert_ne!(kept.id(), old.id());
        assert_eq!(kept.answer_hash(), old.answer_hash());
        assert!(causeway_ledger::compare(&old, &kept).is_proof());
        let id = store.insert(kept.clone()).unwrap();
        let json = causeway_ledger::to_json(&kept).unwrap();
        let of_file = causeway_ledger::from_slice(json.as_bytes()).unwrap();
        for read in [of_file, store.find(&id.to_string()).unwrap()] {
            assert_eq!(read.record, kept);
            assert!(read.is_unchanged());
            assert_eq!(read.record.end.fields_account(), fields_of(&kept, &toy::text().tokenizer));
        }
        // As it was written before records had their fields.
        let json = causeway_ledger::to_json(&old).unwrap();
        assert!(!json.contains("open_field") && !json.contains("fields"), "{json}");
        assert_eq!(causeway_ledger::from_slice(json.as_bytes()).unwrap().record, old);
    }
}
