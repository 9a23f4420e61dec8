//! Small tokenizers written as keys of a GGUF file and read again, and those that are refused.

use std::path::Path;

use causeway_weights::gguf::write_directory;
use causeway_weights::{ModelFile, Value};
use serde_json::{Value as Json, json};

use super::gguf_keys;
use crate::text::Text;

/// Rows of the embedding: more than there are tokens.
const ROWS: usize = 300;

/// The expression that Llama 3's and, but for its digits, Qwen 2's file cuts by.
fn split(digits: &str) -> Json {
    let expression = format!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    );
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated",
         "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
         "use_regex": false}]})
}

fn byte_level() -> Json {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
           "use_regex": true})
}

/// A byte-level file: single letters, a few merges, two control tokens and a word of the user's.
fn file(pre_tokenizer: &Json) -> Json {
    let letters = crate::bytes::byte_letters();
    let mut vocab: serde_json::Map<String, Json> =
        letters.iter().enumerate().map(|(id, letter)| (letter.to_string(), json!(id))).collect();
    for (id, token) in (256..).zip(["he", "Ġa", "ĠĠ", "12", "123"]) {
        vocab.insert(token.to_owned(), json!(id));
    }
    let added = |id: u32, content: &str, special: bool| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false, "special": special})
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": {"type": "NFC"},
        "added_tokens": [added(261, "<s>", true), added(262, "<|im_end|>", true),
                         added(263, "<tool>", false)],
        "pre_tokenizer": pre_tokenizer,
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [261], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                    "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
                  "continuing_subword_prefix": null, "end_of_word_suffix": null,
                  "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                  "vocab": vocab,
                  "merges": [["h", "e"], ["Ġ", "a"], ["Ġ", "Ġ"], ["1", "2"], ["12", "3"]]}
    })
}

fn write(folder: &Path, file: &Json) {
    std::fs::write(folder.join("tokenizer.json"), file.to_string()).unwrap();
    let config = json!({"bos_token": "<s>", "eos_token": {"content": "<|im_end|>"},
                        "chat_template": "{{ bos_token }}{{ messages[0].content }}"});
    std::fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
}

