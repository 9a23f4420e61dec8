//! What operators rely on: keys and their limits, request ids, metrics, logs, old accounts, CORS.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};

use causeway_ledger::{Store, Writer, WriterLimits};
use causeway_server::auth::{KeyLimits, Keys, Role, line_for};
use causeway_server::observe::logs::Logs;
use causeway_server::observe::telemetry::{Collectors, Endpoint, Telemetry};
use causeway_server::{Operation, Options};
use serde_json::{Value, json};

use crate::support::{Reply, Server, options, script};

/// A request with headers of its own.
fn send(server: &Server, line: &str, headers: &[&str], body: &str) -> Reply {
    let mut socket = server.connect();
    let head: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Type: application/json\r\n\
         {head}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = socket.write_all(request.as_bytes());
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    Reply::parse(&bytes)
}

fn ask(server: &Server, key: &str) -> Reply {
    let key = format!("Authorization: Bearer {key}");
    send(server, "POST /v1/completions", &[&key], r#"{"prompt":"a","max_tokens":4}"#)
}

/// Options with two keys: `shop` may use, `ops` may operate.
fn with_keys(limits: KeyLimits) -> Options {
    let answers = json!([
        { "when": "long", "pieces": ["x"], "repeats": true, "delay_ms": 3 }, { "text": "ok" },
    ]);
    let shop = line_for("k-shop", "shop", Role::Use, limits);
    let mill = line_for("k-mill", "mill", Role::Use, KeyLimits::default());
    let ops = line_for("k-ops", "ops", Role::Operate, KeyLimits::default());
    let mut options = options(vec![script(&json!({ "answers": answers }))]);
    options.auth = Arc::new(Keys::parse(&format!("{shop}\n{mill}\n{ops}")).unwrap());
    options
}

#[test]
fn without_a_key_nothing_is_answered() {
    let server = Server::start(with_keys(KeyLimits::default()));
    let bodies: Vec<String> = ["x-shop", "k-shoq", "k-sho"]
        .iter()
        .map(|key| {
            let reply = ask(&server, key);
            assert_eq!(reply.status, 401, "{reply:?}");
            assert!(reply.head.contains("www-authenticate: bearer"), "{reply:?}");
            reply.body
        })
        .collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    for path in ["/v1/models", "/v1/requests", "/metrics", "/nowhere"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    assert_eq!((server.get("/health").status, server.get("/ready").status), (200, 200));
    assert_eq!(ask(&server, "k-shop").status, 200);
    let anthropic = send(&server, "GET /v1/models", &["X-Api-Key: k-shop"], "");
    assert_eq!(anthropic.status, 200, "{anthropic:?}");
}

#[test]
fn only_an_operator_sees_and_ends_what_others_asked() {
    let server = Server::start(with_keys(KeyLimits::default()));
    let mut socket = server.connect();
    let body = r#"{"prompt":"long","max_tokens":1500}"#;
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer k-shop\r\n\
         X-Request-Id: mine\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    let key = |key: &str| format!("Authorization: Bearer {key}");
    let at = |method: &str, who: &str| {
        send(&server, &format!("{method} /v1/requests/mine"), &[&key(who)], "")
    };
    assert!(server.becomes(|_| at("GET", "k-shop").status == 200));
    assert_eq!((at("GET", "k-mill").status, at("DELETE", "k-mill").status), (404, 404));
    assert_eq!((at("GET", "k-ops").status, at("DELETE", "k-ops").status), (200, 202));
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).unwrap();
    let answer = Reply::parse(&bytes).json();
    let stop = &answer["causeway"]["choices"][0]["stop"];
    assert_eq!((&stop["reason"], &stop["by"]), (&json!("cancelled"), &json!("operator")));
    let metrics = |who: &str| send(&server, "GET /metrics", &[&key(who)], "");
    let low = metrics("k-shop");
    assert_eq!(low.status, 403, "{low:?}");
    assert_eq!(low.json()["error"]["code"], "role_too_low");
    assert_eq!(metrics("k-ops").status, 200);
}

#[test]
fn limits_of_a_key_are_429_with_value_and_limit() {
    let limits = KeyLimits { requests_per_minute: Some(2), ..KeyLimits::default() };
    let server = Server::start(with_keys(limits));
    assert_eq!((ask(&server, "k-shop").status, ask(&server, "k-shop").status), (200, 200));
    let third = ask(&server, "k-shop");
    assert_eq!(third.status, 429, "{third:?}");
    assert_eq!(third.json()["error"]["code"], "requests_per_minute");
    assert!(third.message().contains("2 requests in the last minute, the limit is 2"));
    assert!(third.head.contains("retry-after: "), "{third:?}");
    assert_eq!(ask(&server, "k-mill").status, 200, "another key has its own");

    let limits = KeyLimits { tokens_per_day: Some(1), ..KeyLimits::default() };
    let server = Server::start(with_keys(limits));
    assert_eq!(ask(&server, "k-shop").status, 200);
    let spent = ask(&server, "k-shop");
    assert_eq!(spent.json()["error"]["code"], "tokens_per_day", "{spent:?}");

    let limits = KeyLimits { concurrency: Some(1), ..KeyLimits::default() };
    let server = Server::start(with_keys(limits));
    let mut socket = server.connect();
    let body = r#"{"prompt":"long","max_tokens":1500}"#;
    let head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer k-shop\r\n\
                Content-Type: application/json\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).unwrap();
    // Seen by the operator, so that no question takes the place before the long one has it.
    let operator = ["Authorization: Bearer k-ops"];
    let under_way = |server: &Server| {
        let list = send(server, "GET /v1/requests", &operator, "").json();
        !list["data"].as_array().unwrap().is_empty()
    };
    assert!(server.becomes(under_way));
    let second = ask(&server, "k-shop");
    assert_eq!(second.json()["error"]["code"], "concurrency", "{second:?}");
    drop(socket);
    assert!(server.becomes(|server| ask(server, "k-shop").status == 200), "the place is free");
}

