//! `GET /v1/models` and `GET /v1/models/{name}`, in OpenAI's form or in Anthropic's.

mod page;

use std::sync::Arc;

use axum::extract::{RawQuery, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use self::page::Page;
use crate::error::{ApiError, json_response};
use crate::http::named::Named;
use crate::served::Served;
use crate::state::State;

/// The header that Anthropic's clients send with every request.
pub(super) const ANTHROPIC_VERSION: &str = "anthropic-version";

/// Every model there is a name for; whoever speaks Anthropic's words gets a page of them.
///
/// # Errors
/// A page that there is none of.
pub(crate) async fn list(
    Shared(state): Shared<Arc<State>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let loaded = state.registry.loaded().await;
    let names = state.registry.names();
    if !headers.contains_key(ANTHROPIC_VERSION) {
        let all: Vec<Value> = names.map(|name| model(name, &loaded, &state)).collect();
        return Ok(json_response(StatusCode::OK, &json!({ "object": "list", "data": all })));
    }
    let names: Vec<&str> = names.collect();
    let (shown, has_more) = Page::read(query.as_deref().unwrap_or_default())?.of(&names)?;
    let models: Vec<Value> = shown.iter().map(|name| in_anthropics_words(name, &state)).collect();
    let body = json!({
        "data": models,
        "has_more": has_more,
        "first_id": shown.first(),
        "last_id": shown.last(),
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// One model by its name.
///
/// # Errors
/// A name that is not known.
pub(crate) async fn one(
    Shared(state): Shared<Arc<State>>,
    headers: HeaderMap,
    Named(name): Named,
) -> Result<Response, ApiError> {
    if !state.registry.names().any(|known| known == name) {
        return Err(state.registry.unknown(&name));
    }
    if headers.contains_key(ANTHROPIC_VERSION) {
        return Ok(json_response(StatusCode::OK, &in_anthropics_words(&name, &state)));
    }
    let loaded = state.registry.loaded().await;
    Ok(json_response(StatusCode::OK, &model(&name, &loaded, &state)))
}

/// A model as Anthropic's clients read it; it was made when this server began.
fn in_anthropics_words(name: &str, state: &State) -> Value {
    let created_at = causeway_ledger::utc(state.clock.unix_ms(0)).replace(' ', "T") + "Z";
    json!({ "type": "model", "id": name, "display_name": name, "created_at": created_at })
}

fn model(name: &str, loaded: &[Arc<Served>], state: &State) -> Value {
    let mut model = json!({
        "id": name,
        "object": "model",
        "created": state.clock.unix_ms(0) / 1_000,
        "owned_by": "causeway",
    });
    let found = loaded.iter().find(|served| served.about.model.name == name);
    model["causeway"] = match found {
        None => json!({ "state": "not loaded" }),
        Some(served) => json!({
            "state": "loaded",
            "sha256": served.about.model.sha256.to_string(),
            "quantisation": served.about.model.quantisation,
            "context_len": served.about.context_len,
            "vocab_size": served.about.vocab_size,
            "kv_type": served.about.numerics.kv_type,
            "numerics": served.about.numerics.version,
            "has_chat_template": served.text.template.is_some(),
            "load": load(served),
        }),
    };
    model["causeway"]["policy"] = state.registry.base(Some(name)).told();
    model
}

/// How busy its engine is.
fn load(served: &Served) -> Value {
    let look = served.driver.look();
    json!({
        "running": look.load.running,
        "waiting": look.load.waiting,
        "held_blocks": look.load.held_blocks,
        "cached_blocks": look.load.cached_blocks,
        "free_blocks": look.load.free_blocks,
        "passes": look.passes,
        "budget": look.budget,
    })
}
