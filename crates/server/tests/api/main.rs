//! The whole server over real sockets, its model a script.
#![expect(clippy::unwrap_used, reason = "a broken answer is a failed test")]

mod asks;
mod bodies;
mod cancel;
mod cases;
mod crash;
mod delivery;
mod field_rows;
mod fields;
mod forms;
mod hostile;
mod kinds;
mod kv_disk;
mod leaving;
mod ledger;
mod limits;
mod messages;
mod metrics;
mod models;
mod operation;
mod policy;
mod responses;
mod smoke;
mod streamed;
mod support;
mod thought;
mod tools;
