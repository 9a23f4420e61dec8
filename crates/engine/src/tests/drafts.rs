//! Drafts spare passes and change nothing else.

use super::held::{form, held, run_one};
use super::*;
use crate::{Drafts, PassAccount};

fn drafting(running_max: usize, budget: usize) -> Limits {
    Limits { drafts: Drafts::All, ..Limits::new(running_max, budget) }
}

/// Chooses one token again and again, so that each draft is right.
fn monotonous() -> Policy {
    let mut file = PolicyFile::default();
    file.choose.method = Method::Greedy;
    file.constraints.logit_bias = vec![(TokenId(7), 1000.0)];
    Policy::from_file(&file, VOCAB_SIZE, &[]).unwrap()
}

/// Draws one of a few tokens, so that much is drafted and most of it is wrong.
fn erratic() -> Policy {
    let mut file = PolicyFile::default();
    file.constraints.allowed_tokens = (20..23).map(TokenId).collect();
    file.shape.temperature = 50.0;
    Policy::from_file(&file, VOCAB_SIZE, &[]).unwrap()
}

/// A prompt that says the same tokens over and over, so that much is drafted.
fn repeating(id: u64, period: u32, prompt_len: u32, tokens_max: usize) -> Request {
    let tokens = (0..prompt_len).map(|i| TokenId(i % period + 20)).collect();
    Request { tokens, ..request(id, 1, tokens_max) }
}

/// A run alone, as it is without drafts and as it is with them: equal but for its passes.
fn check(submission: impl Fn() -> Submission) -> (Vec<StepOutput>, PassAccount) {
    let (want, stop, plain) = run_one(submission(), Limits::new(1, 512));
    let (got, drafted_stop, account) = run_one(submission(), drafting(1, 512));
    assert_eq!(bits(&got), bits(&want));
    assert_eq!(drafted_stop, stop);
    let has_form = submission().guide.is_some();
    let spared = plain.decode_passes - account.decode_passes;
    assert_eq!(account.steps, plain.steps);
    assert_eq!(account.unscheduled_steps, plain.unscheduled_steps);
    assert_eq!(plain.drafted_tokens, 0);
    // What is laid behind an accepted draft may be left for a pass of its own.
    assert!(spared <= account.accepted_tokens, "{spared} passes for {account:?}");
    assert!(has_form || spared == account.accepted_tokens, "{spared} passes for {account:?}");
    assert!(account.accepted_tokens <= account.drafted_tokens);
    (got, account)
}

#[test]
fn a_right_draft_spares_a_pass() {
    let (steps, account) = check(|| Submission::new(request(0, 5, 30), monotonous(), 0));
    assert!(steps.iter().all(|step| step.choice.token == TokenId(7)));
    assert!(account.accepted_tokens >= 12, "{account:?}");
    assert!(account.decode_passes <= 17, "{account:?}");
}

#[test]
fn a_wrong_draft_leaves_nothing_behind() {
    for period in [2, 3, 5] {
        for policy in [greedy(), sampled()] {
            check(|| Submission::new(repeating(3, period, 40, 60), policy.clone(), 0));
        }
        let (_, account) = check(|| Submission::new(repeating(3, period, 40, 60), erratic(), 0));
        assert!(account.drafted_tokens > 0, "{account:?}");
        assert!(account.accepted_tokens < account.drafted_tokens, "{account:?}");
    }
}

#[test]
fn every_end_comes_where_it_would_have_come() {
    for tokens_max in 1..=24 {
        check(|| Submission::new(request(0, 5, tokens_max), monotonous(), 0));
    }
    for prompt_len in 170..200 {
        check(|| Submission::new(request(0, prompt_len, 50), monotonous(), 0));
    }
    for (eos, stop) in [(vec![TokenId(7)], vec![]), (vec![], vec![TokenId(7)])] {
        let ended = || {
            let mut request = repeating(0, 3, 30, 40);
            (request.eos_tokens, request.stop_tokens) = (eos.clone(), stop.clone());
            request
        };
        check(|| Submission::new(ended(), sampled(), 0));
        check(|| Submission::new(ended(), monotonous(), 0));
    }
}

#[test]
fn forms_are_read_as_far_as_they_were_chosen() {
    for (whole, lost) in (1..30).map(|n| (n, 99)).chain((1..30).map(|n| (99, n))) {
        for policy in [monotonous(), sampled()] {
            check(|| held(request(0, 7, 40), policy.clone(), form(2, whole, lost)));
        }
    }
}

#[test]
fn only_who_asks_for_it_is_drafted_for() {
    let drafted = |limits: Limits, submission: Submission| {
        let (_, _, account) = run_one(submission, limits);
        account.drafted_tokens > 0
    };
    let limits = |drafts| Limits { drafts, ..Limits::new(1, 512) };
    let plain = || Submission::new(request(0, 5, 20), monotonous(), 0);
    let of_form = || held(request(0, 5, 40), greedy(), form(2, 99, 99));
    assert!(!drafted(limits(Drafts::Forms), plain()));
    assert!(drafted(limits(Drafts::All), plain()));
    assert!(drafted(limits(Drafts::Forms), of_form()));
    let slow = Limits { fast_forward: false, ..limits(Drafts::All) };
    assert!(!drafted(slow, of_form()), "each token has a pass of its own");
}

#[test]
fn many_runs_are_not_drafted_for_and_few_are() {
    for (count, is_drafted) in [(1_u64, true), (2, true), (3, false), (8, false)] {
        let mut engine = engine_of("llama", 200, drafting(8, 512));
        for id in 0..count {
            engine.submit(Submission::new(request(id, 5, 30), monotonous(), 0)).unwrap();
        }
        let outputs = run_all(&mut engine, |engine, _| {
            assert!(engine.last_pass().decode_rows <= usize::try_from(count).unwrap().max(4));
        });
        let drafted = outputs.iter().any(
            |output| matches!(output, Output::Ended(ended) if ended.account.drafted_tokens > 0),
        );
        assert_eq!(drafted, is_drafted, "{count}");
    }
}

/// Three runs that draft much, of which the first loses its blocks once: their bits.
fn together(engine: &mut Engine) -> Vec<Vec<(u32, u128)>> {
    for (id, policy) in (0..).zip([monotonous(), greedy(), erratic()]) {
        engine.submit(Submission::new(of_three(id), policy, 0)).unwrap();
    }
    let outputs = run_all(engine, |engine, pass| {
        if pass == 40 {
            engine.preempt(RequestId(0));
        }
    });
    (0..3).map(|id| bits(&steps_of(&outputs, id))).collect()
}

fn of_three(id: u64) -> Request {
    repeating(id, 3 + u32::try_from(id).unwrap(), 50, 60)
}

#[test]
fn no_neighbour_chunk_cache_window_or_recomputation_changes_a_bit() {
    let sizes = [(1, 512, true), (2, 512, true), (2, 3, false), (1, 2, true), (3, 16, true)];
    for (model, sizes) in ["llama", "gemma3"].iter().flat_map(|m| sizes.map(|sizes| (m, sizes))) {
        let (running_max, budget, prefix_cache) = sizes;
        let want: Vec<_> = (0..)
            .zip([monotonous(), greedy(), erratic()])
            .map(|(id, policy)| bits(&alone_on(model, of_three(id), policy)))
            .collect();
        let limits = Limits { prefix_cache, ..drafting(running_max, budget) };
        let mut engine = engine_of(model, 200, limits);
        for round in 0..2 {
            assert_eq!(together(&mut engine), want, "{model} {limits:?} {round}");
        }
    }
}
