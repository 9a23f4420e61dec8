//! Other engines' rules: their order of stages, windows, cuts and limits, as plain values.

use crate::file::Window;
use crate::stage::Stage;

/// An engine whose decoding rules can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// vLLM 0.33, V1 sampler, native (PyTorch) path.
    Vllm,
    /// SGLang 0.5, PyTorch sampling path.
    Sglang,
    /// llama.cpp server, default sampler chain.
    LlamaCpp,
    /// transformers 5.24, `generate` with `do_sample=True`.
    Transformers,
    /// mistral.rs.
    MistralRs,
}

impl Peer {
    /// Every engine there are rules for.
    pub const ALL: [Self; 5] =
        [Self::Vllm, Self::Sglang, Self::LlamaCpp, Self::Transformers, Self::MistralRs];

    /// The engine's name in a policy file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llama.cpp",
            Self::Transformers => "transformers",
            Self::MistralRs => "mistral.rs",
        }
    }

    /// The engine of that name, where there are rules for it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|peer| peer.name() == name)
    }
}

/// What happens to tokens that tie with the last one kept by `top_k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopKTies {
    /// Exactly k stay, the lower token ids first.
    Cut,
    /// Every token equal to the k-th stays.
    Keep,
}

/// Where `top_p` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopPCut {
    /// The smallest set whose renormalised mass reaches p.
    Reached,
    /// The first token whose preceding mass is above p goes, with the mass as it was before `top_k`.
    Passed,
}

/// Where `typical_p` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypicalCut {
    /// The set reaches p; tokens equally far from the entropy stay together.
    ReachedWithTies,
    /// The first token whose own mass takes the sum above p is the last one kept.
    Passed,
}

/// Everything in which engines differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rules {
    pub order: &'static [Stage],
    pub repetition_window: Window,
    pub penalty_window: Window,
    pub dry_window: Window,
    /// Longest repeat that DRY measures.
    pub dry_length_max: usize,
    pub top_k_ties: TopKTies,
    pub top_p_cut: TopPCut,
    /// Whether `min_p` drops a token whose probability equals the threshold.
    pub min_p_drops_equal: bool,
    pub typical_cut: TypicalCut,
}

/// The project's own rules, which peers are stated against.
const OWN: Rules = Rules {
    order: &Stage::DEFAULT_ORDER,
    repetition_window: Window::All,
    penalty_window: Window::Output,
    dry_window: Window::All,
    dry_length_max: usize::MAX,
    top_k_ties: TopKTies::Cut,
    top_p_cut: TopPCut::Reached,
    min_p_drops_equal: false,
    typical_cut: TypicalCut::ReachedWithTies,
};

const VLLM_ORDER: [Stage; 12] = [
    Stage::AllowedTokens,
    Stage::ForbiddenTokens,
    Stage::BadWords,
    Stage::MinTokens,
    Stage::LogitBias,
    Stage::RepetitionPenalty,
    Stage::FrequencyPenalty,
    Stage::PresencePenalty,
    Stage::Temperature,
    Stage::MinP,
    Stage::TopK,
    Stage::TopP,
];

const SGLANG_ORDER: [Stage; 11] = [
    Stage::AllowedTokens,
    Stage::ForbiddenTokens,
    Stage::FrequencyPenalty,
    Stage::PresencePenalty,
    Stage::MinTokens,
    Stage::RepetitionPenalty,
    Stage::LogitBias,
    Stage::Temperature,
    Stage::TopK,
    Stage::TopP,
    Stage::MinP,
];

const LLAMA_CPP_ORDER: [Stage; 13] = [
    Stage::AllowedTokens,
    Stage::ForbiddenTokens,
    Stage::LogitBias,
    Stage::RepetitionPenalty,
    Stage::FrequencyPenalty,
    Stage::PresencePenalty,
    Stage::Dry,
    Stage::TopNSigma,
    Stage::TopK,
    Stage::TypicalP,
    Stage::TopP,
    Stage::MinP,
    Stage::Temperature,
];

const TRANSFORMERS_ORDER: [Stage; 14] = [
    Stage::LogitBias,
    Stage::RepetitionPenalty,
    Stage::NoRepeatNgram,
    Stage::BadWords,
    Stage::MinTokens,
    Stage::AllowedTokens,
    Stage::ForbiddenTokens,
    Stage::Temperature,
    Stage::TopK,
    Stage::TopP,
    Stage::MinP,
    Stage::TypicalP,
    Stage::EpsilonCutoff,
    Stage::EtaCutoff,
];

const MISTRAL_RS_ORDER: [Stage; 11] = [
    Stage::AllowedTokens,
    Stage::ForbiddenTokens,
    Stage::Dry,
    Stage::FrequencyPenalty,
    Stage::PresencePenalty,
    Stage::RepetitionPenalty,
    Stage::LogitBias,
    Stage::Temperature,
    Stage::TopK,
    Stage::TopP,
    Stage::MinP,
];

impl Rules {
    /// The rules of `like`, or the project's own.
    pub(crate) fn of(like: Option<Peer>) -> Self {
        match like {
            None => OWN,
            Some(Peer::Vllm) => Self { order: &VLLM_ORDER, top_k_ties: TopKTies::Keep, ..OWN },
            Some(Peer::Sglang) => Self {
                order: &SGLANG_ORDER,
                repetition_window: Window::Output,
                top_p_cut: TopPCut::Passed,
                ..OWN
            },
            Some(Peer::LlamaCpp) => Self {
                order: &LLAMA_CPP_ORDER,
                repetition_window: Window::Last(64),
                penalty_window: Window::Last(64),
                dry_window: Window::Last(64),
                typical_cut: TypicalCut::Passed,
                ..OWN
            },
            Some(Peer::Transformers) => {
                Self { order: &TRANSFORMERS_ORDER, top_k_ties: TopKTies::Keep, ..OWN }
            }
            Some(Peer::MistralRs) => Self {
                order: &MISTRAL_RS_ORDER,
                dry_length_max: 50,
                min_p_drops_equal: true,
                ..OWN
            },
        }
    }
}

#[cfg(test)]
mod tests;
