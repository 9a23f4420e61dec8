//! Writes model files for tests, good ones and any kind of bad one; and seeded randomness.

#![expect(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]
#![expect(dead_code, reason = "each test file that includes this one uses a part of it")]

use std::path::{Path, PathBuf};

/// GGUF's numbers for value types.
pub(crate) const U8: u32 = 0;
pub(crate) const U32: u32 = 4;
pub(crate) const I32: u32 = 5;
pub(crate) const F32: u32 = 6;
pub(crate) const BOOL: u32 = 7;
pub(crate) const STRING: u32 = 8;
pub(crate) const ARRAY: u32 = 9;

/// A GGUF file in the making; every part can be given a wrong value.
#[derive(Debug, Clone)]
pub(crate) struct Gguf {
    pub(crate) magic: [u8; 4],
    pub(crate) version: u32,
    /// What the header declares, where it is not the truth.
    pub(crate) tensor_count: Option<u64>,
    pub(crate) key_count: Option<u64>,
    /// What the tensor bytes are aligned to; stating it in a key is another matter.
    pub(crate) alignment: usize,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) tensors: Vec<Vec<u8>>,
    pub(crate) bytes: Vec<u8>,
}

impl Gguf {
    pub(crate) fn new() -> Self {
        Self {
            magic: *b"GGUF",
            version: 3,
            tensor_count: None,
            key_count: None,
            alignment: 32,
            keys: Vec::new(),
            tensors: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// A small good file: keys of many types, and five tensors of four types.
    pub(crate) fn small() -> Self {
        let mut file = Self::new()
            .string("general.architecture", "llama")
            .u32("llama.block_count", 1)
            .number("llama.rope.freq_base", F32, &10_000.0_f32.to_le_bytes())
            .number("tokenizer.ggml.add_bos_token", BOOL, &[1])
            .strings("tokenizer.ggml.tokens", &["<s>", "a", "ä", ""])
            .array("tokenizer.ggml.scores", F32, 4, &[0; 16])
            .array("tokenizer.ggml.token_type", I32, 4, &[1; 16]);
        let q4_0 = [0x12; 2 * 18];
        let singles: Vec<u8> = [1.0_f32, -2.0, 0.5].iter().flat_map(|n| n.to_le_bytes()).collect();
        file = file.tensor("token_embd.weight", &[32, 2], 2, &q4_0);
        file = file.tensor("output_norm.weight", &[3], 0, &singles);
        file = file.tensor("blk.0.attn_q.weight", &[256, 1], 14, &[0x21; 210]);
        file = file.tensor("blk.0.attn_k.weight", &[2, 2, 2, 2], 1, &[0x3c; 32]);
        file.tensor("blk.0.ffn_up.weight", &[64], 8, &[0x11; 68])
    }

    pub(crate) fn number(mut self, key: &str, value_type: u32, value: &[u8]) -> Self {
        let parts = [&text(key), &value_type.to_le_bytes()[..], value];
        self.keys.push(parts.concat());
        self
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.number(key, U32, &value.to_le_bytes())
    }

    pub(crate) fn string(self, key: &str, value: &str) -> Self {
        self.number(key, STRING, &text(value))
    }

    /// An array of `count` elements, whatever `elements` really holds.
    pub(crate) fn array(self, key: &str, element_type: u32, count: u64, elements: &[u8]) -> Self {
        let parts = [&element_type.to_le_bytes()[..], &count.to_le_bytes(), elements];
        self.number(key, ARRAY, &parts.concat())
    }

    pub(crate) fn strings(self, key: &str, strings: &[&str]) -> Self {
        let elements: Vec<u8> = strings.iter().flat_map(|string| text(string)).collect();
        self.array(key, STRING, strings.len() as u64, &elements)
    }

    /// A tensor with its bytes, dimensions as the file has them: innermost first.
    pub(crate) fn tensor(
        mut self,
        name: &str,
        dimensions: &[u64],
        dtype: u32,
        bytes: &[u8],
    ) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(self.alignment), 0);
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        self.entry(name, dimensions, dtype, offset)
    }

    /// A tensor's entry alone, at any offset.
    pub(crate) fn entry(mut self, name: &str, dimensions: &[u64], dtype: u32, offset: u64) -> Self {
        let mut entry = text(name);
        entry.extend(u32::try_from(dimensions.len()).unwrap().to_le_bytes());
        entry.extend(dimensions.iter().flat_map(|size| size.to_le_bytes()));
        entry.extend(dtype.to_le_bytes());
        entry.extend(offset.to_le_bytes());
        self.tensors.push(entry);
        self
    }

    /// The bytes of a key or an entry, whatever they are.
    pub(crate) fn raw_key(mut self, bytes: &[u8]) -> Self {
        self.keys.push(bytes.to_vec());
        self
    }

    pub(crate) fn raw_entry(mut self, bytes: &[u8]) -> Self {
        self.tensors.push(bytes.to_vec());
        self
    }

    /// The whole file.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut file = self.magic.to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend(self.tensor_count.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        file.extend(self.key_count.unwrap_or(self.keys.len() as u64).to_le_bytes());
        file.extend(self.keys.concat());
        file.extend(self.tensors.concat());
        if !self.bytes.is_empty() {
            file.resize(file.len().next_multiple_of(self.alignment), 0);
            file.extend(&self.bytes);
        }
        file
    }
}

/// A GGUF string: its length, then its bytes.
pub(crate) fn text(string: &str) -> Vec<u8> {
    [&(string.len() as u64).to_le_bytes()[..], string.as_bytes()].concat()
}

/// A safetensors file with this header and this many tensor bytes.
pub(crate) fn safetensors(header: &str, bytes: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), bytes].concat()
}

/// A folder of files that is gone with its value.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, content) in files {
            std::fs::write(folder.join(name), content).unwrap();
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// An error as the command line prints it: its sentence, then its sources'.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed, everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}
