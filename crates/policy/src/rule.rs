//! One stage as compiled: its numbers checked, its sets sorted, ready for every step.

use causeway_request::TokenId;

use crate::edits::{Edit, Edits};
use crate::file::{PolicyFile, Window};
use crate::like::{Rules, TopKTies, TopPCut, TypicalCut};
use crate::repeats::{self, DryRule};
use crate::stage::Stage;
use crate::survivors::Survivors;
use crate::{StepContext, TokenMask};

/// What a stage does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rule {
    Allow(TokenMask),
    /// Changes that are the same at every step.
    Fixed(Edits),
    BadWords(Vec<Vec<TokenId>>),
    /// Masks the ends of a run before it has so many tokens.
    MinTokens {
        count: usize,
        ends: Edits,
    },
    Repetition {
        penalty: f64,
        window: Window,
    },
    Presence {
        penalty: f64,
        window: Window,
    },
    Frequency {
        penalty: f64,
        window: Window,
    },
    NoRepeatNgram {
        length: usize,
    },
    Dry(DryRule),
    Temperature(f64),
    Filter(Filter),
}

/// A stage that only takes tokens away, by their place in the distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Filter {
    TopK { count: usize, ties: TopKTies },
    TopP { mass: f64, cut: TopPCut },
    MinP { share: f64, drops_equal: bool },
    Typical { mass: f64, cut: TypicalCut },
    TopNSigma(f64),
    Epsilon(f64),
    Eta(f64),
}

impl Filter {
    pub(crate) fn run(self, survivors: &mut Survivors) {
        match self {
            Self::TopK { count, ties } => survivors.top_k(count, ties),
            Self::TopP { mass, cut } => survivors.top_p(mass, cut),
            Self::MinP { share, drops_equal } => survivors.min_p(share, drops_equal),
            Self::Typical { mass, cut } => survivors.typical(mass, cut),
            Self::TopNSigma(n) => survivors.top_n_sigma(n),
            Self::Epsilon(epsilon) => survivors.epsilon(epsilon),
            Self::Eta(epsilon) => survivors.eta(epsilon),
        }
    }
}

impl Rule {
    /// The rule of one stage of a checked file.
    pub(crate) fn compile(
        file: &PolicyFile,
        stage: Stage,
        vocab_size: usize,
        ends: &[TokenId],
    ) -> Self {
        let rules = Rules::of(file.like);
        let (constraints, shape) = (&file.constraints, &file.shape);
        let repetition_window = constraints.repetition_window.unwrap_or(rules.repetition_window);
        let penalty_window = constraints.penalty_window.unwrap_or(rules.penalty_window);
        match stage {
            Stage::AllowedTokens => {
                let mut mask = TokenMask::none(vocab_size);
                for &token in &constraints.allowed_tokens {
                    mask.allow(token);
                }
                Self::Allow(mask)
            }
            Stage::ForbiddenTokens => {
                Self::Fixed(constraints.forbidden_tokens.iter().map(|&t| (t, Edit::Mask)).collect())
            }
            Stage::BadWords => Self::BadWords(constraints.bad_words.clone()),
            Stage::LogitBias => Self::Fixed(biases(&constraints.logit_bias)),
            Stage::MinTokens => Self::MinTokens {
                count: saturate(constraints.min_tokens),
                ends: ends.iter().map(|&token| (token, Edit::Mask)).collect(),
            },
            Stage::RepetitionPenalty => Self::Repetition {
                penalty: constraints.repetition_penalty,
                window: repetition_window,
            },
            Stage::PresencePenalty => {
                Self::Presence { penalty: constraints.presence_penalty, window: penalty_window }
            }
            Stage::FrequencyPenalty => {
                Self::Frequency { penalty: constraints.frequency_penalty, window: penalty_window }
            }
            Stage::NoRepeatNgram => {
                Self::NoRepeatNgram { length: saturate(constraints.no_repeat_ngram) }
            }
            Stage::Dry => Self::Dry(dry(file, &rules)),
            Stage::Temperature => Self::Temperature(shape.temperature),
            Stage::TopK
            | Stage::TopP
            | Stage::MinP
            | Stage::TypicalP
            | Stage::TopNSigma
            | Stage::EpsilonCutoff
            | Stage::EtaCutoff => Self::Filter(filter(file, stage, &rules)),
        }
    }

    /// The changes that a constraint makes at this step; empty for all other rules.
    pub(crate) fn edits(&self, context: &StepContext<'_>) -> Edits {
        let tokens = context.tokens;
        let counted = |window: Window, edit: &dyn Fn(u32) -> Edit| -> Edits {
            repeats::counts(repeats::seen(tokens, context.prompt_tokens, window))
                .into_iter()
                .map(|(token, count)| (token, edit(count)))
                .collect()
        };
        match self {
            Self::Fixed(edits) => edits.clone(),
            Self::BadWords(sequences) => repeats::bad_words(tokens, sequences),
            Self::MinTokens { count, ends } => {
                let generated = tokens.len() - context.prompt_tokens;
                if generated < *count { ends.clone() } else { Vec::new() }
            }
            &Self::Repetition { penalty, window } => counted(window, &|_| Edit::Scale(penalty)),
            &Self::Presence { penalty, window } => counted(window, &|_| Edit::Add(-penalty)),
            &Self::Frequency { penalty, window } => {
                counted(window, &|count| Edit::Add(-penalty * f64::from(count)))
            }
            Self::NoRepeatNgram { length } => repeats::no_repeat_ngram(tokens, *length),
            Self::Dry(dry) => dry.edits(repeats::seen(tokens, context.prompt_tokens, dry.window)),
            Self::Allow(_) | Self::Temperature(_) | Self::Filter(_) => Vec::new(),
        }
    }
}

fn filter(file: &PolicyFile, stage: Stage, rules: &Rules) -> Filter {
    let shape = &file.shape;
    match stage {
        Stage::TopK => Filter::TopK { count: saturate(shape.top_k), ties: rules.top_k_ties },
        Stage::TopP => Filter::TopP { mass: shape.top_p, cut: rules.top_p_cut },
        Stage::MinP => Filter::MinP { share: shape.min_p, drops_equal: rules.min_p_drops_equal },
        Stage::TypicalP => Filter::Typical { mass: shape.typical_p, cut: rules.typical_cut },
        Stage::TopNSigma => Filter::TopNSigma(shape.top_n_sigma),
        Stage::EpsilonCutoff => Filter::Epsilon(shape.epsilon_cutoff),
        Stage::EtaCutoff => Filter::Eta(shape.eta_cutoff),
        _ => unreachable!("the caller names a filter"),
    }
}

fn dry(file: &PolicyFile, rules: &Rules) -> DryRule {
    let dry = &file.constraints.dry;
    DryRule {
        multiplier: dry.multiplier,
        base: dry.base,
        allowed_length: saturate(dry.allowed_length),
        length_max: rules.dry_length_max,
        window: dry.window.unwrap_or(rules.dry_window),
        breakers: dry.breakers.clone(),
    }
}

fn biases(biases: &[(TokenId, f64)]) -> Edits {
    let edit = |bias: f64| if bias == f64::NEG_INFINITY { Edit::Mask } else { Edit::Add(bias) };
    biases.iter().map(|&(token, bias)| (token, edit(bias))).collect()
}

fn saturate(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
