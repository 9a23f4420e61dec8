//! Requests that end before their time: who asked, what ran, what is left behind.

use std::io::Read as _;
use std::time::Duration;

use crate::support::{Reply, Server, options, script, timed};
use serde_json::{Value, json};

/// An answer without end, 5 ms a token.
fn endless() -> Value {
    json!({ "when": "long", "pieces": ["x "], "repeats": true, "delay_ms": 5 })
}

fn server() -> Server {
    Server::of(&json!({ "answers": [endless(), { "text": "ok" }] }))
}

fn long(fields: Value) -> Value {
    let mut body = fields;
    body["prompt"] = json!("long");
    body["max_tokens"] = json!(1500);
    body
}

/// Reads a stream until its id and a token have come; gives the id.
fn id_of(socket: &mut std::net::TcpStream) -> String {
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    while !seen.contains("x ") {
        let count = socket.read(&mut bytes).unwrap();
        assert!(count > 0, "the stream ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let at = seen.find("\"id\":\"").unwrap() + 6;
    seen[at..].split('"').next().unwrap().to_owned()
}

fn account(server: &Server, id: &str) -> Value {
    server.get(&format!("/v1/requests/{id}")).json()
}

/// The account of a request once it has ended.
fn ended(server: &Server, id: &str) -> Value {
    assert!(server.becomes(|server| account(server, id)["state"] == "ended"), "{id}");
    account(server, id)["choices"][0].clone()
}

/// What every account of a run that was cut short says.
fn check_cut_short(account: &Value, by: &str) {
    assert_eq!(account["stop"]["reason"], "cancelled", "{account}");
    assert_eq!(account["cancelled_by"], by, "{account}");
    let steps = account["steps"].as_u64().unwrap();
    assert_eq!(account["billed"]["completion_tokens"], steps, "{account}");
    assert_eq!(account["stop"]["after_step"], steps, "{account}");
    assert_eq!(account["unscheduled_steps"].as_u64().unwrap() + steps, 1500, "{account}");
}

#[test]
fn a_client_that_leaves_a_stream_ends_its_run() {
    let server = server();
    let mut socket = server.begin("/v1/completions", &long(json!({ "stream": true })));
    let id = id_of(&mut socket);
    assert_eq!(account(&server, &id)["choices"][0]["state"], "decode");
    drop(socket);
    let account = ended(&server, &id);
    check_cut_short(&account, "disconnect");
    assert!(account["steps"].as_u64().unwrap() < 400, "{account}");
}

#[test]
fn a_client_that_leaves_a_whole_answer_frees_its_slot() {
    let mut options = options(vec![script(&json!({ "answers": [endless(), { "text": "ok" }] }))]);
    options.sizing.limits.running_max = 1;
    let server = Server::start(options);
    let socket = server.begin("/v1/completions", &long(json!({})));
    std::thread::sleep(Duration::from_millis(100));
    drop(socket);
    let took = timed(|| {
        let body = json!({ "prompt": "a", "max_tokens": 1 });
        assert_eq!(server.post("/v1/completions", &body).status, 200);
    });
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_request_can_be_deleted_by_its_id() {
    let server = server();
    let mut socket = server.begin("/v1/completions", &long(json!({ "stream": true })));
    let id = id_of(&mut socket);
    let reply = server.send("DELETE", &format!("/v1/requests/{id}"), b"");
    assert_eq!(reply.status, 202, "{reply:?}");
    check_cut_short(&ended(&server, &id), "client");
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).unwrap();
    let rest = String::from_utf8(rest).unwrap();
    assert!(rest.contains("\"finish_reason\":\"cancelled\""), "{rest}");
    assert!(rest.contains("data: [DONE]"), "{rest}");
    // Once more is no more than a look.
    let reply = server.send("DELETE", &format!("/v1/requests/{id}"), b"");
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(server.send("DELETE", "/v1/requests/nobody", b"").status, 404);
    assert_eq!(server.get("/v1/requests/nobody").status, 404);
}

#[test]
fn a_request_can_be_deleted_while_it_waits_or_is_read() {
    let answers = json!([
        { "when": "slow", "prefill_delay_ms": 30, "text": "ok" },
        endless(),
        { "text": "ok" },
    ]);
    let mut options = options(vec![script(&json!({ "context_len": 4096, "answers": answers }))]);
    options.sizing.limits.running_max = 1;
    let server = Server::start(options);
    let body = json!({ "prompt": format!("slow{}", "w".repeat(2000)), "stream": true });
    let reading = server.begin("/v1/completions", &body);
    let read = first_id(&server, "prefill");
    let waiting = server.begin("/v1/completions", &long(json!({ "stream": true })));
    let queued = first_id(&server, "queued");
    for (mut socket, id) in [(waiting, queued), (reading, read)] {
        let reply = server.send("DELETE", &format!("/v1/requests/{id}"), b"");
        assert_eq!(reply.status, 202, "{reply:?}");
        let account = ended(&server, &id);
        assert_eq!(account["cancelled_by"], "client", "{account}");
        assert_eq!(account["steps"], 0, "{account}");
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
    }
    assert!(server.is_alive());
}

/// The id of the one request in this state.
fn first_id(server: &Server, state: &str) -> String {
    let find = |server: &Server| {
        let list = server.get("/v1/requests").json();
        let all = list["data"].as_array().unwrap().clone();
        let is_it = |request: &&Value| request["choices"][0]["state"] == state;
        all.iter().find(is_it).map(|request| request["id"].as_str().unwrap().to_owned())
    };
    assert!(server.becomes(|server| find(server).is_some()), "no request is {state}");
    find(server).unwrap()
}

#[test]
fn a_deadline_ends_a_run_with_what_there_is() {
    let server = server();
    let reply = server.post("/v1/completions", &long(json!({ "timeout_ms": 200 })));
    let answer = reply.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "deadline", "{answer}");
    let tokens = answer["usage"]["completion_tokens"].as_u64().unwrap();
    assert!(tokens > 0 && tokens < 60, "{answer}");
    let text = answer["choices"][0]["text"].as_str().unwrap();
    assert_eq!(text.len() as u64, tokens * 2, "{answer}");
    let stop = &answer["causeway"]["choices"][0]["stop"];
    assert_eq!(stop, &json!({ "reason": "deadline", "after_step": tokens }));
}

