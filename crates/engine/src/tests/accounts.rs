//! Queues, deadlines and cancels: every run ends once, with an account of what it took.

use causeway_request::{Canceller, Priority, RequestId, StopReason, TokenId};

use super::{alone, bits, engine, greedy, request, run_all, steps_of, submission};
use crate::choosing::{Fault, guarded};
use crate::{Ended, Engine, Limits, Output, PassAccount, Refusal, Submission};

fn ended(outputs: &[Output]) -> Vec<&Ended> {
    fn end(output: &Output) -> Option<&Ended> {
        if let Output::Ended(ended) = output { Some(ended) } else { None }
    }
    outputs.iter().filter_map(end).collect()
}

/// Steps at `1_000, 2_000, …` until `stop` says so or everyone is gone.
fn run_until(engine: &mut Engine, mut stop: impl FnMut(&Engine) -> bool) -> Vec<Output> {
    let (mut outputs, mut now) = (Vec::new(), 0);
    for _ in 0..500 {
        if engine.is_idle() || stop(engine) {
            break;
        }
        now += 1_000;
        outputs.extend(engine.step(&mut || now));
    }
    outputs
}

#[test]
fn an_account_counts_passes_and_time() {
    let mut engine = engine(200, 1, 16);
    engine.submit(submission(0, 40, 4)).unwrap();
    engine.submit(submission(1, 3, 2)).unwrap();
    let outputs = run_until(&mut engine, |_| false);
    let accounts: Vec<PassAccount> = ended(&outputs).iter().map(|end| end.account).collect();
    let first = PassAccount {
        prompt_tokens: 40,
        steps: 4,
        prefill_passes: 3,
        decode_passes: 3,
        queued_ns: Some(1_000),
        ..PassAccount::default()
    };
    let second = PassAccount {
        prompt_tokens: 3,
        steps: 2,
        prefill_passes: 1,
        decode_passes: 1,
        queued_ns: Some(7_000),
        ..PassAccount::default()
    };
    assert_eq!(accounts, [first, second]);
    assert_eq!(engine.pass_count(), 8);
}

#[test]
fn a_full_queue_is_refused_with_its_length() {
    let mut engine = super::engine_of("llama", 64, Limits { queue_max: 2, ..Limits::new(1, 512) });
    for id in 0..3 {
        engine.submit(submission(id, 3, 2)).unwrap();
    }
    let full = Refusal::QueueFull { waiting: 2, came: 1, queue_max: 2 };
    assert_eq!(engine.submit(submission(3, 3, 2)).unwrap_err(), full);
    assert!(!full.is_callers_mistake());
    // What can never run is told so, and not to come again.
    let mut impossible = submission(3, 3, 2);
    impossible.request.tokens[1] = TokenId(u32::MAX);
    assert!(engine.submit(impossible).unwrap_err().is_callers_mistake());
    run_all(&mut engine, |_, _| ());
    // All choices of one prompt, or none.
    let choices = |count: u64| (10..10 + count).map(|id| submission(id, 3, 2)).collect();
    assert_eq!(engine.submit_all(choices(4)).unwrap_err().to_string(), {
        "the queue is full: 0 requests wait, 4 more came, the limit is 2"
    });
    assert!(engine.is_idle());
    engine.submit_all(choices(3)).unwrap();
    assert_eq!(engine.request_count(), 3);
}

#[test]
fn cancels_reach_the_queue_the_prefill_and_the_decode() {
    for (before, want_steps, want_passes) in [(0, 0, (0, 0)), (2, 0, (2, 0)), (6, 4, (3, 3))] {
        let mut engine = engine(200, 2, 16);
        engine.submit(submission(0, 40, 50)).unwrap();
        let mut passes = 0;
        run_until(&mut engine, |_| {
            passes += 1;
            passes > before
        });
        let end = engine.cancel(RequestId(0), Canceller::Disconnect).unwrap();
        let stop = StopReason::Cancelled { by: Canceller::Disconnect, after_step: want_steps };
        assert_eq!(end.stop, stop);
        let account = end.account;
        assert_eq!((account.prefill_passes, account.decode_passes), want_passes);
        assert_eq!(
            (account.steps, account.unscheduled_steps),
            (want_steps, 50 - want_steps as usize)
        );
        assert_eq!(account.queued_ns, (before > 0).then_some(1_000));
        assert_eq!(engine.load().held_blocks, 0);
        assert!(engine.is_idle() && engine.step(&mut || 0).is_empty());
        assert_eq!(engine.cancel(RequestId(0), Canceller::Disconnect), None);
    }
}

