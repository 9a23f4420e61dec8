//! `GET /v1/requests`, and `GET` and `DELETE /v1/requests/{id}`: accounts, and the end of one.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use causeway_request::Canceller;
use serde_json::{Value, json};

use crate::accounts::Entry;
use crate::auth::{Caller, Role};
use crate::error::{ApiError, json_response, sentence};
use crate::http::named::Named;
use crate::state::State;

/// The caller's requests that have not ended; an operator's are everybody's.
pub(crate) async fn list(
    Shared(state): Shared<Arc<State>>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let sees_all = caller.role == Role::Operate;
    let live = state.accounts.live();
    let own = live.iter().filter(|entry| sees_all || entry.owner == caller.name);
    let body = json!({ "object": "list", "data": own.map(Entry::to_json).collect::<Vec<_>>() });
    json_response(StatusCode::OK, &body)
}

/// What a request is doing, or what it took.
///
/// # Errors
/// A request that is not known, or not the caller's.
pub(crate) async fn tell(
    Shared(state): Shared<Arc<State>>,
    Extension(caller): Extension<Caller>,
    Named(id): Named,
) -> Result<Response, ApiError> {
    match find(&state, &caller, &id) {
        Ok(entry) => Ok(json_response(StatusCode::OK, &entry.to_json())),
        Err(unknown) => {
            let kept = find_kept(&state, &caller, &id).await?.ok_or(unknown)?;
            Ok(json_response(StatusCode::OK, &kept))
        }
    }
}

/// The request as the ledger has it, where it has.
async fn find_kept(state: &State, caller: &Caller, id: &str) -> Result<Option<Value>, ApiError> {
    let Some(kept) = state.kept.clone() else { return Ok(None) };
    let owner = (caller.role < Role::Operate).then(|| caller.name.clone());
    let id = id.to_owned();
    let look = tokio::task::spawn_blocking(move || kept.find(&id, owner.as_deref()));
    match look.await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(ApiError::server(sentence(&error))),
        Err(_) => Err(ApiError::server("reading the ledger panicked")),
    }
}

/// Asks for the end of a request; 202 where it runs, 200 with its account where it has ended.
///
/// # Errors
/// A request that is not known, or not the caller's.
pub(crate) async fn cancel(
    Shared(state): Shared<Arc<State>>,
    Extension(caller): Extension<Caller>,
    Named(id): Named,
) -> Result<Response, ApiError> {
    let entry = find(&state, &caller, &id)?;
    if entry.has_ended() {
        return Ok(json_response(StatusCode::OK, &entry.to_json()));
    }
    let by = if caller.name == entry.owner { Canceller::Client } else { Canceller::Operator };
    entry.cancel(by);
    Ok(json_response(StatusCode::ACCEPTED, &entry.to_json()))
}

fn find(state: &State, caller: &Caller, id: &str) -> Result<Entry, ApiError> {
    let sees_all = caller.role == Role::Operate;
    let entry = state.accounts.find(id).filter(|entry| sees_all || entry.owner == caller.name);
    entry.ok_or_else(|| {
        let shown: String = id.chars().take(128).collect();
        ApiError::not_found("request_not_found", format!("request `{shown}` is not known"))
    })
}
