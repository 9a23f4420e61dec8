//! Rules between fields: what is set must have a place, and no engine's silent change is copied.

use crate::file::{PolicyFile, Problem};
use crate::like::{Peer, Rules};
use crate::stage::Stage;

/// Least temperature above 0: any logit of a model divided by it is still finite.
const TEMPERATURE_MIN: f64 = 1e-200;

/// Adds every clash between the file's fields to `problems`.
pub(crate) fn check(file: &PolicyFile, problems: &mut Vec<Problem>) {
    let rules = Rules::of(file.like);
    let order = file.order.as_deref().unwrap_or(rules.order);
    for stage in Stage::DEFAULT_ORDER {
        if !is_set(file, stage) || order.contains(&stage) {
            continue;
        }
        let field = stage.name();
        problems.push(match (&file.order, file.like) {
            (None, Some(peer)) => Problem::NotOfPeer { field, peer: peer.name() },
            _ => Problem::NotInOrder { field },
        });
    }
    let temperature = file.shape.temperature;
    if temperature > 0.0 && temperature < TEMPERATURE_MIN {
        problems.push(Problem::OutOfRange {
            path: "shape.temperature".to_owned(),
            value: serde_json::json!(temperature).to_string(),
            range: "0, or 1e-200 to 100".to_owned(),
        });
    }
    if let Some(peer) = file.like {
        check_peer(file, peer, problems);
    }
    if let [first, second, ..] = file.constraints.form.asked()[..] {
        problems.push(Problem::TwoForms { first, second });
    }
}

/// Whether the stage would change anything.
pub(crate) fn is_set(file: &PolicyFile, stage: Stage) -> bool {
    let (constraints, shape) = (&file.constraints, &file.shape);
    match stage {
        Stage::AllowedTokens => !constraints.allowed_tokens.is_empty(),
        Stage::ForbiddenTokens => !constraints.forbidden_tokens.is_empty(),
        Stage::BadWords => !constraints.bad_words.is_empty(),
        Stage::LogitBias => !constraints.logit_bias.is_empty(),
        Stage::MinTokens => constraints.min_tokens > 0,
        Stage::RepetitionPenalty => differs(constraints.repetition_penalty, 1.0),
        Stage::PresencePenalty => differs(constraints.presence_penalty, 0.0),
        Stage::FrequencyPenalty => differs(constraints.frequency_penalty, 0.0),
        Stage::NoRepeatNgram => constraints.no_repeat_ngram > 0,
        Stage::Dry => constraints.dry.multiplier > 0.0,
        Stage::Temperature => differs(shape.temperature, 1.0),
        Stage::TopK => shape.top_k > 0,
        Stage::TopP => shape.top_p < 1.0,
        Stage::MinP => shape.min_p > 0.0,
        Stage::TypicalP => shape.typical_p < 1.0,
        Stage::TopNSigma => shape.top_n_sigma > 0.0,
        Stage::EpsilonCutoff => shape.epsilon_cutoff > 0.0,
        Stage::EtaCutoff => shape.eta_cutoff > 0.0,
    }
}

/// Values that the engine itself would silently turn into others: refused, with its own range.
fn check_peer(file: &PolicyFile, peer: Peer, problems: &mut Vec<Problem>) {
    let temperature = file.shape.temperature;
    let mut refuse = |field, value: f64, range| {
        let value = value.to_string();
        problems.push(Problem::OutsidePeer { field, value, peer: peer.name(), range });
    };
    match peer {
        Peer::Vllm => {
            if temperature > 2.0 || (temperature > 0.0 && temperature < 0.01) {
                refuse("temperature", temperature, "0 or 0.01 to 2");
            }
            if let Some(&(_, bias)) = biases(file).find(|(_, bias)| bias.abs() > 100.0) {
                refuse("logit_bias", bias, "-100 to 100");
            }
        }
        Peer::Sglang => {
            if temperature > 0.0 && temperature < 1e-6 {
                refuse("temperature", temperature, "0 or at least 0.000001");
            }
            let repetition = file.constraints.repetition_penalty;
            if repetition > 2.0 {
                refuse("repetition_penalty", repetition, "above 0 and at most 2");
            }
            for (field, penalty) in penalties(file) {
                if penalty.abs() > 2.0 {
                    refuse(field, penalty, "-2 to 2");
                }
            }
        }
        Peer::MistralRs => {
            if temperature > 0.0 && temperature < 1e-7 {
                refuse("temperature", temperature, "0 or at least 0.0000001");
            }
            if file.shape.min_p >= 1.0 {
                refuse("min_p", file.shape.min_p, "0 or a number below 1");
            }
        }
        Peer::LlamaCpp | Peer::Transformers => {}
    }
}

fn biases(file: &PolicyFile) -> impl Iterator<Item = &(causeway_request::TokenId, f64)> {
    // Minus infinity is no bias but a mask, which every engine has under some name.
    file.constraints.logit_bias.iter().filter(|(_, bias)| bias.is_finite())
}

fn penalties(file: &PolicyFile) -> [(&'static str, f64); 2] {
    let constraints = &file.constraints;
    [
        ("presence_penalty", constraints.presence_penalty),
        ("frequency_penalty", constraints.frequency_penalty),
    ]
}

/// Exact: a value is off only if it is the neutral one itself.
#[expect(clippy::float_cmp, reason = "only the neutral value itself is off")]
fn differs(value: f64, neutral: f64) -> bool {
    value != neutral
}
