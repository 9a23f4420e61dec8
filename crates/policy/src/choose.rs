//! One step: constraints, shape, softmax, choice and account, in that order.

use causeway_request::{Cause, Choice, TokenId};

use crate::dense::RowBuffers;
use crate::draw::draw_from_list;
use crate::error::ChooseError;
use crate::file::Method;
use crate::guide::MASK;
use crate::literal::Literal;
use crate::mask::TokenMask;
use crate::noise::Noise;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::stage::Stage;
use crate::survivors::Survivors;

/// Where in its run a step stands: all that a policy looks at beside the logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepContext<'a> {
    /// Every token so far: the prompt, then the generation prefix.
    pub tokens: &'a [TokenId],
    /// Index in `tokens` of the first token of the generation prefix.
    pub prompt_tokens: usize,
    pub seed: u64,
    /// Which of several parallel choices this is.
    pub choice: u32,
    /// Index of the token to choose in the generation prefix, forced tokens included.
    pub step: u32,
}

/// One token the policy left in play.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Survivor {
    pub token: TokenId,
    /// Its probability under the policy.
    pub probability: f64,
}

/// Buffers that live from step to step, so that a step allocates little.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    pub(crate) survivors: Survivors,
    pub(crate) row: RowBuffers,
    pub(crate) weights: Vec<f32>,
}

impl StepContext<'_> {
    pub(crate) fn noise(&self) -> Noise {
        Noise::new(self.seed, self.choice, self.step)
    }
}

impl Policy {
    /// Chooses the token of one step from a row of `vocab_size` raw logits.
    ///
    /// # Errors
    /// [`ChooseError`]: a logit that is NaN or plus infinity, no token left, or a context that
    /// does not fit the vocabulary.
    pub fn choose(
        &self,
        logits: &[f32],
        context: &StepContext<'_>,
        scratch: &mut Scratch,
    ) -> Result<Choice, ChooseError> {
        self.choose_masked(logits, None, context, scratch)
    }

    /// The same under a grammar's mask, which comes before every other stage.
    ///
    /// # Errors
    /// As [`Policy::choose`], and a mask of another length than the vocabulary.
    pub fn choose_masked(
        &self,
        logits: &[f32],
        mask: Option<&TokenMask>,
        context: &StepContext<'_>,
        scratch: &mut Scratch,
    ) -> Result<Choice, ChooseError> {
        self.choose_row(logits, mask, context, scratch, false).map(|(choice, _)| choice)
    }

    /// The same, and every survivor with its probability, best first.
    ///
    /// # Errors
    /// As [`Policy::choose_masked`].
    pub fn choose_with_survivors(
        &self,
        logits: &[f32],
        mask: Option<&TokenMask>,
        context: &StepContext<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Choice, Vec<Survivor>), ChooseError> {
        self.choose_row(logits, mask, context, scratch, true)
    }

    /// The definition of a step, on a row of `f64` logits or of probabilities.
    ///
    /// # Errors
    /// As [`Policy::choose_masked`], and probabilities that are none.
    pub fn choose_literal(
        &self,
        row: Literal<'_>,
        mask: Option<&TokenMask>,
        context: &StepContext<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Choice, Vec<Survivor>), ChooseError> {
        self.check(row.len(), mask, context)?;
        let raw = row.to_survivors(context.step)?;
        let survivors = &mut scratch.survivors;
        survivors.clone_from(&raw);
        let mut progress = Progress::new(TokenId(raw.list[0].token));
        if let Some(mask) = mask {
            survivors.retain(|token| mask.allows(token));
            progress.note(MASK, survivors, context.step)?;
        }
        self.run_stages(0, context, survivors, &mut progress)?;
        progress.finish(survivors.list.len());
        let drawn = self.pick(survivors, context);
        let choice = account(&raw, survivors, drawn, &progress);
        let list = survivors.list.iter().map(|candidate| Survivor {
            token: TokenId(candidate.token),
            probability: candidate.weight / survivors.total,
        });
        Ok((choice, list.collect()))
    }

