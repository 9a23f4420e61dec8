//! What sends telemetry over HTTP, on a small runtime of its own.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Runtime};

/// Longest that a collector may take.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Most bytes of a collector's answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The runtime; its thread ends when it is dropped.
#[derive(Debug)]
pub(super) struct Sender(Option<Runtime>);

/// Sends requests on the runtime, whatever thread asks.
#[derive(Debug, Clone)]
pub(super) struct Client(Handle);

/// A collector's address without a host.
#[derive(Debug, thiserror::Error)]
#[error("the collector's address has no host")]
struct NoHost;

impl Sender {
    pub(super) fn start() -> std::io::Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("telemetry").enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    pub(super) fn client(&self) -> Client {
        let runtime = self.0.as_ref().expect("invariant: taken by drop alone");
        Client(runtime.handle().clone())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // An async task may drop it, which may not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Client {
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Sending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        // A timer belongs to the runtime it is made in, so it is made inside.
        let sent = async move { tokio::time::timeout(TIME_MAX, send(request)).await };
        let sending = self.0.spawn(sent);
        Box::pin(async move { sending.await?? })
    }
}

/// One request on a connection of its own.
async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let uri = request.uri().clone();
    let host = uri.host().ok_or(NoHost)?;
    let port = uri.port_u16().unwrap_or(80);
    let socket = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    request.headers_mut().insert(hyper::header::HOST, format!("{host}:{port}").parse()?);
    *request.uri_mut() = uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    let response = sender.send_request(request.map(Body::from)).await?;
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(Body::new(body), ANSWER_BYTES_MAX).await?;
    Ok(Response::from_parts(parts, bytes))
}
