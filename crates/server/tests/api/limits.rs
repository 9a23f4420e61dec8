//! Limits of sockets, bodies and queues: each has a number, and says it.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Reply, Server, options, script, timed};

fn ok() -> Value {
    json!({ "answers": [{ "text": "ok" }] })
}

fn read_all(socket: &mut std::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_body_beyond_the_limit_is_refused_whichever_way_it_comes() {
    let server = Server::of(&ok());
    let body = format!("{{\"prompt\":\"{}\"}}", "x".repeat(10 << 20));
    let reply = server.send("POST", "/v1/completions", body.as_bytes());
    assert_eq!(reply.status, 413, "{:?}", reply.head);
    assert!(reply.message().contains("1048576"), "{reply:?}");
    let mut socket = server.connect();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
                Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 65_536, "y".repeat(65_536));
    for _ in 0..40 {
        if socket.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let answer = read_all(&mut socket);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(server.is_alive());
}

#[test]
fn a_client_that_trickles_is_cut_off() {
    let server = Server::of(&ok());
    let mut header = server.connect();
    header.write_all(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\n").unwrap();
    let mut body = server.connect();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
                Connection: close\r\nContent-Length: 100\r\n\r\n{\"prompt\"";
    body.write_all(head.as_bytes()).unwrap();
    assert!(server.is_alive());
    let took = timed(|| {
        read_all(&mut header);
        let answer = Reply::parse(read_all(&mut body).as_bytes());
        assert_eq!(answer.status, 408, "{answer:?}");
    });
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(server.is_alive());
}

#[test]
fn what_is_no_http_is_cut_off() {
    let server = Server::of(&ok());
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
    {
        let mut socket = server.connect();
        socket.write_all(bytes).unwrap();
        read_all(&mut socket);
    }
    let mut socket = server.connect();
    let long = format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", "x".repeat(200_000));
    let _ = socket.write_all(long.as_bytes());
    read_all(&mut socket);
    assert!(server.is_alive());
}

#[test]
fn another_content_type_is_refused() {
    let server = Server::of(&ok());
    let mut socket = server.connect();
    let request = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Type: text/plain\r\n\
                   Connection: close\r\nContent-Length: 14\r\n\r\n{\"prompt\":\"a\"}";
    socket.write_all(request.as_bytes()).unwrap();
    let reply = Reply::parse(read_all(&mut socket).as_bytes());
    assert_eq!(reply.status, 415, "{reply:?}");
    assert!(reply.message().contains("text/plain"), "{reply:?}");
}

#[test]
fn wrong_paths_and_methods_say_so() {
    let server = Server::of(&ok());
    assert_eq!(server.get("/v2/nothing").status, 404);
    assert_eq!(server.get("/v2/nothing").json()["error"]["code"], "unknown_url");
    assert_eq!(server.get("/v1/completions").status, 405);
    assert_eq!(server.send("DELETE", "/v1/models", b"").status, 405);
    assert_eq!(server.get("/health").json()["status"], "ok");
}

#[test]
fn a_full_queue_and_a_long_wait_are_503_with_their_numbers() {
    let endless = json!({ "when": "long", "pieces": ["x"], "repeats": true, "delay_ms": 5 });
    let mut options = options(vec![script(&json!({ "answers": [endless, { "text": "ok" }] }))]);
    options.sizing.limits.running_max = 1;
    options.sizing.limits.queue_max = 1;
    options.sizing.limits.wait_ns_max = Some(150_000_000);
    let server = Server::start(options);
    let long = json!({ "prompt": "long", "max_tokens": 1000 });
    let running = server.begin("/v1/completions", &long);
    std::thread::sleep(Duration::from_millis(50));
    let mut waiting = server.begin("/v1/completions", &json!({ "prompt": "a" }));
    std::thread::sleep(Duration::from_millis(50));
    let full = server.post("/v1/completions", &json!({ "prompt": "a", "n": 3 }));
    assert_eq!(full.status, 503, "{full:?}");
    assert!(full.head.contains("retry-after: "), "{full:?}");
    let said = "the queue is full: 1 requests wait, 3 more came, the limit is 1";
    assert_eq!(full.message(), said);
    let over = Reply::parse(read_all(&mut waiting).as_bytes());
    assert_eq!(over.status, 503, "{over:?}");
    assert_eq!(over.json()["error"]["code"], "wait_over", "{over:?}");
    drop(running);
    assert!(server.becomes(Server::is_alive));
}
