//! One request while it waits or runs.

use std::sync::Arc;

use causeway_kv_cache::{BLOCK_POSITIONS, ChainHash};
use causeway_policy::{ChooseError, Guide, Policy, Scratch, StepContext};
use causeway_request::{Choice, Request, RequestId, StopReason, TokenId};

use crate::{PassAccount, Submission};

/// A request, its policy, and the tokens so far; its computed part lives in the cache.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) request: Request,
    policy: Arc<Policy>,
    scratch: Scratch,
    guide: Option<Box<dyn Guide>>,
    /// How many of `tokens` the guide has read.
    guided: usize,
    /// How many of the best tokens each step tells of.
    top_logprobs: usize,
    /// Prompt, response prefill, then every chosen token.
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) arrived_ns: u64,
    pub(crate) deadline_ns: Option<u64>,
    /// The first of several parallel choices, where this is a later one.
    pub(crate) shares_with: Option<RequestId>,
    /// What its keys and values depend on beside the tokens.
    pub(crate) root: ChainHash,
    /// A link for each whole block of `tokens`; empty where no prefixes are kept.
    pub(crate) chain: Vec<ChainHash>,
    keeps_prefixes: bool,
    pub(crate) account: PassAccount,
}

impl Run {
    pub(crate) fn new(submission: Submission, root: ChainHash, keeps_prefixes: bool) -> Self {
        let Submission {
            request,
            policy,
            arrived_ns,
            priority: _,
            deadline_ns,
            cache_salt: _,
            shares_with,
            top_logprobs,
            guide,
        } = submission;
        let tokens = request.tokens.clone();
        let account = PassAccount { prompt_tokens: tokens.len(), ..PassAccount::default() };
        let mut run = Self {
            request,
            policy,
            scratch: Scratch::default(),
            guide,
            guided: tokens.len(),
            top_logprobs,
            tokens,
            arrived_ns,
            deadline_ns,
            shares_with,
            root,
            chain: Vec::new(),
            keeps_prefixes,
            account,
        };
        run.extend_chain();
        run
    }

    fn extend_chain(&mut self) {
        let linked = self.chain.len() * BLOCK_POSITIONS;
        if !self.keeps_prefixes {
            return;
        }
        for block in self.tokens[linked..].chunks_exact(BLOCK_POSITIONS) {
            let last = self.chain.last().unwrap_or(&self.root);
            self.chain.push(last.next(block));
        }
    }

    /// Positions of `other`'s prompt that are this one's too, the last one of `other` left out.
    pub(crate) fn shared_prompt(&self, other: &Self) -> usize {
        if self.root != other.root {
            return 0;
        }
        let (ours, theirs) = (&self.request.tokens, &other.request.tokens);
        let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        same.min(theirs.len() - 1)
    }

    /// Whether no pass has had a part of it.
    pub(crate) fn is_unscheduled(&self) -> bool {
        self.account.queued_ns.is_none()
    }

    /// Index in the generation prefix of the token to choose next.
    pub(crate) fn step(&self) -> u32 {
        let prefilled = u32::try_from(self.request.prefilled);
        prefilled.expect("invariant: a prompt fits a context of 2^24 tokens") + self.account.steps
    }

    /// The best tokens of the row that the next token is chosen from, where they are asked for.
    pub(crate) fn top(&mut self, logits: &[f32]) -> Result<Vec<(TokenId, f64)>, ChooseError> {
        if self.top_logprobs == 0 {
            return Ok(Vec::new());
        }
        let step = self.step();
        causeway_policy::top_logprobs(logits, step, self.top_logprobs, &mut self.scratch)
    }

    /// The next token: laid where the guide says so, else chosen.
    pub(crate) fn choose(&mut self, logits: &[f32]) -> Result<Choice, ChooseError> {
        let laid = self.guide.as_mut().and_then(|guide| {
            self.tokens[self.guided..].iter().for_each(|token| guide.read(*token));
            guide.laid()
        });
        self.guided = self.tokens.len();
        let context = StepContext {
            tokens: &self.tokens,
            prompt_tokens: self.request.tokens.len() - self.request.prefilled,
            seed: self.request.seed,
            choice: self.request.choice,
            step: self.step(),
        };
        match laid {
            Some(laid) => self.policy.lay(logits, laid, &context, &mut self.scratch),
            None => self.policy.choose(logits, &context, &mut self.scratch),
        }
    }

    /// Appends the chosen token; says whether it ends the run.
    pub(crate) fn commit(&mut self, token: TokenId, context_len: usize) -> Option<StopReason> {
        self.tokens.push(token);
        self.extend_chain();
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
