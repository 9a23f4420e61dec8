//! From a request that any route has read to runs in an engine.

use std::sync::Arc;

use causeway_engine::Submission;
use causeway_ledger::{CacheState, Sha256};
use causeway_policy::{OnDisconnect, Policy};
use causeway_request::{Priority, RequestId, TokenId};
use causeway_session::{Asked, Given, Place, Prompt, answer_rules};
use causeway_text::{CivilTime, StopMatcher};
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, channel, unbounded_channel};

use crate::accounts::{Entry, Progress};
use crate::auth::Caller;
use crate::driver::Outlet;
use crate::error::ApiError;
use crate::event::Event;
use crate::fields::Edit;
use crate::outbox::{EVENTS_MAX, Outbox};
use crate::run::Run;
use crate::served::Served;
use crate::state::State;

/// A request as every API means it.
#[derive(Debug)]
pub(crate) struct Ask {
    /// What its id begins with.
    pub(crate) prefix: &'static str,
    /// The field that its prompt came by.
    pub(crate) prompt_field: &'static str,
    pub(crate) caller: Caller,
    pub(crate) model: Option<String>,
    /// The body, verbatim.
    pub(crate) received: Value,
    pub(crate) given: Given,
    pub(crate) edits: Vec<Edit>,
    pub(crate) choices: u32,
    pub(crate) seed: Option<u64>,
    /// How many of the best tokens are told beside each; `None` where no tokens are.
    pub(crate) wants_tokens: Option<usize>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) priority: Priority,
    pub(crate) cache_salt: Option<String>,
}

/// A request under way. Dropping it tells its runs that their reader is gone.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) id: String,
    /// Seconds from 1970-01-01 UTC.
    pub(crate) created: u64,
    pub(crate) model: Arc<Served>,
    pub(crate) choices: u32,
    pub(crate) seed: u64,
    pub(crate) policy: Sha256,
    /// Whether tokens were asked for.
    pub(crate) tells_tokens: bool,
    /// The prompt's text after the template, where it has one.
    pub(crate) prompt: Option<String>,
    pub(crate) prompt_tokens: Vec<TokenId>,
    pub(crate) events: Receiver<(u32, Event)>,
}

impl Answering {
    /// Names what fixes the answer beside the request: weights, numerics, engine.
    pub(crate) fn fingerprint(&self) -> String {
        let about = &self.model.about;
        let weights = about.model.sha256.to_string();
        format!(
            "causeway-{}-n{}-{}-{}",
            env!("CARGO_PKG_VERSION"),
            about.numerics.version,
            about.numerics.kv_type,
            weights.get(..12).unwrap_or_default()
        )
    }
}

/// What is lowered off the async threads: a policy and a prompt.
struct Lowered {
    policy: Policy,
    prompt: Prompt,
}

impl State {
    /// Submits a request; what comes back is its events.
    ///
    /// # Errors
    /// Anything that is wrong with it, and a server without room for it.
    pub(crate) async fn begin(self: &Arc<Self>, ask: Ask) -> Result<Answering, ApiError> {
        if self.is_closing() {
            return Err(ApiError::busy("the server is shutting down", 5));
        }
        let arrived_ns = self.clock.now_ns();
        let model = self.registry.model(ask.model.as_deref()).await?;
        let (ask, Lowered { policy, prompt }) = self.lower(ask, Arc::clone(&model)).await?;
        self.submit(ask, model, policy, prompt, arrived_ns).await
    }

    /// Templates, tokenizers and policies take their time, so they have a thread.
    async fn lower(
        self: &Arc<Self>,
        mut ask: Ask,
        model: Arc<Served>,
    ) -> Result<(Ask, Lowered), ApiError> {
        let state = Arc::clone(self);
        let given = std::mem::replace(&mut ask.given, Given::Ids(Vec::new()));
        let lower = move || {
            state.base.check_seed(ask.seed)?;
            let file = state.base.with(&ask.edits)?;
            let policy = model.compile(&file)?;
            let now = CivilTime::from_unix(state.clock.unix_s());
            let prompt = model.prompt(given, &file, now)?;
            check_length(&policy, &prompt, &model, &ask)?;
            let stops = StopMatcher::new(policy.stop_strings());
            stops.map_err(|error| ApiError::field("stop", error.to_string()))?;
            Ok((ask, Lowered { policy, prompt }))
        };
        match tokio::task::spawn_blocking(lower).await {
            Ok(lowered) => lowered,
            Err(_) => Err(ApiError::server("reading the request panicked; other requests go on")),
        }
    }

