//! A server that does what a test has written down, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) body: Value,
}

/// What the server does next on a connection.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Wait(u64),
    /// The head of a streamed answer.
    Stream,
    /// One chunk of a streamed answer.
    Chunk(String),
    /// The end of a streamed answer.
    End,
    /// Bytes as they are.
    Raw(&'static str),
    /// Waits until the client closes, and notes it.
    AwaitClose,
}

/// Chunks that make one event each.
pub(crate) fn event(payload: &str) -> Act {
    Act::Chunk(format!("data: {payload}\n\n"))
}

/// A piece of a chat's answer.
pub(crate) fn piece(text: &str) -> Act {
    event(&format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#))
}

pub(crate) fn usage(prompt: u64, output: u64) -> Act {
    event(&format!(
        r#"{{"choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":{output}}}}}"#
    ))
}

/// What a stand-in has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) asked: Vec<Asked>,
    pub(crate) closed_by_client: usize,
}

/// A stand-in that runs as long as the test.
pub(crate) struct StandIn {
    pub(crate) url: String,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

impl StandIn {
    /// Answers every request with the same acts; the list of models has the model `toy`.
    pub(crate) fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (acts, seen) = (acts.clone(), Arc::clone(&kept));
                // What a client that goes away breaks is no failure of the test.
                std::thread::spawn(move || answer(stream.unwrap(), acts, &seen).ok());
            }
        });
        Self { url, seen }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().asked.clone()
    }
}

fn answer(mut stream: TcpStream, acts: Vec<Act>, seen: &Mutex<Seen>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let asked = read_request(&stream)?;
    if asked.path.ends_with("/v1/models") {
        let list = r#"{"object":"list","data":[{"id":"toy"}]}"#;
        return write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}", list.len());
    }
    seen.lock().unwrap().asked.push(asked);
    for act in acts {
        if !is_played(&mut stream, act) {
            seen.lock().unwrap().closed_by_client += 1;
            break;
        }
    }
    Ok(())
}

/// Plays one act; false if the client has gone away.
fn is_played(stream: &mut TcpStream, act: Act) -> bool {
    let written = match act {
        Act::Wait(ms) => {
            std::thread::sleep(Duration::from_millis(ms));
            Ok(())
        }
        Act::Stream => write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
             transfer-encoding: chunked\r\n\r\n"
        ),
        Act::Chunk(text) => write!(stream, "{:x}\r\n{text}\r\n", text.len()),
        Act::End => write!(stream, "0\r\n\r\n"),
        Act::Raw(text) => write!(stream, "{text}"),
        // A client that closes sends no more bytes; a reset is an error here.
        Act::AwaitClose => return matches!(stream.read(&mut [0; 16]), Ok(count) if count > 0),
    };
    written.is_ok()
}

fn read_request(stream: &TcpStream) -> std::io::Result<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut key, mut length) = (None, 0);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        match name {
            "authorization" => key = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Asked { path, key, body: serde_json::from_slice(&body).unwrap_or_default() })
}
