//! Verdicts: each cause, each place, runs cut short, and what comes first.

use causeway_request::{Canceller, StopReason, TokenId};

use super::*;
use crate::Sha256;
use crate::tests::{run, sample};

/// The verdict in one line: outcome, equal steps, and where and why the runs part.
fn line(verdict: &Verdict) -> String {
    let outcome = match verdict.outcome {
        Outcome::Equal => "equal",
        Outcome::EqualSoFar => "equal so far",
        Outcome::Different => "different",
    };
    let steps = verdict.equal_steps;
    let Some(difference) = &verdict.difference else { return format!("{outcome}, {steps} steps") };
    let place = match &difference.place {
        Place::Step { step, .. } => format!("step {step} in {}", difference.fields.join(" ")),
        Place::End { after_steps, .. } => format!("end after {after_steps}"),
        Place::Text => "text".to_owned(),
    };
    let from = difference.reasons_from.map(|step| format!(", reasons from {step}"));
    let from = from.unwrap_or_default();
    format!("{outcome}, {steps} steps, {place}{from}: {:?}", difference.cause)
}

fn check(a: &Record, b: &Record, want: &str) -> Verdict {
    let verdict = compare(a, b);
    assert_eq!(line(&verdict), want);
    // The other way round the runs part at the same place for the same cause.
    assert_eq!(line(&compare(b, a)), want);
    assert_eq!(verdict.is_equal(), verdict.difference.is_none());
    verdict
}

/// Compares the sample with a changed copy of it.
fn check_change(change: impl Fn(&mut Record), want: &str) -> Verdict {
    let mut changed = sample();
    change(&mut changed);
    check(&sample(), &changed, want)
}

/// Other logits from this step on.
fn other_logits(record: &mut Record, from: usize) {
    record.steps[from..].iter_mut().for_each(|step| step.digest.0 ^= 1);
}

/// Another token at this step, and with it other logits after it.
fn other_token(record: &mut Record, at: usize) {
    record.steps[at].token = 9;
    record.steps[at].reasons.logprob = Some(-9.0);
    other_logits(record, at + 1);
}

fn other_policy(record: &mut Record) {
    record.start.policy.canonical = r#"{"choose":"sample"}"#.to_owned();
    record.start.policy.sha256 = Sha256::of(record.start.policy.canonical.as_bytes());
}

fn greedy(mut record: Record) -> Record {
    record.start.policy.greedy = true;
    record
}

#[test]
fn a_run_equals_itself_wherever_and_whenever_it_ran() {
    check_change(|_| {}, "equal, 5 steps");
    check_change(
        |record| {
            record.start.conditions.threads = 1;
            record.start.request.id = 9;
            record.steps[0].pass = 8;
            record.steps[0].rows = 8;
            record.steps[0].since_arrival_ns = 8;
        },
        "equal, 5 steps",
    );
}

#[test]
fn another_model_explains_other_logits_before_all_else() {
    let want = "different, 0 steps, step 0 in digest: Model";
    let weights = |record: &mut Record| record.start.model.sha256 = Sha256::of(b"others");
    check_change(|record| (weights(record), other_logits(record, 0)).1, want);
    // Another model reads the prompt as other tokens, too.
    check_change(
        |record| {
            weights(record);
            record.start.request.effective.prompt_tokens[0] = 0;
            other_policy(record);
            other_logits(record, 0);
        },
        want,
    );
    check_change(|record| (record.start.model.settings.clear(), other_logits(record, 0)).1, want);
}

#[test]
fn another_prompt_is_another_sequence() {
    let verdict = check_change(
        |record| {
            record.start.request.effective.prompt_tokens[2] = 0;
            other_logits(record, 0);
        },
        "different, 0 steps, step 0 in digest: Sequence",
    );
    assert!(verdict.sentence.starts_with("sequence differed"), "{}", verdict.sentence);
    assert!(verdict.sentence.contains("from position 2 on"), "{}", verdict.sentence);
}

#[test]
fn the_same_tokens_may_be_prefill_in_one_run_only() {
    let verdict = check_change(
        |record| {
            let asked = &mut record.start.request.effective;
            asked.prompt_tokens.append(&mut asked.prefilled_tokens);
            record.steps[1].token = 9;
        },
        "different, 1 steps, step 1 in token: Sequence",
    );
    assert!(verdict.sentence.contains("as response prefill"), "{}", verdict.sentence);
}

