//! Which tokens the next step computes: a pure state machine.
