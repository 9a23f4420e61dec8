//! One request, one connection: sends it and writes down when what came.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{timeout, timeout_at};

use crate::chunk::{self, DONE};
use crate::clock::Clock;
use crate::error::LoadError;
use crate::outcome::{Answer, Ending, Outcome};
use crate::plan::{HangUp, Planned};
use crate::span::Span;
use crate::sse::{Decoder, Event};
use crate::target::{Key, Server};

/// Most bytes of a refusal or a list of models that are read.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long the list of models may take.
const MODELS_WAIT: Duration = Duration::from_secs(10);
/// How long a stream may take to close after its last event, which is not measured.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Asks one server.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) server: Server,
    pub(crate) key: Option<Key>,
    /// The time that a request has, from its scheduled arrival.
    pub(crate) timeout: Span,
}

/// An answer that has begun; its connection closes when it is dropped.
struct Opened {
    response: Response<Incoming>,
    _connection: Connection,
}

struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why no answer began.
struct Unopened {
    ending: Ending,
    message: String,
}

impl Unopened {
    fn not_connected(error: &std::io::Error) -> Self {
        Self { ending: Ending::NotConnected, message: error.to_string() }
    }

    fn broken(error: &hyper::Error) -> Self {
        Self { ending: Ending::Broken, message: error.to_string() }
    }
}

/// What has come of an answer so far; it outlives a wait that is given up.
#[derive(Default)]
struct Seen {
    chunks_us: Vec<u64>,
    done_us: Option<u64>,
    answer: Answer,
    text: Sha256,
}

impl Client {
    /// Sends one request to `path` and waits for its end, whatever that is.
    pub(crate) async fn ask(
        &self,
        path: &str,
        planned: Planned,
        body: String,
        scheduled_us: u64,
        clock: Clock,
    ) -> Outcome {
        let sent_us = clock.now_us();
        let deadline_us = scheduled_us.saturating_add(self.timeout.us());
        let leaves_us = match planned.hang_up {
            Some(HangUp::AfterUs(us)) => sent_us + us,
            _ => u64::MAX,
        };
        let patience = match planned.hang_up {
            Some(HangUp::AfterChunks(count)) => usize::try_from(count).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let mut seen = Seen::default();
        let exchange = self.exchange(path, body, patience, &mut seen, clock);
        let ending = match timeout_at(clock.instant(deadline_us.min(leaves_us)), exchange).await {
            Ok(ending) => ending,
            Err(_) if leaves_us < deadline_us => Ending::HungUp,
            Err(_) => Ending::TimedOut,
        };
        let Seen { chunks_us, done_us, mut answer, text } = seen;
        let ending = if done_us.is_some() { Ending::Complete } else { ending };
        answer.text_sha256 = hex(&text.finalize()[..16]);
        let ended_us = done_us.unwrap_or_else(|| clock.now_us());
        Outcome { planned, scheduled_us, sent_us, chunks_us, ended_us, ending, answer }
    }

    /// The exchange itself; `seen` takes what comes, so that it is kept if time runs out.
    async fn exchange(
        &self,
        path: &str,
        body: String,
        patience: usize,
        seen: &mut Seen,
        clock: Clock,
    ) -> Ending {
        let mut opened = match self.open(Method::POST, path, body).await {
            Ok(opened) => opened,
            Err(Unopened { ending, message }) => {
                seen.answer.message = Some(message);
                return ending;
            }
        };
        let status = opened.response.status();
        if status != StatusCode::OK {
            seen.answer.retry_after_s = retry_after_s(&opened.response);
            let text = read_all(opened.response.body_mut()).await.unwrap_or_default();
            seen.answer.message = serde_json::from_slice(&text)
                .ok()
                .map(|answer: Value| chunk::message_of(&answer))
                .or_else(|| Some(chunk::message_of(&Value::from(String::from_utf8_lossy(&text)))));
            return Ending::Refused { status: status.as_u16() };
        }
        let mut decoder = Decoder::default();
        loop {
            let bytes = match next_bytes(opened.response.body_mut()).await {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => {
                    seen.answer.message = Some(error.to_string());
                    return Ending::Broken;
                }
                None => return Ending::CutOff,
            };
            let now_us = clock.now_us();
            let Ok(events) = decoder.feed(&bytes) else {
                return Ending::Unreadable;
            };
            for event in events {
                match seen.take(event, now_us) {
                    Some(Ending::Complete) => {
                        // A server may take a connection that closes early for a client gone.
                        let _ = timeout(CLOSE_WAIT, read_all(opened.response.body_mut())).await;
                        return Ending::Complete;
                    }
                    Some(ending) => return ending,
                    None if seen.chunks_us.len() >= patience => return Ending::HungUp,
                    None => {}
                }
            }
        }
    }

    /// Connects and sends; the answer's head has come when this returns.
    async fn open(&self, method: Method, path: &str, body: String) -> Result<Opened, Unopened> {
        let Server { host, port, .. } = &self.server;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| Unopened::not_connected(&error))?;
        // Without this a small request may wait for the answer to an earlier packet.
        stream.set_nodelay(true).map_err(|error| Unopened::not_connected(&error))?;
        let joined = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = joined.map_err(|error| Unopened::broken(&error))?;
        let connection = Connection(tokio::spawn(async move {
            // What goes wrong here goes wrong with the request, too, where it is counted.
            let _ = connection.await;
        }));
        let mut request = Request::builder()
            .method(method)
            .uri(self.server.path_of(path))
            .header(HOST, self.server.authority())
            .header(ACCEPT, "text/event-stream, application/json")
            .header(CONTENT_TYPE, "application/json");
        if let Some(Key(value)) = &self.key {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(body).expect("the address was read as a URI");
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| Unopened::broken(&error))?;
        Ok(Opened { response, _connection: connection })
    }

