//! What a model file says of itself in its first bytes; no weight is read.

use std::path::Path;

use causeway_model::Config;
use causeway_weights::ModelFile;
use serde::Serialize;

/// Deepest folder below the models that is counted.
const DEPTH_MAX: usize = 6;

/// What is known of a file that opens; nothing of one that does not.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Facts {
    /// The name that the file gives its architecture.
    pub(super) architecture: Option<String>,
    /// What the file calls its mixture of types, or else the type that most of its bytes have.
    pub(super) quantisation: Option<String>,
    /// Positions that it was made for; none where its architecture is not supported.
    pub(super) context: Option<usize>,
    /// Bytes of all its files.
    #[serde(skip)]
    pub(super) bytes: Option<u64>,
}

impl Facts {
    /// Opens the model at `path` and closes it again.
    pub(super) fn of(path: &Path) -> Self {
        let Ok(file) = ModelFile::open(path) else {
            let bytes = path.metadata().ok().filter(|found| found.is_file());
            return Self { bytes: bytes.map(|found| found.len()), ..Self::default() };
        };
        let bytes = Some(file.bytes());
        let config = Config::of(&file).ok();
        let word = file.metadata().string("general.architecture").ok().flatten();
        let context = config.as_ref().map(|config| config.shape.context_len);
        let architecture = config.map(|config| config.architecture);
        Self {
            architecture: architecture.or_else(|| word.map(str::to_owned)),
            quantisation: file_type(&file).map(str::to_owned).or_else(|| largest_type(&file)),
            context,
            bytes,
        }
    }
}

/// The name of a GGUF file's mixture, by the number that llama.cpp gives it.
fn file_type(file: &ModelFile) -> Option<&'static str> {
    let number = file.metadata().u32("general.file_type").ok().flatten()?;
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

const NAMES: &[(u32, &str)] = &[
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (25, "IQ4_NL"),
    (30, "IQ4_XS"),
    (32, "BF16"),
    (38, "MXFP4"),
];

fn largest_type(file: &ModelFile) -> Option<String> {
    let mut by_type = std::collections::BTreeMap::<&str, usize>::new();
    for entry in file.tensors() {
        *by_type.entry(entry.dtype.name()).or_default() += entry.bytes;
    }
    let most = by_type.into_iter().max_by_key(|(_, bytes)| *bytes);
    most.map(|(name, _)| name.to_owned())
}

/// Bytes of all files below a folder; what vanishes meanwhile counts nothing.
pub(super) fn bytes_below(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() && depth < DEPTH_MAX => {
                    folders.push((entry.path(), depth + 1));
                }
                Ok(found) if found.is_file() => bytes += found.len(),
                _ => {}
            }
        }
    }
    bytes
}