#[test]
fn a_request_keeps_the_id_that_its_client_gave_it() {
    let server = Server::of(&json!({ "answers": [{ "text": "ok" }] }));
    let post = |id: &str| {
        let header = format!("X-Request-Id: {id}");
        send(&server, "POST /v1/completions", &[&header], r#"{"prompt":"a"}"#)
    };
    let first = post("Job-7/a");
    assert!(first.head.contains("x-request-id: job-7/a"), "{first:?}");
    assert_eq!(first.json()["causeway"]["request"], "Job-7/a");
    assert_eq!(server.get("/v1/requests/Job-7%2Fa").json()["state"], "ended");
    // An id that is taken is echoed, and the request has one of its own.
    let again = post("Job-7/a");
    assert!(again.head.contains("x-request-id: job-7/a"), "{again:?}");
    assert_ne!(again.json()["causeway"]["request"], "Job-7/a");
    let own = server.post("/v1/completions", &json!({ "prompt": "a" }));
    let id = own.json()["id"].as_str().unwrap().to_owned();
    assert!(own.head.contains(&format!("x-request-id: {id}")), "{own:?}");
    assert!(server.get("/health").head.contains("x-request-id: req-"));
    for wrong in [&"x".repeat(129), "a b", "ä"] {
        let reply = post(wrong);
        assert_eq!(reply.status, 400, "{wrong} {reply:?}");
        assert_eq!(reply.json()["error"]["param"], "X-Request-Id");
    }
}

#[test]
fn a_request_that_ended_is_told_of_out_of_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let start = || {
        let mut options = with_keys(KeyLimits::default());
        let store = Store::open(&path).unwrap();
        options.ledger = Some(Arc::new(Writer::start(store, WriterLimits::default())));
        let kept = Some(Store::open_to_read(&path).unwrap());
        options.operation = Operation { kept, ..Operation::default() };
        Server::start(options)
    };
    let tell = |server: &Server, key: &str| {
        let key = format!("Authorization: Bearer {key}");
        send(server, "GET /v1/requests/job-1", &[&key], "")
    };
    let mut server = start();
    let headers = ["Authorization: Bearer k-shop", "X-Request-Id: job-1"];
    let body = r#"{"prompt":"a","n":2,"max_tokens":9}"#;
    assert_eq!(send(&server, "POST /v1/completions", &headers, body).status, 200);
    let mut live = tell(&server, "k-shop").json();
    server.shut_down();
    server.wait();
    let server = start();
    let mut kept = tell(&server, "k-shop").json();
    // Passes that left no mark in the record are known to the live server alone.
    for account in [&mut live, &mut kept] {
        account.as_object_mut().unwrap().remove("created");
        for choice in account["choices"].as_array_mut().unwrap() {
            choice.as_object_mut().unwrap().remove("passes");
        }
    }
    assert_eq!(live, kept);
    assert_eq!(tell(&server, "k-ops").status, 200);
    assert_eq!(tell(&server, "k-mill").status, 404);
}

