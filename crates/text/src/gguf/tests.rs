//! Files written here, key by key, and what is refused in them.

use causeway_weights::ModelFile;

use super::*;

/// A value of a key, in GGUF's own spelling.
enum Entry<'a> {
    String(&'a str),
    Strings(&'a [&'a str]),
    I32s(&'a [i32]),
    F32s(&'a [f32]),
    U8s(&'a [u8]),
    U32(u32),
    Bool(bool),
}

/// The bytes of a GGUF file without tensors.
fn file(entries: &[(&str, Entry<'_>)]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (key, entry) in entries {
        push_string(&mut bytes, key);
        match entry {
            Entry::String(text) => {
                bytes.extend(8_u32.to_le_bytes());
                push_string(&mut bytes, text);
            }
            Entry::Strings(texts) => {
                bytes.extend([9_u32, 8].map(u32::to_le_bytes).concat());
                bytes.extend((texts.len() as u64).to_le_bytes());
                texts.iter().for_each(|text| push_string(&mut bytes, text));
            }
            Entry::I32s(numbers) => {
                bytes.extend([9_u32, 5].map(u32::to_le_bytes).concat());
                bytes.extend((numbers.len() as u64).to_le_bytes());
                numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            }
            Entry::F32s(numbers) => {
                bytes.extend([9_u32, 6].map(u32::to_le_bytes).concat());
                bytes.extend((numbers.len() as u64).to_le_bytes());
                numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            }
            Entry::U8s(numbers) => {
                bytes.extend([9_u32, 0].map(u32::to_le_bytes).concat());
                bytes.extend((numbers.len() as u64).to_le_bytes());
                bytes.extend_from_slice(numbers);
            }
            Entry::U32(number) => bytes.extend([4, *number].map(u32::to_le_bytes).concat()),
            Entry::Bool(truth) => {
                bytes.extend(7_u32.to_le_bytes());
                bytes.push(u8::from(*truth));
            }
        }
    }
    bytes
}

fn push_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn read(name: &str, entries: &[(&str, Entry<'_>)]) -> Result<Vocabulary, TextError> {
    vocabulary(opened(name, entries).metadata())
}

/// The file with these keys, opened.
fn opened(name: &str, entries: &[(&str, Entry<'_>)]) -> ModelFile {
    let name = format!("causeway-text-{}-{name}.gguf", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, file(entries)).unwrap();
    let model = ModelFile::open(&path);
    std::fs::remove_file(&path).unwrap();
    model.unwrap()
}

fn refuse(name: &str, entries: &[(&str, Entry<'_>)], sentence: &str) {
    let refusal = read(name, entries).unwrap_err();
    assert_eq!(refusal.to_string(), sentence);
    assert!(!refusal.is_callers_mistake());
}

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";

#[test]
fn absent_keys_take_the_defaults_of_their_kind() {
    let entries = [
        (MODEL, Entry::String("gpt2")),
        (TOKENS, Entry::Strings(&["a", "b"])),
        ("tokenizer.ggml.pre", Entry::String("llama-bpe")),
        ("tokenizer.ggml.bos_token_id", Entry::U32(1)),
    ];
    let found = read("bpe", &entries).unwrap();
    assert_eq!(
        (found.kind, found.pre_tokenizer.as_str()),
        (VocabularyKind::ByteLevel, "llama-bpe")
    );
    assert!(found.add_bos && !found.add_eos && !found.add_space_prefix);
    let entries = [
        (MODEL, Entry::String("llama")),
        (TOKENS, Entry::Strings(&["a", "b"])),
        ("tokenizer.ggml.bos_token_id", Entry::U32(1)),
        ("tokenizer.ggml.add_eos_token", Entry::Bool(true)),
    ];
    let found = read("spm", &entries).unwrap();
    assert_eq!(
        (found.kind, found.pre_tokenizer.as_str()),
        (VocabularyKind::SentencePiece, "default")
    );
    assert!(found.add_bos && found.add_eos && found.add_space_prefix);
}

#[test]
fn what_no_vocabulary_can_be_made_of_is_named() {
    refuse("none", &[], "the vocabulary has no `tokenizer.ggml.model`");
    let sentence =
        "tokenizer model `rwkv` is not supported, known are `gpt2`, `llama`, `t5` and `bert`";
    refuse("rwkv", &[(MODEL, Entry::String("rwkv"))], sentence);
    refuse("empty", &[(MODEL, Entry::String("gpt2"))], "the vocabulary has no tokens");
    let entries = [
        (MODEL, Entry::String("gpt2")),
        (TOKENS, Entry::Strings(&["a", "b"])),
        ("tokenizer.ggml.token_type", Entry::I32s(&[1, 7])),
    ];
    refuse("type", &entries, "token 1 has the type 7, known are 1 to 6");
    let wrong = [(MODEL, Entry::String("gpt2")), (TOKENS, Entry::I32s(&[1]))];
    let refusal = read("wrong", &wrong).unwrap_err().to_string();
    assert!(refusal.contains(TOKENS), "{refusal}");
}

mod library;
