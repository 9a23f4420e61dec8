//! From a request that any route has read to runs in an engine.

use std::sync::Arc;

use causeway_engine::{Refusal, Submission};
use causeway_ledger::{CacheKey, Sha256, Start, Stored, Tags};
use causeway_policy::{Guide, Policy};
use causeway_request::{Priority, RequestId, TokenId};
use causeway_session::{Asked, FormPlan, Given, Prompt, ToolFormat, answer_rules};
use causeway_text::{AnswerRules, CivilTime, StopMatcher};
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel, unbounded_channel};

use crate::accounts::{Claim, Entry, Progress};
use crate::auth::{Caller, Lease};
use crate::driver::Outlet;
use crate::effective::in_words_of;
use crate::error::ApiError;
use crate::event::Event;
use crate::fields::Edit;
use crate::leftover;
use crate::observe::Taken;
use crate::outbox::{EVENTS_MAX, Outbox};
use crate::results;
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
    /// The conversation it belongs to, as the client names it.
    pub(crate) session: Option<String>,
    /// Whether an answer that was given before will do, where the request says so.
    pub(crate) result_cache: Option<bool>,
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
    /// What the policy is called, where it has a name.
    pub(crate) policy_name: Option<String>,
    /// Whether tokens were asked for.
    pub(crate) tells_tokens: bool,
    /// The prompt's text after the template, where it has one.
    pub(crate) prompt: Option<String>,
    pub(crate) prompt_tokens: Vec<TokenId>,
    /// Parts of the form asked for that have no effect.
    pub(crate) warnings: Vec<String>,
    /// How calls of tools are written, where there may be any.
    pub(crate) tools: Option<ToolFormat>,
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
    form: Option<FormPlan>,
}

impl State {
    /// Submits a request; what comes back is its events.
    ///
    /// # Errors
    /// Anything that is wrong with it, and a server without room for it.
    pub(crate) async fn begin(self: &Arc<Self>, ask: Ask) -> Result<Answering, ApiError> {
        let state = Arc::clone(self);
        // A client that hangs up before its answer begins must not leave a request without an
        // account: the request is taken in, and ends as soon as it is seen that nobody reads.
        let begun = tokio::spawn(async move { state.take_in(ask).await }).await;
        begun.unwrap_or_else(|_| {
            Err(ApiError::server("taking the request in panicked; other requests go on"))
        })
    }

    async fn take_in(self: Arc<Self>, ask: Ask) -> Result<Answering, ApiError> {
        if self.is_closing() {
            return Err(ApiError::busy("the server is shutting down", 5));
        }
        if let Some(ledger) = self.ledger.as_ref().filter(|ledger| ledger.is_under_pressure()) {
            let pending = ledger.pending();
            let text = format!("{pending} records wait for the ledger, which takes no more now");
            return Err(ApiError::busy(text, 1).with_code("ledger_full"));
        }
        let lease = ask.caller.lease(&self.clock)?;
        let claim = self.claim(&ask);
        let arrived_ns = self.clock.now_ns();
        let model = self.registry.model(ask.model.as_deref()).await?;
        let (ask, lowered) = self.lower(ask, Arc::clone(&model)).await?;
        ask.caller.origin.set_id(&claim.id);
        let entrance = Entrance { claim, lease, arrived_ns };
        self.submit(ask, model, lowered, entrance).await
    }

