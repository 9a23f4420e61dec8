//! The policy file: everything a released policy fixes, as a tree of plain values.

mod bind;
mod fields;
mod nearest;
mod problem;
mod slot;
mod token_slot;
mod tree;

use causeway_request::TokenId;

use crate::{Peer, Stage};

pub use problem::{FileError, Problem, Problems};
pub use slot::COUNT_MAX;

/// One policy, as its file states it. `default()` changes nothing: it samples from the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyFile {
    pub identity: Identity,
    /// Another engine's order, windows and tie rules; `None` for the project's own.
    pub like: Option<Peer>,
    /// The stages in the order they run; `None` for the order of the rules in force.
    pub order: Option<Vec<Stage>>,
    pub model: ModelPin,
    pub prompt: PromptText,
    pub constraints: Constraints,
    pub shape: Shape,
    pub choose: ChooseRule,
    pub stop: Stop,
    pub reasoning: Reasoning,
    pub operation: Operation,
}

/// Who answers for the policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    pub name: Option<String>,
    pub version: Option<String>,
    pub owner: Option<String>,
}

/// Which model the policy was released for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPin {
    /// A model's name or path.
    pub name: Option<String>,
    /// SHA-256 of the weights file, in lower-case hexadecimal.
    pub sha256: Option<String>,
    /// SHA-256 of the tokenizer, in lower-case hexadecimal.
    pub tokenizer_sha256: Option<String>,
}

/// The texts around the request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptText {
    /// A chat template in place of the model's own.
    pub template: Option<String>,
    /// The system message.
    pub system: Option<String>,
    /// The answer's first text: the response prefill.
    pub prefill: Option<String>,
}

/// What may not be chosen, and what is made less likely before the shape is applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraints {
    /// The only tokens allowed; empty allows all.
    pub allowed_tokens: Vec<TokenId>,
    pub forbidden_tokens: Vec<TokenId>,
    /// Token sequences whose last token is masked where it would complete them.
    pub bad_words: Vec<Vec<TokenId>>,
    /// Added to single logits, ascending by token; minus infinity forbids.
    pub logit_bias: Vec<(TokenId, f64)>,
    /// Tokens before end-of-text and stop tokens may be chosen.
    pub min_tokens: u64,
    pub repetition_penalty: f64,
    /// Where `repetition_penalty` looks; `None` takes the default of the rules in force.
    pub repetition_window: Option<Window>,
    pub presence_penalty: f64,
    pub frequency_penalty: f64,
    /// Where presence and frequency are counted; `None` as above.
    pub penalty_window: Option<Window>,
    /// Length of the n-grams that may not occur twice; 0 is off.
    pub no_repeat_ngram: u64,
    pub dry: Dry,
    pub form: Form,
}

/// What the whole answer must be; at most one of them is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Form {
    /// A JSON schema, as text: the order of its properties counts.
    pub schema: Option<String>,
    /// Any JSON object.
    pub json_object: bool,
    /// A regular expression that the answer matches from end to end.
    pub regex: Option<String>,
    /// A grammar in Lark's syntax.
    pub grammar: Option<String>,
    /// One of these texts; empty where the answer is free.
    pub choice: Vec<String>,
    /// Calls of tools: JSON text of an object with `tools`, and where they are given
    /// `tool_choice` and `parallel_tool_calls`, as OpenAI spells them.
    pub tools: Option<String>,
    pub whitespace: Whitespace,
}

impl Form {
    /// The fields that each say what the whole answer is, by their paths in the policy file.
    pub const FIELDS: [&str; 6] = [
        "constraints.schema",
        "constraints.json_object",
        "constraints.regex",
        "constraints.grammar",
        "constraints.choice",
        "constraints.tools",
    ];

    /// Those of `FIELDS` that are set; none where the answer is free.
    #[must_use]
    pub fn asked(&self) -> Vec<&'static str> {
        let Self { schema, json_object, regex, grammar, choice, tools, whitespace: _ } = self;
        let set = [
            schema.is_some(),
            *json_object,
            regex.is_some(),
            grammar.is_some(),
            !choice.is_empty(),
            tools.is_some(),
        ];
        let fields = Self::FIELDS.into_iter().zip(set);
        fields.filter(|(_, is_set)| *is_set).map(|(field, _)| field).collect()
    }
}

