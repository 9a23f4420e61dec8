//! A room without walls.