fn scratch(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("causeway-keys-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The pre-tokenizer's name in the file that is written, which reads as the folder does.
fn check(case: &str, file: &Json, want: &str) {
    let folder = scratch(case);
    write(&folder, file);
    let keys = gguf_keys(&folder, ROWS).unwrap().unwrap();
    let mut bytes = Vec::new();
    write_directory(&mut bytes, &keys, &[]).unwrap();
    let path = folder.join("m.gguf");
    std::fs::write(&path, bytes).unwrap();
    let model = ModelFile::open(&path).unwrap();
    assert_eq!(model.metadata().string("tokenizer.ggml.pre").unwrap(), Some(want), "{case}");
    let (own, from) = (Text::open(&model).unwrap(), Text::from_folder(&folder).unwrap());
    assert_eq!(own.tokenizer.vocab_size(), ROWS);
    assert_eq!(own.tokenizer.end_tokens(), from.tokenizer.end_tokens(), "{case}");
    assert_eq!(own.tokenizer.names(), from.tokenizer.names(), "{case}");
    assert!(own.tokenizer.adds_bos() && own.template.is_some(), "{case}");
    let text = "He said: 'the 12345 cats' <tool> \n\n  he's at<|im_end|>. 中文 é";
    let ids = |text_side: &Text| text_side.tokenizer.encode(text, true, true).unwrap();
    assert_eq!(ids(&own), ids(&from), "{case}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_pre_tokenizer_is_found_by_how_it_cuts() {
    check("gpt2", &file(&byte_level()), "gpt-2");
    check("qwen", &file(&split(r"\p{N}")), "qwen2");
    check("olmo", &file(&split(r"\p{N}{1,3}")), "dbrx");
    let mut llama = file(&split(r"\p{N}{1,3}"));
    llama["model"]["ignore_merges"] = json!(true);
    llama["normalizer"] = Json::Null;
    check("llama", &llama, "llama-bpe");
    let digits = json!({"type": "Digits", "individual_digits": true});
    let both = json!({"type": "Sequence", "pretokenizers": [digits, byte_level()]});
    let mut smollm = file(&both);
    smollm["model"]["merges"] = json!(["h e", "Ġ a", "Ġ Ġ", "1 2", "12 3"]);
    check("smollm", &smollm, "smollm");
}

/// What is said of a file that was changed so.
fn check_refused(case: &str, change: impl FnOnce(&mut Json), want: &str) {
    let folder = scratch(case);
    let mut changed = file(&byte_level());
    change(&mut changed);
    write(&folder, &changed);
    let said = gguf_keys(&folder, ROWS).unwrap_err().to_string();
    assert!(said.contains(want), "{case}: {said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_gguf_file_cannot_say_is_refused_by_its_name() {
    check_refused(
        "kind",
        |file| file["model"] = json!({"type": "Unigram", "unk_id": 0, "vocab": [["a", -1.0]]}),
        "the tokenizer kind `Unigram` cannot be written to a GGUF file yet",
    );
    check_refused(
        "normaliser",
        |file| file["normalizer"] = json!({"type": "Lowercase"}),
        "the normaliser `Lowercase` cannot",
    );
    check_refused(
        "strips",
        |file| file["added_tokens"][2]["lstrip"] = json!(true),
        "the added token `<tool>` with `lstrip` cannot",
    );
    check_refused(
        "words",
        |file| file["pre_tokenizer"] = split(r"\p{N}{7}"),
        "cuts text into words as none of the pre-tokenizers does",
    );
    check_refused(
        "rows",
        |file| file["model"]["vocab"]["many"] = json!(ROWS),
        "the tokenizer has 301 tokens, the model's embedding 300 rows",
    );
    check_refused(
        "merge",
        |file| file["model"]["merges"] = json!([["h", "e"], ["Ġ", "a"], 7]),
        "cannot be",
    );
}

#[test]
fn a_folder_without_a_tokenizer_has_no_keys() {
    let folder = scratch("none");
    assert!(gguf_keys(&folder, ROWS).unwrap().is_none());
    std::fs::write(folder.join("tokenizer.model"), "x").unwrap();
    let said = gguf_keys(&folder, ROWS).unwrap_err().to_string();
    assert_eq!(
        said,
        "a `tokenizer.model` without `tokenizer.json` cannot be written to a GGUF file yet"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// A file of the test fixtures, without the added tokens that strip what stands beside them.
fn fixture(name: &str) -> Json {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tokenization/json");
    let text = std::fs::read_to_string(root.join(name).join("tokenizer.json")).unwrap();
    let mut file: Json = serde_json::from_str(&text).unwrap();
    let flags = ["lstrip", "rstrip", "single_word"];
    let added = file["added_tokens"].as_array_mut().unwrap();
    added.retain(|token| flags.iter().all(|flag| token[flag] == false));
    file
}

/// The keys of a fixture whose model has 600 rows, or the refusal.
fn keys_of(name: &str, change: impl FnOnce(&mut Json)) -> Result<Vec<(String, Value)>, String> {
    let folder = scratch(name);
    let mut file = fixture(name);
    change(&mut file);
    write(&folder, &file);
    let keys = gguf_keys(&folder, 600).map(Option::unwrap).map_err(|error| error.to_string());
    std::fs::remove_dir_all(folder).unwrap();
    keys
}

#[test]
fn bpe_with_byte_fallback_is_written_by_scores() {
    for (name, prefix) in [("llama", true), ("metaspace_never", false)] {
        let keys = keys_of(name, |_| {}).unwrap();
        let value = |key: &str| &keys.iter().find(|(own, _)| own == key).unwrap().1;
        assert_eq!(value("tokenizer.ggml.model"), &Value::String("llama".to_owned()), "{name}");
        assert_eq!(value("tokenizer.ggml.add_space_prefix"), &Value::Bool(prefix), "{name}");
    }
    // Only a space before the whole text, and none behind an added token, cannot be said.
    let refused = keys_of("metaspace_first", |_| {}).unwrap_err();
    assert!(refused.contains("would give other tokens for `a <"), "{refused}");
    let refused = keys_of("llama", |file| file["normalizer"] = json!({"type": "NFKC"}));
    assert_eq!(refused.unwrap_err(), "the normaliser `NFKC` cannot be written to a GGUF file yet");
    let digits = json!({"type": "Digits", "individual_digits": true});
    let refused = keys_of("llama", |file| file["pre_tokenizer"] = digits).unwrap_err();
    assert!(refused.starts_with("the pre-tokenizer `Digits` of a tokenizer with byte fallback"));
}
