//! The canonical JSON of a step, written straight away: a record has hundreds of them.

use super::sort_keys;
use crate::{LogitsDigest, Piece, Reasons, RunnerUp, Step};

/// How much of a step is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// What exactness promises: not the pass, its rows, the time, nor what the token says.
    Exact,
}

/// Appends the steps as a list, each field by name and the keys in ascending order.
pub(super) fn push_steps(json: &mut String, steps: &[Step], part: Part) {
    json.push('[');
    for (index, step) in steps.iter().enumerate() {
        json.push_str(if index == 0 { "{\"cause\":" } else { ",{\"cause\":" });
        push_step(json, step, part);
        json.push('}');
    }
    json.push(']');
}

fn push_step(json: &mut String, step: &Step, part: Part) {
    let Step {
        step,
        token,
        piece,
        cause,
        shown,
        reasons,
        pass,
        rows,
        since_arrival_ns,
        digest: LogitsDigest(digest),
    } = step;
    push_plain(json, cause.name());
    json.push_str(",\"digest\":\"");
    push_hex(json, *digest, 32);
    if part == Part::Whole {
        json.push_str("\",\"pass\":");
        push_number(json, *pass);
        json.push_str(",\"piece\":");
        push_piece(json, piece);
    } else {
        json.push('"');
    }
    json.push_str(",\"reasons\":");
    push_reasons(json, reasons);
    if part == Part::Whole {
        json.push_str(",\"rows\":");
        push_number(json, u64::from(*rows));
        json.push_str(",\"shown\":");
        push_plain(json, shown.name());
        json.push_str(",\"since_arrival_ns\":");
        push_number(json, *since_arrival_ns);
    }
    json.push_str(",\"step\":");
    push_number(json, u64::from(*step));
    json.push_str(",\"token\":");
    push_number(json, u64::from(*token));
}

fn push_reasons(json: &mut String, reasons: &Reasons) {
    let Reasons {
        logprob,
        rank,
        probability,
        survivors,
        entropy,
        raw_best,
        removed_by,
        forced_by,
        runner_up,
    } = reasons;
    json.push_str("{\"entropy\":");
    push_fraction(json, *entropy);
    if let Some(field) = forced_by {
        json.push_str(",\"forced_by\":");
        push_text(json, field);
    }
    json.push_str(",\"logprob\":");
    match logprob {
        Some(logprob) => push_fraction(json, *logprob),
        None => json.push_str("null"),
    }
    json.push_str(",\"probability\":");
    push_fraction(json, *probability);
    json.push_str(",\"rank\":");
    push_number(json, u64::from(*rank));
    json.push_str(",\"raw_best\":");
    push_number(json, u64::from(*raw_best));
    json.push_str(",\"removed_by\":");
    match removed_by {
        Some(stage) => push_text(json, stage),
        None => json.push_str("null"),
    }
    json.push_str(",\"runner_up\":");
    match runner_up {
        Some(RunnerUp { token, probability }) => {
            json.push_str("{\"probability\":");
            push_fraction(json, *probability);
            json.push_str(",\"token\":");
            push_number(json, u64::from(*token));
            json.push('}');
        }
        None => json.push_str("null"),
    }
    json.push_str(",\"survivors\":");
    push_number(json, u64::from(*survivors));
    json.push('}');
}

fn push_piece(json: &mut String, Piece(bytes): &Piece) {
    match std::str::from_utf8(bytes) {
        Ok(text) => push_text(json, text),
        Err(_) => {
            json.push_str("{\"hex\":\"");
            bytes.iter().for_each(|byte| push_hex(json, u128::from(*byte), 2));
            json.push_str("\"}");
        }
    }
}

/// A text with the escapes that JSON demands; most have none.
fn push_text(json: &mut String, text: &str) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        push_plain(json, text);
    } else {
        json.push_str(&sort_keys(&text.into()));
    }
}

fn push_plain(json: &mut String, text: &str) {
    json.push('"');
    json.push_str(text);
    json.push('"');
}

/// A fraction by its bits; JSON has none for what is not finite.
fn push_fraction(json: &mut String, value: f64) {
    if value.is_finite() {
        json.push_str("\"f64:");
        push_hex(json, u128::from(value.to_bits()), 16);
        json.push('"');
    } else {
        json.push_str("null");
    }
}

fn push_hex(json: &mut String, value: u128, digits: u32) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for digit in (0..digits).rev() {
        json.push(char::from(DIGITS[(value >> (4 * digit) & 0xf) as usize]));
    }
}

fn push_number(json: &mut String, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    json.extend(digits[first..].iter().copied().map(char::from));
}
