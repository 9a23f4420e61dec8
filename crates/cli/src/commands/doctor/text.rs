//! What a model's text side does: its vocabulary, a round trip, its template, its ends.

use causeway_request::TokenId;
use causeway_session::Loaded;
use causeway_text::{Chat, ChatValue, DetokenizeOptions, Text};

use super::{Check, told};

/// Texts that tokenizers have lost letters of.
const TRICKY: &[&str] = &[
    "Hello, world",
    " two  spaces   and\ttabs\n\nlines\r\n",
    "don't I'LL we've 1234567 3.14e-10",
    "naïve café Straße ŒUVRE Ελληνικά русский",
    "日本語のテキスト 한국어 עברית العربية हिन्दी",
    "👩‍👩‍👧 🏳️‍🌈 e\u{301}\u{200b}\u{feff}",
    "fn main() { println!(\"{:?}\", x >> 2); }",
    "<|im_end|></s><eos>[INST]",
];

pub(super) fn checks(loaded: &Loaded) -> Vec<Check> {
    let Some(text) = &loaded.text else {
        return vec![Check::unusual("tokenizer", "there is none: the model takes token ids only")];
    };
    vec![
        vocabulary(loaded, text),
        pre_tokenizer(loaded),
        round_trip(text),
        ends(text),
        template(loaded, text),
    ]
}

fn vocabulary(loaded: &Loaded, text: &Text) -> Check {
    let (tokens, rows) = (text.tokenizer.vocab_size(), loaded.model.config().shape.vocab_size);
    // Rows are padded to a multiple that suits the machine that trained.
    let said = format!("{tokens} tokens, {rows} rows of the embedding");
    if rows - tokens.min(rows) > 1024 {
        return Check::unusual("vocabulary", format!("{said}: is it another model's tokenizer?"));
    }
    Check::ok("vocabulary", said)
}

/// A byte-level vocabulary needs the words it was trained with.
fn pre_tokenizer(loaded: &Loaded) -> Check {
    let metadata = loaded.file.metadata();
    let word = |key| metadata.string(key).ok().flatten();
    match (word("tokenizer.ggml.model"), word("tokenizer.ggml.pre")) {
        (Some("gpt2"), None) => {
            Check::unusual("words", "the file names no pre-tokenizer: an old or careless export")
        }
        (Some("gpt2"), Some("default")) => {
            Check::unusual("words", "the pre-tokenizer is `default`: which one was meant is lost")
        }
        (Some(_), Some(pre)) => Check::ok("words", format!("cut as `{pre}` cuts them")),
        _ => Check::ok("words", "cut as the tokenizer itself says"),
    }
}

fn round_trip(text: &Text) -> Check {
    let mut lost = Vec::new();
    for tricky in TRICKY {
        let tokens = match text.tokenizer.encode(tricky, false, false) {
            Ok(tokens) => tokens,
            Err(error) => return Check::wrong("round trip", told(error)),
        };
        let options = DetokenizeOptions { show_control: true, continues: false };
        match text.tokenizer.decode(&tokens, options) {
            Ok(back) if back == *tricky => {}
            Ok(back) => lost.push(format!("{tricky:?} comes back as {back:?}")),
            Err(error) => return Check::wrong("round trip", told(error)),
        }
    }
    match lost.first() {
        None => Check::ok("round trip", format!("{} texts come back whole", TRICKY.len())),
        Some(first) => {
            Check::unusual("round trip", format!("{} of {}: {first}", lost.len(), TRICKY.len()))
        }
    }
}

/// The spellings of the tokens that end an answer.
fn end_texts(text: &Text) -> Vec<String> {
    let ends = text.tokenizer.end_tokens().iter();
    let piece = |&token| text.tokenizer.piece(token).ok();
    ends.filter_map(piece).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
}

fn ends(text: &Text) -> Check {
    let ends = end_texts(text);
    if ends.is_empty() {
        let said = "no token ends an answer: every run goes on to its limit";
        return Check::unusual("end of text", said);
    }
    if !text.tokenizer.end_tokens().iter().any(|&token| text.tokenizer.is_control(token)) {
        let said = format!("{}: text like any other, by the file's own types", ends.join(" "));
        return Check::unusual("end of text", said);
    }
    Check::ok("end of text", ends.join(" "))
}

/// Words of a name that promise answers.
const ANSWERING: &[&str] = &["instruct", "chat", "-it", "assistant"];

/// The name that promises answers, where one does.
fn promise(loaded: &Loaded) -> Option<String> {
    let metadata = loaded.file.metadata();
    let keys = ["general.name", "general.basename", "general.finetune"];
    let names = keys.iter().filter_map(|key| metadata.string(key).ok().flatten());
    let own = loaded.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut names = names.map(str::to_owned).chain(own);
    names.find(|name| {
        let name = format!("-{}", name.to_ascii_lowercase().replace([' ', '_', '.'], "-"));
        ANSWERING.iter().any(|word| match name.split_once(word) {
            // `-it` is a word by itself.
            Some((_, rest)) => *word != "-it" || rest.is_empty() || rest.starts_with('-'),
            None => false,
        })
    })
}

/// A conversation through the template, with an answer in the middle whose end can be seen.
fn template(loaded: &Loaded, text: &Text) -> Check {
    if text.template.is_none() {
        if let Some(name) = promise(loaded) {
            let said = format!(
                "there is none, though the name `{name}` promises answers: what is asked is \
                 continued, not answered"
            );
            return Check::unusual("template", said);
        }
        let said = "there is none: a base model, which continues text and does not answer it";
        return Check::unusual("template", said);
    }
    let message =
        |role: &str, content: &str| ChatValue::from_pairs([("role", role), ("content", content)]);
    let messages = vec![
        message("user", "What is the sea?"),
        message("assistant", "Water."),
        message("user", "And the sky?"),
    ];
    let chat = Chat { messages: messages.into(), add_generation_prompt: true, ..Chat::default() };
    let rendered = match text.render(&chat) {
        Ok(rendered) => rendered.text,
        Err(error) => return Check::wrong("template", told(error)),
    };
    if !rendered.contains("And the sky?") {
        return Check::wrong("template", "what the user writes is not in what it renders");
    }
    let ends = end_texts(text);
    if !ends.iter().any(|end| rendered.contains(end.as_str())) {
        let said = format!(
            "none of the tokens that end an answer ({}) stands behind one in what it renders",
            ends.join(" ")
        );
        return Check::unusual("template", said);
    }
    let begins = match text.chat(&chat) {
        Ok(tokens) => beginnings(text, &tokens),
        Err(error) => return Check::wrong("template", told(error)),
    };
    if begins > 1 {
        let said = format!("a text begins {begins} times in what it renders: its own BOS is twice");
        return Check::unusual("template", said);
    }
    Check::ok("template", format!("renders a conversation in {} bytes", rendered.len()))
}

/// How often BOS stands at the start of a prompt.
fn beginnings(text: &Text, tokens: &[TokenId]) -> usize {
    let bos = text.tokenizer.special().bos.map(TokenId);
    tokens.iter().take_while(|&&token| Some(token) == bos).count()
}
