//! HTTP itself: sockets, bodies, streams of events, and the routes' assembly.

pub(crate) mod app;
pub(crate) mod body;
pub(crate) mod listen;
pub(crate) mod sse;
