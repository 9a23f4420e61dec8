//! A server in the test's own process, and a client that speaks plain HTTP over a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use causeway_engine::Limits;
use causeway_server::scripted::Script;
use causeway_server::{Operation, Options, Sizing, Source, Stop, WireLimits, auth, observe, serve};
use causeway_session::Hashes;
use serde_json::Value;
use tokio::sync::oneshot;

/// Longest that any test waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with its test.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Options for a test: small, quick, on any free port.
pub(crate) fn options(models: Vec<Source>) -> Options {
    Options {
        addr: "127.0.0.1:0".parse().unwrap(),
        models,
        models_bytes_max: None,
        policy: None,
        sizing: Sizing {
            limits: Limits { queue_max: 64, ..Limits::new(8, 64) },
            itl_target_ns: None,
            hashes: Hashes::new(""),
            kv_disk: None,
        },
        limits: WireLimits {
            keep_alive: Duration::from_millis(40),
            header_time_max: Duration::from_millis(300),
            body_time_max: Duration::from_millis(300),
            body_bytes_max: 1 << 20,
            ..WireLimits::default()
        },
        drain: Duration::from_millis(300),
        silence_max: Duration::from_millis(200),
        auth: Arc::new(auth::Open),
        observer: Arc::new(observe::Unobserved),
        ledger: None,
        results: None,
        operation: Operation::default(),
    }
}

/// A script as a model.
pub(crate) fn script(json: &Value) -> Source {
    Source::Script(Arc::new(Script::from_json(&json.to_string()).unwrap()))
}

impl Server {
    /// A server of one script.
    pub(crate) fn of(json: &Value) -> Self {
        Self::start(options(vec![script(json)]))
    }

    /// A server of one answer, given to every prompt.
    pub(crate) fn saying(answer: Value) -> Self {
        Self::of(&serde_json::json!({ "answers": [answer] }))
    }

    pub(crate) fn start(options: Options) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let run = move || {
            let served = serve(options, Stop::Channel(stopped), |addr| tell.send(addr).unwrap());
            served.unwrap();
        };
        let thread = std::thread::spawn(run);
        let addr = told.recv_timeout(PATIENCE).unwrap();
        Self { addr, stop: Some(stop), thread: Some(thread) }
    }

    /// A server in another process, which this one does not end.
    pub(crate) fn at(addr: SocketAddr) -> Self {
        Self { addr, stop: None, thread: None }
    }

    /// Asks the server to end; comes back at once.
    pub(crate) fn shut_down(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has ended.
    pub(crate) fn wait(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.addr).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Sends a request and waits for the whole answer.
    pub(crate) fn send(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        let mut socket = self.connect();
        write_request(&mut socket, method, path, body);
        let mut bytes = Vec::new();
        // A server that refuses a body may close before it has read all of it.
        let _ = socket.read_to_end(&mut bytes);
        Reply::parse(&bytes)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, body.to_string().as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, b"")
    }

    /// Posts without waiting for anything.
    pub(crate) fn begin(&self, path: &str, body: &Value) -> TcpStream {
        let mut socket = self.connect();
        write_request(&mut socket, "POST", path, body.to_string().as_bytes());
        socket
    }

    /// A request that anybody would be answered.
    pub(crate) fn is_alive(&self) -> bool {
        let body = serde_json::json!({ "prompt": "a", "max_tokens": 1 });
        self.get("/health").status == 200 && self.post("/v1/completions", &body).status == 200
    }

    /// Repeats `look` until it is true; false where it stays false too long.
    pub(crate) fn becomes(&self, look: impl Fn(&Self) -> bool) -> bool {
        (0..1_500).any(|_| {
            let is_so = look(self);
            if !is_so {
                std::thread::sleep(Duration::from_millis(10));
            }
            is_so
        })
    }
}

/// How long something took.
#[expect(clippy::disallowed_methods, reason = "a server's limits of time are what is tested")]
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let begun = std::time::Instant::now();
    work();
    begun.elapsed()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shut_down();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn write_request(socket: &mut TcpStream, method: &str, path: &str, body: &[u8]) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = socket.write_all(head.as_bytes());
    let _ = socket.write_all(body);
}

/// An answer as it came over the wire.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { joined(body) } else { body.to_owned() };
        Self { status, head: head.to_lowercase(), body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The sentence of an error.
    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The events of a stream, `[DONE]` and comments left out.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        lines
            .filter(|line| *line != "[DONE]")
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The text of a stream's first choice.
    pub(crate) fn streamed(&self) -> String {
        self.pieces(|choice| [&choice["delta"]["content"], &choice["text"]].map(Value::clone))
    }

    /// The reasoning of a stream's first choice.
    pub(crate) fn streamed_reasoning(&self) -> String {
        self.pieces(|choice| [choice["delta"]["reasoning_content"].clone(), Value::Null])
    }

    fn pieces(&self, of: impl Fn(&Value) -> [Value; 2]) -> String {
        let mut text = String::new();
        for event in self.events() {
            let choices = event["choices"].as_array().cloned().unwrap_or_default();
            for choice in choices.iter().filter(|choice| choice["index"] == 0) {
                for piece in of(choice) {
                    text.push_str(piece.as_str().unwrap_or_default());
                }
            }
        }
        text
    }

    /// Every `finish_reason` of a stream that is not null, in order.
    pub(crate) fn finish_reasons(&self) -> Vec<String> {
        let events = self.events();
        let choices = events.iter().filter_map(|event| event["choices"].as_array()).flatten();
        choices.filter_map(|choice| choice["finish_reason"].as_str().map(str::to_owned)).collect()
    }
}

/// A chunked body without its framing.
fn joined(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap_or(0);
        if length == 0 || rest.len() < length {
            break;
        }
        text.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap_or_default();
    }
    text
}
