//! Hashes as a record writes them: SHA-256 of files and texts, digests of logits.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;

/// A SHA-256, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256(pub [u8; 32]);

/// The digest of one row of logits, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogitsDigest(pub u128);

/// Text that is no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    #[error("a hash of {found} characters, where {wanted} lower-case hexadecimal digits are due")]
    Length { found: usize, wanted: usize },
    #[error("a hash with `{found}` in it, where only the digits 0-9 and a-f may stand")]
    Digit { found: char },
}

impl HashError {
    /// Always so: a hash is text that someone handed in.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

impl Sha256 {
    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Reads 64 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// Another length, or a character that is no such digit.
    pub fn from_hex(text: &str) -> Result<Self, HashError> {
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(nibbles::<32>(text)?) {
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl LogitsDigest {
    /// Reads 32 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// Another length, or a character that is no such digit.
    pub fn from_hex(text: &str) -> Result<Self, HashError> {
        let pairs = nibbles::<16>(text)?;
        Ok(Self(pairs.iter().flatten().fold(0, |sum, nibble| sum << 4 | u128::from(*nibble))))
    }
}

/// The digits of `text` by their values, two for each of `N` bytes.
fn nibbles<const N: usize>(text: &str) -> Result<[[u8; 2]; N], HashError> {
    let found = text.chars().count();
    if found != 2 * N {
        return Err(HashError::Length { found, wanted: 2 * N });
    }
    let mut pairs = [[0; 2]; N];
    for (place, digit) in pairs.iter_mut().flatten().zip(text.chars()) {
        let ascii = u8::try_from(digit).ok();
        let value = ascii.and_then(lower_hex_digit);
        *place = value.ok_or(HashError::Digit { found: digit })?;
    }
    Ok(pairs)
}

/// The value of one lower-case hexadecimal digit.
pub(crate) fn lower_hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

impl fmt::Display for LogitsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for LogitsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogitsDigest({self})")
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for LogitsDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for LogitsDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
