//! The names of the stages a policy can run, and the order they run in unless told otherwise.

/// One stage of a policy; the grammar's mask is none of them, since it always comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    AllowedTokens,
    ForbiddenTokens,
    BadWords,
    LogitBias,
    MinTokens,
    RepetitionPenalty,
    PresencePenalty,
    FrequencyPenalty,
    NoRepeatNgram,
    Dry,
    Temperature,
    TopK,
    TopP,
    MinP,
    TypicalP,
    TopNSigma,
    EpsilonCutoff,
    EtaCutoff,
}

impl Stage {
    /// Every stage in the default order: constraints, then shape.
    pub const DEFAULT_ORDER: [Self; 18] = [
        Self::AllowedTokens,
        Self::ForbiddenTokens,
        Self::BadWords,
        Self::LogitBias,
        Self::MinTokens,
        Self::RepetitionPenalty,
        Self::PresencePenalty,
        Self::FrequencyPenalty,
        Self::NoRepeatNgram,
        Self::Dry,
        Self::Temperature,
        Self::TopK,
        Self::TopP,
        Self::MinP,
        Self::TypicalP,
        Self::TopNSigma,
        Self::EpsilonCutoff,
        Self::EtaCutoff,
    ];

    /// The stage's name in `order`, in records and in messages: that of its field.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllowedTokens => "allowed_tokens",
            Self::ForbiddenTokens => "forbidden_tokens",
            Self::BadWords => "bad_words",
            Self::LogitBias => "logit_bias",
            Self::MinTokens => "min_tokens",
            Self::RepetitionPenalty => "repetition_penalty",
            Self::PresencePenalty => "presence_penalty",
            Self::FrequencyPenalty => "frequency_penalty",
            Self::NoRepeatNgram => "no_repeat_ngram",
            Self::Dry => "dry",
            Self::Temperature => "temperature",
            Self::TopK => "top_k",
            Self::TopP => "top_p",
            Self::MinP => "min_p",
            Self::TypicalP => "typical_p",
            Self::TopNSigma => "top_n_sigma",
            Self::EpsilonCutoff => "epsilon_cutoff",
            Self::EtaCutoff => "eta_cutoff",
        }
    }

    /// The stage of that name, where there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::DEFAULT_ORDER.into_iter().find(|stage| stage.name() == name)
    }

    /// Whether the stage belongs to the constraints rather than to the shape.
    #[must_use]
    pub fn is_constraint(self) -> bool {
        self < Self::Temperature
    }
}
