//! `GET /v1/models` and `GET /v1/models/{name}`.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use crate::error::{ApiError, json_response};
use crate::http::named::Named;
use crate::served::Served;
use crate::state::State;

/// Every model there is a name for.
pub(crate) async fn list(Shared(state): Shared<Arc<State>>) -> Response {
    let loaded = state.registry.loaded().await;
    let all = state.registry.names().map(|name| model(name, &loaded, &state));
    let body = json!({ "object": "list", "data": all.collect::<Vec<_>>() });
    json_response(StatusCode::OK, &body)
}

/// One model by its name.
///
/// # Errors
/// A name that is not known.
pub(crate) async fn one(
    Shared(state): Shared<Arc<State>>,
    Named(name): Named,
) -> Result<Response, ApiError> {
    if !state.registry.names().any(|known| known == name) {
        return Err(state.registry.unknown(&name));
    }
    let loaded = state.registry.loaded().await;
    Ok(json_response(StatusCode::OK, &model(&name, &loaded, &state)))
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
