//! Messages to tokens and tokens to text.
