//! Whether a request's constraints leave a token to choose: told before a run begins.

use causeway_policy::PolicyFile;
use causeway_request::TokenId;

use crate::error::ApiError;

/// Refuses constraints under which the first step has no token, whatever the model says.
///
/// # Errors
/// The field, by its path in the policy file, after which nothing is left.
pub(crate) fn check(file: &PolicyFile, vocab_size: usize, eos: &[TokenId]) -> Result<(), ApiError> {
    let constraints = &file.constraints;
    let (allowed, forbidden) = (&constraints.allowed_tokens, &constraints.forbidden_tokens);
    if allowed.is_empty() && forbidden.is_empty() {
        return Ok(());
    }
    let mut is_left = vec![allowed.is_empty(); vocab_size];
    let mut set = |tokens: &[TokenId], value: bool| {
        for token in tokens {
            if let Some(one) = is_left.get_mut(token.index()) {
                *one = value;
            }
        }
        is_left.contains(&true)
    };
    set(allowed, true);
    if !set(forbidden, false) {
        return Err(nothing("constraints.forbidden_tokens"));
    }
    if constraints.min_tokens == 0 {
        return Ok(());
    }
    // Before the least number of tokens, what would end the answer is masked.
    let eos = if file.stop.ignore_eos { &[][..] } else { eos };
    set(eos, false);
    if set(&file.stop.tokens, false) { Ok(()) } else { Err(nothing("constraints.min_tokens")) }
}

fn nothing(field: &'static str) -> ApiError {
    let text = format!("`{field}` leaves no token to choose at the first step");
    ApiError::field(field, text).with_code("invalid_value")
}
