//! `tokenizer.json` files of each kind, small ones written here.

use causeway_request::TokenId;
use serde_json::json;

use super::*;
use crate::detokenizer::DetokenizeOptions;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::SpecialIds;

/// A byte-level file: single letters, `he`, and the control token `<|end|>`.
fn byte_level() -> Value {
    let letters = crate::bytes::byte_letters();
    let mut vocab: serde_json::Map<String, Value> =
        letters.iter().enumerate().map(|(id, letter)| (letter.to_string(), json!(id))).collect();
    vocab.insert("he".to_owned(), json!(256));
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [
            {"id": 257, "content": "<|end|>", "single_word": false, "lstrip": false,
             "rstrip": false, "normalized": false, "special": true},
            {"id": 258, "content": "<tool>", "single_word": false, "lstrip": false,
             "rstrip": false, "normalized": false, "special": false}
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                          "use_regex": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [257], "tokens": ["<|end|>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                    "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
                  "continuing_subword_prefix": null, "end_of_word_suffix": null,
                  "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                  "vocab": vocab, "merges": ["h e"]}
    })
}

fn open(file: &Value) -> Tokenizer {
    let json = JsonTokenizer::from_bytes(file.to_string().as_bytes()).unwrap().unwrap();
    let special = SpecialIds { bos: Some(257), eos: Some(257), ..SpecialIds::default() };
    Tokenizer::from_json(json, special, &[257])
}

fn ids(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}

#[test]
fn flags_mean_what_they_mean_for_a_gguf_file() {
    let tokenizer = open(&byte_level());
    let encode = |text, parse, add| ids(&tokenizer.encode(text, parse, add).unwrap());
    assert_eq!(encode("he<|end|>", true, false), [256, 257]);
    assert_eq!(encode("<|end|>", false, false).len(), 7);
    assert_eq!(encode("he<tool>", false, false), [256, 258]);
    assert_eq!(encode("he", false, true), [257, 256]);
    assert_eq!(encode("", false, true), [257]);
    assert_eq!(tokenizer.end_tokens(), [TokenId(257)]);
    assert_eq!(tokenizer.vocab_size(), 259);
}

#[test]
fn a_user_spells_no_control_token() {
    let tokenizer = open(&byte_level());
    let text = "he<|end|>he<|end|>";
    let everywhere = ids(&tokenizer.encode_guarded(text, &[]).unwrap());
    assert_eq!(everywhere, [256, 257, 256, 257]);
    let users = 0..9;
    let guarded = ids(&tokenizer.encode_guarded(text, std::slice::from_ref(&users)).unwrap());
    assert_eq!(guarded.iter().filter(|id| **id == 257).count(), 1);
    assert_eq!(guarded.last(), Some(&257));
}

#[test]
fn bytes_come_back() {
    let tokenizer = open(&byte_level());
    let options = DetokenizeOptions { show_control: true, continues: false };
    for text in ["he é 中 😀\n", "", "<|end|><tool>"] {
        let tokens = tokenizer.encode(text, true, false).unwrap();
        assert_eq!(tokenizer.decode(&tokens, options).unwrap(), text);
    }
}

#[test]
fn a_declared_normaliser_is_used() {
    let mut file = byte_level();
    let differ = |file: &Value| {
        let tokenizer = open(file);
        let tokens = |text| tokenizer.encode(text, false, false).unwrap();
        tokens("\u{e9}") != tokens("e\u{301}")
    };
    assert!(differ(&file));
    file["normalizer"] = json!({"type": "NFC"});
    assert!(!differ(&file));
}

#[test]
fn a_long_text_is_not_cut_short() {
    let mut file = byte_level();
    file["truncation"] = json!({"direction": "Right", "max_length": 4,
        "strategy": "LongestFirst", "stride": 0});
    let text = "he".repeat(50_000);
    assert_eq!(open(&file).encode(&text, false, false).unwrap().len(), 50_000);
    // Spaces are the look-ahead's worst case.
    let spaces = " ".repeat(1 << 20);
    assert_eq!(open(&file).encode(&spaces, false, false).unwrap().len(), 1 << 20);
}

#[test]
fn llamas_decoder_drops_one_leading_space() {
    let decoder = json!({"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]});
    let mut file = byte_level();
    file["decoder"] = decoder;
    file["pre_tokenizer"] = Value::Null;
    for (text, id) in [("▁Hello", 257), ("▁world", 258), ("<0xF0>", 259), ("<0x9F>", 260)] {
        file["model"]["vocab"][text] = json!(id);
    }
    file["added_tokens"] = json!([]);
    file["post_processor"] = Value::Null;
    let tokenizer = open(&file);
    let options = DetokenizeOptions { show_control: true, continues: false };
    let decode = |ids: &[u32]| {
        let tokens: Vec<TokenId> = ids.iter().copied().map(TokenId).collect();
        tokenizer.decode(&tokens, options).unwrap()
    };
    assert_eq!(decode(&[257, 258, 258]), "Hello world world");
    assert_eq!(decode(&[257, 259, 260]), "Hello\u{fffd}");
}

#[test]
fn decoders_that_look_far_are_refused() {
    for (decoder, name) in [
        (json!({"type": "BPEDecoder", "suffix": "</w>"}), "BPEDecoder"),
        (
            json!({"type": "Sequence", "decoders": [{"type": "CTC"}, {"type": "ByteFallback"}]}),
            "ByteFallback",
        ),
        (json!({"type": "Strip", "content": " ", "start": 2, "stop": 0}), "Strip"),
        (
            json!({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "CTC"}]}),
            "CTC",
        ),
    ] {
        let refusal = decoding_of(&decoder).unwrap_err().to_string();
        let sentence = format!("`tokenizer.json` decodes by `{name}`, which is not supported");
        assert_eq!(refusal, sentence);
    }
    let fused = json!({"type": "Sequence", "decoders": [{"type": "Fuse"}]});
    assert_eq!(decoding_of(&fused).unwrap(), Decoding::Plain);
    let spaced = Decoding::Spaced { prefix: None, cleans: false };
    assert_eq!(decoding_of(&Value::Null).unwrap(), spaced);
}

#[test]
fn a_damaged_file_is_refused() {
    for bytes in [&b""[..], b"{", b"null", b"{\"model\": {\"type\": \"BPE\"}}", b"\xff\xfe"] {
        assert!(JsonTokenizer::from_bytes(bytes).is_err());
    }
    let mut file = byte_level();
    file["model"]["merges"] = json!(["no such"]);
    assert!(JsonTokenizer::from_bytes(file.to_string().as_bytes()).is_err());
}
