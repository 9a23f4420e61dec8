//! Clients that leave, at every API and at every moment: each request has an account all the same.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use causeway_ledger::{Store, Writer, WriterLimits};
use serde_json::{Value, json};

use crate::support::{Server, options, script};

/// Every API that answers, with the body of a long answer.
fn apis() -> [(&'static str, Value); 4] {
    let messages = json!([{ "role": "user", "content": "long" }]);
    [
        ("/v1/completions", json!({ "prompt": "long", "max_tokens": 1_500 })),
        ("/v1/chat/completions", json!({ "messages": messages, "max_tokens": 1_500 })),
        ("/v1/responses", json!({ "input": "long", "max_output_tokens": 1_500 })),
        ("/v1/messages", json!({ "messages": messages, "max_tokens": 1_500 })),
    ]
}

fn endless() -> Value {
    json!({ "answers": [
        { "when": "long", "pieces": ["x "], "repeats": true, "delay_ms": 2 },
        { "text": "ok" },
    ] })
}

/// Sends a whole request under an id of the client's own.
fn begin(server: &Server, path: &str, body: &Value, id: &str) -> TcpStream {
    let (mut socket, body) = (server.connect(), body.to_string());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: t\r\nX-Request-Id: {id}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    socket
}

/// The account of a request's only choice once it has ended.
fn ended(server: &Server, id: &str) -> Value {
    let look = |server: &Server| server.get(&format!("/v1/requests/{id}")).json();
    assert!(server.becomes(|server| look(server)["state"] == "ended"), "{id}: {}", look(server));
    look(server)["choices"][0].clone()
}

fn check_empty(server: &Server) {
    let load = || server.get("/v1/models").json()["data"][0]["causeway"]["load"].clone();
    assert!(server.becomes(|_| load()["running"] == 0 && load()["waiting"] == 0), "{}", load());
    assert_eq!(load()["held_blocks"], 0, "{}", load());
    let live = server.get("/v1/requests").json();
    assert_eq!(live["data"], json!([]));
}

const ROUNDS: usize = 40;

#[test]
fn a_client_that_leaves_at_once_has_an_account_and_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("ledger.sqlite")).unwrap();
    let mut options = options(vec![script(&endless())]);
    options.ledger = Some(Arc::new(Writer::start(store, WriterLimits::default())));
    // All may come before the first is seen to have left: what a full queue refuses has no account.
    options.sizing.limits.queue_max = 4 * ROUNDS;
    let server = Server::start(options);
    let mut ids = Vec::new();
    for round in 0..ROUNDS {
        for (path, mut body) in apis() {
            body["stream"] = json!(round % 2 == 0);
            let id = format!("gone-{}", ids.len());
            drop(begin(&server, path, &body, &id));
            ids.push(id);
        }
    }
    for id in &ids {
        let account = ended(&server, id);
        assert_eq!(account["cancelled_by"], "disconnect", "{id} {account}");
        assert_eq!(account["stored"], true, "{id} {account}");
    }
    check_empty(&server);
}

