//! `GET /metrics`: what Prometheus asks for, in its text format.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use crate::observe::metrics::Seen;
use crate::state::State;

/// Every metric of the server.
pub(crate) async fn tell(Shared(state): Shared<Arc<State>>) -> Response {
    let loaded = state.registry.loaded().await;
    let models = loaded.iter().map(|one| (one.about.model.name.clone(), one.driver.look()));
    let ledger = state.ledger.as_ref().map(|ledger| (ledger.pending(), ledger.written()));
    let kv_disk = state.kv_disk.as_ref().map(|disk| disk.counts());
    let text = state.metrics.text(Seen { models: models.collect(), ledger, kv_disk });
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