#[test]
fn same_model_and_same_sequence_with_other_logits_is_numerics() {
    let want = "different, 2 steps, step 2 in digest: Numerics";
    let verdict = check_change(|record| other_logits(record, 2), want);
    assert!(verdict.sentence.contains("no setting explains it"), "{}", verdict.sentence);
    let verdict = check_change(
        |record| {
            record.start.numerics = crate::Numerics { version: 2, kv_type: "f32".to_owned() };
            other_logits(record, 2);
        },
        want,
    );
    let named = "(numerics version 1 and 2, KV type f16 and f32)";
    assert!(verdict.sentence.ends_with(named), "{}", verdict.sentence);
}

#[test]
fn same_logits_under_another_policy_is_policy() {
    let verdict = check_change(
        |record| {
            other_policy(record);
            // A seed of its own as well: the policy is what explains more.
            record.start.request.effective.seed = 1;
            other_token(record, 3);
        },
        "different, 3 steps, step 3 in token logprob: Policy",
    );
    let named = "(policy.shape.0.temperature 0.7 and absent)";
    assert!(verdict.sentence.ends_with(named), "{}", verdict.sentence);
}

#[test]
fn a_policy_whose_reasons_alone_differ_is_named_at_its_first_step() {
    let reasons = |record: &mut Record| {
        other_policy(record);
        record.steps[1..].iter_mut().for_each(|step| step.reasons.probability /= 2.0);
    };
    check_change(reasons, "different, 1 steps, step 1 in probability: Policy");
    check_change(
        |record| {
            reasons(record);
            other_token(record, 3);
        },
        "different, 3 steps, step 3 in token logprob probability, reasons from 1: Policy",
    );
    // A policy that differs in its name only gives the same answer.
    let verdict = check_change(other_policy, "equal, 5 steps");
    assert_eq!(verdict.settings[0].name, "policy");
}

#[test]
fn same_logits_and_policy_with_another_key_is_the_draw() {
    let want = "different, 3 steps, step 3 in token logprob: Draw";
    let seed = |record: &mut Record| record.start.request.effective.seed = 1;
    let choice = |record: &mut Record| record.start.request.effective.choice = 0;
    let verdict = check_change(|record| (seed(record), other_token(record, 3)).1, want);
    let named = "(seed 18446744073709551615 and 1)";
    assert!(verdict.sentence.ends_with(named), "{}", verdict.sentence);
    check_change(|record| (choice(record), other_token(record, 3)).1, want);
    check_change(seed, "equal, 5 steps");
}

#[test]
fn same_logits_policy_and_key_can_only_be_another_result_of_the_policy() {
    let want = "different, 3 steps, step 3 in token logprob: Policy";
    let verdict = check_change(|record| other_token(record, 3), want);
    let named = "but another result of it (token, logprob)";
    assert!(verdict.sentence.contains(named), "{}", verdict.sentence);
    let changed = |record: &mut Record| record.steps[2].reasons.survivors = 9;
    check_change(changed, "different, 2 steps, step 2 in survivors: Policy");
}

#[test]
fn under_greedy_it_is_never_a_draw() {
    let (a, mut b) = (greedy(sample()), greedy(sample()));
    b.start.request.effective.seed = 1;
    other_token(&mut b, 3);
    let verdict = check(&a, &b, "different, 3 steps, step 3 in token logprob: Policy");
    assert!(verdict.greedy);
    assert!(verdict.sentence.contains("it cannot be a draw"), "{}", verdict.sentence);
    // The logits are the same: what differs is no sequence and no model, and a seed that nothing
    // reads is no setting.
    let said = "it cannot be a draw, a different sequence or a different model";
    assert!(verdict.sentence.ends_with(said), "{}", verdict.sentence);
    assert!(verdict.sentence.contains("or a record was changed"), "{}", verdict.sentence);
    assert_eq!(verdict.settings, []);
    let mut b = greedy(sample());
    b.start.request.effective.prompt_tokens[0] = 0;
    other_logits(&mut b, 0);
    let verdict = check(&a, &b, "different, 0 steps, step 0 in digest: Sequence");
    let meaning = "a difference means a different sequence before it";
    assert!(verdict.sentence.contains(meaning), "{}", verdict.sentence);
    // Greedy against sampled is another policy.
    let verdict = compare(&a, &sample());
    assert!(!verdict.greedy);
}

