//! Whole runs against a stand-in with known delays and known faults.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::io::{Read as _, Write as _};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use causeway_load::{
    Endpoint, Limits, LoadError, Outcome, Plan, PlanSettings, Run, Settings, Shape,
};
use support::{Act, StandIn, event, piece, usage};

fn plan(arrivals: &str, requests: u64) -> PlanSettings {
    PlanSettings {
        arrivals: arrivals.parse().unwrap(),
        span: None,
        requests: Some(requests),
        prompt_words: "3..6".parse().unwrap(),
        output_tokens: "4".parse().unwrap(),
        shared_prefix: 0,
        disconnect_rate: 0.0,
        trace_speed: 1.0,
        seed: 5,
    }
}

fn settings(url: &str) -> Settings {
    Settings {
        server: url.parse().unwrap(),
        shape: Shape {
            endpoint: Endpoint::Chat,
            model: Some("toy".to_owned()),
            ignore_eos: false,
            seeds: false,
            body: serde_json::Map::new(),
        },
        key: None,
        warmup: "0s".parse().unwrap(),
        timeout: "20s".parse().unwrap(),
        limits: Limits::default(),
    }
}

fn run(plan: PlanSettings, settings: &Settings) -> (Run, Vec<Outcome>) {
    let mut outcomes = Vec::new();
    let mut keep = |outcome: &Outcome| {
        outcomes.push(outcome.clone());
        Ok(())
    };
    let plan = Plan::make(plan).unwrap();
    let run = causeway_load::run(&plan, settings, &AtomicBool::new(false), &mut keep).unwrap();
    (run, outcomes)
}

/// An answer of four pieces that says that it has `tokens`, or nothing.
fn answer(tokens: Option<u64>) -> Vec<Act> {
    let mut acts = vec![Act::Stream];
    acts.extend(["a", "b", "c", "d"].map(piece));
    acts.extend(tokens.map(|tokens| usage(9, tokens)));
    acts.extend([event("[DONE]"), Act::End]);
    acts
}

