//! A GGUF file of one small layer that loads and runs, to be bent for tests.

use super::gguf::{BOOL, F32, Gguf, I32};

/// Tokens of the vocabulary: three control tokens, 256 bytes, and a few letters.
const LETTERS: [&str; 5] = ["▁", "a", "b", "ab", "▁a"];

/// A number of the header, where it is not the right one.
pub(crate) type Change<'a> = (&'a str, u32);

/// The file, with one number changed or left out (`u32::MAX`).
pub(crate) fn tiny_gguf(change: Option<Change<'_>>) -> Gguf {
    let mut file = Gguf::new().string("general.architecture", "llama");
    for (key, number) in [
        ("llama.block_count", 1),
        ("llama.context_length", 64),
        ("llama.embedding_length", 32),
        ("llama.feed_forward_length", 32),
        ("llama.attention.head_count", 2),
        ("llama.attention.head_count_kv", 1),
        ("tokenizer.ggml.bos_token_id", 1),
        ("tokenizer.ggml.eos_token_id", 2),
    ] {
        let changed = change.filter(|(name, _)| *name == key).map(|(_, number)| number);
        if changed != Some(u32::MAX) {
            file = file.u32(key, changed.unwrap_or(number));
        }
    }
    let epsilon = 1e-5_f32.to_le_bytes();
    file = file.number("llama.attention.layer_norm_rms_epsilon", F32, &epsilon);
    tensors(vocabulary(file, F32))
}

/// The same file, with the tokenizer's scores declared as another type.
pub(crate) fn with_scores_of(element_type: u32) -> Gguf {
    let mut file = tiny_gguf(None);
    // The vocabulary's keys are the last five.
    file.keys.truncate(file.keys.len() - 5);
    vocabulary(file, element_type)
}

fn vocabulary(file: Gguf, scores: u32) -> Gguf {
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let names: Vec<&str> = ["<unk>", "<s>", "</s>"]
        .into_iter()
        .chain(bytes.iter().map(String::as_str))
        .chain(LETTERS)
        .collect();
    let count = names.len() as u64;
    let types = names.iter().enumerate().flat_map(|(index, _)| {
        let kind: i32 = match index {
            0 => 2,
            1 | 2 => 3,
            3..259 => 6,
            _ => 1,
        };
        kind.to_le_bytes()
    });
    let types: Vec<u8> = types.collect();
    let zeros = vec![0; names.len() * if scores == F32 { 4 } else { 1 }];
    file.string("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &names)
        .array("tokenizer.ggml.scores", scores, count, &zeros)
        .array("tokenizer.ggml.token_type", I32, count, &types)
        .number("tokenizer.ggml.add_bos_token", BOOL, &[1])
}

/// The weights: any numbers will do that are not all the same.
fn tensors(mut file: Gguf) -> Gguf {
    let vocab = 3 + 256 + LETTERS.len() as u64;
    for (name, dimensions) in [
        ("token_embd.weight", &[32, vocab][..]),
        ("output_norm.weight", &[32]),
        ("blk.0.attn_norm.weight", &[32]),
        ("blk.0.attn_q.weight", &[32, 32]),
        ("blk.0.attn_k.weight", &[32, 16]),
        ("blk.0.attn_v.weight", &[32, 16]),
        ("blk.0.attn_output.weight", &[32, 32]),
        ("blk.0.ffn_norm.weight", &[32]),
        ("blk.0.ffn_gate.weight", &[32, 32]),
        ("blk.0.ffn_up.weight", &[32, 32]),
        ("blk.0.ffn_down.weight", &[32, 32]),
    ] {
        let count: u64 = dimensions.iter().product();
        let number = |index: u64| (index * 2_654_435_761 % 1_000) as f32 / 1_000.0 - 0.45;
        let bytes: Vec<u8> = (0..count).flat_map(|index| number(index).to_le_bytes()).collect();
        file = file.tensor(name, dimensions, 0, &bytes);
    }
    file
}
