//! One file for each group of endpoints: read the fields, ask, say the answer in the API's words.

mod calls;
pub(crate) mod chat;
pub(crate) mod choices;
pub(crate) mod completions;
pub(crate) mod embeddings;
mod form;
pub(crate) mod health;
pub(crate) mod messages;
pub(crate) mod messages_in;
pub(crate) mod metrics;
pub(crate) mod models;
mod parts;
pub(crate) mod requests;
pub(crate) mod responses;
mod segments;
mod thought;
pub(crate) mod tokens;
mod tools;
mod turns;