#[test]
fn a_policy_may_let_a_run_finish_unread() {
    let server = server();
    let mut body = long(json!({ "stream": true, "on_disconnect": "finish" }));
    body["max_tokens"] = json!(60);
    let mut socket = server.begin("/v1/completions", &body);
    let id = id_of(&mut socket);
    drop(socket);
    let account = ended(&server, &id);
    assert_eq!(account["stop"], json!({ "reason": "max_tokens", "tokens_max": 60 }));
    assert_eq!(account["steps"], 60);
}

#[test]
fn a_shutdown_drains_and_then_cancels() {
    let mut options = options(vec![script(&json!({ "answers": [endless(), { "text": "ok" }] }))]);
    // Long enough for the short answer on a machine that is busy elsewhere.
    options.drain = Duration::from_millis(1_500);
    let mut server = Server::start(options);
    let mut quick = long(json!({}));
    quick["max_tokens"] = json!(20);
    let short = server.begin("/v1/completions", &quick);
    let endless = server.begin("/v1/completions", &long(json!({})));
    std::thread::sleep(Duration::from_millis(30));
    server.shut_down();
    std::thread::sleep(Duration::from_millis(30));
    let reply = |mut socket: std::net::TcpStream| {
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).unwrap();
        Reply::parse(&bytes)
    };
    let late = server.post("/v1/completions", &json!({ "prompt": "late" }));
    assert_eq!(late.status, 503, "{late:?}");
    assert!(late.head.contains("retry-after"), "{late:?}");
    let short = reply(short);
    assert_eq!(short.json()["choices"][0]["finish_reason"], "length", "{short:?}");
    let cut = reply(endless).json();
    assert_eq!(cut["choices"][0]["finish_reason"], "cancelled", "{cut}");
    let stop = &cut["causeway"]["choices"][0]["stop"];
    assert_eq!(stop["by"], "shutdown", "{cut}");
    server.wait();
}