    /// The id under which a request is known: the one that its client gave it, where it is free.
    fn claim(&self, ask: &Ask) -> Claim {
        let given = ask.caller.origin.given_id.as_deref();
        let given = given.and_then(|id| self.accounts.claim(id));
        let drawn = || self.accounts.claim(&self.wire_id(ask.prefix));
        given.or_else(drawn).expect("invariant: no two drawn ids are equal")
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
            let base = state.registry.base(ask.model.as_deref());
            base.check_seed(ask.seed)?;
            let file = base.with(&ask.edits)?;
            let policy = model.compile(&file);
            let policy = policy.map_err(|error| in_words_of(&ask.edits, error))?;
            leftover::check(&file, model.about.vocab_size, &model.about.end_tokens)
                .map_err(|error| in_words_of(&ask.edits, error))?;
            let now = CivilTime::from_unix(state.clock.unix_s());
            let prompt = model.prompt(given, &file, now)?;
            let asked = policy.tokens_max().filter(|_| !base.budgets(&ask.edits)).unwrap_or(1);
            check_length(asked, &prompt, &model, &ask)?;
            let stops = StopMatcher::new(policy.stop_strings());
            stops.map_err(|error| ApiError::field("stop", error.to_string()))?;
            let form = model.form(&policy).map_err(|error| in_words_of(&ask.edits, error))?;
            Ok((ask, Lowered { policy, prompt, form }))
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
        Lowered { policy, prompt, form }: Lowered,
        entrance: Entrance,
    ) -> Result<Answering, ApiError> {
        let place = model.place();
        let received = ask.received.clone();
        let asked = Asked { id: RequestId(0), received, seed: ask.seed, choice: 0 };
        let start = causeway_session::start(&model.about, &policy, prompt, asked, &place);
        let rules = answer_rules(&policy, &start, Some(&model.text));
        let guide = model.guide(&policy, &rules, form.as_ref(), &start);
        let guide = guide.map_err(|error| in_words_of(&ask.edits, error))?;
        let tools = form.as_ref().and_then(|form| model.forms.tools_of(form));
        let (sender, events) = channel(EVENTS_MAX);
        let policy_name = policy.file().identity.name.clone();
        let policy = Arc::new(policy);
        let shared = Shared { entrance, model, policy, start, rules, guide, sender };
        let (mut jobs, mut runs, mut progresses) = (Vec::new(), Vec::new(), Vec::new());
        let mut leader = None;
        for choice in 0..ask.choices {
            let (job, run) = self.choice(&ask, &shared, choice, leader);
            leader.get_or_insert(run.id);
            progresses.push((run.id, Arc::clone(&run.progress)));
            jobs.push(job);
            runs.push(run);
        }
        let Shared { entrance, model, start, .. } = shared;
        let id = entrance.claim.id.clone();
        let given = self.given_before(&ask, &runs).await;
        if given.is_none() {
            match model.driver.submit(jobs).await {
                Ok(taken) => taken.map_err(|refusal| about_prompt(&ask, refusal))?,
                Err(_) => return Err(ApiError::server("the engine has stopped")),
            }
        }
        let created = self.clock.unix_s();
        self.accounts.add(Entry {
            id: id.clone(),
            created,
            model: model.about.model.name.clone(),
            served: Arc::downgrade(&model),
            choices: progresses,
            owner: ask.caller.name.clone(),
        });
        self.observer.taken(&Taken {
            id: &id,
            model: &model.about.model.name,
            owner: &ask.caller.name,
            choices: runs.len(),
        });
        match given {
            None => runs.into_iter().for_each(Run::spawn),
            Some(all) => runs.into_iter().zip(all).for_each(|(run, stored)| run.give(stored)),
        }
        let effective = start.request.effective;
        Ok(Answering {
            id,
            created,
            model,
            choices: ask.choices,
            seed: effective.seed,
            policy: start.policy.sha256,
            policy_name,
            tells_tokens: ask.wants_tokens.is_some(),
            prompt: effective.prompt,
            prompt_tokens: effective.prompt_tokens.into_iter().map(TokenId).collect(),
            warnings: form.as_ref().map(FormPlan::warnings).unwrap_or_default(),
            tools,
            events,
        })
    }

    /// The same answers as they were given before, where every choice has one.
    async fn given_before(self: &Arc<Self>, ask: &Ask, runs: &[Run]) -> Option<Vec<Stored>> {
        // What else might have come is in no record.
        if ask.result_cache == Some(false) || ask.wants_tokens.is_some_and(|top| top > 0) {
            return None;
        }
        let results = Arc::clone(self.results.as_ref()?);
        let keys: Option<Vec<CacheKey>> = runs.iter().map(|run| run.cache_key).collect();
        let keys = keys?;
        if let Some(ledger) = &self.ledger {
            keys.iter().for_each(|key| ledger.touch(key));
        }
        tokio::task::spawn_blocking(move || results.find_all(&keys)).await.ok()?
    }

