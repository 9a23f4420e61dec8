//! The real server as a process: says where it listens, answers, and ends as it is told to.

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::{Value, json};
use support::{causeway, code_of, command, lines, rest_of, smollm2, spawned};

/// Longest that anything here is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    child: Child,
    addr: String,
}

impl Server {
    /// Starts a server on a free port and reads where it listens.
    fn start(store: &Path, drain_ms: &str) -> Self {
        let store = store.display().to_string();
        let place = ["--addr", "127.0.0.1:0", "--json", "--store", &store];
        let size = ["--drain-ms", drain_ms, "--kv-tokens", "4096", "--context", "2048"];
        let mut child =
            spawned(command(&[&["serve", "-m", smollm2()][..], &place, &size].concat()));
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server says something");
        let addr = lines(&line)[0]["addr"].as_str().expect("an address").to_owned();
        Self { child, addr }
    }

    /// Sends a request without waiting for its answer.
    fn begin(&self, body: &Value) -> TcpStream {
        let mut socket = TcpStream::connect(&self.addr).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
        let body = body.to_string();
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all((head + &body).as_bytes()).expect("the server reads");
        socket
    }

    /// An answer that has begun and would take minutes.
    fn begin_long(&self) -> BufReader<TcpStream> {
        let fields = json!({
            "prompt": "Once", "max_tokens": 1900, "ignore_eos": true, "stream": true, "seed": 1,
        });
        let mut answer = BufReader::new(self.begin(&fields));
        let mut line = String::new();
        // The head and the first chunk come early; the bound is far beyond both.
        for _ in 0..40 {
            line.clear();
            answer.read_line(&mut line).expect("the answer begins");
            if line.starts_with("data: ") {
                return answer;
            }
        }
        panic!("no chunk has come");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().expect("kill is there");
        assert!(sent.success());
    }

    /// Waits for the end; gives the exit code and what was said on standard error.
    fn wait(mut self) -> (i32, String) {
        let stderr = self.child.stderr.take().expect("stderr is piped");
        let status = self.child.wait().expect("the server ends");
        (code_of(status), rest_of(stderr))
    }
}

/// A body of an answer that came whole.
fn answer(mut socket: TcpStream) -> Value {
    let mut text = String::new();
    socket.read_to_string(&mut text).expect("the answer is text");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let body = text.split_once("\r\n\r\n").expect("a head and a body").1;
    serde_json::from_str(body).expect("the body is JSON")
}

/// Stop reasons and cancellers of the records in a store, newest first.
fn ends(store: &Path) -> Vec<Value> {
    let store = store.display().to_string();
    let ran = causeway(&["ledger", "ls", "--store", &store, "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    lines(&ran.stdout)
}

#[test]
fn a_drain_lets_answers_end_and_exits_with_0() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let store = folder.path().join("ledger.sqlite");
    let server = Server::start(&store, "60000");
    let short = json!({ "prompt": "Two and two is", "max_tokens": 3, "temperature": 0 });
    let whole = answer(server.begin(&short));
    assert_eq!(whole["usage"]["completion_tokens"], 3, "{whole}");
    // Under way when the signal comes: it ends by itself, and nothing new is taken.
    let asked = json!({ "prompt": "Once", "max_tokens": 40, "ignore_eos": true, "stream": true });
    let mut stream = BufReader::new(server.begin(&asked));
    let mut line = String::new();
    stream.read_line(&mut line).expect("the answer begins");
    server.signal("TERM");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the answer ends");
    assert!(rest.contains("\"finish_reason\":\"length\"") && rest.contains("[DONE]"), "{rest}");
    let (code, said) = server.wait();
    assert_eq!(code, 0, "{said}");
    let ends = ends(&store);
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert!(ends.iter().all(|listed| listed["stop"] == "max_tokens"), "{ends:?}");
}

#[test]
fn what_outlasts_the_drain_is_cancelled_with_account() {
    // By a second signal, and by the drain's own end.
    for (drain_ms, signals) in [("60000", 2), ("50", 1)] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let store = folder.path().join("ledger.sqlite");
        let server = Server::start(&store, drain_ms);
        let mut stream = server.begin_long();
        for _ in 0..signals {
            server.signal("TERM");
            // Two signals in one moment are one; the second must be seen as such.
            std::thread::sleep(Duration::from_millis(300));
        }
        let mut rest = String::new();
        stream.read_to_string(&mut rest).expect("the answer ends");
        assert!(rest.contains("\"by\":\"shutdown\"") && rest.contains("[DONE]"), "{rest}");
        let (code, said) = server.wait();
        assert_eq!(code, 0, "{said}");
        let ends = ends(&store);
        assert_eq!((ends.len(), &ends[0]["stop"]), (1, &json!("cancelled")), "{ends:?}");
    }
}