#[test]
fn who_leaves_while_answered_frees_the_only_slot() {
    let mut options = options(vec![script(&endless())]);
    options.sizing.limits.running_max = 1;
    let server = Server::start(options);
    for (path, mut body) in apis() {
        for stream in [true, false] {
            body["stream"] = json!(stream);
            let id = format!("{}-{stream}", path.replace('/', "_"));
            let mut socket = begin(&server, path, &body, &id);
            let is_answered = |server: &Server| {
                let account = server.get(&format!("/v1/requests/{id}")).json();
                account["choices"][0]["steps"].as_u64() > Some(2)
            };
            assert!(server.becomes(is_answered), "{id}");
            let prefill = server.get(&format!("/v1/requests/{id}")).json();
            let prefill = &prefill["choices"][0]["prefill"];
            assert_eq!(prefill["computed"], prefill["known"], "{prefill}");
            assert_ne!(prefill["known"], 0, "{prefill}");
            if stream {
                let _ = socket.read(&mut [0; 64]);
            }
            drop(socket);
            let account = ended(&server, &id);
            assert_eq!(account["cancelled_by"], "disconnect", "{account}");
            let steps = account["steps"].as_u64().unwrap();
            assert!(steps > 2 && steps < 1_500, "{account}");
            assert_eq!(account["billed"]["completion_tokens"], steps, "{account}");
            assert_eq!(account["unscheduled_steps"], 1_500 - steps, "{account}");
            // The slot is free: another one is answered, and the passes come to a stand after it.
            assert!(server.is_alive());
            let passes =
                || server.get("/v1/models").json()["data"][0]["causeway"]["load"]["passes"].clone();
            // The last pass may be counted after its token was sent.
            let stand = |_: &Server| {
                let before = passes();
                std::thread::sleep(Duration::from_millis(30));
                passes() == before
            };
            assert!(server.becomes(stand), "{id}");
        }
    }
    check_empty(&server);
}

#[test]
fn who_leaves_in_the_middle_of_a_request_leaves_nothing() {
    let server = Server::of(&endless());
    for (path, body) in apis() {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        for cut in [0, 1, 20, request.len() - body.len(), request.len() - 1] {
            let mut socket = server.connect();
            socket.write_all(&request.as_bytes()[..cut]).unwrap();
        }
    }
    check_empty(&server);
    assert!(server.is_alive());
}

#[test]
fn runs_that_began_are_runs_that_ended_in_the_metrics() {
    let server = Server::of(&endless());
    for round in 0..8u64 {
        for (path, mut body) in apis() {
            body["stream"] = json!(round % 2 == 0);
            let socket = begin(&server, path, &body, &format!("{path}{round}").replace('/', "-"));
            std::thread::sleep(Duration::from_millis(round));
            drop(socket);
        }
    }
    let sum = |text: &str, name: &str| -> f64 {
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    let all_ended = |server: &Server| {
        let text = server.get("/metrics").body;
        (sum(&text, "causeway_runs_ended_total{") - 32.0).abs() < 0.5
    };
    assert!(server.becomes(all_ended), "{}", server.get("/metrics").body);
    let text = server.get("/metrics").body;
    for (name, want) in [
        ("causeway_runs_started_total{", 32.0),
        ("causeway_runs_cancelled_total{", 32.0),
        ("causeway_run_seconds_count{", 32.0),
        ("causeway_runs_running{", 0.0),
        ("causeway_runs_waiting{", 0.0),
        ("causeway_kv_blocks{model=\"scripted\",kind=\"held\"", 0.0),
    ] {
        assert!((sum(&text, name) - want).abs() < 0.5, "{name} {text}");
    }
    check_empty(&server);
}

#[test]
fn who_never_had_a_pass_has_waited_all_the_time() {
    let mut options = options(vec![script(&endless())]);
    options.sizing.limits.running_max = 1;
    let server = Server::start(options);
    let [(path, body), ..] = apis();
    let running = begin(&server, path, &body, "running");
    let is_running = |server: &Server| {
        let account = server.get("/v1/requests/running").json();
        account["choices"][0]["steps"].as_u64() > Some(0)
    };
    assert!(server.becomes(is_running));
    let waiting = begin(&server, path, &body, "waiting");
    assert!(server.becomes(|server| server.get("/v1/requests/waiting").status == 200));
    std::thread::sleep(Duration::from_millis(60));
    drop(waiting);
    let times = ended(&server, "waiting")["times"].clone();
    assert!(times["queued_ns"].as_u64().unwrap() >= 50_000_000, "{times}");
    assert_eq!(times["queued_ns"], times["total_ns"], "{times}");
    drop(running);
    let times = ended(&server, "running")["times"].clone();
    assert!(times["queued_ns"].as_u64() < times["total_ns"].as_u64(), "{times}");
}
