//! One request while it waits or runs.

use std::sync::Arc;

use causeway_policy::{ChooseError, Policy, Scratch, StepContext};
use causeway_request::{Choice, Request, StopReason, TokenId};

use crate::{PassAccount, Submission};

/// A request, its policy, and the tokens so far; its computed part lives in the cache.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) request: Request,
    policy: Arc<Policy>,
    scratch: Scratch,
    /// Prompt, response prefill, then every chosen token.
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) arrived_ns: u64,
    pub(crate) deadline_ns: Option<u64>,
    pub(crate) account: PassAccount,
}

impl Run {
    pub(crate) fn new(submission: Submission) -> Self {
        let Submission {
            request,
            policy,
            arrived_ns,
            priority: _,
            deadline_ns,
            cache_salt: _,
            shares_with: _,
        } = submission;
        let tokens = request.tokens.clone();
        let account = PassAccount { prompt_tokens: tokens.len(), ..PassAccount::default() };
        Self {
            request,
            policy,
            scratch: Scratch::default(),
            tokens,
            arrived_ns,
            deadline_ns,
            account,
        }
    }

    /// Index in the generation prefix of the token to choose next.
    pub(crate) fn step(&self) -> u32 {
        let prefilled = u32::try_from(self.request.prefilled);
        prefilled.expect("invariant: a prompt fits a context of 2^24 tokens") + self.account.steps
    }

    pub(crate) fn choose(&mut self, logits: &[f32]) -> Result<Choice, ChooseError> {
        let context = StepContext {
            tokens: &self.tokens,
            prompt_tokens: self.request.tokens.len() - self.request.prefilled,
            seed: self.request.seed,
            choice: self.request.choice,
            step: self.step(),
        };
        self.policy.choose(logits, &context, &mut self.scratch)
    }

    /// Appends the chosen token; says whether it ends the run.
    pub(crate) fn commit(&mut self, token: TokenId, context_len: usize) -> Option<StopReason> {
        self.tokens.push(token);
        self.account.steps += 1;
        let Request { eos_tokens, stop_tokens, tokens_max, .. } = &self.request;
        if eos_tokens.contains(&token) {
            return Some(StopReason::Eos { token });
        }
        if stop_tokens.contains(&token) {
            return Some(StopReason::StopToken { token });
        }
        if self.tokens.len() - self.request.tokens.len() >= *tokens_max {
            return Some(StopReason::MaxTokens { tokens_max: *tokens_max });
        }
        (self.tokens.len() >= context_len).then_some(StopReason::ContextFull { context_len })
    }

    /// The account of a run that ends here.
    pub(crate) fn close(&self, context_len: usize) -> PassAccount {
        let generated = self.tokens.len() - self.request.tokens.len();
        let room = context_len.saturating_sub(self.request.tokens.len());
        let unscheduled_steps = room.min(self.request.tokens_max).saturating_sub(generated);
        PassAccount { unscheduled_steps, ..self.account }
    }
}