/// The value of one line of the metrics; 0 where there is no such line.
fn metric(server: &Server, line: &str) -> f64 {
    let text = server.get("/metrics").body;
    let value = text.lines().find_map(|one| one.strip_prefix(line));
    value.map_or(0.0, |value| value.trim().parse().unwrap())
}

fn sum(server: &Server, begins: &str) -> f64 {
    let text = server.get("/metrics").body;
    let lines = text.lines().filter(|line| line.starts_with(begins));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn metrics_add_up_after_answers_aborts_and_refusals() {
    let long = json!({ "when": "long", "pieces": ["x"], "repeats": true, "delay_ms": 2 });
    let bytes = json!({ "pieces": [{ "byte": 240 }, { "byte": 159 }, { "byte": 152 }, { "byte": 128 }, "ok"] });
    let server = Server::of(&json!({ "answers": [long, bytes] }));
    assert_eq!(server.post("/v1/completions", &json!({ "prompt": "a", "n": 2 })).status, 200);
    for _ in 0..5 {
        let body = json!({ "prompt": "long", "max_tokens": 1500, "stream": true });
        let mut socket = server.begin("/v1/completions", &body);
        let _ = socket.read_exact(&mut [0; 64]);
    }
    assert_eq!(server.post("/v1/completions", &json!({ "prompt": 1.5 })).status, 400);
    assert!(server.becomes(|server| sum(server, "causeway_runs_ended_total") >= 7.0));
    let model = "{model=\"scripted\"}";
    assert!((metric(&server, &format!("causeway_runs_started_total{model}")) - 7.0).abs() < 0.1);
    assert!((sum(&server, "causeway_runs_ended_total") - 7.0).abs() < 0.1);
    let by = "causeway_runs_cancelled_total{model=\"scripted\",by=\"disconnect\"}";
    assert!((metric(&server, by) - 5.0).abs() < 0.1, "{}", server.get("/metrics").body);
    assert!(sum(&server, "causeway_refusals_total{status=\"400\"") > 0.5);
    let kind = |kind: &str| {
        let line = format!("causeway_tokens_total{{model=\"scripted\",kind=\"{kind}\"}}");
        metric(&server, &line)
    };
    assert!((kind("byte_fallback") - 8.0).abs() < 0.1, "{}", kind("byte_fallback"));
    assert!(kind("prompt") > 6.0 && kind("generated") > 10.0);
    for name in ["runs_running", "runs_waiting", "kv_blocks{model=\"scripted\",kind=\"held\"}"] {
        let line = if name.contains('{') { name.to_owned() } else { format!("{name}{model}") };
        assert!(metric(&server, &format!("causeway_{line}")) < 0.1, "{name}");
    }
    let text = server.get("/metrics").body;
    for name in [
        "ttft_seconds",
        "itl_seconds",
        "tpot_seconds",
        "queue_seconds",
        "run_seconds",
        "pass_seconds",
        "batch_occupancy",
        "prompt_tokens",
        "generated_tokens",
        "entropy_nats",
    ] {
        assert!(text.contains(&format!("causeway_{name}_count{model}")), "{name} {text}");
    }
    let kind = &server.get("/metrics").head;
    assert!(kind.contains("content-type: text/plain; version=0.0.4"), "{kind}");
}

#[test]
fn pages_of_other_origins_ask_only_where_they_may() {
    let ok = json!({ "answers": [{ "text": "ok" }] });
    let asks_first = ["Origin: https://a.example", "Access-Control-Request-Method: POST"];
    let closed = Server::of(&ok);
    let reply = send(&closed, "OPTIONS /v1/completions", &asks_first, "");
    assert!(!reply.head.contains("access-control"), "{reply:?}");
    let mut options = options(vec![script(&ok)]);
    let cors_origins = vec!["https://a.example".to_owned()];
    options.operation = Operation { cors_origins, ..Operation::default() };
    let server = Server::start(options);
    let reply = send(&server, "OPTIONS /v1/completions", &asks_first, "");
    assert_eq!(reply.status, 204, "{reply:?}");
    assert!(reply.head.contains("access-control-allow-origin: https://a.example"), "{reply:?}");
    assert!(reply.head.contains("authorization"), "{reply:?}");
    let body = r#"{"prompt":"a"}"#;
    let read = send(&server, "POST /v1/completions", &asks_first[..1], body);
    assert!(read.head.contains("access-control-allow-origin: https://a.example"), "{read:?}");
    let other = send(&server, "POST /v1/completions", &["Origin: https://b.example"], body);
    assert!(!other.head.contains("access-control-allow-origin"), "{other:?}");
}

/// Takes what is logged.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn logs_name_requests_and_hold_no_text() {
    let lines = Lines::default();
    let writer = lines.clone();
    // The only test of this program with a subscriber.
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(move || writer.clone())
        .try_init()
        .unwrap();
    let ask = |with_prompts: bool, id: &str| {
        let mut options = options(vec![script(&json!({ "answers": [{ "text": "SESAME" }] }))]);
        options.observer = Arc::new(Logs { with_prompts });
        let server = Server::start(options);
        let header = format!("X-Request-Id: {id}");
        let post = |body: &str| send(&server, "POST /v1/completions", &[&header], body);
        assert_eq!(post(r#"{"prompt":"MELLON","max_tokens":6}"#).status, 200);
        assert_eq!(post(r#"{"prompt":"a","stop":7,"user":"MELLON"}"#).status, 400);
        assert_eq!(post(r#"{"prompt":"a","temperature":"MELLON"}"#).status, 400);
    };
    ask(false, "quiet-1");
    let text = |lines: &Lines| String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let quiet = text(&lines);
    assert!(!quiet.contains("MELLON") && !quiet.contains("SESAME"), "{quiet}");
    let events: Vec<Value> =
        quiet.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |message: &str| {
        let is_it =
            |event: &&Value| event["message"] == message && event["request_id"] == "quiet-1";
        events.iter().find(is_it).unwrap_or_else(|| panic!("{message}: {quiet}")).clone()
    };
    assert_eq!(of("request ended")["generated_tokens"], 6);
    assert_eq!(of("request ended")["stop"], "max_tokens");
    assert_eq!(of("request refused")["status"], 400);
    ask(true, "loud-1");
    let loud = text(&lines);
    assert!(loud.contains("MELLON") && loud.contains("SESAME"), "{loud}");
}

/// A collector that keeps what it is sent, by path.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
            // A request is whole when its body is as long as its header says.
            loop {
                let count = socket.read(&mut part).unwrap_or(0);
                bytes.extend_from_slice(&part[..count]);
                let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
                let is_whole = head_end.is_some_and(|end| {
                    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
                    let length = head.split("content-length: ").nth(1).unwrap_or("0");
                    let length = length.split("\r\n").next().unwrap_or("0");
                    bytes.len() >= end + 4 + length.parse::<usize>().unwrap_or(0)
                });
                if count == 0 || is_whole {
                    break;
                }
            }
            keeps.lock().unwrap().extend_from_slice(&bytes);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = socket.write_all(answer);
        }
    });
    (url, kept)
}

#[test]
fn runs_become_spans_and_metrics_of_a_collector() {
    let (url, kept) = collector();
    let collectors = Collectors {
        traces: Some(Endpoint::Url(format!("{url}/v1/traces"))),
        metrics: Some(Endpoint::Url(format!("{url}/v1/metrics"))),
    };
    let mut options = options(vec![script(&json!({ "answers": [{ "text": "SESAME" }] }))]);
    options.observer = Arc::new(Telemetry::begin(collectors).unwrap().unwrap());
    let mut server = Server::start(options);
    let traceparent = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let reply = send(
        &server,
        "POST /v1/completions",
        &[traceparent, "X-Request-Id: job-9"],
        r#"{"prompt":"MELLON"}"#,
    );
    let record = reply.json()["causeway"]["choices"][0]["record"].as_str().unwrap().to_owned();
    let policy = reply.json()["causeway"]["policy"].as_str().unwrap().to_owned();
    server.shut_down();
    server.wait();
    let bytes = kept.lock().unwrap().clone();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    for wanted in [
        "POST /v1/traces",
        "POST /v1/metrics",
        "text_completion scripted",
        "job-9",
        "gen_ai.usage.output_tokens",
        "gen_ai.response.finish_reasons",
        "causeway.record",
        &record,
        &policy,
        "prefill",
        "decode",
        "gen_ai.server.time_to_first_token",
        "gen_ai.client.token.usage",
        "service.name",
    ] {
        assert!(text.contains(wanted), "{wanted} {text}");
    }
    let trace = [0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6];
    assert!(bytes.windows(8).any(|eight| eight == trace), "the client's trace goes on");
    assert!(!text.contains("MELLON") && !text.contains("SESAME"), "{text}");
}