/// White space between the words of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// None at all.
    #[default]
    Compact,
    /// Up to eight characters in a row wherever JSON allows them.
    Flexible,
}

/// The DRY repetition rule ("don't repeat yourself"): a penalty that grows with the repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Dry {
    /// 0 is off.
    pub multiplier: f64,
    pub base: f64,
    /// Longest repeat that costs nothing.
    pub allowed_length: u64,
    /// Where repeats are looked for; `None` takes the default of the rules in force.
    pub window: Option<Window>,
    /// Token sequences that no repeat reaches across.
    pub breakers: Vec<Vec<TokenId>>,
}

/// Which tokens a repetition rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Prompt and output.
    All,
    /// The generation prefix only.
    Output,
    /// The last so many tokens of prompt and output.
    Last(u64),
}

/// What turns the constrained logits into a distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// 0 keeps the best token only.
    pub temperature: f64,
    /// 0 is off.
    pub top_k: u64,
    pub top_p: f64,
    pub min_p: f64,
    pub typical_p: f64,
    /// 0 is off.
    pub top_n_sigma: f64,
    pub epsilon_cutoff: f64,
    pub eta_cutoff: f64,
}

/// How one token is taken from the distribution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChooseRule {
    pub method: Method,
    /// Fixed seed; `None` leaves it to the request.
    pub seed: Option<u64>,
}

/// Draw, or take the most probable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    #[default]
    Sample,
    Greedy,
}

/// What ends a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stop {
    /// Most tokens to generate; `None` leaves it to the request.
    pub tokens_max: Option<u64>,
    pub strings: Vec<String>,
    pub tokens: Vec<TokenId>,
    /// Whether the model's own end-of-text tokens are ordinary tokens.
    pub ignore_eos: bool,
}

/// Where the model's reasoning begins and ends, and how long it may be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reasoning {
    pub open: Option<String>,
    pub close: Option<String>,
    /// Most tokens of an answer that are thought; the closing marker is laid behind them. Tokens
    /// of an opening marker and of a laid one do not count, and 0 closes a thought as it opens.
    pub tokens_max: Option<u64>,
}

/// How the policy is run and watched.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Operation {
    pub account: AccountLevel,
    pub on_disconnect: OnDisconnect,
    /// Whether a finished answer is given again to the same question; `None` leaves it to the
    /// server.
    pub result_cache: Option<bool>,
    pub slo: Slo,
    pub fallback: Fallback,
    pub failure_modes: Vec<FailureMode>,
}

/// How much of each step is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccountLevel {
    /// Everything: what `causeway_request::Choice` holds.
    #[default]
    Full,
    /// The tokens and the reason the run stopped.
    Tokens,
}

/// What becomes of a run whose reader went away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDisconnect {
    #[default]
    Cancel,
    /// Runs to its end while nobody waits for the slot.
    Finish,
}

/// Limits in milliseconds that a request is held against.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slo {
    pub ttft_ms: Option<f64>,
    pub itl_ms: Option<f64>,
    pub tpot_ms: Option<f64>,
    pub total_ms: Option<f64>,
}

/// The baseline that takes over when this policy is withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fallback {
    pub policy: Option<String>,
    pub version: Option<String>,
    /// The baseline's policy hash, in lower-case hexadecimal.
    pub sha256: Option<String>,
}

/// One way the policy is known to fail, and what is done about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailureMode {
    pub name: Option<String>,
    pub detector: Option<String>,
    pub owner: Option<String>,
    pub mitigation: Option<String>,
    pub stop_condition: Option<String>,
}

impl Default for Constraints {
    fn default() -> Self {
        Self {
            allowed_tokens: Vec::new(),
            forbidden_tokens: Vec::new(),
            bad_words: Vec::new(),
            logit_bias: Vec::new(),
            min_tokens: 0,
            repetition_penalty: 1.0,
            repetition_window: None,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_window: None,
            no_repeat_ngram: 0,
            dry: Dry::default(),
            form: Form::default(),
        }
    }
}

impl Default for Dry {
    fn default() -> Self {
        Self { multiplier: 0.0, base: 1.75, allowed_length: 2, window: None, breakers: Vec::new() }
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            top_n_sigma: 0.0,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
