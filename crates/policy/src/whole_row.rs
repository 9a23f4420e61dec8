//! A step over a whole row of `f32` logits: short lists only once a filter has made one.

use causeway_kernels::{Work, widest};
use causeway_request::{Cause, Choice, TokenId};

use crate::choose::{Progress, Scratch, StepContext, Survivor};
use crate::dense::Row;
use crate::draw::RowDraw;
use crate::error::ChooseError;
use crate::file::Method;
use crate::guide::MASK;
use crate::like::TopPCut;
use crate::mask::TokenMask;
use crate::mass::Mass;
use crate::policy::Policy;
use crate::rule::{Filter, Rule};
use crate::survivors::{Candidate, Survivors};

/// What the policy made of the row.
#[derive(Debug)]
struct Outcome {
    chosen: Candidate,
    probability: f64,
    survivors: usize,
    runner_up: Option<(TokenId, f64)>,
    list: Vec<Survivor>,
}

impl Policy {
    pub(crate) fn choose_row(
        &self,
        logits: &[f32],
        mask: Option<&TokenMask>,
        context: &StepContext<'_>,
        scratch: &mut Scratch,
        wants_list: bool,
    ) -> Result<(Choice, Vec<Survivor>), ChooseError> {
        self.check(logits.len(), mask, context)?;
        let Scratch { survivors, row: buffers, weights } = scratch;
        let mut row = Row::scan(logits, context.step, buffers)?;
        let best = row.best().expect("the scan saw a finite value");
        let draws = self.file.choose.method == Method::Sample;
        let is_untouched = mask.is_none() && self.stages.is_empty();
        let raw = Mass::of(&row, best, (draws && is_untouched).then_some(&mut *weights));
        let mut progress = Progress::new(TokenId(raw.best.token));
        if let Some(mask) = mask {
            row.allow(mask);
            note_row(&mut progress, MASK, &row, context.step)?;
        }
        let shaped = self.constrain(&mut row, context, &mut progress)?;
        let outcome = match self.stages.get(shaped) {
            None => {
                progress.finish(row.count_to_two());
                let mass = match row.best() {
                    Some(best) if !is_untouched => {
                        Mass::of(&row, best, draws.then_some(&mut *weights))
                    }
                    _ => raw,
                };
                let chosen = if draws {
                    widest(RowDraw { row: &row, best: mass.best, weights, noise: context.noise() })
                } else {
                    mass.best
                };
                finish_row(&row, &mass, chosen, wants_list.then_some(survivors))
            }
            Some(_) => {
                self.narrow(&row, &raw, shaped, survivors);
                progress.note(self.stages[shaped].0.name(), survivors, context.step)?;
                self.run_stages(shaped + 1, context, survivors, &mut progress)?;
                progress.finish(survivors.list.len());
                self.finish_list(survivors, context, wants_list)
            }
        };
        Ok(account(logits, &raw, outcome, &progress))
    }

    /// Runs the stages that leave the row a row; gives the place of the first one that does not.
    fn constrain(
        &self,
        row: &mut Row<'_>,
        context: &StepContext<'_>,
        progress: &mut Progress,
    ) -> Result<usize, ChooseError> {
        for (place, (stage, rule)) in self.stages.iter().enumerate() {
            if !stage.is_constraint() {
                progress.entering(*stage, row.count_to_two());
            }
            match rule {
                Rule::Allow(mask) => row.allow(mask),
                Rule::Temperature(temperature) if *temperature > 0.0 => row.divide(*temperature),
                Rule::Temperature(_) | Rule::Filter(_) => return Ok(place),
                constraint => row.edit(&constraint.edits(context)),
            }
            note_row(progress, stage.name(), row, context.step)?;
        }
        Ok(self.stages.len())
    }

    /// The first stage that turns the row into a list.
    fn narrow(&self, row: &Row<'_>, raw: &Mass, place: usize, survivors: &mut Survivors) {
        let mut known = None;
        let mut mass = || current_mass(row, raw, &mut known);
        match &self.stages[place].1 {
            Rule::Filter(filter) => filter.narrow(row, &mut mass, survivors),
            _ => {
                survivors.list.clear();
                survivors.list.extend(row.best());
                survivors.soften();
            }
        }
        let passes =
            |rule: &Rule| matches!(rule, Rule::Filter(Filter::TopP { cut: TopPCut::Passed, .. }));
        if self.stages[place..].iter().any(|(_, rule)| passes(rule)) {
            survivors.total_unfiltered = mass().total;
        }
    }

