//! One step: constraints, shape, softmax, choice and account, in that order.

use causeway_request::{Cause, Choice, TokenId};

use crate::draw::draw;
use crate::error::ChooseError;
use crate::file::Method;
use crate::mask::TokenMask;
use crate::noise::Noise;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::stage::Stage;
use crate::survivors::{Candidate, Survivors};

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
}

/// A row of scores as a caller writes them down, not rounded to `f32`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal<'a> {
    Logits(&'a [f64]),
    /// Probabilities, used as they are: no logarithm and back.
    Probabilities(&'a [f64]),
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
        let wide: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
        self.choose_literal(Literal::Logits(&wide), mask, context, scratch)
            .map(|(choice, _)| choice)
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
        let wide: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
        self.choose_literal(Literal::Logits(&wide), mask, context, scratch)
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
            progress.note("mask", survivors, context.step)?;
        }
        for (stage, rule) in &self.stages {
            progress.entering(*stage, survivors.list.len());
            self.run(rule, context, survivors);
            progress.note(stage.name(), survivors, context.step)?;
        }
        progress.finish(survivors.list.len());
        let drawn = self.pick(survivors, context);
        let choice = account(&raw, survivors, drawn, &progress);
        let list = survivors.list.iter().map(|candidate| Survivor {
            token: TokenId(candidate.token),
            probability: candidate.weight / survivors.total,
        });
        Ok((choice, list.collect()))
    }

    fn run(&self, rule: &Rule, context: &StepContext<'_>, survivors: &mut Survivors) {
        match rule {
            Rule::Allow(mask) => survivors.retain(|token| mask.allows(token)),
            Rule::Temperature(temperature) => survivors.temperature(*temperature),
            Rule::Filter(filter) => filter.run(survivors),
            constraint => survivors.edit(&constraint.edits(context)),
        }
    }

    fn pick(&self, survivors: &Survivors, context: &StepContext<'_>) -> usize {
        match self.file.choose.method {
            Method::Greedy => 0,
            Method::Sample => {
                draw(survivors, &Noise::new(context.seed, context.choice, context.step))
            }
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

impl Literal<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Logits(row) | Self::Probabilities(row) => row.len(),
        }
    }

    /// The row as a list, best first, with raw weights.
    fn to_survivors(self, step: u32) -> Result<Survivors, ChooseError> {
        let vocab_size = self.len();
        let mut survivors = Survivors::default();
        match self {
            Self::Logits(row) => {
                for (token, &score) in (0..).zip(row) {
                    if score.is_nan() {
                        return Err(ChooseError::NotANumber { step, token: TokenId(token) });
                    }
                    if score > f64::NEG_INFINITY {
                        if score.abs() > f64::from(f32::MAX) {
                            let (token, value) = (TokenId(token), score);
                            return Err(ChooseError::Infinite { step, token, value });
                        }
                        survivors.list.push(Candidate { token, score, weight: 0.0 });
                    }
                }
                survivors.soften();
            }
            Self::Probabilities(row) => {
                survivors.list = given(row)?;
                (survivors.total, survivors.total_unfiltered) = (1.0, 1.0);
            }
        }
        if survivors.list.is_empty() {
            return Err(ChooseError::NothingGiven { step, vocab_size });
        }
        Ok(survivors)
    }
}

/// Farthest that given probabilities may sum from 1: what six written digits of each can cost.
const SUM_SLACK: f64 = 1e-4;

/// Probabilities as candidates: ordered by the probability itself, the score its logarithm.
fn given(row: &[f64]) -> Result<Vec<Candidate>, ChooseError> {
    let mut list = Vec::new();
    for (token, &value) in (0..).zip(row) {
        if !(0.0..=1.0).contains(&value) {
            return Err(ChooseError::Probability { token: TokenId(token), value });
        }
        if value > 0.0 {
            list.push(Candidate { token, score: libm::log(value), weight: value });
        }
    }
    let sum: f64 = list.iter().map(|candidate| candidate.weight).sum();
    if (sum - 1.0).abs() > SUM_SLACK {
        return Err(ChooseError::ProbabilitySum { sum });
    }
    list.sort_unstable_by(|a, b| b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token)));
    Ok(list)
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

    fn note(
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
    }
}
