//! Logs: one event for each request taken, refused and ended, as structured fields.
//!
//! Errors of a caller repeat what the caller sent, so that their sentences count as prompt text.

use axum::http::StatusCode;
use causeway_session::KvDiskError;
use tracing::{debug, error, info, warn};

use crate::error::{ApiError, sentence};
use crate::observe::{EndedRun, Exchange, Observer, Taken};

/// Writes events to whatever subscriber the process has.
#[derive(Debug, Clone, Copy)]
pub struct Logs {
    /// Whether prompts, answers and the sentences of refusals are written too.
    pub with_prompts: bool,
}

impl Observer for Logs {
    fn taken(&self, taken: &Taken<'_>) {
        let Taken { id, model, owner, choices } = *taken;
        debug!(request_id = id, model, owner, choices, "request taken");
    }

    fn refused(&self, id: &str, path: &str, refusal: &ApiError) {
        let status = refusal.status.as_u16();
        let (code, param) = (refusal.code, refusal.param.as_deref());
        let is_ours = refusal.status >= StatusCode::INTERNAL_SERVER_ERROR;
        let reason = (is_ours || self.with_prompts).then_some(refusal.message.as_str());
        if is_ours {
            warn!(request_id = id, path, status, code, param, reason, "request failed");
        } else {
            info!(request_id = id, path, status, code, param, reason, "request refused");
        }
    }

    fn ended(&self, ended: &EndedRun<'_>) {
        let (start, end) = (&ended.record.start, &ended.record.end);
        let (tokens, times) = (&end.account.tokens, &end.account.times);
        let effective = &start.request.effective;
        let (prompt, answer) = match self.with_prompts {
            true => (effective.prompt.as_deref(), Some(end.text.as_str())),
            false => (None, None),
        };
        info!(
            request_id = ended.id,
            choice = effective.choice,
            owner = ended.owner,
            model = start.model.name,
            policy = %start.policy.sha256,
            record = %ended.record_id,
            stop = end.stop.name(),
            given_again = ended.is_given_again,
            prompt_tokens = tokens.prompt,
            cached_tokens = tokens.cached,
            generated_tokens = tokens.prefix,
            queued_ms = milliseconds(times.queued_ns),
            ttft_ms = times.ttft_ns.map(milliseconds),
            total_ms = milliseconds(times.total_ns),
            prompt,
            answer,
            "request ended"
        );
    }

    fn lost(&self, id: &str, model: &str) {
        error!(request_id = id, model, "reading an answer panicked");
    }

    fn answered(&self, exchange: &Exchange<'_>) {
        let Exchange { id, method, route, status, took } = *exchange;
        let took_ms = took.as_secs_f64() * 1e3;
        let (method, status) = (method.as_str(), status.as_u16());
        debug!(request_id = id, method, route, status, took_ms, "response begun");
    }
}

/// Says that the folder of idle prefixes is in trouble; requests are answered all the same.
pub fn kv_disk_trouble(error: &KvDiskError) {
    let reason = sentence(error);
    warn!(reason, "blocks of keys and values are lost");
}

#[expect(clippy::cast_precision_loss, reason = "a log is read by people")]
fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}
