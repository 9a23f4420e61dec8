//! Which model a command opens, and how.

use std::sync::Once;

use causeway_kernels::{Isa, KvType};
use causeway_model::{ModelError, Settings};
use causeway_session::{About, Loaded, Opening, SessionError};

use crate::failure::Failure;
use crate::model_path;

/// Which model, and how it is loaded.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelFlags {
    /// Model name, .gguf file or Hugging Face folder; a known name is fetched when it is missing.
    #[arg(short, long, default_value = causeway_models::DEFAULT_MODEL)]
    pub(crate) model: String,
    /// Positions a sequence may have [default: the model's own].
    #[arg(long, value_name = "TOKENS")]
    pub(crate) context: Option<usize>,
    /// Threads that compute [default: the CPUs this process may use].
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// How keys and values are kept.
    #[arg(long, value_name = "TYPE", default_value = "f16", value_parser = KV_TYPES)]
    pub(crate) kv_type: String,
    /// Most prompt positions computed in one pass; changes no bit of the answer.
    #[arg(long, value_name = "TOKENS", default_value_t = 512)]
    pub(crate) chunk: usize,
}

/// Types of keys and values, the default first.
pub(crate) const KV_TYPES: [&str; 3] = ["f16", "f32", "q8_0"];

/// Most positions of one pass: beyond it the buffers outgrow the caches and the memory.
const CHUNK_MAX: usize = 65_536;

impl ModelFlags {
    /// The flags of a command that computes no sequence: the rest as by default.
    pub(crate) fn of(model: String, threads: Option<usize>) -> Self {
        Self { model, context: None, threads, kv_type: "f16".to_owned(), chunk: 512 }
    }

    /// Opens and loads what the flags name; a known model that is missing is fetched.
    pub(crate) fn open(&self) -> Result<Loaded, Failure> {
        Loaded::open(self.opening()?).map_err(session_failure)
    }

    /// The file that the flags name, and how it computes.
    pub(crate) fn opening(&self) -> Result<Opening, Failure> {
        let kernels = causeway_session::kernels_of_environment().map_err(session_failure)?;
        say_once_if_slow(kernels.isa());
        let (threads, kv_type) = (self.threads()?, self.kv_type()?);
        self.chunk()?;
        let path = model_path::resolve_or_pull(&self.model)?;
        let settings = Settings { context_len: self.context, kv_type, threads };
        Ok(Opening { name: self.model.clone(), path, settings })
    }

    /// The type of keys and values, which a record may name too.
    fn kv_type(&self) -> Result<KvType, Failure> {
        KvType::from_name(&self.kv_type).ok_or_else(|| {
            let (given, known) = (&self.kv_type, KV_TYPES.join(", "));
            Failure::caller(anyhow::anyhow!("unknown KV type `{given}`: {known} exist"))
        })
    }

    /// The number of threads, checked.
    fn threads(&self) -> Result<usize, Failure> {
        let most = causeway_kernels::Pool::THREADS_MAX;
        let given = self.threads.unwrap_or_else(|| causeway_session::threads_by_default().0);
        in_range("--threads", given, most)
    }

    /// What the number of threads was taken from, for the conditions of a figure.
    pub(crate) fn threads_by(&self) -> &'static str {
        self.threads.map_or_else(|| causeway_session::threads_by_default().1.name(), |_| "flag")
    }

    /// The chunk, checked.
    pub(crate) fn chunk(&self) -> Result<usize, Failure> {
        in_range("--chunk", self.chunk, CHUNK_MAX)
    }
}

/// Says on stderr, once in a program, that a CPU without AVX2 computes slowly.
fn say_once_if_slow(isa: Isa) {
    static SAID: Once = Once::new();
    let is_forced = std::env::var_os("CAUSEWAY_ISA").is_some_and(|name| !name.is_empty());
    if let Some(notice) = slow_notice(isa, is_forced) {
        SAID.call_once(|| eprintln!("causeway: {notice}"));
    }
}

/// What there is to say of a path that was not asked for; one that was needs no words.
fn slow_notice(isa: Isa, is_forced: bool) -> Option<&'static str> {
    (isa == Isa::Scalar && !is_forced).then_some(
        "this CPU has no AVX2, so the scalar path computes: the same bits, many times slower",
    )
}

fn in_range(name: &str, value: usize, most: usize) -> Result<usize, Failure> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Failure::caller(anyhow::anyhow!("{name} is {value}, the limits are 1 and {most}")))
}

/// What a record says of an opened model; its hashes are remembered in the home.
pub(crate) fn about(loaded: &Loaded) -> Result<About, Failure> {
    loaded.about(&model_path::hashes()).map_err(session_failure)
}

/// Whose mistake an error of the session room is.
pub(crate) fn session_failure(error: SessionError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

/// Whose mistake an error of the model room is.
pub(crate) fn model_failure(error: ModelError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

#[cfg(test)]
mod tests;
