//! Who may ask: the hook that API keys fill.

use axum::http::HeaderMap;

use crate::error::ApiError;

/// What a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Ask models for answers, and see one's own requests.
    Use,
    /// See and end everybody's requests.
    Operate,
}

/// Who asks, as far as the server needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Names the key, never the key itself; empty where no keys are used.
    pub name: String,
    pub role: Role,
}

/// Decides who may ask.
pub trait Auth: Send + Sync + std::fmt::Debug {
    /// Whether a caller must show a key; without, only loopback addresses are served.
    fn has_keys(&self) -> bool;

    /// Lets a request in, or refuses it: no key, a wrong one, a limit reached, a role too low.
    ///
    /// # Errors
    /// 401, 403 or 429 with its sentence.
    fn admit(&self, headers: &HeaderMap, role: Role) -> Result<Caller, ApiError>;
}

/// No keys: whoever reaches the address may ask for everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open;

impl Auth for Open {
    fn has_keys(&self) -> bool {
        false
    }

    fn admit(&self, _headers: &HeaderMap, _role: Role) -> Result<Caller, ApiError> {
        Ok(Caller { name: String::new(), role: Role::Operate })
    }
}
