//! The whole server over real sockets, its model a script.
#![expect(clippy::unwrap_used, reason = "a broken answer is a failed test")]

mod cancel;
mod cases;
mod delivery;
mod ledger;
mod limits;
mod models;
mod policy;
mod smoke;
mod support;
