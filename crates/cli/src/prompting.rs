//! From what the command line gave to the tokens of a prompt.

use causeway_policy::PolicyFile;
use causeway_session::{About, Given, Prompt};
use causeway_text::{CivilTime, Text};

use crate::clock::Clock;
use crate::failure::Failure;
use crate::loaded::session_failure;

/// Makes the prompt; a chat template prints today's date.
pub(crate) fn prompt(
    given: Given,
    file: &PolicyFile,
    about: &About,
    text: Option<&Text>,
) -> Result<Prompt, Failure> {
    match given {
        Given::Ids(_) => refuse_chat_texts(file, "--ids")?,
        Given::Raw(_) => refuse_chat_texts(file, "--raw")?,
        Given::Chat(_) | Given::Messages(_) => {}
    }
    let now = CivilTime::from_unix(Clock::start().start_unix_ms / 1_000);
    causeway_session::prompt(given, file, about, text, now).map_err(session_failure)
}

fn refuse_chat_texts(file: &PolicyFile, flag: &str) -> Result<(), Failure> {
    for (name, is_set) in [
        ("prompt.template", file.prompt.template.is_some()),
        ("prompt.system", file.prompt.system.is_some()),
    ] {
        if is_set {
            return Err(Failure::caller(anyhow::anyhow!(
                "the policy sets `{name}`, which {flag} leaves out: use --chat"
            )));
        }
    }
    Ok(())
}