#[test]
fn every_field_that_exactness_promises_is_compared() {
    let want = |field: &str| format!("different, 1 steps, step 1 in {field}: Policy");
    let check_field = |field: &str, change: fn(&mut Step)| {
        check_change(|record| change(&mut record.steps[1]), &want(field));
    };
    check_field("cause", |step| step.cause = crate::StepCause::Forced);
    check_field("logprob", |step| step.reasons.logprob = None);
    check_field("rank", |step| step.reasons.rank = 7);
    check_field("probability", |step| step.reasons.probability = -0.0);
    check_field("survivors", |step| step.reasons.survivors = 7);
    check_field("entropy", |step| step.reasons.entropy = 7.0);
    check_field("raw_best", |step| step.reasons.raw_best = 7);
    check_field("removed_by", |step| step.reasons.removed_by = None);
    check_field("forced_by", |step| step.reasons.forced_by = Some("a field".to_owned()));
    check_field("runner_up", |step| step.reasons.runner_up = None);
    // Zeros of either sign are other bits.
    let mut zero = sample();
    zero.steps[1].reasons.probability = 0.0;
    let mut negative = sample();
    negative.steps[1].reasons.probability = -0.0;
    check(&zero, &negative, &want("probability"));
    let mut later = sample();
    later.steps.iter_mut().for_each(|step| step.step += 1);
    let want = "different, 0 steps, step 0 in step: Policy";
    assert_eq!(line(&compare(&sample(), &later)), want);
}

#[test]
fn a_longer_run_parts_where_the_shorter_one_ends() {
    let max = |tokens_max| StopReason::MaxTokens { tokens_max };
    let eos = StopReason::Eos { token: TokenId(102) };
    let unchanged = |_: &mut _| {};
    let mut shorter = run(3, &max(3), unchanged);
    shorter.start.request.effective.tokens_max = 3;
    let verdict = check(&shorter, &sample(), "different, 3 steps, end after 3: Limits");
    assert!(verdict.sentence.ends_with("(tokens_max 3 and 64)"), "{}", verdict.sentence);
    let shorter = run(3, &eos, unchanged);
    check(&shorter, &sample(), "different, 3 steps, end after 3: Policy");
    let mut shorter = run(3, &eos, unchanged);
    other_policy(&mut shorter);
    check(&shorter, &sample(), "different, 3 steps, end after 3: Policy");
    // As many steps, another reason to stop.
    let verdict =
        check(&run(5, &eos, unchanged), &sample(), "different, 5 steps, end after 5: Policy");
    let reason = "equal steps and the same policy file, but another result of it (stop)";
    assert!(verdict.sentence.contains(reason), "{}", verdict.sentence);
    let mut empty = run(0, &eos, unchanged);
    empty.start.request.effective.prompt_tokens[0] = 0;
    check(&empty, &sample(), "different, 0 steps, end after 0: Sequence");
}

#[test]
fn the_text_is_compared_when_all_tokens_are_equal() {
    let verdict = check_change(
        |record| {
            record.end.text.push('x');
            record.start.model.tokenizer_sha256 = None;
        },
        "different, 5 steps, text: Text",
    );
    assert!(verdict.sentence.contains("(tokenizer "), "{}", verdict.sentence);
}

#[test]
fn a_run_cut_short_is_equal_as_far_as_it_ran() {
    let cancelled = StopReason::Cancelled { by: Canceller::Client, after_step: 3 };
    let deadline = StopReason::Deadline { after_step: 3 };
    let failed =
        StopReason::Error { message: "out of memory".to_owned(), is_callers_mistake: false };
    for stop in [cancelled, deadline, failed] {
        let cut = run(3, &stop, |_| {});
        check(&cut, &sample(), "equal so far, 3 steps");
        check(&cut, &cut.clone(), "equal so far, 3 steps");
        check(&cut, &run(2, &stop, |_| {}), "equal so far, 2 steps");
        check(&run(0, &stop, |_| {}), &sample(), "equal so far, 0 steps");
        // The budget of the replay is what the record ran.
        let replay = run(3, &StopReason::MaxTokens { tokens_max: 3 }, |_| {});
        check(&cut, &replay, "equal so far, 3 steps");
        // A run that ends by itself before the other was cut is another run.
        let shorter = run(2, &StopReason::Eos { token: TokenId(101) }, |_| {});
        check(&cut, &shorter, "different, 2 steps, end after 2: Policy");
        let mut other = cut.clone();
        other_token(&mut other, 1);
        check(&other, &sample(), "different, 1 steps, step 1 in token logprob: Policy");
    }
}

#[test]
fn a_replay_that_was_cut_short_proves_nothing() {
    let cancelled = StopReason::Cancelled { by: Canceller::Client, after_step: 3 };
    let cut = run(3, &cancelled, |_| {});
    assert!(compare(&cut, &sample()).is_proof());
    assert!(!compare(&sample(), &cut).is_proof());
    assert!(compare(&sample(), &sample()).is_proof());
    let mut other = sample();
    other_logits(&mut other, 4);
    assert!(!compare(&sample(), &other).is_proof());
}
