//! The schedule in a time that stands still unless everyone waits.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::outcome::{Answer, Ending};
use crate::plan::PlanSettings;

/// What a server of tests does with every request.
#[derive(Clone, Copy)]
struct Service {
    takes: Duration,
    ending: Ending,
}

const HOUR: Service = Service { takes: Duration::from_secs(3_600), ending: Ending::Complete };
const SECOND: Service = Service { takes: Duration::from_secs(1), ending: Ending::Complete };
const ABSENT: Service = Service { takes: Duration::ZERO, ending: Ending::NotConnected };

fn plan(arrivals: &str, span: Option<&str>, requests: Option<u64>) -> Plan {
    let settings = PlanSettings {
        arrivals: arrivals.parse().unwrap(),
        span: span.map(|span| span.parse().unwrap()),
        requests,
        prompt_words: "1".parse().unwrap(),
        output_tokens: "1".parse().unwrap(),
        shared_prefix: 0,
        disconnect_rate: 0.0,
        trace_speed: 1.0,
        seed: 3,
    };
    Plan::make(settings).unwrap()
}

/// What a drive came to.
struct Ran {
    outcomes: Vec<Outcome>,
    given_up: u64,
    /// Most requests that were in flight together.
    together: usize,
}

fn drive(plan: &Plan, service: Service, stop_after: usize) -> Ran {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
    let outcomes = RefCell::new(Vec::new());
    let stop = AtomicBool::new(false);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let given_up = runtime.block_on(async {
        let clock = Clock::start();
        let send = |planned: Planned, scheduled_us| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                let sent_us = clock.now_us();
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(service.takes).await;
                now.fetch_sub(1, Ordering::Relaxed);
                let (ended_us, ending) = (clock.now_us(), service.ending);
                let (chunks_us, answer) = (Vec::new(), Answer::default());
                Outcome { planned, scheduled_us, sent_us, chunks_us, ended_us, ending, answer }
            }
        };
        let mut keep = |outcome| {
            let mut outcomes = outcomes.borrow_mut();
            outcomes.push(outcome);
            stop.store(outcomes.len() >= stop_after, Ordering::Relaxed);
            Ok(())
        };
        Drive { plan, clock, stop: &stop, keep: &mut keep }.run(send).await.unwrap()
    });
    Ran { outcomes: outcomes.into_inner(), given_up, together: most.load(Ordering::Relaxed) }
}

#[test]
fn an_open_loop_waits_for_no_answer() {
    let plan = plan("poisson:10", Some("10s"), None);
    let ran = drive(&plan, HOUR, usize::MAX);
    let count = usize::try_from(plan.requests().unwrap()).unwrap();
    assert_eq!((ran.outcomes.len(), ran.together, ran.given_up), (count, count, 0));
    for outcome in &ran.outcomes {
        assert_eq!(Some(outcome.scheduled_us), outcome.planned.at_us);
        // The runtime's timers tick in milliseconds.
        assert!(outcome.lag_us() < 2_000, "{}", outcome.lag_us());
    }
}

#[test]
fn a_closed_loop_keeps_each_client_at_one_request() {
    let ran = drive(&plan("concurrency:3", None, Some(10)), SECOND, usize::MAX);
    assert_eq!((ran.outcomes.len(), ran.together), (10, 3));
    let mut scheduled: Vec<u64> =
        ran.outcomes.iter().map(|outcome| (outcome.scheduled_us + 50_000) / 1_000_000).collect();
    scheduled.sort_unstable();
    assert_eq!(scheduled, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    assert!(ran.outcomes.iter().all(|outcome| outcome.lag_us() < 2_000));
}

#[test]
fn a_closed_loop_ends_with_its_span() {
    let ran = drive(&plan("concurrency:2", Some("4500ms"), None), SECOND, usize::MAX);
    assert_eq!((ran.outcomes.len(), ran.given_up), (10, 0));
    assert!(ran.outcomes.iter().all(|outcome| outcome.scheduled_us < 4_500_000));
}

#[test]
fn clients_of_a_dead_server_rest() {
    let ran = drive(&plan("concurrency:1", Some("1s"), None), ABSENT, usize::MAX);
    assert!((9..=10).contains(&ran.outcomes.len()), "{}", ran.outcomes.len());
}

#[test]
fn a_stop_gives_up_what_is_in_flight() {
    let closed = drive(&plan("concurrency:4", None, Some(100)), SECOND, 5);
    assert_eq!(closed.outcomes.len(), 5);
    assert!((1..=4).contains(&closed.given_up), "{}", closed.given_up);
    let open = drive(&plan("poisson:10", None, Some(100)), SECOND, 5);
    assert!((5..100).contains(&open.outcomes.len()), "{}", open.outcomes.len());
    assert!(open.given_up > 0);
}

#[test]
fn an_outcome_that_cannot_be_kept_ends_the_run() {
    let plan = plan("concurrency:1", None, Some(5));
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
    let error = runtime.block_on(async {
        let clock = Clock::start();
        let send = |planned, scheduled_us| async move {
            let (chunks_us, answer, ending) = (Vec::new(), Answer::default(), Ending::Complete);
            let (sent_us, ended_us) = (scheduled_us, scheduled_us);
            Outcome { planned, scheduled_us, sent_us, chunks_us, ended_us, ending, answer }
        };
        let mut keep = |_| Err(io::Error::from(io::ErrorKind::StorageFull));
        let stop = AtomicBool::new(false);
        Drive { plan: &plan, clock, stop: &stop, keep: &mut keep }.run(send).await.unwrap_err()
    });
    assert!(matches!(error, LoadError::Keep { .. }) && !error.is_callers_mistake());
}
