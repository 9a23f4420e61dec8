//! All bodies that are being read at once have one bound.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::support::{Reply, Server, options, script};

/// Of all bodies together.
const BYTES_MAX: usize = 100_000;

fn server() -> Server {
    let mut options = options(vec![script(&json!({ "answers": [{ "text": "ok" }] }))]);
    options.limits.bodies_bytes_max = BYTES_MAX;
    options.limits.body_time_max = Duration::from_secs(20);
    Server::start(options)
}

/// Sends `sent` bytes of a body that is to be `length` long; by its length or in one chunk.
fn begin(server: &Server, (length, sent): (usize, usize), chunked: bool) -> TcpStream {
    let mut socket = server.connect();
    let framing = if chunked {
        format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n")
    } else {
        format!("Content-Length: {length}\r\n\r\n")
    };
    let head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\
                Content-Type: application/json\r\n";
    let mut body = b"{\"prompt\":\"a\",\"max_tokens\":1,\"user\":\"".to_vec();
    body.resize(sent, b'u');
    socket.write_all(&[head.as_bytes(), framing.as_bytes(), &body].concat()).unwrap();
    socket
}

fn told(mut socket: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // A server that refuses a body may close before it has read all of it.
    let _ = socket.read_to_end(&mut bytes);
    Reply::parse(&bytes)
}

#[test]
fn bodies_that_are_too_many_bytes_together_are_refused() {
    for chunked in [false, true] {
        let server = server();
        let held = begin(&server, (60_000, 59_000), chunked);
        // What was only announced takes no room.
        let announced = begin(&server, (90_000, 40), chunked);
        let mut late = begin(&server, (50_000, 40_000), chunked);
        // Nothing tells when a server has read what was sent; what it leaves unread when it
        // closes would cost us its answer.
        std::thread::sleep(Duration::from_millis(200));
        late.write_all(&[b'u'; 2_000]).unwrap();
        let reply = told(late);
        assert_eq!(reply.status, 503, "{reply:?}");
        let wanted = format!("bytes together, the limit is {BYTES_MAX} bytes");
        assert!(reply.message().contains(&wanted), "{reply:?}");
        assert_eq!(reply.json()["error"]["code"], "overloaded", "{reply:?}");
        assert!(reply.head.contains("retry-after: 1"), "{reply:?}");
        assert!(server.is_alive(), "a small body has room");
        drop((held, announced));
        // The room comes back: this one is read to its end and found to be no JSON.
        let is_read = |server: &Server| {
            let body = "x".repeat(90_000);
            server.send("POST", "/v1/completions", body.as_bytes()).status == 400
        };
        assert!(server.becomes(is_read));
    }
}