#[test]
fn what_is_measured_is_what_the_server_did() {
    let role = event(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#);
    let mut acts = vec![Act::Stream, role, Act::Wait(200), piece("x")];
    for text in ["y", "z", "w"] {
        acts.extend([Act::Wait(60), Act::Chunk(": keep-alive\n\n".to_owned()), piece(text)]);
    }
    // A connection that stays open after the last event is not part of the answer.
    acts.extend([usage(7, 4), event("[DONE]"), Act::Wait(300), Act::End]);
    let stand_in = StandIn::start(acts);
    let (run, outcomes) = run(plan("poisson:40", 20), &settings(&stand_in.url));
    let report = &run.report;
    assert_eq!((report.requests.complete, report.requests.failed), (20, 0));
    assert_eq!((report.ttft_ms.count, report.itl_ms.count, report.tpot_ms.count), (20, 60, 20));
    // Nothing comes before its time; upper bounds leave room for a machine that is busy.
    let near = |found: Option<f64>, want: f64| {
        let found = found.unwrap();
        assert!((want - 2.0..want + 150.0).contains(&found), "{found} ms for {want} ms");
    };
    near(report.ttft_ms.p50, 200.0);
    near(report.tpot_ms.p50, 60.0);
    near(report.itl_ms.p50, 60.0);
    near(report.total_ms.p50, 380.0);
    for outcome in &outcomes {
        assert!(outcome.ttft_us().unwrap() >= 200_000 + outcome.lag_us(), "{outcome:?}");
        assert_eq!(Some(outcome.scheduled_us), outcome.planned.at_us);
    }
    let tokens = &report.tokens;
    assert_eq!((tokens.prompt, tokens.output, tokens.chunks), (140, 80, 80));
    assert_eq!((tokens.disagreements, tokens.without_usage, tokens.other_length), (0, 0, 0));
}

#[test]
fn queueing_counts_from_the_scheduled_arrival() {
    // One client, a second's worth of work each: in an open loop they would overlap.
    let acts = [vec![Act::Wait(50)], answer(Some(4))].concat();
    let stand_in = StandIn::start(acts);
    let (run, outcomes) = run(plan("concurrency:1", 4), &settings(&stand_in.url));
    assert_eq!(run.report.requests.complete, 4);
    let mut ended_us = 0;
    for outcome in &outcomes {
        assert_eq!(outcome.scheduled_us, ended_us, "free as soon as the last answer has ended");
        ended_us = outcome.ended_us;
    }
}

/// Each request meets the same acts; all must end in the same failure.
fn check_failure(acts: Vec<Act>, want: &str) -> Vec<Outcome> {
    let stand_in = StandIn::start(acts);
    let (run, outcomes) = run(plan("poisson:200", 3), &settings(&stand_in.url));
    let errors: Vec<_> = run.report.requests.errors.clone().into_iter().collect();
    assert_eq!(errors, [(want.to_owned(), 3)], "{outcomes:?}");
    assert_eq!((run.report.requests.failed, run.report.goodput.share), (3, Some(0.0)));
    outcomes
}

#[test]
fn failures_are_told_apart() {
    let shed = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 37\r\n\r\n\
                {\"error\":{\"message\":\"queue is full\"}}\n";
    let outcomes = check_failure(vec![Act::Raw(shed)], "http_429");
    assert_eq!(outcomes[0].answer.retry_after_s, Some(3));
    assert_eq!(outcomes[0].answer.message.as_deref(), Some("queue is full"));
    let broken = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops";
    let outcomes = check_failure(vec![Act::Raw(broken)], "http_500");
    assert_eq!(outcomes[0].answer.message.as_deref(), Some("oops"));

    let begun = || vec![Act::Stream, piece("a"), piece("b")];
    let outcomes = check_failure(begun(), "reset");
    assert_eq!(outcomes[0].chunks_us.len(), 2, "what came is kept");
    check_failure([begun(), vec![Act::End]].concat(), "cut_off");
    check_failure([begun(), vec![event("{broken"), Act::End]].concat(), "bad_stream");
    let late = event(r#"{"error":{"message":"lost the model"}}"#);
    let outcomes = check_failure([begun(), vec![late, Act::End]].concat(), "error_event");
    assert_eq!(outcomes[0].answer.message.as_deref(), Some("lost the model"));
    check_failure(Vec::new(), "reset");
    check_failure(vec![Act::Raw("HTTP/9 what\r\n\r\n")], "reset");
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"choices\":[]}";
    check_failure(vec![Act::Raw(whole)], "cut_off");
}

#[test]
fn a_request_has_its_time_and_no_more() {
    let stand_in = StandIn::start(vec![Act::Stream, piece("a"), Act::AwaitClose]);
    let timeout = "250ms".parse().unwrap();
    let (run, outcomes) =
        run(plan("poisson:200", 3), &Settings { timeout, ..settings(&stand_in.url) });
    assert_eq!(run.report.requests.errors["timeout"], 3);
    assert!(outcomes.iter().all(|outcome| (250_000..15_000_000).contains(&outcome.total_us())));
    wait_for(|| stand_in.seen.lock().unwrap().closed_by_client == 3);
}

#[test]
fn clients_hang_up_and_the_server_sees_it() {
    let mut acts = vec![Act::Stream];
    acts.extend(["a", "b", "c", "d"].map(piece));
    acts.push(Act::AwaitClose);
    let stand_in = StandIn::start(acts);
    let leaving = PlanSettings { disconnect_rate: 1.0, ..plan("poisson:100", 12) };
    let (run, outcomes) = run(leaving, &settings(&stand_in.url));
    assert_eq!((run.report.requests.hung_up, run.report.requests.failed), (12, 0));
    assert!(outcomes.iter().all(|outcome| outcome.planned.hang_up.is_some()));
    // Some may leave before their request is read.
    wait_for(|| {
        let seen = stand_in.seen.lock().unwrap();
        seen.closed_by_client == seen.asked.len()
    });
}

/// Waits for what another thread is about to note; ten seconds at most.
fn wait_for(is_so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come about in ten seconds");
}

#[test]
fn both_counts_of_tokens_are_compared() {
    let check = |tokens: Option<u64>, want: (u64, u64, u64, u64)| {
        let stand_in = StandIn::start(answer(tokens));
        let (run, _) = run(plan("poisson:200", 2), &settings(&stand_in.url));
        let tokens = run.report.tokens;
        let found =
            (tokens.output, tokens.without_usage, tokens.disagreements, tokens.other_length);
        assert_eq!((found, tokens.chunks), (want, 8));
    };
    check(Some(4), (8, 0, 0, 0));
    check(Some(5), (10, 0, 2, 2));
    check(None, (0, 2, 0, 0));
}

#[test]
fn two_servers_are_asked_the_same() {
    let bodies = || {
        let stand_in = StandIn::start(answer(Some(4)));
        let mut settings = settings(&stand_in.url);
        settings.shape.body = causeway_load::read_body(r#"{"temperature":0}"#).unwrap();
        settings.shape.ignore_eos = true;
        settings.shape.seeds = true;
        settings.key = Some("secret".parse().unwrap());
        let (run, _) = run(plan("gamma:100,2", 8), &settings);
        let asked = stand_in.asked();
        assert!(asked.iter().all(|asked| asked.key.as_deref() == Some("Bearer secret")));
        assert!(asked.iter().all(|asked| asked.path == "/v1/chat/completions"));
        assert!(!format!("{:?}", run.conditions).contains("secret"));
        let mut bodies: Vec<String> = asked.iter().map(|asked| asked.body.to_string()).collect();
        bodies.sort();
        (run.conditions.plan.hash, bodies)
    };
    let (hash, first) = bodies();
    assert_eq!((hash, first.clone()), bodies());
    assert_eq!(first.len(), 8);
    for field in ["\"temperature\":0", "\"ignore_eos\":true", "\"seed\":", "\"model\":\"toy\""] {
        assert!(first[0].contains(field), "{field} in {}", first[0]);
    }
}

#[test]
fn the_model_is_the_first_that_the_server_lists() {
    let stand_in = StandIn::start(answer(Some(4)));
    let mut settings = settings(&format!("{}/gate/v1", stand_in.url));
    settings.shape.model = None;
    settings.shape.endpoint = Endpoint::Completions;
    let (run, _) = run(plan("poisson:200", 1), &settings);
    assert_eq!(run.conditions.model.as_deref(), Some("toy"));
    let asked = &stand_in.asked()[0];
    assert_eq!(
        (asked.path.as_str(), &asked.body["model"]),
        ("/gate/v1/completions", &"toy".into())
    );
}

#[test]
fn a_server_that_asks_for_a_key_is_said_to_do_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = settings(&format!("http://{}", listener.local_addr().unwrap()));
    settings.shape.model = None;
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Closing with bytes unread would reset the connection.
        let _ = stream.read(&mut [0; 4_096]).unwrap();
        write!(stream, "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let plan = Plan::make(plan("poisson:200", 3)).unwrap();
    let error =
        causeway_load::run(&plan, &settings, &AtomicBool::new(false), &mut |_| Ok(())).unwrap_err();
    assert!(matches!(error, LoadError::NeedsKey { status: 401, .. }), "{error}");
    assert!(error.is_callers_mistake() && error.to_string().ends_with("give --api-key"), "{error}");
}

#[test]
fn an_absent_server_is_counted_or_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let mut settings = settings(&url);
    let (run, _) = run(plan("poisson:200", 3), &settings);
    assert_eq!(run.report.requests.errors["connect"], 3);
    settings.shape.model = None;
    let plan = Plan::make(plan("poisson:200", 3)).unwrap();
    let error =
        causeway_load::run(&plan, &settings, &AtomicBool::new(false), &mut |_| Ok(())).unwrap_err();
    assert!(matches!(error, LoadError::Models { .. }) && !error.is_callers_mistake());
    assert!(error.to_string().contains("no server answers there): give --model"), "{error}");
}
