//! What a route is told of an answer as it comes, whatever its API calls it.

use causeway_engine::PassAccount;
use causeway_ledger::FieldsAccount;
use causeway_ledger::{Account, Sha256};
use causeway_request::{StopReason, TokenId};

/// One thing that happened to one choice of a request.
#[derive(Debug, Clone)]
pub enum Event {
    /// A pass computed a part of the prompt.
    Prefilled { computed: usize, known: usize },
    /// Text that is certain to stay.
    Part(Part),
    /// The last event.
    Ended(Box<Ended>),
}

/// Text of an answer and the tokens it came from; joined, parts are the whole answer, however it
/// is cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    pub visible: String,
    pub reasoning: String,
    /// Filled only where tokens were asked for.
    pub tokens: Vec<TokenLine>,
}

/// One token of the visible answer.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLine {
    pub token: TokenId,
    /// The token's own bytes.
    pub piece: Vec<u8>,
    /// Natural logarithm of its probability by the model alone, before the policy.
    pub logprob: f64,
    /// Its probability under the policy.
    pub probability: f64,
    /// Its place by the model alone, 1 for the best.
    pub rank: u32,
    /// The best tokens by the model alone, with their logarithms.
    pub top: Vec<(TokenId, f64)>,
}

/// How a choice ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub stop: StopReason,
    pub account: Account,
    /// What each field took, where the answer is JSON by its policy.
    pub fields: Option<FieldsAccount>,
    pub passes: PassAccount,
    /// Tokens that the engine chose after the text had come to its end.
    pub overrun: u64,
    /// The record's id.
    pub record: Sha256,
    /// Whether the record is in the ledger.
    pub stored: bool,
    /// Whether it was given before, and no step was run for it.
    pub is_given_again: bool,
}

impl Part {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.visible.is_empty() && self.reasoning.is_empty() && self.tokens.is_empty()
    }

    /// Puts the next part behind this one.
    pub fn append(&mut self, next: Self) {
        let Self { visible, reasoning, tokens } = next;
        self.visible.push_str(&visible);
        self.reasoning.push_str(&reasoning);
        self.tokens.extend(tokens);
    }
}