#[test]
fn a_deadline_ends_a_run_wherever_it_is() {
    for (deadline_ns, want_steps) in [(1_000, 0), (2_500, 0), (6_500, 4)] {
        let mut engine = engine(200, 1, 16);
        let deadline_ns = Some(deadline_ns);
        engine.submit(Submission { deadline_ns, ..submission(0, 40, 50) }).unwrap();
        engine.submit(submission(1, 4, 3)).unwrap();
        let outputs = run_until(&mut engine, |_| false);
        assert_eq!(steps_of(&outputs, 0).len(), want_steps as usize);
        let ended = ended(&outputs);
        assert_eq!(ended[0].stop, StopReason::Deadline { after_step: want_steps });
        assert!(!ended[0].account.is_wait_over);
        let alone = alone(request(1, 4, 3), greedy());
        assert_eq!(bits(&steps_of(&outputs, 1)), bits(&alone));
    }
}

#[test]
fn who_waits_too_long_ends_without_a_pass() {
    let limits = Limits { wait_ns_max: Some(5_000), ..Limits::new(1, 64) };
    let mut engine = super::engine_of("llama", 200, limits);
    engine.submit(submission(0, 4, 30)).unwrap();
    engine.submit(submission(1, 4, 3)).unwrap();
    let outputs = run_until(&mut engine, |_| false);
    let ended = ended(&outputs);
    assert_eq!((ended[0].request, &ended[0].stop), {
        (RequestId(1), &StopReason::Deadline { after_step: 0 })
    });
    assert!(ended[0].account.is_wait_over);
    assert_eq!(ended[0].account.queued_ns, None);
    assert_eq!(ended[1].account.steps, 30, "who runs is not waiting");
}

#[test]
fn an_urgent_request_takes_the_slot_and_the_other_goes_on_after_it() {
    let want = alone(request(0, 20, 8), greedy());
    for prefix_cache in [true, false] {
        let mut engine =
            super::engine_of("llama", 200, Limits { prefix_cache, ..Limits::new(1, 64) });
        engine.submit(Submission { priority: Priority::Idle, ..submission(0, 20, 8) }).unwrap();
        let outputs = run_all(&mut engine, |engine, pass| {
            if pass == 3 {
                engine.submit(submission(1, 5, 2)).unwrap();
            }
        });
        assert_eq!(bits(&steps_of(&outputs, 0)), bits(&want));
        let ends: Vec<u64> = ended(&outputs).iter().map(|end| end.request.0).collect();
        assert_eq!(ends, [1, 0]);
        assert_eq!(ended(&outputs)[1].account.preemptions, 1);
        assert_eq!(ended(&outputs)[1].account.cached_tokens, 0, "its own blocks are no hit");
        assert_eq!(engine.load().preemptions, 1);
    }
}

#[test]
fn a_stop_from_outside_is_the_runs_own_end() {
    let mut engine = engine(200, 1, 64);
    engine.submit(submission(0, 5, 9)).unwrap();
    engine.step(&mut || 0);
    let stop = StopReason::StopString { string: "END".to_owned() };
    let end = engine.end(RequestId(0), stop.clone()).unwrap();
    assert_eq!((end.stop, end.account.steps, end.account.unscheduled_steps), (stop.clone(), 1, 8));
    assert_eq!(engine.end(RequestId(0), stop), None);
}

#[test]
fn the_budget_stays_within_the_limit_it_was_started_with() {
    let mut engine = engine(200, 1, 64);
    assert_eq!([0, 10, 64, 900].map(|budget| engine.set_budget(budget)), [1, 10, 64, 64]);
    engine.set_budget(10);
    engine.submit(submission(0, 25, 2)).unwrap();
    let mut rows = Vec::new();
    run_until(&mut engine, |engine| {
        rows.push(engine.last_pass().rows);
        false
    });
    assert_eq!(rows, [0, 10, 10, 5]);
    assert_eq!((engine.last_pass().rows, engine.last_pass().decode_rows), (1, 1));
}

#[test]
fn the_cache_bounds_the_context() {
    let limits = Limits { kv_positions_max: Some(24), ..Limits::new(4, 64) };
    let mut engine = super::engine_of("llama", 200, limits);
    assert_eq!(engine.context_len(), 24);
    let too_long = Refusal::PromptTooLong { tokens: 24, context_len: 24 };
    assert_eq!(engine.submit(submission(0, 24, 1)).unwrap_err(), too_long);
    engine.submit(submission(0, 20, 9)).unwrap();
    let outputs = run_until(&mut engine, |_| false);
    assert_eq!(ended(&outputs)[0].stop, StopReason::ContextFull { context_len: 24 });
}

#[test]
fn a_panic_while_choosing_becomes_a_sentence() {
    let fault = |message: &str, is_callers_mistake| Fault {
        message: message.to_owned(),
        is_callers_mistake,
    };
    assert_eq!(guarded(3, || Ok(5)), Ok(5));
    assert_eq!(guarded::<u8>(3, || Err(fault("no", true))), Err(fault("no", true)));
    let want = fault("choosing step 3 panicked: at 7", false);
    assert_eq!(guarded::<u8>(3, || panic!("at {}", 7)), Err(want));
}
