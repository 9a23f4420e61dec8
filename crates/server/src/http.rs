//! HTTP itself: sockets, bodies, streams of events, and the routes' assembly.

pub(crate) mod app;
pub(crate) mod bodies;
pub(crate) mod body;
mod cors;
pub(crate) mod door;
mod json;
mod late_end;
pub(crate) mod listen;
pub(crate) mod named;
pub(crate) mod sse;
