//! Answers that were given before: since answers are exact, a finished record is the answer.

use std::sync::{Arc, Mutex, PoisonError};

use causeway_engine::PassAccount;
use causeway_ledger::{CacheKey, CacheScope, Passes, Start, Step, StepCause, Stop, Store, Stored};
use causeway_policy::THOUGHT_BUDGET;
use causeway_request::{Cause, Choice, Digest, RequestId, StepOutput, StopReason, TokenId};
use causeway_session::fields_of;
use causeway_text::AnswerRules;

use crate::accounts::Progress;
use crate::event::{Ended, Event};
use crate::outbox::Outbox;
use crate::reading::Reading;
use crate::served::Served;

/// The ledger, open to look answers up.
#[derive(Debug)]
pub(crate) struct Results(Mutex<Store>);

/// One answer on its way out again.
pub(crate) struct Again {
    pub(crate) stored: Stored,
    pub(crate) model: Arc<Served>,
    pub(crate) rules: AnswerRules,
    pub(crate) wants_tokens: bool,
    pub(crate) outbox: Outbox,
    pub(crate) progress: Arc<Progress>,
}

impl Results {
    pub(crate) fn new(store: Store) -> Self {
        Self(Mutex::new(store))
    }

    /// The answers to all of these questions, or none of them; what cannot be read is a miss.
    pub(crate) fn find_all(&self, keys: &[CacheKey]) -> Option<Vec<Stored>> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().map(|key| store.find_cached(key).ok().flatten()).collect()
    }
}

/// Under what an answer is given again: never to another key, nor under another salt.
pub(crate) fn key_of(start: &Start, owner: &str, salt: Option<&str>) -> CacheKey {
    let scope = match (owner, salt) {
        ("", None) => CacheScope::Everyone,
        (owner, None) => CacheScope::ApiKey(owner),
        (_, Some(salt)) => CacheScope::Salt(salt),
    };
    causeway_ledger::cache_key(start, scope)
}

impl Again {
    /// Gives the answer as it came the first time; no step is run for it.
    pub(crate) async fn give(self) {
        let Self { stored, model, rules, wants_tokens, mut outbox, progress } = self;
        let Stored { record, id, answer_hash: _ } = stored;
        let mut reading = Reading::new(&model, record.start.clone(), &rules, wants_tokens);
        let last = record.steps.len().saturating_sub(1);
        let stop = stop_reason(&record.end.stop);
        for (index, step) in record.steps.iter().enumerate() {
            let stop = (index == last).then(|| stop.clone());
            let output = output(RequestId(record.start.request.id), step, stop);
            outbox.push(reading.take(&output, &model, &rules));
        }
        let (rest, stopped) = reading.rest(&model, &rules);
        outbox.push(rest);
        // A record from before records had their fields gives the same account.
        let fields = fields_of(&record, &model.text.tokenizer);
        let mut account = record.end.account;
        account.passes = Passes { prefill: 0, decode: 0 };
        let ended = Ended {
            stop: stopped.unwrap_or(stop),
            account,
            fields,
            passes: PassAccount::default(),
            overrun: 0,
            record: id,
            stored: true,
            is_given_again: true,
        };
        progress.ended(&ended);
        // A reader that is gone needs no last word.
        let _ = outbox.finish(Event::Ended(Box::new(ended))).await;
    }
}

/// A step as the engine told it, as far as an answer shows of it.
fn output(request: RequestId, step: &Step, stop: Option<StopReason>) -> StepOutput {
    let reasons = &step.reasons;
    let runner_up = reasons.runner_up.as_ref();
    StepOutput {
        request,
        step: step.step,
        choice: Choice {
            token: TokenId(step.token),
            logprob: reasons.logprob.unwrap_or(f64::NEG_INFINITY),
            rank: reasons.rank,
            probability: reasons.probability,
            survivors: reasons.survivors,
            entropy: reasons.entropy,
            raw_best: TokenId(reasons.raw_best),
            removed_by: None,
            runner_up: runner_up.map(|second| (TokenId(second.token), second.probability)),
            cause: match step.cause {
                StepCause::Chosen => Cause::Chosen,
                StepCause::Forced => Cause::Forced,
                StepCause::Prefilled => Cause::Prefilled,
            },
            // One field lays tokens down.
            forced_by: reasons.forced_by.as_ref().map(|_| THOUGHT_BUDGET),
        },
        pass: step.pass,
        rows: step.rows,
        since_arrival_ns: step.since_arrival_ns,
        digest: Digest(step.digest.0),
        top: Vec::new(),
        stop,
    }
}

/// The reason of an end that came by itself; only such answers are given again.
fn stop_reason(stop: &Stop) -> StopReason {
    match stop {
        Stop::Eos { token } => StopReason::Eos { token: TokenId(*token) },
        Stop::StopToken { token } => StopReason::StopToken { token: TokenId(*token) },
        Stop::StopString { string } => StopReason::StopString { string: string.clone() },
        Stop::MaxTokens { tokens_max } => {
            let tokens_max = usize::try_from(*tokens_max).unwrap_or(usize::MAX);
            StopReason::MaxTokens { tokens_max }
        }
        Stop::ContextFull { context_len } => {
            let context_len = usize::try_from(*context_len).unwrap_or(usize::MAX);
            StopReason::ContextFull { context_len }
        }
        Stop::SchemaComplete {} => StopReason::SchemaComplete,
        Stop::Cancelled { .. } | Stop::Deadline { .. } | Stop::Error { .. } => StopReason::Error {
            message: "a run that was cut short is not given again".to_owned(),
            is_callers_mistake: false,
        },
    }
}