#[test]
fn a_run_that_fails_ends_alone() {
    for (fault, word) in [
        (json!({ "panics_at": 3 }), "panic"),
        (json!({ "fails_at": 3 }), "fails"),
        (json!({ "nan_at": 3 }), "not a number"),
    ] {
        let mut bad = json!({ "when": "bad", "pieces": ["y"], "repeats": true, "delay_ms": 2 });
        for (name, value) in fault.as_object().unwrap() {
            bad[name] = value.clone();
        }
        let good = json!({ "when": "good", "pieces": ["z"], "repeats": true, "delay_ms": 2 });
        let server = Server::of(&json!({ "answers": [bad, good, { "text": "ok" }] }));
        let body = json!({ "prompt": "good", "max_tokens": 30 });
        let mut beside = server.begin("/v1/completions", &body);
        let reply = server.post("/v1/completions", &json!({ "prompt": "bad", "max_tokens": 30 }));
        assert_eq!(reply.status, 500, "{reply:?}");
        assert_eq!(reply.json()["error"]["type"], "server_error", "{reply:?}");
        assert!(reply.message().to_lowercase().contains(word), "{word}: {reply:?}");
        let body = json!({ "prompt": "bad", "max_tokens": 30, "stream": true });
        let stream = server.post("/v1/completions", &body);
        assert_eq!(stream.streamed(), "yyy", "{stream:?}");
        let last = stream.events().last().unwrap().clone();
        assert!(last["error"]["message"].is_string(), "{stream:?}");
        let mut bytes = Vec::new();
        beside.read_to_end(&mut bytes).unwrap();
        let beside = Reply::parse(&bytes).json();
        assert_eq!(beside["choices"][0]["text"], "z".repeat(30), "{word}");
        assert!(server.is_alive());
    }
}

#[test]
fn many_clients_that_leave_at_random_leave_nothing_behind() {
    let server = server();
    for round in 0..10u64 {
        let sockets: Vec<_> = (0..8u64)
            .map(|index| {
                let stream = (round + index) % 2 == 0;
                server.begin("/v1/completions", &long(json!({ "stream": stream })))
            })
            .collect();
        for (socket, wait_ms) in sockets.into_iter().zip([0u64, 1, 7, 2, 0, 11, 3, 5]) {
            std::thread::sleep(Duration::from_millis(wait_ms));
            drop(socket);
        }
    }
    let is_empty =
        |server: &Server| server.get("/v1/requests").json()["data"].as_array().unwrap().is_empty();
    assert!(server.becomes(is_empty), "{:?}", server.get("/v1/requests"));
    let model = server.get("/v1/models").json()["data"][0]["causeway"].clone();
    assert_eq!(model["load"]["running"], 0, "{model}");
    assert_eq!(model["load"]["waiting"], 0, "{model}");
    assert_eq!(model["load"]["held_blocks"], 0, "{model}");
}

#[test]
fn a_step_loop_that_hangs_turns_ready_red() {
    let hangs = json!({ "when": "hang", "text": "abc", "hangs_at": 1, "hang_ms": 700 });
    let server = Server::of(&json!({ "answers": [hangs, { "text": "ok" }] }));
    assert_eq!(server.get("/ready").status, 200);
    let socket = server.begin("/v1/completions", &json!({ "prompt": "hang" }));
    assert!(server.becomes(|server| server.get("/ready").status == 503));
    assert_eq!(server.get("/health").status, 200);
    let reply = server.get("/ready");
    assert!(reply.body.contains("silent"), "{reply:?}");
    assert!(server.becomes(|server| server.get("/ready").status == 200));
    drop(socket);
}
