//! Bodies, headers and paths that no honest client sends, and fields at odds with each other.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::support::{Reply, Server, timed};

/// Every endpoint that takes a body.
const POSTS: &[&str] = &[
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/tokenize",
    "/detokenize",
    "/apply-template",
];

fn server() -> Server {
    Server::saying(json!({ "text": "ok" }))
}

/// Sends bytes as they are and reads what comes.
fn exchange(server: &Server, bytes: &[u8]) -> Reply {
    let mut socket = server.connect();
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    Reply::parse(&answer)
}

/// A completion's request with headers of its own in place of its length.
fn with_headers(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\
         Content-Type: application/json\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// An error in the form that clients read, one line of text.
fn check_refused(reply: &Reply, status: u16, words: &str) {
    assert_eq!(reply.status, status, "{reply:?}");
    let error = &reply.json()["error"];
    assert_eq!(error["type"], "invalid_request_error", "{reply:?}");
    let message = reply.message();
    assert!(message.contains(words) && !message.contains('\n'), "{words}: {reply:?}");
    assert!(reply.body.len() < 1_000, "{reply:?}");
}

#[test]
fn broken_json_is_refused_at_every_endpoint() {
    let server = server();
    let deep = "[".repeat(100_000);
    let utf16: Vec<u8> = "{\"model\":\"a\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for path in POSTS {
        for (body, words) in [
            (&b""[..], "empty"),
            (b"{\"model\":", "not valid JSON"),
            (b"{\"model\":\"a\xFF\"}", "not valid JSON"),
            (b"{\"model\":\"\\ud83d\"}", "not valid JSON"),
            (b"{\"model\":\"\\udc00\\ud83d\"}", "not valid JSON"),
            (b"{\"model\":\"a\x00\"}", "not valid JSON"),
            (b"\xEF\xBB\xBF{\"model\":\"a\"}", "not valid JSON"),
            (&utf16, "not valid JSON"),
            (b"{\"model\":NaN}", "not valid JSON"),
            (b"{\"model\":-Infinity}", "not valid JSON"),
            (b"{\"model\":1e999}", "not valid JSON"),
            (b"{\"model\":\"a\"} x", "not valid JSON"),
            (b"{\"model\":\"a\",}", "not valid JSON"),
            (deep.as_bytes(), "not valid JSON"),
            (b"[]", "not a JSON object"),
            (b"null", "not a JSON object"),
            (b"\"a\"", "not a JSON object"),
        ] {
            check_refused(&server.send("POST", path, body), 400, words);
        }
    }
    assert!(server.is_alive());
}

