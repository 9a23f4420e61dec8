//! A policy file compiled for one vocabulary.

use causeway_request::TokenId;

use crate::error::PolicyError;
use crate::file::{Method, PolicyFile};
use crate::like::Rules;
use crate::limits;
use crate::rule::Rule;
use crate::stage::Stage;

/// A policy ready to choose tokens of one vocabulary: validated once, then never changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub(crate) file: PolicyFile,
    pub(crate) vocab_size: usize,
    /// The stages that change anything, in the order they run.
    pub(crate) stages: Vec<(Stage, Rule)>,
    eos: Vec<TokenId>,
    hash: [u8; 32],
}

impl Policy {
    /// Compiles a file for a vocabulary of `vocab_size` tokens, whose end-of-text tokens are `eos`.
    ///
    /// # Errors
    /// [`PolicyError`] where the file breaks its own rules or names tokens the model lacks.
    pub fn from_file(
        file: &PolicyFile,
        vocab_size: usize,
        eos: &[TokenId],
    ) -> Result<Self, PolicyError> {
        let file = &file.to_normal()?;
        if vocab_size == 0 || u32::try_from(vocab_size).is_err() {
            return Err(PolicyError::VocabSize { vocab_size });
        }
        check_tokens(file, vocab_size)?;
        let eos: Vec<TokenId> = eos.iter().copied().filter(|t| t.index() < vocab_size).collect();
        let mut ends = file.stop.tokens.clone();
        if !file.stop.ignore_eos {
            ends.extend(&eos);
        }
        ends.sort_unstable();
        ends.dedup();
        let rules = Rules::of(file.like);
        let order = file.order.as_deref().unwrap_or(rules.order);
        let stages = order
            .iter()
            .filter(|&&stage| limits::is_set(file, stage))
            .map(|&stage| (stage, Rule::compile(file, stage, vocab_size, &ends)))
            .collect();
        Ok(Self { file: file.clone(), vocab_size, stages, eos, hash: file.hash() })
    }

    /// The file this policy was compiled from.
    #[must_use]
    pub fn file(&self) -> &PolicyFile {
        &self.file
    }

    /// The file's hash: SHA-256 of its canonical form.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// How many logits a row has.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Most tokens to generate, where the policy says.
    #[must_use]
    pub fn tokens_max(&self) -> Option<u64> {
        self.file.stop.tokens_max
    }

    /// The stop strings, as listed.
    #[must_use]
    pub fn stop_strings(&self) -> &[String] {
        &self.file.stop.strings
    }

    /// The policy's own stop tokens, ascending; the model's end-of-text tokens are not among them.
    #[must_use]
    pub fn stop_tokens(&self) -> &[TokenId] {
        &self.file.stop.tokens
    }

    /// The model's end-of-text tokens that end a run; none where the policy ignores them.
    #[must_use]
    pub fn eos_tokens(&self) -> &[TokenId] {
        if self.file.stop.ignore_eos { &[] } else { &self.eos }
    }

    /// Whether end-of-text tokens are ordinary tokens.
    #[must_use]
    pub fn ignores_eos(&self) -> bool {
        self.file.stop.ignore_eos
    }

    /// Tokens before end-of-text, stop tokens and stop strings may end a run.
    #[must_use]
    pub fn min_tokens(&self) -> u64 {
        self.file.constraints.min_tokens
    }

    /// The chat template in place of the model's own.
    #[must_use]
    pub fn template(&self) -> Option<&str> {
        self.file.prompt.template.as_deref()
    }

    /// The system message.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.file.prompt.system.as_deref()
    }

    /// The response prefill.
    #[must_use]
    pub fn prefill(&self) -> Option<&str> {
        self.file.prompt.prefill.as_deref()
    }

    /// How much of each step is recorded.
    #[must_use]
    pub fn account_level(&self) -> crate::AccountLevel {
        self.file.operation.account
    }

    /// The seed, where the policy fixes it.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.file.choose.seed
    }

    /// Whether the same logits always give the same token, whatever the seed.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.file.choose.method == Method::Greedy || self.file.shape.temperature <= 0.0
    }
}

/// Every token id in the file must be one of the vocabulary's.
fn check_tokens(file: &PolicyFile, vocab_size: usize) -> Result<(), PolicyError> {
    let constraints = &file.constraints;
    let biased: Vec<TokenId> = constraints.logit_bias.iter().map(|&(token, _)| token).collect();
    let named: [(&'static str, &[TokenId]); 6] = [
        ("constraints.allowed_tokens", &constraints.allowed_tokens),
        ("constraints.forbidden_tokens", &constraints.forbidden_tokens),
        ("constraints.bad_words", &constraints.bad_words.concat()),
        ("constraints.logit_bias", &biased),
        ("constraints.dry_breakers", &constraints.dry.breakers.concat()),
        ("stop.tokens", &file.stop.tokens),
    ];
    for (field, tokens) in named {
        if let Some(&token) = tokens.iter().find(|token| token.index() >= vocab_size) {
            return Err(PolicyError::TokenOutside { field, token, vocab_size });
        }
    }
    Ok(())
}
