//! A text side and a model's description for tests: a token for each byte, and four marks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use causeway_ledger::{Model, Numerics, Sha256, Start};
use causeway_policy::{Policy, PolicyFile};
use causeway_request::{RequestId, TokenId};
use causeway_text::{AnswerRules, SpecialIds, Template, Text, TokenType, Tokenizer, Vocabulary};
use serde_json::Value;

use crate::{
    About, Asked, Given, Place, Prompt, SessionError, answer_rules, compile, prompt, start,
};

const MARKS: [(&str, TokenType); 4] = [
    ("<unk>", TokenType::Unknown),
    ("<|end|>", TokenType::Control),
    ("<|user|>", TokenType::Control),
    ("<|assistant|>", TokenType::Control),
];
/// A role and its text, then the end of the turn.
pub(crate) const TEMPLATE: &str = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

/// The text side, with a chat template.
pub(crate) fn text() -> Text {
    let special = SpecialIds { eos: Some(1), unknown: Some(0), ..SpecialIds::default() };
    let vocabulary = Vocabulary { special, ..Vocabulary::of_bytes(&MARKS) };
    let tokenizer = Tokenizer::from_vocabulary(&vocabulary).unwrap();
    Text::new(tokenizer, Some(Template::new(TEMPLATE).unwrap()))
}

/// A model of that vocabulary, whose context is 64 tokens.
pub(crate) fn about() -> About {
    About {
        model: Model {
            name: "toy".to_owned(),
            sha256: Sha256([1; 32]),
            tokenizer_sha256: Some(Sha256([2; 32])),
            quantisation: "f32".to_owned(),
            settings: BTreeMap::new(),
        },
        numerics: Numerics { version: 1, kv_type: "f16".to_owned() },
        path: PathBuf::from("toy.gguf"),
        vocab_size: MARKS.len() + 256,
        context_len: 64,
        end_tokens: vec![TokenId(1)],
        has_text: true,
        isa: "scalar",
        threads: 1,
    }
}

/// The tokens of a user's text.
pub(crate) fn tokens(text: &Text, words: &str) -> Vec<TokenId> {
    text.tokenizer.encode(words, false, false).unwrap()
}

/// A policy file from the lines below its schema.
pub(crate) fn file(toml: &str) -> PolicyFile {
    PolicyFile::from_toml(&format!("schema = 1\n{toml}")).unwrap()
}

/// What is made of a prompt under a policy.
pub(crate) fn made(given: Given, toml: &str) -> Result<Prompt, SessionError> {
    prompt(given, &file(toml), &about(), Some(&text()), None)
}

/// What a run under a policy begins with: the message `go`, and a response prefill where it has
/// text.
pub(crate) fn begun(
    text: &Arc<Text>,
    toml: &str,
    prefill: &str,
) -> Result<(Policy, Start, AnswerRules), SessionError> {
    let policy = compile(&file(toml), &about(), &|_| None)?;
    let prompt = prompt_of(text, "go", prefill);
    let asked = Asked { id: RequestId(1), received: Value::Null, seed: Some(1), choice: 0 };
    let start = start(&about(), &policy, prompt, asked, &Place::alone(16));
    let rules = answer_rules(&policy, &start, Some(text));
    Ok((policy, start, rules))
}

/// The prompt of one message, and of a response prefill where it has text.
pub(crate) fn prompt_of(text: &Arc<Text>, message: &str, prefill: &str) -> Prompt {
    let mut file = PolicyFile::default();
    file.prompt.prefill = (!prefill.is_empty()).then(|| prefill.to_owned());
    prompt(Given::Chat(message.to_owned()), &file, &about(), Some(text), None).unwrap()
}
