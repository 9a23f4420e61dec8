//! What a model makes of a known text, and its first ten tokens: whether it babbles.

use causeway_kv_cache::Cache;
use causeway_model::{ModelError, Span, Workspace};
use causeway_request::{RequestId, TokenId};
use causeway_session::Loaded;
use causeway_text::{Chat, DetokenizeOptions, Text};

use super::super::logits::{best, log_sum_exp};
use super::{Check, told};

/// A text that any model of English finds likely, and goes on from with one word.
const TEXT: &str = "The sun rises in the east and sets in the west. Water is made of hydrogen and \
                    oxygen. The capital of France is";

/// A question that any model that answers has an answer to.
const QUESTION: &str = "What is the capital of France?";

/// Tokens that are generated.
const STEPS: usize = 10;

/// Nats a token of `TEXT` above which a model has not read English. The catalogue's models
/// are far below the first, and one whose embedding is off by one row is above the second.
const NATS_UNUSUAL: f64 = 4.5;
const NATS_WRONG: f64 = 7.0;

/// The share of a uniform distribution's entropy above which a choice is no choice.
const ENTROPY_SHARE: f64 = 0.6;

/// What the passes gave.
struct Seen {
    /// Mean of `-ln p` over the tokens of the text behind its first.
    nats: f64,
    /// Mean entropy of the steps' distributions, in nats.
    entropy: f64,
    tokens: Vec<TokenId>,
}

pub(super) fn checks(loaded: &Loaded) -> Vec<Check> {
    let Some(text) = &loaded.text else { return Vec::new() };
    let prompt = match text.tokenizer.encode(TEXT, false, true) {
        Ok(prompt) => prompt,
        Err(error) => return vec![Check::wrong("known text", told(error))],
    };
    if prompt.len() + STEPS > loaded.model.context_len() {
        return vec![Check::unusual("known text", "the context is too short for it")];
    }
    let seen = match pass(loaded, prompt) {
        Ok(seen) => seen,
        Err(error) => return vec![Check::wrong("answer", told(*error))],
    };
    let mut checks = vec![known_text(&seen), answer(loaded, &seen)];
    checks.extend(asked(loaded, text));
    checks
}

/// The same question as a message; nothing where there is no template.
fn asked(loaded: &Loaded, text: &Text) -> Option<Check> {
    text.template.as_ref()?;
    let messages = vec![causeway_session::message_of("user", QUESTION)];
    let chat = Chat { messages: messages.into(), add_generation_prompt: true, ..Chat::default() };
    // What the template makes of messages has a check of its own.
    let prompt = text.chat(&chat).ok()?;
    if prompt.is_empty() || prompt.len() + STEPS > loaded.model.context_len() {
        return None;
    }
    Some(match pass(loaded, prompt) {
        Ok(seen) => question(loaded, text, &seen),
        Err(error) => Check::wrong("question", told(*error)),
    })
}

fn question(loaded: &Loaded, text: &Text, seen: &Seen) -> Check {
    let tokenizer = &text.tokenizer;
    let ends = tokenizer.end_tokens();
    let said: Vec<TokenId> =
        seen.tokens.iter().copied().take_while(|token| !ends.contains(token)).collect();
    let options = DetokenizeOptions { show_control: true, continues: false };
    let answer = tokenizer.decode(&said, options).unwrap_or_default();
    let spelled = format!("answers {answer:?}");
    if said.is_empty() {
        return Check::unusual("question", "the answer ends before it begins");
    }
    if is_uniform(loaded, seen) {
        return Check::wrong("question", format!("{spelled}: nearly every token is as good"));
    }
    let structure = said.iter().find(|token| tokenizer.is_control(**token));
    if let Some(name) = structure.and_then(|&token| tokenizer.piece(token).ok()) {
        let name = String::from_utf8_lossy(name);
        // A model that reasons begins with what opens its thought or its channel.
        if ["think", "channel", "reason"].iter().any(|word| name.contains(word)) {
            return Check::ok("question", spelled);
        }
        let why = "is structure, not text: is the template another model's?";
        return Check::unusual("question", format!("{spelled}: `{name}` {why}"));
    }
    match circle(&said) {
        Some(period) => Check::unusual("question", format!("{spelled}: {}", circling(period))),
        None => Check::ok("question", spelled),
    }
}