#[test]
fn a_field_that_stands_twice_is_refused_by_its_name() {
    let server = server();
    for (body, name) in [
        (r#"{"prompt":"a","max_tokens":1,"max_tokens":2}"#, "`max_tokens`"),
        (r#"{"prompt":"a","prompt":"b"}"#, "`prompt`"),
        (r#"{"prompt":"a","\u0070rompt":"b"}"#, "`prompt`"),
        (
            r#"{"prompt":"a","stream_options":{"include_usage":true,"include_usage":true}}"#,
            "`include_usage`",
        ),
        (r#"{"prompt":"a","logit_bias":{"5":1,"5":2}}"#, "`5`"),
        (r#"{"prompt":"a","metadata":{"x\n":1,"x\n":1}}"#, "stands twice"),
    ] {
        check_refused(&server.send("POST", "/v1/completions", body.as_bytes()), 400, name);
    }
    let body = r#"{"messages":[{"role":"user","content":"a","content":"b"}]}"#;
    check_refused(&server.send("POST", "/v1/chat/completions", body.as_bytes()), 400, "`content`");
    let long = format!("{{\"{0}\":1,\"{0}\":1}}", "x".repeat(100_000));
    check_refused(&server.send("POST", "/v1/completions", long.as_bytes()), 400, "stands twice");
    // The same name in two objects is no repetition.
    let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#;
    assert_eq!(server.send("POST", "/v1/chat/completions", body.as_bytes()).status, 200);
}

#[test]
fn a_body_that_breaks_off_is_not_called_too_large() {
    let server = server();
    let chunked = "Transfer-Encoding: chunked\r\n";
    let whole = b"1d\r\n{\"prompt\":\"a\",\"max_tokens\":1}\r\n0\r\n\r\n";
    assert_eq!(exchange(&server, &with_headers(chunked, whole)).status, 200);
    for body in [
        &b"zz\r\n{\"prompt\":\"a\",\"max_tokens\":1}\r\n0\r\n\r\n"[..],
        b"-1\r\n{}\r\n0\r\n\r\n",
        b"4\r\n{}\r\n0\r\n\r\n",
        b"1ffffffffffffffff\r\n{}\r\n",
    ] {
        check_refused(&exchange(&server, &with_headers(chunked, body)), 400, "body");
    }
    // A client that says it is done before its body is.
    let mut socket = server.connect();
    let half = with_headers("Content-Length: 100\r\n", b"{\"prompt\"");
    socket.write_all(&half).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let took = timed(|| {
        let _ = socket.read_to_end(&mut answer);
    });
    let answer = Reply::parse(&answer);
    assert!(answer.status == 0 || answer.status == 400, "{answer:?}");
    assert!(took < std::time::Duration::from_secs(2), "{took:?}");
    assert!(server.is_alive());
}

#[test]
fn a_body_in_another_coding_is_refused_by_its_name() {
    let server = server();
    let body = b"{\"prompt\":\"a\",\"max_tokens\":1}";
    let length = format!("Content-Length: {}\r\n", body.len());
    for coding in ["gzip", "br", "deflate, gzip", "x"] {
        let headers = format!("Content-Encoding: {coding}\r\n{length}");
        check_refused(&exchange(&server, &with_headers(&headers, body)), 415, coding);
    }
    let headers = format!("Content-Encoding: identity\r\n{length}");
    assert_eq!(exchange(&server, &with_headers(&headers, body)).status, 200);
    let chunked = b"1d\r\n{\"prompt\":\"a\",\"max_tokens\":1}\r\n0\r\n\r\n";
    let reply = exchange(&server, &with_headers("Transfer-Encoding: gzip, chunked\r\n", chunked));
    check_refused(&reply, 415, "gzip");
}

#[test]
fn a_path_that_is_no_text_is_refused_in_the_errors_form() {
    let server = server();
    for (method, path) in [
        ("GET", "/v1/requests/%ff"),
        ("DELETE", "/v1/requests/%C3%28"),
        ("GET", "/v1/models/%ff"),
        ("GET", "/v1/models/a/%80"),
    ] {
        check_refused(&server.send(method, path, b""), 400, "UTF-8");
    }
    assert_eq!(server.get("/v1/requests/%00").status, 404);
    assert_eq!(server.get("/v1/models/..%2f..%2fetc%2fpasswd").status, 404);
}

#[test]
fn methods_that_nobody_knows_are_one_in_the_metrics() {
    let server = server();
    for method in ["BREW", "XYZZY", &"A".repeat(10_000)] {
        let reply = server.send(method, "/v1/completions", b"");
        check_refused(&reply, 405, "does not take");
    }
    let metrics = server.get("/metrics").body;
    assert!(!metrics.contains("BREW") && !metrics.contains("AAAA"), "{metrics}");
    let lines: Vec<&str> =
        metrics.lines().filter(|line| line.contains("method=\"_OTHER\"")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with(" 3"), "{lines:?}");
}

#[test]
fn constraints_that_leave_no_token_are_the_callers_mistake() {
    let server = server();
    let end = 1;
    let all: Vec<u32> = (0..263).collect();
    for (fields, param) in [
        (json!({ "allowed_token_ids": [50], "forbidden_token_ids": [50] }), "forbidden_token_ids"),
        (json!({ "forbidden_token_ids": all }), "forbidden_token_ids"),
        (json!({ "allowed_token_ids": [end], "min_tokens": 1 }), "min_tokens"),
        (
            json!({ "allowed_token_ids": [50], "stop_token_ids": [50], "min_tokens": 2 }),
            "min_tokens",
        ),
    ] {
        for stream in [false, true] {
            let mut body = fields.clone();
            body["prompt"] = json!("a");
            body["stream"] = json!(stream);
            let reply = server.post("/v1/completions", &body);
            check_refused(&reply, 400, "no token");
            assert_eq!(reply.json()["error"]["param"], param, "{body} {reply:?}");
        }
    }
    let fields =
        json!({ "prompt": "a", "allowed_token_ids": [50, 51], "forbidden_token_ids": [50] });
    assert_eq!(server.post("/v1/completions", &fields).status, 200);
    let fields = json!({ "prompt": "a", "allowed_token_ids": [end] });
    assert_eq!(server.post("/v1/completions", &fields).status, 200);
}

#[test]
fn ids_outside_the_vocabulary_are_refused_by_their_field() {
    let server = server();
    for (path, body, param) in [
        ("/v1/completions", json!({ "prompt": [263] }), "prompt"),
        ("/v1/completions", json!({ "prompt": [[u32::MAX]] }), "prompt"),
        ("/v1/completions", json!({ "prompt": "a", "logit_bias": { "263": 1 } }), "logit_bias"),
        ("/v1/completions", json!({ "prompt": "a", "stop_token_ids": [263] }), "stop_token_ids"),
        (
            "/v1/completions",
            json!({ "prompt": "a", "allowed_token_ids": [263] }),
            "allowed_token_ids",
        ),
        (
            "/v1/completions",
            json!({ "prompt": "a", "forbidden_token_ids": [263] }),
            "forbidden_token_ids",
        ),
        ("/detokenize", json!({ "tokens": [263] }), "tokens"),
    ] {
        let reply = server.post(path, &body);
        check_refused(&reply, 400, "vocabulary");
        assert_eq!(reply.json()["error"]["param"], param, "{body} {reply:?}");
    }
    assert!(server.is_alive());
}

/// One bad request beside another one that runs: what the other says is untouched.
#[test]
fn bad_requests_change_nothing_for_their_neighbours() {
    let server = Server::of(&json!({ "answers": [
        { "when": "good", "pieces": ["z"], "repeats": true, "delay_ms": 3 },
        { "text": "ok" },
    ] }));
    let body = json!({ "prompt": "good", "max_tokens": 120, "seed": 1 });
    let mut beside = server.begin("/v1/completions", &body);
    let bad: [Value; 9] = [
        json!({ "prompt": "a", "temperature": "hot" }),
        json!({ "prompt": "a", "max_tokens": 1e30 }),
        json!({ "prompt": [-1] }),
        json!({ "prompt": [4_000_000_000_u32] }),
        json!({ "prompt": "a", "logit_bias": { "x": 1 } }),
        json!({ "prompt": "a", "seed": -9_007_199_254_740_993_i64 }),
        json!({ "prompt": "a", "n": 1_000_000 }),
        json!({ "prompt": "a", "stop": [[]] }),
        json!({ "prompt": "w".repeat(100_000) }),
    ];
    for body in &bad {
        assert_eq!(server.post("/v1/completions", body).status, 400, "{body}");
    }
    let mut bytes = Vec::new();
    beside.read_to_end(&mut bytes).unwrap();
    let beside = Reply::parse(&bytes).json();
    assert_eq!(beside["choices"][0]["text"], "z".repeat(120));
}

#[test]
fn a_header_above_the_limit_is_refused_however_it_comes() {
    let server = Server::saying(json!({ "text": "ok" }));
    for bytes in [66_000, 100_000] {
        let request =
            format!("GET /health HTTP/1.1\r\nHost: t\r\nX-Large: {}\r\n\r\n", "a".repeat(bytes));
        for _ in 0..10 {
            let mut socket = server.connect();
            // The server may answer and close before it has read all.
            let _ = socket.write_all(request.as_bytes());
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = socket.read_to_end(&mut answer);
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{bytes} {answer}");
        }
    }
    assert!(server.is_alive());
}