    async fn submit(
        self: &Arc<Self>,
        ask: Ask,
        model: Arc<Served>,
        policy: Policy,
        prompt: Prompt,
        arrived_ns: u64,
    ) -> Result<Answering, ApiError> {
        let Ask { prefix, caller, received, choices, seed, wants_tokens, .. } = ask;
        let id = self.wire_id(prefix);
        let look = model.driver.look();
        let place = Place {
            queue: look.load.waiting,
            concurrency: model.limits.running_max,
            cache: if model.limits.prefix_cache { CacheState::Cold } else { CacheState::Off },
            chunk: model.limits.budget,
        };
        let policy = Arc::new(policy);
        let rules = answer_rules(&policy, prompt.text.as_deref(), prompt.continues);
        let asked = Asked { id: RequestId(0), received, seed, choice: 0 };
        let first = causeway_session::start(&model.about, &policy, prompt, asked, &place);
        let (seed, sha256) = (first.request.effective.seed, first.policy.sha256);
        let effective = &first.request.effective;
        let prompt = effective.prompt.clone();
        let prompt_tokens = effective.prompt_tokens.iter().copied().map(TokenId).collect();
        let (sender, events) = channel(EVENTS_MAX);
        let (mut jobs, mut runs, mut progresses) = (Vec::new(), Vec::new(), Vec::new());
        let mut leader = None;
        for choice in 0..choices {
            let run_id = self.request_id();
            let mut start = first.clone();
            start.request.id = run_id.0;
            start.request.effective.choice = choice;
            let (outlet, steps): (Outlet, _) = unbounded_channel();
            jobs.push((
                Submission {
                    request: start.request.effective.to_request(run_id),
                    policy: Arc::clone(&policy),
                    arrived_ns,
                    priority: ask.priority,
                    deadline_ns: ask.timeout_ms.map(|ms| arrived_ns + ms * 1_000_000),
                    cache_salt: salt(&caller, ask.cache_salt.as_deref()),
                    shares_with: leader,
                },
                outlet,
            ));
            leader.get_or_insert(run_id);
            let progress = Arc::new(Progress::default());
            progresses.push((run_id, Arc::clone(&progress)));
            runs.push(Run {
                id: run_id,
                wire_id: id.clone(),
                model: Arc::clone(&model),
                state: Arc::clone(self),
                start,
                rules: rules.clone(),
                wants_tokens,
                on_disconnect: on_disconnect(&policy),
                arrived_ns,
                steps,
                outbox: Outbox::new(choice, sender.clone()),
                progress,
            });
        }
        match model.driver.submit(jobs).await {
            Ok(taken) => taken?,
            Err(_) => return Err(ApiError::server("the engine has stopped")),
        }
        let created = self.clock.unix_s();
        self.accounts.add(Entry {
            id: id.clone(),
            created,
            model: Arc::clone(&model),
            choices: progresses,
            owner: caller.name,
        });
        self.observer.taken(&id, runs.len());
        for run in runs {
            run.spawn();
        }
        Ok(Answering {
            id,
            created,
            model,
            choices,
            seed,
            policy: sha256,
            tells_tokens: wants_tokens.is_some(),
            prompt,
            prompt_tokens,
            events,
        })
    }
}

/// What the engine keys cached prefixes by beside the tokens: callers share none.
fn salt(caller: &Caller, asked: Option<&str>) -> Option<String> {
    match (caller.name.as_str(), asked) {
        ("", None) => None,
        (name, asked) => Some(format!("{}:{name}:{}", name.len(), asked.unwrap_or_default())),
    }
}

fn on_disconnect(policy: &Policy) -> OnDisconnect {
    policy.file().operation.on_disconnect
}

/// Refuses a prompt that leaves no room for what is asked.
fn check_length(
    policy: &Policy,
    prompt: &Prompt,
    model: &Served,
    ask: &Ask,
) -> Result<(), ApiError> {
    let (tokens, context_len) = (prompt.tokens.len(), model.about.context_len);
    let asked = policy.tokens_max().unwrap_or(1);
    let fits = u64::try_from(context_len.saturating_sub(tokens)).is_ok_and(|room| asked <= room);
    if fits {
        return Ok(());
    }
    let text = if tokens >= context_len {
        format!(
            "prompt ({tokens} tokens) leaves no room for an answer: \
             the context limit is {context_len} tokens"
        )
    } else {
        format!(
            "prompt ({tokens} tokens) plus max_tokens ({asked}) exceeds \
             the context limit of {context_len} tokens"
        )
    };
    let budget = ask.edits.iter().find(|edit| edit.path == "stop.tokens_max");
    let param = match budget {
        Some(budget) if tokens < context_len => budget.field,
        _ => ask.prompt_field,
    };
    Err(ApiError::field(param, text).with_code("context_length_exceeded"))
}
