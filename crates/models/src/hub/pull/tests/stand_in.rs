//! A hub in miniature: one repository, one commit, and faults in the order they are asked for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::Sha256;

/// The one commit there is.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What a request for a file's bytes meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The connection ends after so many bytes of the file.
    Cut(usize),
    /// So many bytes come, and then nothing, with the connection open.
    Stall(usize),
    /// Many small pieces with waits between them.
    Slow,
    Status(u16),
    /// 429 with this `Retry-After`.
    Busy(&'static str),
    /// 200 and all bytes where a part was asked for.
    WholeForPart,
    /// 206 with another part than the one asked for.
    OtherPart,
    /// One byte is another.
    Damaged,
    /// A `Content-Length` of its own.
    Announces(u64),
    /// More bytes than the file has, without a length.
    TooLong,
    /// Another tag than the one that the head of the file had.
    OtherTag,
    /// A redirect to itself.
    Loop,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    faults: VecDeque<Fault>,
    /// First lines and headers of all requests, and when each came.
    seen: Vec<(SystemTime, String)>,
    store: Option<String>,
    refusal: Option<(u16, &'static str)>,
}

/// The server; its thread ends with the program.
pub(crate) struct StandIn {
    address: String,
    state: Arc<Mutex<State>>,
}

/// The tag of a file: its SHA-256, as for all large files of the hub.
pub(crate) fn etag_of(content: &[u8]) -> String {
    Sha256::of(&mut { content }).unwrap().to_string()
}

impl StandIn {
    pub(crate) fn start(files: &[(&str, Vec<u8>)], faults: &[Fault]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let files = files.iter().map(|(path, content)| ((*path).to_owned(), content.clone()));
        let faults = faults.iter().copied().collect();
        let state = State { files: files.collect(), faults, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || answer(&stream.unwrap(), &shared));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests that have `text` in their first line or headers.
    pub(crate) fn count(&self, text: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.seen.iter().filter(|(_, request)| request.contains(text)).count()
    }

    /// Milliseconds between the first two requests for bytes.
    pub(crate) fn waited_ms(&self) -> u128 {
        let state = self.state.lock().unwrap();
        let mut gets = state.seen.iter().filter(|(_, r)| r.starts_with("GET /o/r/resolve"));
        let from = gets.next().unwrap().0;
        gets.next().unwrap().0.duration_since(from).unwrap().as_millis()
    }

    /// Bytes are fetched from another server from now on.
    pub(crate) fn send_files_to(&self, url: &str) {
        self.state.lock().unwrap().store = Some(url.to_owned());
    }

    /// All requests are refused from now on.
    pub(crate) fn refuse(&self, status: u16, code: &'static str) {
        self.state.lock().unwrap().refusal = Some((status, code));
    }
}

/// One request, one answer, and the connection ends.
fn answer(stream: &TcpStream, state: &Mutex<State>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let mut words = head.first().map(|line| line.split(' ')).into_iter().flatten();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let from = head.iter().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok()
    });
    let plain = path.split('?').next().unwrap_or(path);
    let file = plain.strip_prefix("/o/r/resolve/").and_then(|rest| rest.split_once('/'));
    let (content, fault, store) = {
        let mut state = state.lock().unwrap();
        let lines = head.iter().enumerate().map(|(i, line)| match line.split_once(": ") {
            Some((name, value)) if i > 0 => format!("{}: {value}", name.to_ascii_lowercase()),
            _ => line.clone(),
        });
        let seen = lines.collect::<Vec<_>>().join("\n");
        state.seen.push((SystemTime::now(), seen));
        if let Some((status, code)) = state.refusal {
            return send(
                stream,
                &format!("{status} No"),
                &format!("X-Error-Code: {code}\r\n"),
                b"",
            );
        }
        if path.starts_with("/api/models/o/r/revision/") {
            let names = state.files.keys();
            let names: Vec<_> = names.map(|n| format!(r#"{{"rfilename": "{n}"}}"#)).collect();
            let body = format!(r#"{{"sha": "{COMMIT}", "siblings": [{}]}}"#, names.join(","));
            return send(stream, "200 OK", "", body.as_bytes());
        }
        let content = file.and_then(|(_, name)| state.files.get(name).cloned());
        let fault = if method == "GET" { state.faults.pop_front() } else { None };
        (content, fault.unwrap_or(Fault::None), state.store.clone())
    };
    let Some(content) = content else {
        return send(stream, "404 Not Found", "X-Error-Code: EntryNotFound\r\n", b"");
    };
    let about = format!(
        "X-Repo-Commit: {COMMIT}\r\nX-Linked-Etag: \"{}\"\r\nX-Linked-Size: {}\r\n",
        etag_of(&content),
        content.len()
    );
    if let Some(store) = store {
        let headers = format!("{about}Location: {store}{path}?signature=1\r\n");
        return send(stream, "302 Found", &headers, b"");
    }
    if method == "HEAD" {
        return head_only(stream, &about, content.len());
    }
    with_fault(stream, (&about, path), &content, from, fault);
}

fn with_fault(
    stream: &TcpStream,
    (about, path): (&str, &str),
    content: &[u8],
    from: Option<usize>,
    fault: Fault,
) {
    let start = from.unwrap_or(0).min(content.len());
    let range = |first: usize| {
        format!("{about}Content-Range: bytes {first}-{}/{}\r\n", content.len() - 1, content.len())
    };
    let (line, headers) = match from {
        Some(_) => ("206 Partial Content", range(start)),
        None => ("200 OK", about.to_owned()),
    };
    let rest = &content[start..];
    match fault {
        Fault::None => send(stream, line, &headers, rest),
        Fault::Cut(count) => {
            begin(stream, line, &headers, rest.len());
            write(stream, &rest[..count.min(rest.len())]);
        }
        Fault::Stall(count) => {
            begin(stream, line, &headers, rest.len());
            write(stream, &rest[..count.min(rest.len())]);
            // Longer than the client's patience.
            std::thread::sleep(Duration::from_millis(1500));
        }
        Fault::Slow => {
            begin(stream, line, &headers, rest.len());
            for piece in rest.chunks(rest.len() / 8) {
                write(stream, piece);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Fault::Status(status) => send(stream, &format!("{status} No"), "", b""),
        Fault::Busy(wait) => send(stream, "429 No", &format!("Retry-After: {wait}\r\n"), b""),
        Fault::WholeForPart => send(stream, "200 OK", about, content),
        Fault::OtherPart => send(stream, "206 Partial Content", &range(start + 1), &rest[1..]),
        Fault::Damaged => {
            let mut bytes = rest.to_vec();
            bytes[0] ^= 1;
            send(stream, line, &headers, &bytes);
        }
        Fault::Announces(length) => {
            begin(stream, line, &headers, usize::try_from(length).unwrap());
            write(stream, rest);
        }
        Fault::TooLong => {
            write(
                stream,
                format!("HTTP/1.1 {line}\r\n{headers}Connection: close\r\n\r\n").as_bytes(),
            );
            write(stream, rest);
            write(stream, b"more");
        }
        Fault::OtherTag => {
            let headers = headers.replace("X-Linked-Etag: \"", "X-Linked-Etag: \"0");
            send(stream, line, &headers, rest);
        }
        Fault::Loop => send(stream, "302 Found", &format!("Location: {path}\r\n"), b""),
    }
}

fn begin(stream: &TcpStream, line: &str, headers: &str, length: usize) {
    let head = format!(
        "HTTP/1.1 {line}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    write(stream, head.as_bytes());
}

fn send(stream: &TcpStream, line: &str, headers: &str, body: &[u8]) {
    begin(stream, line, headers, body.len());
    write(stream, body);
    stream.shutdown(Shutdown::Write).ok();
}

fn head_only(stream: &TcpStream, headers: &str, length: usize) {
    begin(stream, "200 OK", headers, length);
}

/// The client may have gone, which is its right.
fn write(mut stream: &TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).ok();
}
