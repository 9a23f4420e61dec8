//! Who may ask: API keys, their roles, and how much each may ask for.

mod keys;
mod meter;

use std::sync::Arc;

use axum::http::HeaderMap;

use crate::clock::Clock;
use crate::error::ApiError;
use crate::origin::Origin;

pub use keys::{Keys, KeysError, line_for};
pub use meter::{KeyLimits, Lease, Meter};

/// What a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Ask models for answers, and see one's own requests.
    Use,
    /// See and end everybody's requests, and read the metrics.
    Operate,
}

/// Who asks, as far as the server needs to know.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Names the key, never the key itself; empty where no keys are used.
    pub name: String,
    pub role: Role,
    /// What the key has used of its limits; `None` where it has none.
    pub meter: Option<Arc<Meter>>,
    pub origin: Origin,
}

/// Decides who may ask.
pub trait Auth: Send + Sync + std::fmt::Debug {
    /// Whether a caller must show a key; without, only loopback addresses are served.
    fn has_keys(&self) -> bool;

    /// Says who asks, or refuses: no key, a wrong one, a role too low.
    ///
    /// # Errors
    /// 401 or 403 with its sentence.
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
        Ok(Caller {
            name: String::new(),
            role: Role::Operate,
            meter: None,
            origin: Origin::default(),
        })
    }
}

impl Caller {
    /// Counts one request against the key's rate.
    ///
    /// # Errors
    /// 429 where the last minute had too many.
    pub(crate) fn count_request(&self, clock: &Clock) -> Result<(), ApiError> {
        self.meter.as_ref().map_or(Ok(()), |meter| meter.count_request(clock.now_ns()))
    }

    /// A place for one answer, held until its runs have ended.
    ///
    /// # Errors
    /// 429 where the key has no place left, or no tokens today.
    pub(crate) fn lease(&self, clock: &Clock) -> Result<Arc<Lease>, ApiError> {
        match &self.meter {
            None => Ok(Arc::default()),
            Some(meter) => meter.lease(clock.unix_s()).map(Arc::new),
        }
    }
}
