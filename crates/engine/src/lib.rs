//! The decoding loop: plan, compute, choose, commit, emit.