/// Longest run of tokens that is looked for again and again in so few.
const PERIOD_MAX: usize = 3;

/// How many tokens come over and over, where all that was said is so.
fn circle(tokens: &[TokenId]) -> Option<usize> {
    (1..=PERIOD_MAX).find(|&period| {
        // Three times round at the least.
        tokens.len() >= 3 * period && tokens.iter().zip(&tokens[period..]).all(|(a, b)| a == b)
    })
}

fn circling(period: usize) -> String {
    match period {
        1 => "one token, over and over".to_owned(),
        _ => format!("the same {period} tokens, over and over"),
    }
}

/// Whether the choices were none: nearly all tokens about as likely as each other.
fn is_uniform(loaded: &Loaded, seen: &Seen) -> bool {
    let vocab_size = loaded.model.config().shape.vocab_size as f64;
    seen.entropy > ENTROPY_SHARE * libm::log(vocab_size)
}

fn known_text(seen: &Seen) -> Check {
    let said = format!("{:.2} nats a token of plain English", seen.nats);
    if seen.nats > NATS_WRONG {
        let why = "as if it had never read any: damaged weights, or another model's tokenizer";
        return Check::wrong("known text", format!("{said}, {why}"));
    }
    if seen.nats > NATS_UNUSUAL {
        return Check::unusual("known text", format!("{said}, which is much"));
    }
    Check::ok("known text", said)
}

fn answer(loaded: &Loaded, seen: &Seen) -> Check {
    let options = DetokenizeOptions { show_control: true, continues: true };
    let decoded = loaded.text.as_ref().map(|text| text.tokenizer.decode(&seen.tokens, options));
    let text = decoded.and_then(Result::ok).unwrap_or_default();
    let said = format!("goes on with {text:?}, entropy {:.2} nats", seen.entropy);
    if is_uniform(loaded, seen) {
        return Check::wrong("answer", format!("{said}: nearly every token is as good as another"));
    }
    if let Some(period) = circle(&seen.tokens) {
        return Check::unusual("answer", format!("{said}: {}", circling(period)));
    }
    Check::ok("answer", said)
}

/// One pass over the text and one for each step, the best token each time.
fn pass(loaded: &Loaded, prompt: Vec<TokenId>) -> Result<Seen, Box<ModelError>> {
    let (model, request, mut work) = (&loaded.model, RequestId(0), Workspace::default());
    let mut cache = Cache::new(&model.kv_shape(1, prompt.len()));
    let (mut nats, mut entropy, mut tokens) = (0.0, 0.0, Vec::new());
    let (mut input, mut first_position) = (prompt.clone(), 0);
    for _ in 0..STEPS {
        let end = first_position + input.len();
        cache.reserve(request, end).expect("the cache is as large as the context");
        let span = Span { request, first_position, tokens: &input, logits_wanted: input.len() };
        let logits = model.forward(&[span], &mut cache, &mut work)?;
        cache.retire(request, end);
        let mut next = TokenId(0);
        for (index, row) in logits.rows().enumerate() {
            let sum = log_sum_exp(row);
            if let Some(known) = input.get(index + 1) {
                nats += sum - f64::from(row[known.0 as usize]);
            } else {
                entropy += entropy_of(row, sum);
                next = TokenId(best(row, 1)[0].0);
            }
        }
        tokens.push(next);
        (input, first_position) = (vec![next], end);
    }
    let counted = prompt.len().saturating_sub(1).max(1) as f64;
    Ok(Seen { nats: nats / counted, entropy: entropy / STEPS as f64, tokens })
}

/// `-sum of p ln p`, in nats.
fn entropy_of(row: &[f32], log_sum: f64) -> f64 {
    let logs = row.iter().map(|&logit| f64::from(logit) - log_sum);
    logs.map(|log| -libm::exp(log) * log).filter(|part| part.is_finite()).sum()
}

#[cfg(test)]
mod tests;