    /// One of the parallel choices: what the engine is given, and who reads what comes.
    fn choice(
        self: &Arc<Self>,
        ask: &Ask,
        shared: &Shared,
        choice: u32,
        leader: Option<RequestId>,
    ) -> ((Submission, Outlet), Run) {
        let id = self.request_id();
        let mut start = shared.start.clone();
        start.request.id = id.0;
        start.request.effective.choice = choice;
        let (outlet, steps): (Outlet, _) = unbounded_channel();
        let salt = salt(&ask.caller, ask.cache_salt.as_deref());
        let owner = ask.caller.name.as_str();
        // The request goes before the policy, and the policy before the server; a request that
        // wants a new run has it kept for the next one.
        let by_policy = shared.policy.file().operation.result_cache;
        let keeps = by_policy.unwrap_or(self.results_by_default) || ask.result_cache == Some(true);
        let cache_key = self.results.as_ref().filter(|_| keeps).map(|_| {
            let asked = ask.cache_salt.as_ref().and(salt.as_deref());
            results::key_of(&start, owner, asked)
        });
        let submission = Submission {
            request: start.request.effective.to_request(id),
            policy: Arc::clone(&shared.policy),
            arrived_ns: shared.entrance.arrived_ns,
            priority: ask.priority,
            deadline_ns: ask.timeout_ms.map(|ms| shared.entrance.arrived_ns + ms * 1_000_000),
            cache_salt: salt,
            shares_with: leader,
            top_logprobs: ask.wants_tokens.unwrap_or(0),
            guide: shared.guide.clone(),
        };
        let run = Run {
            id,
            wire_id: shared.entrance.claim.id.clone(),
            lease: Arc::clone(&shared.entrance.lease),
            origin: ask.caller.origin.clone(),
            tags: Tags {
                request_id: Some(shared.entrance.claim.id.clone()),
                owner: (!ask.caller.name.is_empty()).then(|| ask.caller.name.clone()),
                session: ask.session.clone(),
            },
            cache_key,
            model: Arc::clone(&shared.model),
            state: Arc::clone(self),
            start: Some(start),
            rules: shared.rules.clone(),
            wants_tokens: ask.wants_tokens,
            on_disconnect: shared.policy.file().operation.on_disconnect,
            arrived_ns: shared.entrance.arrived_ns,
            steps,
            outbox: Outbox::new(choice, shared.sender.clone()),
            progress: Arc::new(Progress::default()),
        };
        ((submission, outlet), run)
    }
}

/// What the engine says of a prompt is said of the field that it came by.
fn about_prompt(ask: &Ask, refusal: Refusal) -> ApiError {
    let is_about_it = matches!(refusal, Refusal::TokenOutside { .. } | Refusal::EmptyPrompt);
    let error = ApiError::from(refusal);
    if is_about_it { ApiError { param: Some(ask.prompt_field.to_owned()), ..error } } else { error }
}

/// What the choices of one request have in common.
struct Shared {
    entrance: Entrance,
    model: Arc<Served>,
    policy: Arc<Policy>,
    start: Start,
    rules: AnswerRules,
    guide: Option<Box<dyn Guide>>,
    sender: Sender<(u32, Event)>,
}

/// What a request was given when it came.
struct Entrance {
    /// Held until the request is told of under its id.
    claim: Claim,
    lease: Arc<Lease>,
    arrived_ns: u64,
}

/// What the engine keys cached prefixes by beside the tokens: callers share none.
fn salt(caller: &Caller, asked: Option<&str>) -> Option<String> {
    match (caller.name.as_str(), asked) {
        ("", None) => None,
        (name, asked) => Some(format!("{}:{name}:{}", name.len(), asked.unwrap_or_default())),
    }
}

/// Refuses a prompt that leaves no room for the tokens asked for.
fn check_length(asked: u64, prompt: &Prompt, model: &Served, ask: &Ask) -> Result<(), ApiError> {
    let (tokens, context_len) = (prompt.tokens.len(), model.about.context_len);
    let fits = u64::try_from(context_len.saturating_sub(tokens)).is_ok_and(|room| asked <= room);
    if fits {
        return Ok(());
    }
    let budget = ask.edits.iter().find(|edit| edit.path == "stop.tokens_max");
    let named = budget.map_or("max_tokens", |budget| budget.field);
    let (param, text) = if tokens >= context_len {
        let text = format!(
            "prompt ({tokens} tokens) leaves no room for an answer: \
             the context limit is {context_len} tokens"
        );
        (ask.prompt_field, text)
    } else {
        let text = format!(
            "prompt ({tokens} tokens) plus {named} ({asked}) exceeds \
             the context limit of {context_len} tokens"
        );
        (budget.map_or(ask.prompt_field, |budget| budget.field), text)
    };
    Err(ApiError::field(param, text).with_code("context_length_exceeded"))
}
