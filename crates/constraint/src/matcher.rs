//! One answer's way through its constraint: what may come next, what must, and what came.

use std::fmt;

use causeway_policy::TokenMask;
use causeway_request::TokenId;
use llguidance::Matcher as Inner;
use llguidance::api::StopReason;

use crate::error::MatchError;

/// Follows one answer; it never goes back, and equal answers have equal masks.
pub struct Matcher {
    inner: Inner,
    mask: TokenMask,
    /// Whether `mask` is that of the present position.
    is_fresh: bool,
}

impl Matcher {
    pub(crate) fn new(inner: Inner, rows: usize) -> Self {
        Self { inner, mask: TokenMask::none(rows), is_fresh: false }
    }

    /// The tokens that may come next: where text is forced, the one token that it begins with;
    /// where the constraint is complete, the end tokens too.
    ///
    /// # Errors
    /// A position that costs more than the limits, or one that no token continues.
    pub fn mask(&mut self) -> Result<&TokenMask, MatchError> {
        if !self.is_fresh {
            if self.is_complete() {
                let ends = self.ends();
                self.mask.assign(ends.as_slice());
            } else {
                let bits = self.inner.compute_mask().map_err(|_| self.fault())?;
                self.mask.assign(bits.as_slice());
            }
            self.is_fresh = true;
        }
        Ok(&self.mask)
    }

    /// The tokens that must come next, whatever the model says: as many as are certain, spelled
    /// as the tokenizer spells them. Nothing is taken: `advance` over each of them.
    ///
    /// # Errors
    /// A position that costs more than the limits.
    pub fn forced(&mut self) -> Result<Vec<TokenId>, MatchError> {
        if self.is_complete() {
            return Ok(Vec::new());
        }
        let tokens = self.inner.compute_ff_tokens();
        if self.inner.is_error() {
            return Err(self.fault());
        }
        Ok(tokens.into_iter().map(TokenId).collect())
    }

    /// Takes the token that came; before the mask was asked for, other spellings of the allowed
    /// text are taken too.
    ///
    /// # Errors
    /// A token that the mask does not allow; the matcher stays where it was.
    pub fn advance(&mut self, token: TokenId) -> Result<(), MatchError> {
        if !self.takes(token)? {
            return Err(MatchError::NotAllowed { token });
        }
        if self.is_complete() {
            return Ok(());
        }
        self.is_fresh = false;
        self.inner.consume_token(token.0).map_err(|_| self.fault())
    }

    /// Whether the token may come; without a mask at hand only this one token is looked at.
    fn takes(&mut self, token: TokenId) -> Result<bool, MatchError> {
        if token.index() >= self.mask.vocab_size() {
            return Ok(false);
        }
        if self.is_fresh {
            return Ok(self.mask.allows(token));
        }
        let env = self.inner.tok_env().map_err(|_| self.fault())?;
        let trie = env.tok_trie();
        if trie.eos_tokens().contains(&token.0) {
            return self.may_stop();
        }
        if self.is_complete() || trie.token(token.0).is_empty() {
            return Ok(false);
        }
        let valid = self.inner.validate_tokens(&[token.0]).map_err(|_| self.fault())?;
        Ok(valid == 1)
    }

    /// Whether nothing but an end token may come: the answer is as long as it can be, or ended.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.inner.stop_reason(), StopReason::NoExtension | StopReason::EndOfSentence)
    }

    /// Whether the answer may end here.
    ///
    /// # Errors
    /// A position that costs more than the limits.
    pub fn may_stop(&mut self) -> Result<bool, MatchError> {
        if self.is_complete() {
            return Ok(true);
        }
        self.inner.is_accepting().map_err(|_| self.fault())
    }

    fn ends(&self) -> toktrie::SimpleVob {
        let env = self.inner.tok_env().expect("a matcher that is complete has no fault");
        env.tok_trie().eos_token_set()
    }

    /// What the library's state says of the failure.
    fn fault(&self) -> MatchError {
        if self.inner.stop_reason() == StopReason::NoExtensionBias {
            return MatchError::NoToken;
        }
        let told = self.inner.get_error().unwrap_or_default();
        if told.starts_with("NoExtensionBias") {
            return MatchError::NoToken;
        }
        let reason = told.lines().next().unwrap_or_default().to_owned();
        MatchError::TooCostly { reason }
    }
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        Self { inner: self.inner.deep_clone(), mask: self.mask.clone(), is_fresh: self.is_fresh }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher").field("stop_reason", &self.inner.stop_reason()).finish()
    }
}

#[cfg(test)]
mod tests;
