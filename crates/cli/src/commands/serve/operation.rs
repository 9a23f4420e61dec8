//! Flags of those who keep a server running: who may ask, and who may look on.

use std::path::PathBuf;
use std::sync::Arc;

use causeway_ledger::{Filter, Store};
use causeway_server::auth::{Auth, Keys, Open};
use causeway_server::{Clock, Operation};

use crate::failure::Failure;

/// Holds keys, as lines of a file of keys.
const KEYS_VARIABLE: &str = "CAUSEWAY_API_KEYS";
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Who may ask, and from where.
#[derive(Debug, clap::Args)]
pub(super) struct OperationFlags {
    /// File of API keys, one line each as `causeway keys new` prints it; the same lines in
    /// $CAUSEWAY_API_KEYS do as well. An address that is not loopback needs keys.
    #[arg(long, value_name = "FILE")]
    api_keys: Option<PathBuf>,
    /// Origin whose pages may ask, as in https://example.org; give it again for more, `*` is any.
    #[arg(long = "cors-origin", value_name = "ORIGIN", value_parser = origin)]
    cors_origins: Vec<String>,
}

impl OperationFlags {
    /// Who may ask: whoever has a key of the file or of the environment, or anybody.
    pub(super) fn auth(&self, kept: Option<&Store>) -> Result<Arc<dyn Auth>, Failure> {
        let mut text = String::new();
        if let Some(path) = &self.api_keys {
            text = std::fs::read_to_string(path).map_err(|error| {
                let place = format!("cannot read the keys in {}", path.display());
                Failure::caller(anyhow::Error::new(error).context(place))
            })?;
        }
        match std::env::var(KEYS_VARIABLE) {
            Ok(lines) => text = format!("{text}\n{lines}"),
            Err(_) if self.api_keys.is_none() => return Ok(Arc::new(Open)),
            Err(_) => {}
        }
        let keys = Keys::parse(&text).map_err(|error| {
            let place = match &self.api_keys {
                Some(path) => path.display().to_string(),
                None => format!("${KEYS_VARIABLE}"),
            };
            Failure::caller(anyhow::Error::new(error).context(format!("no API keys in {place}")))
        })?;
        if let Some(kept) = kept {
            count_today(&keys, kept)?;
        }
        Ok(Arc::new(keys))
    }

    /// What the server is told of it.
    pub(super) fn operation(&self, kept: Option<Store>) -> Operation {
        Operation { kept, cors_origins: self.cors_origins.clone(), ..Operation::default() }
    }
}

/// An origin as browsers send it, or `*`: anything else would let nobody in.
fn origin(text: &str) -> Result<String, String> {
    let host = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_host = |host: &str| {
        let is_sent = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-:[]".contains(c);
        !host.is_empty() && host.chars().all(is_sent)
    };
    if text == "*" || host.is_some_and(is_host) {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is no origin: https://HOST or http://HOST:PORT in small letters, or *"))
}

/// Counts what each key used today before this server began.
fn count_today(keys: &Keys, kept: &Store) -> Result<(), Failure> {
    let now_s = Clock::start().unix_s();
    let today_ms = (now_s - now_s % DAY_S) * 1_000;
    for (name, meter) in keys.meters() {
        if meter.limits().tokens_per_day.is_none() {
            continue;
        }
        let filter = Filter {
            owner: Some(name.to_owned()),
            since_unix_ms: Some(today_ms),
            ..Filter::default()
        };
        for listed in kept.list(&filter).map_err(Failure::world)? {
            let prompt = if listed.choice == 0 { listed.tokens.prompt } else { 0 };
            meter.spend(prompt + listed.tokens.prefix, now_s);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
