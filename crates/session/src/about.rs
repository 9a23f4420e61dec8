//! What a record, a policy and a listing say of an opened model, without its weights.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use causeway_ledger::{Conditions, Model, Numerics, Sha256};
use causeway_models::Hashes;
use causeway_request::TokenId;
use causeway_text::Tokenizer;

use crate::error::SessionError;
use crate::loaded::Loaded;
use crate::start::Place;

/// A model's name, hashes and sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// As records name it.
    pub model: Model,
    /// What fixes its arithmetic.
    pub numerics: Numerics,
    pub path: PathBuf,
    pub vocab_size: usize,
    /// Most tokens of prompt and answer together.
    pub context_len: usize,
    /// The tokens that end an answer by the model's own word.
    pub end_tokens: Vec<TokenId>,
    /// Whether it has a text side at all.
    pub has_text: bool,
    /// The instruction set its kernels use.
    pub isa: &'static str,
    pub threads: usize,
}

impl Loaded {
    /// What there is to say of it; weights are hashed once and remembered by `hashes`.
    ///
    /// # Errors
    /// Weights that cannot be read.
    pub fn about(&self, hashes: &Hashes) -> Result<About, SessionError> {
        let tokenizer = self.text.as_ref().map(|text| &*text.tokenizer);
        Ok(About {
            model: Model {
                name: self.name.clone(),
                sha256: self.sha256(hashes)?,
                tokenizer_sha256: tokenizer.and_then(tokenizer_sha256),
                quantisation: self.quantisation(),
                settings: BTreeMap::new(),
            },
            numerics: Numerics {
                version: causeway_kernels::NUMERICS_VERSION,
                kv_type: self.model.settings().kv_type.name().to_owned(),
            },
            path: self.path.clone(),
            vocab_size: self.model.config().shape.vocab_size,
            context_len: self.model.context_len(),
            end_tokens: self.end_tokens()?,
            has_text: self.text.is_some(),
            isa: self.model.kernels().isa().name(),
            threads: self.model.threads(),
        })
    }

    /// SHA-256 of the weights: of the file; of a folder or a split file, over a line `hash name`
    /// for each file that reaches the logits: the config, the index where there are shards, the
    /// weights, and each part.
    fn sha256(&self, hashes: &Hashes) -> Result<Sha256, SessionError> {
        let files = self.file.files();
        if let [file] = &files[..] {
            return file_sha256(hashes, file);
        }
        let mut lines = String::new();
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lines.push_str(&format!("{} {name}\n", file_sha256(hashes, &path)?));
        }
        Ok(Sha256::of(lines.as_bytes()))
    }
}

impl About {
    /// The conditions of a run of this model at this place.
    #[must_use]
    pub fn conditions(&self, place: &Place) -> Conditions {
        let Place { queue, concurrency, cache, chunk } = *place;
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Conditions {
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            cpu: cpu_name(),
            isa: self.isa.to_owned(),
            threads: number(self.threads),
            batch_occupancy: 1,
            queue: number(queue),
            concurrency: number(concurrency),
            cache,
            chunk: number(chunk),
        }
    }
}

/// SHA-256 over every token's bytes in order of id, each after its length (u32, little endian).
fn tokenizer_sha256(tokenizer: &Tokenizer) -> Option<Sha256> {
    let mut bytes = Vec::new();
    for id in 0..u32::try_from(tokenizer.vocab_size()).ok()? {
        let piece = tokenizer.piece(TokenId(id)).ok()?;
        bytes.extend_from_slice(&u32::try_from(piece.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(piece);
    }
    Some(Sha256::of(&bytes))
}

fn file_sha256(hashes: &Hashes, path: &Path) -> Result<Sha256, SessionError> {
    let hash = hashes.sha256_of(path)?.to_string();
    Ok(Sha256::from_hex(&hash).expect("invariant: both rooms write a hash as 64 digits"))
}

/// The CPU by its model name, as the system tells it.
#[must_use]
pub fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or(std::env::consts::ARCH).to_owned()
}
