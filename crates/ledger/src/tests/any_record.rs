//! Any record that can be written, drawn field by field.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::sample;
use crate::{
    DraftCount, FieldSpent, FieldsAccount, LogitsDigest, MaskWaits, Piece, Reasons, Record,
    RunnerUp, Shown, Step, StepCause, Stop,
};

/// Every fraction that JSON can hold: zeros of both signs and subnormals too.
fn fraction() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

fn reasons() -> impl Strategy<Value = Reasons> {
    let numbers = (option::of(fraction()), any::<u32>(), fraction(), any::<u32>(), fraction());
    let stage = option::of("[a-z_\u{0}-\u{20}é]{0,8}");
    (numbers, any::<u32>(), stage, option::of((any::<u32>(), fraction()))).prop_map(
        |((logprob, rank, probability, survivors, entropy), raw_best, removed_by, second)| {
            let runner_up = second.map(|(token, probability)| RunnerUp { token, probability });
            Reasons {
                logprob,
                rank,
                probability,
                survivors,
                entropy,
                raw_best,
                removed_by,
                forced_by: None,
                runner_up,
            }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let causes =
        prop::sample::select(vec![StepCause::Chosen, StepCause::Forced, StepCause::Prefilled]);
    let shown = prop::sample::select(vec![Shown::Visible, Shown::Reasoning, Shown::Hidden]);
    let token = (any::<u32>(), vec(any::<u8>(), 0..12), causes, shown);
    (token, reasons(), any::<(u64, u32, u32, u128)>()).prop_map(
        |((token, piece, cause, shown), reasons, (pass, rows, since, digest))| Step {
            step: 0,
            token,
            piece: Piece(piece),
            cause,
            shown,
            reasons,
            pass,
            rows,
            since_arrival_ns: u64::from(since),
            digest: LogitsDigest(digest),
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    (0..u32::MAX - 40, vec(step(), 0..24)).prop_map(|(first, mut steps)| {
        let mut ns = 0;
        for (index, step) in (first..).zip(&mut steps) {
            ns += step.since_arrival_ns;
            step.step = index;
            step.since_arrival_ns = ns;
            if index % 3 == 0 {
                step.reasons.raw_best = step.token;
            }
            if index % 2 == 0 && step.cause == StepCause::Forced {
                step.reasons.forced_by = Some(format!("field {}", index % 5));
            }
        }
        steps
    })
}

fn fields() -> impl Strategy<Value = Option<FieldsAccount>> {
    let field = (any::<String>(), any::<[u64; 7]>()).prop_map(|(path, numbers)| FieldSpent {
        path,
        key_tokens: numbers[0],
        value_tokens: numbers[1],
        punctuation_tokens: numbers[2],
        chosen: numbers[3],
        forced: numbers[4],
        decode_passes: numbers[5],
        decode_ns: numbers[6],
    });
    option::of((vec(field, 0..4), option::of(any::<String>())))
        .prop_map(|account| account.map(|(fields, open)| FieldsAccount { fields, open }))
}

pub(crate) fn records() -> impl Strategy<Value = Record> {
    let tokens = (vec(any::<u32>(), 0..40), vec(any::<u32>(), 0..4));
    let texts = (option::of(any::<String>()), any::<String>(), any::<String>());
    let numbers = (any::<[u64; 6]>(), option::of(any::<u64>()), any::<bool>());
    (steps(), fields(), tokens, texts, numbers, vec(any::<u8>(), 0..200)).prop_map(
        |(
            steps,
            fields,
            (prompt_tokens, prefilled_tokens),
            texts,
            (numbers, some, flag),
            bytes,
        )| {
            let mut record = sample();
            record.steps = steps;
            let (prompt, answer, name) = texts;
            let received = serde_json::json!({ &name: [numbers[0], name, some, -1.5e-9] });
            record.start.request.received = received;
            let effective = &mut record.start.request.effective;
            effective.prompt = prompt;
            effective.prompt_tokens = prompt_tokens;
            effective.prefilled_tokens = prefilled_tokens;
            effective.seed = numbers[1];
            effective.tokens_max = numbers[2];
            // A record that someone edited keeps hashes of what it no longer has.
            record.start.policy.canonical = String::from_utf8_lossy(&bytes).into_owned();
            record.start.policy.greedy = flag;
            record.start.template = record.start.template.filter(|_| flag);
            record.start.model.name = name;
            record.end.text = answer;
            record.end.stop = if flag { Stop::SchemaComplete {} } else { record.end.stop };
            record.end.set_fields(fields);
            record.end.account.masks = MaskWaits::of(numbers[3], numbers[4], numbers[5]);
            record.end.account.drafts = DraftCount::of(numbers[4], numbers[5]);
            let times = &mut record.end.account.times;
            times.scheduled_unix_ms = numbers[3];
            times.ttft_ns = some;
            times.total_ns = numbers[4];
            record.end.account.tokens.cached = numbers[5];
            record
        },
    )
}
