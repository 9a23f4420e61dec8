//! One decoding step as a record writes it.

use causeway_request::{Cause, Choice, Digest, StepOutput, TokenId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hash::lower_hex_digit;
use crate::{LogitsDigest, StepError};

/// One decoding step: the token, the reasons for it, and the pass that computed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Index of the token in the generation prefix, forced tokens included.
    pub step: u32,
    pub token: u32,
    /// The token's own bytes, before any joining with its neighbours.
    pub piece: Piece,
    pub cause: StepCause,
    /// What became of the token's text.
    pub shown: Shown,
    pub reasons: Reasons,
    /// Which forward pass of the engine computed the logits, from 0.
    pub pass: u64,
    /// Rows (positions of all requests) that this pass computed.
    pub rows: u32,
    /// Nanoseconds from the request's arrival to this step.
    pub since_arrival_ns: u64,
    /// Digest of the logits' bits, before any policy touched them.
    pub digest: LogitsDigest,
}

/// Why the policy gave this token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasons {
    /// Natural logarithm of the token's probability under the raw logits; `None` is −∞, a token
    /// that the raw logits rule out.
    pub logprob: Option<f64>,
    /// Place under the raw logits, 1 for the best.
    pub rank: u32,
    /// Probability under the policy, among the survivors.
    pub probability: f64,
    /// How many tokens the policy left in play.
    pub survivors: u32,
    /// Entropy of the raw distribution, in nats.
    pub entropy: f64,
    /// The best token under the raw logits; the chosen one where its rank is 1.
    pub raw_best: u32,
    /// The stage, or the field that laid another token, that removed the raw best one.
    pub removed_by: Option<String>,
    /// The policy field that laid a forced token, where it was none of the constraints; left out
    /// where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_by: Option<String>,
    /// The survivor with the next highest policy probability.
    pub runner_up: Option<RunnerUp>,
}

/// The second survivor and its policy probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerUp {
    pub token: u32,
    pub probability: f64,
}

/// Why a token stands where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepCause {
    Chosen,
    Forced,
    Prefilled,
}

/// What became of a token's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Part of the answer.
    Visible,
    /// Generated and read by later steps, but not shown.
    Reasoning,
    /// No part of the answer: an end token, or text from a stop string on.
    Hidden,
}

/// A token's bytes: a JSON string where they are UTF-8, else `{"hex": "f09f"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece(pub Vec<u8>);

impl StepCause {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::Forced => "forced",
            Self::Prefilled => "prefilled",
        }
    }
}

impl Shown {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Reasoning => "reasoning",
            Self::Hidden => "hidden",
        }
    }
}

impl Step {
    /// Takes over one step of the engine. Everything but `shown` and the piece is in `output`.
    ///
    /// # Errors
    /// A number that JSON cannot hold: NaN or +∞, or −∞ anywhere but in `logprob`.
    pub fn from_output(output: &StepOutput, piece: &[u8], shown: Shown) -> Result<Self, StepError> {
        let StepOutput {
            request: _, // the builder compares it with the run's own
            step,
            choice,
            pass,
            rows,
            since_arrival_ns,
            digest: Digest(digest),
            top: _,  // what else might have come is told to whoever asked, not kept
            stop: _, // what ended the run stands at the record's end
        } = output;
        let (token, cause, reasons) = reasons(*step, choice)?;
        Ok(Self {
            step: *step,
            token,
            piece: Piece(piece.to_vec()),
            cause,
            shown,
            reasons,
            pass: *pass,
            rows: *rows,
            since_arrival_ns: *since_arrival_ns,
            digest: LogitsDigest(*digest),
        })
    }

    /// The first field whose number JSON cannot hold, and that number.
    pub(crate) fn not_finite(&self) -> Option<(&'static str, f64)> {
        let Reasons { logprob, probability, entropy, runner_up, .. } = &self.reasons;
        [
            ("logprob", logprob.unwrap_or(0.0)),
            ("probability", *probability),
            ("entropy", *entropy),
            ("runner_up", runner_up.as_ref().map_or(0.0, |second| second.probability)),
        ]
        .into_iter()
        .find(|(_, value)| !value.is_finite())
    }
}

/// Reads every field of a choice by name, so that a new one cannot be forgotten here.
fn reasons(step: u32, choice: &Choice) -> Result<(u32, StepCause, Reasons), StepError> {
    let Choice {
        token: TokenId(token),
        logprob,
        rank,
        probability,
        survivors,
        entropy,
        raw_best: TokenId(raw_best),
        removed_by,
        runner_up,
        cause,
        forced_by,
    } = *choice;
    let finite = |field, value: f64| match value.is_finite() {
        true => Ok(value),
        false => Err(StepError::NotFinite { step, field, value }),
    };
    let runner_up = match runner_up {
        Some((TokenId(token), probability)) => {
            Some(RunnerUp { token, probability: finite("runner_up", probability)? })
        }
        None => None,
    };
    let is_ruled_out = logprob.is_infinite() && logprob < 0.0;
    let reasons = Reasons {
        logprob: if is_ruled_out { None } else { Some(finite("logprob", logprob)?) },
        rank,
        probability: finite("probability", probability)?,
        survivors,
        entropy: finite("entropy", entropy)?,
        raw_best,
        removed_by: removed_by.map(str::to_owned),
        forced_by: forced_by.map(str::to_owned),
        runner_up,
    };
    Ok((token, cause.into(), reasons))
}

impl From<Cause> for StepCause {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Chosen => Self::Chosen,
            Cause::Forced => Self::Forced,
            Cause::Prefilled => Self::Prefilled,
        }
    }
}

impl Piece {
    /// The piece for a reader, in quotes; bytes that are no text are shown as `\xf0`.
    #[must_use]
    pub fn quoted(&self) -> String {
        let mut quoted = String::from("\"");
        for chunk in self.0.utf8_chunks() {
            quoted.extend(chunk.valid().chars().flat_map(char::escape_debug));
            for byte in chunk.invalid() {
                quoted.push_str(&format!("\\x{byte:02x}"));
            }
        }
        quoted.push('"');
        quoted
    }
}

/// The two forms of a piece in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PieceForm {
    Text(String),
    Bytes(HexForm),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HexForm {
    hex: String,
}

impl Serialize for Piece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let hex = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
                HexForm { hex }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refused = || serde::de::Error::custom("a piece's `hex` holds pairs of digits 0-9, a-f");
        match PieceForm::deserialize(deserializer)? {
            PieceForm::Text(text) => Ok(Self(text.into_bytes())),
            PieceForm::Bytes(HexForm { hex }) => {
                let digits: Option<Vec<u8>> = hex.bytes().map(lower_hex_digit).collect();
                let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(refused)?;
                Ok(Self(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
