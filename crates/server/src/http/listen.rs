//! Sockets: accepted, bounded in number, cut off where a header does not come.

use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::late_end::LateEnd;
use crate::options::WireLimits;

/// Most bytes of a request's header.
pub(super) const HEADER_BYTES_MAX: usize = 64 << 10;
/// Pause after a socket could not be accepted, most often since there are too many.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Serves connections until `closing` turns true; those that are open get their answers.
pub(crate) async fn accept(
    listener: TcpListener,
    app: Router,
    limits: WireLimits,
    mut closing: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(limits.connections_max));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = closing.wait_for(|closing| *closing) => return,
        };
        let Ok((socket, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // A token is small, and the next one is not near enough to wait for.
        let _ = socket.set_nodelay(true);
        let service = TowerToHyperService::new(app.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_time_max)
            .max_buf_size(HEADER_BYTES_MAX)
            .serve_connection(TokioIo::new(LateEnd::new(socket)), service);
        let mut closing = closing.clone();
        tokio::spawn(async move {
            let _place = place;
            tokio::pin!(connection);
            tokio::select! {
                _ = connection.as_mut() => return,
                _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        });
    }
}