    /// Runs the stages from the given place on, over a list.
    pub(crate) fn run_stages(
        &self,
        first: usize,
        context: &StepContext<'_>,
        survivors: &mut Survivors,
        progress: &mut Progress,
    ) -> Result<(), ChooseError> {
        for (stage, rule) in &self.stages[first..] {
            progress.entering(*stage, survivors.list.len());
            self.run(rule, context, survivors);
            progress.note(stage.name(), survivors, context.step)?;
        }
        Ok(())
    }

    fn run(&self, rule: &Rule, context: &StepContext<'_>, survivors: &mut Survivors) {
        match rule {
            Rule::Allow(mask) => survivors.retain(|token| mask.allows(token)),
            Rule::Temperature(temperature) => survivors.temperature(*temperature),
            Rule::Filter(filter) => filter.run(survivors),
            constraint => survivors.edit(&constraint.edits(context)),
        }
    }

    pub(crate) fn pick(&self, survivors: &Survivors, context: &StepContext<'_>) -> usize {
        match self.file.choose.method {
            Method::Greedy => 0,
            Method::Sample => draw_from_list(survivors, &context.noise()),
        }
    }

    pub(crate) fn check(
        &self,
        row_len: usize,
        mask: Option<&TokenMask>,
        context: &StepContext<'_>,
    ) -> Result<(), ChooseError> {
        let vocab_size = self.vocab_size;
        if row_len != vocab_size {
            return Err(ChooseError::RowLength { found: row_len, vocab_size });
        }
        if let Some(found) = mask.map(TokenMask::vocab_size).filter(|&found| found != vocab_size) {
            return Err(ChooseError::MaskLength { found, vocab_size });
        }
        let (prompt_tokens, tokens) = (context.prompt_tokens, context.tokens.len());
        if prompt_tokens > tokens {
            return Err(ChooseError::PromptTokens { prompt_tokens, tokens });
        }
        match context.tokens.iter().find(|token| token.index() >= vocab_size) {
            Some(&token) => Err(ChooseError::TokenOutside { token, vocab_size }),
            None => Ok(()),
        }
    }
}

/// What is noted on the way through the stages.
#[derive(Debug)]
pub(crate) struct Progress {
    pub raw_best: TokenId,
    pub removed_by: Option<&'static str>,
    /// How many tokens the constraints left, once the shape began.
    pub allowed: Option<usize>,
}

impl Progress {
    pub(crate) fn new(raw_best: TokenId) -> Self {
        Self { raw_best, removed_by: None, allowed: None }
    }

    /// Before a stage: the first one of the shape fixes what the constraints left.
    pub(crate) fn entering(&mut self, stage: Stage, in_play: usize) {
        if !stage.is_constraint() {
            self.allowed.get_or_insert(in_play);
        }
    }

    pub(crate) fn finish(&mut self, in_play: usize) {
        self.allowed.get_or_insert(in_play);
    }

    pub(crate) fn note(
        &mut self,
        stage: &'static str,
        survivors: &Survivors,
        step: u32,
    ) -> Result<(), ChooseError> {
        if survivors.list.is_empty() {
            return Err(ChooseError::NothingLeft { step, stage });
        }
        let raw_best = self.raw_best.0;
        if self.removed_by.is_none() && !survivors.list.iter().any(|c| c.token == raw_best) {
            self.removed_by = Some(stage);
        }
        Ok(())
    }
}

/// The account of a step whose raw row and survivors are both at hand as lists.
fn account(raw: &Survivors, survivors: &Survivors, drawn: usize, progress: &Progress) -> Choice {
    let chosen = survivors.list[drawn];
    let index = raw.list.iter().position(|c| c.token == chosen.token);
    let index = index.expect("a survivor is a token of the raw row");
    let runner_up = survivors.list.get(usize::from(drawn == 0));
    let count = |length: usize| u32::try_from(length).expect("a vocabulary's ids are u32");
    Choice {
        token: TokenId(chosen.token),
        logprob: raw.logprob(&raw.list[index]),
        rank: count(index + 1),
        probability: chosen.weight / survivors.total,
        survivors: count(survivors.list.len()),
        entropy: raw.entropy(),
        raw_best: progress.raw_best,
        removed_by: progress.removed_by,
        runner_up: runner_up.map(|next| (TokenId(next.token), next.weight / survivors.total)),
        cause: if progress.allowed == Some(1) { Cause::Forced } else { Cause::Chosen },
        forced_by: None,
    }
}
