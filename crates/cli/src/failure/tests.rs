//! Errors and their causes as one sentence.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use causeway_constraint::read_schema;
use causeway_session::{FormError, SessionError};

use super::sentence;

#[test]
fn a_cause_that_was_said_is_not_said_again() {
    let source = Arc::new(read_schema("[").unwrap_err());
    let cause = source.to_string();
    let error = SessionError::from(FormError::Unread { source });
    let told = sentence(&anyhow::Error::from(error));
    assert_eq!(told, format!("`constraints.schema`: {cause}"));
    let outer = Err::<(), _>(anyhow!("it is full")).context("the file cannot be written");
    let outer = outer.context("nothing is kept").unwrap_err();
    assert_eq!(sentence(&outer), "nothing is kept: the file cannot be written: it is full");
    assert_eq!(sentence(&anyhow!("a\u{1b}b\n  ^ here")), r"a\u{1b}b");
}
