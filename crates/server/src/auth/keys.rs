//! API keys: lines of a file with hashes, and the comparison that tells nobody how far it came.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use causeway_ledger::Sha256;
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::meter::{KeyLimits, Meter, REQUESTS_MAX};
use super::{Auth, Caller, Role};
use crate::error::ApiError;
use crate::origin::Origin;

/// Most keys of a server; each request is compared with all of them.
const KEYS_MAX: usize = 4_096;
/// Longest name of a key, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Longest key that a request may show, in bytes.
const KEY_BYTES_MAX: usize = 512;

/// Every key that is let in.
#[derive(Debug, Default)]
pub struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    role: Role,
    sha256: [u8; 32],
    name: String,
    meter: Arc<Meter>,
}

/// One line of a file of keys.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    /// Of the key's bytes.
    sha256: Sha256,
    #[serde(default)]
    role: LineRole,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_minute: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_day: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LineRole {
    #[default]
    Use,
    Operate,
}

/// Why a text holds no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("line {line} is no key")]
    Line { line: usize, source: serde_json::Error },
    #[error("line {line}: the name has {bytes} bytes, must be 1 to {NAME_BYTES_MAX}")]
    Name { line: usize, bytes: usize },
    #[error("line {line}: `{field}` is {value}, must be 1 to {max}")]
    Limit { line: usize, field: &'static str, value: u64, max: u64 },
    #[error("line {line}: the key or the name `{name}` is there already")]
    Twice { line: usize, name: String },
    #[error("there is no key in it")]
    Empty,
    #[error("there are more than {KEYS_MAX} keys")]
    TooMany,
}

impl KeysError {
    /// Always: the text is the operator's own.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

impl Keys {
    /// Reads keys: one JSON object a line; empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The first line that is no key, and a text without any.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let (mut keys, mut names, mut hashes) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (index, content) in text.lines().enumerate() {
            let (line, content) = (index + 1, content.trim());
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let parsed: Line =
                serde_json::from_str(content).map_err(|source| KeysError::Line { line, source })?;
            let key = parsed.checked(line)?;
            if !names.insert(key.name.clone()) || !hashes.insert(key.sha256) {
                return Err(KeysError::Twice { line, name: key.name });
            }
            keys.push(key);
            if keys.len() > KEYS_MAX {
                return Err(KeysError::TooMany);
            }
        }
        if keys.is_empty() { Err(KeysError::Empty) } else { Ok(Self(keys)) }
    }

    /// The names of all keys, and what each has used.
    pub fn meters(&self) -> impl Iterator<Item = (&str, &Meter)> {
        self.0.iter().map(|key| (key.name.as_str(), &*key.meter))
    }

    /// The key with this hash. Every key is compared, all bytes of each, whatever was shown.
    fn find(&self, shown: &str) -> Option<&Key> {
        let shown = Sha256::of(shown.as_bytes());
        let mut found = u32::MAX;
        for (index, key) in (0_u32..).zip(&self.0) {
            let is_it: Choice = key.sha256.ct_eq(&shown.0);
            found.conditional_assign(&index, is_it);
        }
        self.0.get(found as usize)
    }
}

impl Line {
    fn checked(self, line: usize) -> Result<Key, KeysError> {
        let Self { name, sha256, role, requests_per_minute, concurrency, tokens_per_day } = self;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(KeysError::Name { line, bytes: name.len() });
        }
        let limits = [
            ("requests_per_minute", requests_per_minute.map(u64::from), u64::from(REQUESTS_MAX)),
            ("concurrency", concurrency.map(u64::from), u64::from(u32::MAX)),
            ("tokens_per_day", tokens_per_day, u64::MAX),
        ];
        for (field, value, max) in limits {
            if let Some(value) = value.filter(|value| !(1..=max).contains(value)) {
                return Err(KeysError::Limit { line, field, value, max });
            }
        }
        let limits = KeyLimits { requests_per_minute, concurrency, tokens_per_day };
        let role = match role {
            LineRole::Use => Role::Use,
            LineRole::Operate => Role::Operate,
        };
        Ok(Key { role, sha256: sha256.0, meter: Arc::new(Meter::new(&name, limits)), name })
    }
}

impl Auth for Keys {
    fn has_keys(&self) -> bool {
        true
    }

    fn admit(&self, headers: &HeaderMap, role: Role) -> Result<Caller, ApiError> {
        let shown = shown(headers).ok_or_else(|| {
            unauthorised("no API key was sent: `Authorization: Bearer KEY` or `X-Api-Key: KEY`")
        })?;
        let key = if shown.len() > KEY_BYTES_MAX { None } else { self.find(shown) };
        let Some(key) = key else { return Err(unauthorised("the API key is not known")) };
        if key.role < role {
            let text = format!("API key `{}` has the role `use`, `operate` is needed", key.name);
            let error = ApiError::bad_request(text).with_status(StatusCode::FORBIDDEN);
            let error = ApiError { kind: "permission_error", ..error };
            return Err(error.with_code("role_too_low"));
        }
        Ok(Caller {
            name: key.name.clone(),
            role: key.role,
            meter: Some(Arc::clone(&key.meter)),
            origin: Origin::default(),
        })
    }
}

/// The key that a request shows, in OpenAI's header or in Anthropic's.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()))
}

fn unauthorised(text: &str) -> ApiError {
    let error = ApiError::bad_request(text).with_status(StatusCode::UNAUTHORIZED);
    ApiError { kind: "authentication_error", ..error }.with_code("invalid_api_key")
}

/// The line of a file that lets a key in.
#[must_use]
pub fn line_for(key: &str, name: &str, role: Role, limits: KeyLimits) -> String {
    let KeyLimits { requests_per_minute, concurrency, tokens_per_day } = limits;
    let role = match role {
        Role::Use => LineRole::Use,
        Role::Operate => LineRole::Operate,
    };
    let line = Line {
        name: name.to_owned(),
        sha256: Sha256::of(key.as_bytes()),
        role,
        requests_per_minute,
        concurrency,
        tokens_per_day,
    };
    serde_json::to_string(&line).expect("invariant: names and numbers are JSON")
}

#[cfg(test)]
mod tests;