    /// The choice from a list.
    fn finish_list(
        &self,
        survivors: &Survivors,
        context: &StepContext<'_>,
        wants_list: bool,
    ) -> Outcome {
        let list = &survivors.list;
        let drawn = self.pick(survivors, context);
        let probability = |candidate: &Candidate| candidate.weight / survivors.total;
        let survivor =
            |c: &Candidate| Survivor { token: TokenId(c.token), probability: probability(c) };
        let runner_up = list.get(usize::from(drawn == 0));
        Outcome {
            chosen: list[drawn],
            probability: probability(&list[drawn]),
            survivors: list.len(),
            runner_up: runner_up.map(|c| (TokenId(c.token), probability(c))),
            list: if wants_list { list.iter().map(survivor).collect() } else { Vec::new() },
        }
    }
}

/// The choice from a row that no filter has touched.
fn finish_row(
    row: &Row<'_>,
    mass: &Mass,
    chosen: Candidate,
    listed: Option<&mut Survivors>,
) -> Outcome {
    let is_best = chosen.token == mass.best.token;
    let runner_up = if is_best { row.second(&mass.best) } else { Some(mass.best) };
    let mut list = Vec::new();
    if let Some(survivors) = listed {
        row.collect(f64::NEG_INFINITY, survivors);
        list.extend(survivors.list.iter().map(|candidate| Survivor {
            token: TokenId(candidate.token),
            probability: mass.probability(candidate.score),
        }));
    }
    Outcome {
        chosen,
        probability: mass.probability(chosen.score),
        survivors: row.count(),
        runner_up: runner_up.map(|c| (TokenId(c.token), mass.probability(c.score))),
        list,
    }
}

/// The row's softmax in its present scale, computed at most once.
fn current_mass(row: &Row<'_>, raw: &Mass, known: &mut Option<Mass>) -> Mass {
    if row.is_raw() {
        return *raw;
    }
    *known.get_or_insert_with(|| Mass::of(row, row.best().expect("a stage left a token"), None))
}

fn note_row(
    progress: &mut Progress,
    stage: &'static str,
    row: &Row<'_>,
    step: u32,
) -> Result<(), ChooseError> {
    if row.best().is_none() {
        return Err(ChooseError::NothingLeft { step, stage });
    }
    if progress.removed_by.is_none() && !row.holds(progress.raw_best) {
        progress.removed_by = Some(stage);
    }
    Ok(())
}

fn account(
    logits: &[f32],
    raw: &Mass,
    outcome: Outcome,
    progress: &Progress,
) -> (Choice, Vec<Survivor>) {
    let Outcome { chosen, probability, survivors, runner_up, list } = outcome;
    let token = TokenId(chosen.token);
    let count = |length: usize| u32::try_from(length).expect("a vocabulary's ids are u32");
    let choice = Choice {
        token,
        logprob: raw.logprob(f64::from(logits[token.index()])),
        // Of the largest the first is the best: nothing is above it.
        rank: if chosen.token == raw.best.token { 1 } else { rank(logits, token) },
        probability,
        survivors: count(survivors),
        entropy: raw.entropy(),
        raw_best: progress.raw_best,
        removed_by: progress.removed_by,
        runner_up,
        cause: if progress.allowed == Some(1) { Cause::Forced } else { Cause::Chosen },
        forced_by: None,
    };
    (choice, list)
}

/// Place of a token under the raw logits, from 1: those above it, and equals with a lower id.
pub(crate) fn rank(logits: &[f32], token: TokenId) -> u32 {
    widest(Rank { logits, token })
}

struct Rank<'a> {
    logits: &'a [f32],
    token: TokenId,
}

impl Work for Rank<'_> {
    type Out = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        let Self { logits, token } = self;
        let own = logits[token.index()];
        // A count per block stays in registers; blocks of 4096 cannot overflow it.
        let above = |block: &[f32]| block.iter().map(|&v| u32::from(v > own)).sum::<u32>();
        let above: u32 = logits.chunks(4096).map(above).sum();
        let tied =
            logits[..token.index()].iter().map(|&v| u32::from(v >= own) - u32::from(v > own));
        above + tied.sum::<u32>() + 1
    }
}

#[cfg(test)]
mod tests;
