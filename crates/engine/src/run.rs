//! One request while it waits or runs.

use std::collections::VecDeque;
use std::sync::Arc;

use causeway_kv_cache::{BLOCK_POSITIONS, ChainHash};
use causeway_policy::{ChooseError, Guide, Laid, LaidBy, Policy, Scratch, StepContext};
use causeway_request::{Choice, Request, RequestId, StopReason, TokenId};

use crate::drafts::Drafted;
use crate::{Drafts, Limits, PassAccount, Submission};

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
    /// Prompt, response prefill, every token told of, and those that are known behind them.
    pub(crate) tokens: Vec<TokenId>,
    /// Who laid the tokens that have not been told of yet, the last ones of `tokens`; nobody laid
    /// those that were chosen in the pass that is being read.
    ahead: VecDeque<Option<LaidBy>>,
    /// How many of `tokens` the pass that is being read began with.
    began_with: usize,
    drafted: Drafted,
    drafts: Drafts,
    fast_forward: bool,
    context_len: usize,
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
    pub(crate) fn new(
        submission: Submission,
        root: ChainHash,
        limits: &Limits,
        context_len: usize,
    ) -> Self {
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
            ahead: VecDeque::new(),
            began_with: 0,
            drafted: Drafted::none(),
            drafts: limits.drafts,
            fast_forward: limits.fast_forward,
            context_len,
            arrived_ns,
            deadline_ns,
            shares_with,
            root,
            chain: Vec::new(),
            keeps_prefixes: limits.prefix_cache,
            account,
        };
        run.look_ahead();
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

    /// Tokens that were told of, or given.
    pub(crate) fn told(&self) -> usize {
        self.tokens.len() - self.ahead.len()
    }

    /// Tokens that may be computed before the next choice.
    ///
    /// The last one waits for its row where it ends the run, or is not to be laid ahead.
    pub(crate) fn known(&self) -> usize {
        let waits = !self.ahead.is_empty()
            && (!self.fast_forward || self.stop_after(self.tokens.len()).is_some());
        self.tokens.len() - usize::from(waits)
    }

    /// How many rows of logits of a span are due: one for each token that is laid, drafted, or to
    /// be chosen, behind one of its positions.
    pub(crate) fn rows_due(&self, first_position: usize, token_count: usize) -> usize {
        let first = first_position.max(self.told() - 1);
        (first_position + token_count).saturating_sub(first)
    }

    /// Takes the guide out where it has a mask; `set_guide` puts it back before anything is
    /// chosen.
    pub(crate) fn take_mask(&mut self) -> Option<Box<dyn Guide>> {
        self.guide.take_if(|guide| guide.has_mask())
    }

    pub(crate) fn set_guide(&mut self, guide: Box<dyn Guide>) {
        self.guide = Some(guide);
    }

    /// The best tokens of the row that a step is taken from, where they are asked for; `ahead`
    /// steps are taken before it in the same pass.
    pub(crate) fn top(
        &mut self,
        logits: &[f32],
        ahead: usize,
    ) -> Result<Vec<(TokenId, f64)>, ChooseError> {
        if self.top_logprobs == 0 {
            return Ok(Vec::new());
        }
        let step = self.step_ahead(ahead);
        causeway_policy::top_logprobs(logits, step, self.top_logprobs, &mut self.scratch)
    }

    fn step_ahead(&self, ahead: usize) -> u32 {
        self.step() + u32::try_from(ahead).expect("invariant: a context has at most 2^24 tokens")
    }

    /// A token, laid where the guide said so, else chosen; `ahead` tokens come before it in the
    /// same pass.
    pub(crate) fn choose(&mut self, logits: &[f32], ahead: usize) -> Result<Choice, ChooseError> {
        let (step, at) = (self.step_ahead(ahead), self.told() + ahead);
        let context = StepContext {
            tokens: &self.tokens[..at],
            prompt_tokens: self.request.tokens.len() - self.request.prefilled,
            seed: self.request.seed,
            choice: self.request.choice,
            step,
        };
        if let Some((&token, &Some(by))) = self.tokens.get(at).zip(self.ahead.get(ahead)) {
            return self.policy.lay(logits, Laid { token, by }, &context, &mut self.scratch);
        }
        let mask = self.guide.as_mut().map_or(Ok(None), |guide| guide.mask());
        let mask = mask.map_err(|reason| ChooseError::Guide { step, reason })?;
        self.policy.choose_masked(logits, mask, &context, &mut self.scratch)
    }

    /// Takes in the token of a row, laid or chosen, behind `ahead` others of the same pass; says
    /// whether the pass's next row is behind it, since it was known or drafted.
    pub(crate) fn take_in(&mut self, token: TokenId, ahead: usize) -> bool {
        let at = self.told() + ahead;
        if at < self.began_with {
            return true;
        }
        let is_chosen = at == self.tokens.len();
        if is_chosen {
            self.tokens.push(token);
            self.ahead.push_back(None);
            self.read();
        }
        if !self.drafted.is_next(token) || self.stop_after(self.tokens.len()).is_some() {
            return false;
        }
        self.drafted.accept();
        // What is laid would have come in the pass of the token before it without a draft.
        self.account.accepted_tokens += u64::from(is_chosen);
        // The guide may leave no choice about what follows.
        self.lay_next();
        true
    }

    /// Tells of the next token that was taken in; says whether it ends the run.
    pub(crate) fn commit(&mut self) -> Option<StopReason> {
        self.ahead.pop_front().expect("invariant: a token is taken in before it is told of");
        self.account.steps += 1;
        self.stop_after(self.told())
    }

    /// Drafts at most `count` tokens for the next pass; says how many.
    ///
    /// They stay in the block of the newest token, which is there anyway, inside the context and
    /// before the last token that the budget allows.
    pub(crate) fn draft(&mut self, count: usize) -> usize {
        let end = self.tokens.len();
        let is_wanted = match self.drafts {
            Drafts::Off => false,
            Drafts::Forms => self.guide.as_ref().is_some_and(|guide| guide.has_mask()),
            Drafts::All => true,
        };
        let generated = end - self.request.tokens.len();
        let is_decode = generated > 0 && self.known() == end;
        let count = if is_wanted && self.fast_forward && is_decode { count } else { 0 };
        let in_block = BLOCK_POSITIONS - 1 - (end - 1) % BLOCK_POSITIONS;
        let in_context = self.context_len.saturating_sub(end);
        let in_budget = self.request.tokens_max.saturating_sub(generated + 1);
        self.drafted.look_up(&self.tokens, count.min(in_block).min(in_context).min(in_budget))
    }

    /// Begins a pass that has room for so many drafts.
    pub(crate) fn begin_pass(&mut self, drafts: usize) {
        self.began_with = self.tokens.len();
        self.drafted.keep(drafts);
        self.account.drafted_tokens += drafts as u64;
    }

    /// Ends a pass: how many drafts were chosen.
    pub(crate) fn end_pass(&mut self) -> usize {
        self.drafted.settle()
    }

    /// What a pass computes of it: known tokens from a position on, and the drafts behind them.
    pub(crate) fn planned(&self, first_position: usize, token_count: usize) -> Vec<TokenId> {
        let known = &self.tokens[first_position..][..token_count];
        known.iter().chain(self.drafted.tokens()).copied().collect()
    }

    /// Lays what must follow, as far as the run goes; for the scheduler to compute with the token
    /// that was just chosen.
    pub(crate) fn look_ahead(&mut self) {
        while self.stop_after(self.tokens.len()).is_none() && self.lay_next() {
            if !self.fast_forward {
                break;
            }
        }
        self.extend_chain();
    }

    /// Lays the token that must come next, where the guide names one.
    fn lay_next(&mut self) -> bool {
        let Some(Laid { token, by }) = self.guide.as_mut().and_then(|guide| guide.laid()) else {
            return false;
        };
        self.tokens.push(token);
        self.ahead.push_back(Some(by));
        self.read();
        true
    }

    /// Has the guide read what came.
    fn read(&mut self) {
        if let Some(guide) = &mut self.guide {
            self.tokens[self.guided..].iter().for_each(|token| guide.read(*token));
        }
        self.guided = self.tokens.len();
    }

    /// Why the run ends behind its first `end` tokens, if it does.
    fn stop_after(&self, end: usize) -> Option<StopReason> {
        let Request { eos_tokens, stop_tokens, tokens_max, tokens: given, .. } = &self.request;
        let generated = self.tokens.get(given.len()..end).unwrap_or_default();
        if let Some(&token) = generated.last() {
            if eos_tokens.contains(&token) {
                return Some(StopReason::Eos { token });
            }
            if stop_tokens.contains(&token) {
                return Some(StopReason::StopToken { token });
            }
            // The guide has read every token; only the last one can have made the answer whole.
            let is_whole = self.guide.as_deref().is_some_and(|guide| guide.is_complete());
            if end == self.tokens.len() && is_whole {
                return Some(StopReason::SchemaComplete);
            }
            if generated.len() >= *tokens_max {
                return Some(StopReason::MaxTokens { tokens_max: *tokens_max });
            }
        }
        let context_len = self.context_len;
        (end >= context_len).then_some(StopReason::ContextFull { context_len })
    }

    /// The account of a run that ends here.
    pub(crate) fn close(&self) -> PassAccount {
        let generated = self.told() - self.request.tokens.len();
        let room = self.context_len.saturating_sub(self.request.tokens.len());
        let unscheduled_steps = room.min(self.request.tokens_max).saturating_sub(generated);
        PassAccount { unscheduled_steps, ..self.account }
    }
}