    /// The first model that the server lists.
    pub(crate) async fn first_model(&self) -> Result<String, LoadError> {
        let fail = |why| LoadError::Models { url: self.server.url(), why };
        let ask = async {
            let opened = self.open(Method::GET, "/v1/models", String::new()).await;
            let mut opened = opened.map_err(|unopened| match unopened.ending {
                Ending::NotConnected => fail("no server answers there"),
                _ => fail("the connection broke"),
            })?;
            match opened.response.status() {
                StatusCode::OK => {}
                status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                    let (url, status) = (self.server.url(), status.as_u16());
                    return Err(LoadError::NeedsKey { url, status });
                }
                _ => return Err(fail("it refuses the list")),
            }
            let text = read_all(opened.response.body_mut()).await;
            let text = text.ok_or_else(|| fail("its list does not end"))?;
            let list: Value = serde_json::from_slice(&text).map_err(|_| fail("no JSON came"))?;
            let name = list["data"][0]["id"].as_str();
            name.map(str::to_owned).ok_or_else(|| fail("its list is empty"))
        };
        timeout(MODELS_WAIT, ask).await.unwrap_or_else(|_| Err(fail("it does not answer in 10 s")))
    }
}

impl Seen {
    /// Takes one event; returns how it ends the answer, if it does.
    fn take(&mut self, event: Event, now_us: u64) -> Option<Ending> {
        let payload = match event {
            Event::Text(payload) => payload,
            Event::Error(payload) => {
                let answer = serde_json::from_str(&payload).unwrap_or(Value::String(payload));
                self.answer.message = Some(chunk::message_of(&answer));
                return Some(Ending::ErrorEvent);
            }
        };
        if payload.trim() == DONE {
            self.done_us = Some(now_us);
            return Some(Ending::Complete);
        }
        let Some(piece) = chunk::read(&payload) else {
            return Some(Ending::Unreadable);
        };
        if piece.error.is_some() {
            self.answer.message = piece.error;
            return Some(Ending::ErrorEvent);
        }
        if !piece.text.is_empty() {
            self.chunks_us.push(now_us);
            self.text.update(&piece.text);
        }
        self.answer.usage = piece.usage.or(self.answer.usage);
        if piece.finish_reason.is_some() {
            self.answer.finish_reason = piece.finish_reason;
        }
        None
    }
}

/// The next bytes of a body; none at its end.
async fn next_bytes(body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(bytes)) => return Some(Ok(bytes)),
            // Trailers say nothing that is measured.
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

/// The rest of a body; none if it breaks or is too long.
async fn read_all(body: &mut Incoming) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(bytes) = next_bytes(body).await {
        all.extend_from_slice(&bytes.ok()?);
        if all.len() > ANSWER_BYTES_MAX {
            return None;
        }
    }
    Some(all)
}

/// Seconds until a refused request may come again; dates are not read.
fn retry_after_s(response: &Response<Incoming>) -> Option<u64> {
    response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
