//! A model opened for a command: its file, its weights and its text side.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use causeway_kernels::{Isa, Kernels, KvType};
use causeway_ledger::Sha256;
use causeway_model::{Model, ModelError, Settings};
use causeway_request::TokenId;
use causeway_text::Text;
use causeway_weights::ModelFile;

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
    #[arg(long, value_name = "TYPE", default_value = "f16", value_parser = ["f16", "f32"])]
    pub(crate) kv_type: String,
    /// Most prompt positions computed in one pass; changes no bit of the answer.
    #[arg(long, value_name = "TOKENS", default_value_t = 512)]
    pub(crate) chunk: usize,
}

/// Most positions of one pass: beyond it the buffers outgrow the caches and the memory.
const CHUNK_MAX: usize = 65_536;

impl ModelFlags {
    /// The flags of a command that computes no sequence: the rest as by default.
    pub(crate) fn of(model: String, threads: Option<usize>) -> Self {
        Self { model, context: None, threads, kv_type: "f16".to_owned(), chunk: 512 }
    }

    fn kv_type(&self) -> KvType {
        if self.kv_type == "f32" { KvType::F32 } else { KvType::F16 }
    }

    /// The number of threads, checked.
    fn threads(&self) -> Result<usize, Failure> {
        let most = causeway_kernels::Pool::THREADS_MAX;
        let given = self.threads.unwrap_or_else(|| {
            // Follows affinity and the CPU quota of a control group.
            std::thread::available_parallelism().map_or(1, usize::from).min(most)
        });
        in_range("--threads", given, most)
    }

    /// The chunk, checked.
    pub(crate) fn chunk(&self) -> Result<usize, Failure> {
        in_range("--chunk", self.chunk, CHUNK_MAX)
    }
}

fn in_range(name: &str, value: usize, most: usize) -> Result<usize, Failure> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(Failure::caller(anyhow::anyhow!("{name} is {value}, the limits are 1 and {most}")))
}

/// The path that the environment or the CPU chooses.
pub(crate) fn kernels() -> Result<Kernels, Failure> {
    let Some(name) = std::env::var_os("CAUSEWAY_ISA").filter(|name| !name.is_empty()) else {
        return Ok(Kernels::best());
    };
    let isa: Isa = name.to_string_lossy().parse().map_err(Failure::caller)?;
    Kernels::with_isa(isa).map_err(Failure::caller)
}

/// A model ready to compute, with what a record says of it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<ModelFile>,
    pub(crate) model: Model,
    /// `None` for a folder without a tokenizer: it takes token ids only.
    pub(crate) text: Option<Text>,
}

impl Loaded {
    /// Opens and loads what the flags name.
    pub(crate) fn open(flags: &ModelFlags) -> Result<Self, Failure> {
        let kernels = kernels()?;
        let threads = flags.threads()?;
        flags.chunk()?;
        let path = model_path::resolve_or_pull(&flags.model)?;
        let file = Arc::new(ModelFile::open(&path).map_err(|error| {
            let is_callers_mistake = error.is_callers_mistake();
            Failure::of(error, is_callers_mistake)
        })?);
        let text = open_text(&file)?;
        let settings = Settings { context_len: flags.context, kv_type: flags.kv_type(), threads };
        let model = Model::load(Arc::clone(&file), settings, kernels).map_err(model_failure)?;
        if let Some(text) = &text {
            check_vocabulary(text, &model)?;
        }
        Ok(Self { name: flags.model.clone(), path, file, model, text })
    }

    /// The text side, where a command cannot do without it.
    pub(crate) fn text(&self) -> Result<&Text, Failure> {
        self.text.as_ref().ok_or_else(|| {
            let path = self.path.display();
            Failure::caller(anyhow::anyhow!(
                "`{path}` has no tokenizer.json: it takes token ids only"
            ))
        })
    }

    /// The tokens that end an answer by the model's own word.
    pub(crate) fn end_tokens(&self) -> Vec<TokenId> {
        self.text.as_ref().map_or_else(Vec::new, |text| text.tokenizer.end_tokens().to_vec())
    }

    /// SHA-256 of the weights: of the file; of a folder, over a line `hash name` for each file
    /// that reaches the logits: the config, the index where there are shards, the weights.
    pub(crate) fn sha256(&self) -> Result<Sha256, Failure> {
        if self.file.folder().is_none() {
            return file_sha256(&self.path);
        }
        let mut lines = String::new();
        for path in self.file.files() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lines.push_str(&format!("{} {name}\n", file_sha256(&path)?));
        }
        Ok(Sha256::of(lines.as_bytes()))
    }

    /// SHA-256 over every token's bytes in order of id, each after its length (u32, little
    /// endian).
    pub(crate) fn tokenizer_sha256(&self) -> Option<Sha256> {
        let tokenizer = &self.text.as_ref()?.tokenizer;
        let mut bytes = Vec::new();
        for id in 0..u32::try_from(tokenizer.vocab_size()).ok()? {
            let piece = tokenizer.piece(TokenId(id)).ok()?;
            bytes.extend_from_slice(&u32::try_from(piece.len()).ok()?.to_le_bytes());
            bytes.extend_from_slice(piece);
        }
        Some(Sha256::of(&bytes))
    }

    /// The type that holds most of the weights' bytes.
    pub(crate) fn quantisation(&self) -> String {
        let mut by_type = std::collections::BTreeMap::<&str, usize>::new();
        for entry in self.file.tensors() {
            *by_type.entry(entry.dtype.name()).or_default() += entry.bytes;
        }
        let most = by_type.into_iter().max_by_key(|(_, bytes)| *bytes);
        most.map_or_else(String::new, |(name, _)| name.to_owned())
    }
}

/// The text side; a folder may be without.
fn open_text(file: &ModelFile) -> Result<Option<Text>, Failure> {
    if file.folder().is_some_and(|folder| !folder.join("tokenizer.json").exists()) {
        return Ok(None);
    }
    let text = Text::open(file).map_err(|error| {
        let is_callers_mistake = error.is_callers_mistake();
        Failure::of(error, is_callers_mistake)
    })?;
    Ok(Some(text))
}

/// A tokenizer may know fewer tokens than the model has rows (padding), never more.
fn check_vocabulary(text: &Text, model: &Model) -> Result<(), Failure> {
    let (tokens, rows) = (text.tokenizer.vocab_size(), model.config().shape.vocab_size);
    if tokens <= rows {
        return Ok(());
    }
    Err(Failure::world(anyhow::anyhow!(
        "the tokenizer has {tokens} tokens, the model's embedding only {rows} rows"
    )))
}

/// Whose mistake an error of the model room is.
pub(crate) fn model_failure(error: ModelError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

fn file_sha256(path: &Path) -> Result<Sha256, Failure> {
    let hash = model_path::sha256_of(path)?;
    Sha256::from_hex(&hash.to_string()).map_err(Failure::world)
}

/// The CPU by its model name, as the system tells it.
pub(crate) fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or(std::env::consts::ARCH).to_owned()
}
