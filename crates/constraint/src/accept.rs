//! A whole text fed through the mask that decoding uses, token by token.

use causeway_request::TokenId;

use crate::environment::Environment;
use crate::error::MatchError;
use crate::matcher::Matcher;

/// Why a text is not one of the constraint's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("byte {at} cannot follow what stands before it")]
    Byte { at: usize },
    #[error("the text ends where the constraint asks for more")]
    TooShort,
    #[error(transparent)]
    Match(#[from] MatchError),
}

/// Feeds a text to a fresh matcher: the forced tokens where there are some, elsewhere the longest
/// allowed token that the text goes on with; at its end the answer must be allowed to stop.
///
/// # Errors
/// The first byte that is not allowed, or an end too soon.
pub fn accepts(
    matcher: &mut Matcher,
    environment: &Environment,
    text: &str,
) -> Result<(), Refused> {
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let forced = matcher.forced()?;
        if forced.is_empty() {
            let token = longest(matcher, environment, rest)?.ok_or(Refused::Byte { at })?;
            matcher.advance(token)?;
            at += environment.bytes(token).len();
            continue;
        }
        for token in forced {
            let bytes = environment.bytes(token);
            let rest = &text.as_bytes()[at..];
            let same = bytes.iter().zip(rest).take_while(|(a, b)| a == b).count();
            if same < bytes.len() {
                let is_short = same == rest.len();
                return Err(if is_short {
                    Refused::TooShort
                } else {
                    Refused::Byte { at: at + same }
                });
            }
            matcher.advance(token)?;
            at += bytes.len();
        }
    }
    if matcher.may_stop()? { Ok(()) } else { Err(Refused::TooShort) }
}

/// The longest token that the text begins with and the mask allows.
fn longest(
    matcher: &mut Matcher,
    environment: &Environment,
    text: &[u8],
) -> Result<Option<TokenId>, MatchError> {
    let mask = matcher.mask()?;
    let prefixes = environment.trie().all_prefixes(text);
    let allowed = prefixes.into_iter().map(TokenId).filter(|token| mask.allows(*token));
    Ok(allowed.max_by_key(|token| environment.bytes(*token).len()))
}
