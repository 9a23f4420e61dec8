//! The kinds of policy field that name tokens: sets, sequences and biases.

use causeway_request::TokenId;
use serde_json::{Map, Value, json};

use super::slot::{Fault, LIST_MAX, Number, Slot, as_list, number, whole, wrong_type};

/// A set of tokens, kept ascending; an empty list is refused where it would allow nothing.
pub(super) struct Tokens<'a> {
    pub value: &'a mut Vec<TokenId>,
    pub may_be_empty: bool,
}

impl Slot for Tokens<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let mut tokens = as_tokens(value)?;
        if tokens.is_empty() && !self.may_be_empty {
            let range = "a list of at least one token id".to_owned();
            return Err(Fault::Range { value: "empty".into(), range });
        }
        tokens.sort_unstable();
        tokens.dedup();
        *self.value = tokens;
        Ok(())
    }

    fn write(&self) -> Value {
        if self.value.is_empty() && !self.may_be_empty {
            return Value::Null;
        }
        json!(ids(self.value))
    }
}

/// A set of token sequences, kept in ascending order.
pub(super) struct Sequences<'a>(pub &'a mut Vec<Vec<TokenId>>);

impl Slot for Sequences<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let entries = as_list(value, "a list of lists of token ids", LIST_MAX)?;
        let mut sequences = Vec::with_capacity(entries.len());
        for entry in entries {
            let sequence = as_tokens(entry)?;
            if sequence.is_empty() {
                let range = "lists of at least one token id".to_owned();
                return Err(Fault::Range { value: "a list with an empty list".into(), range });
            }
            sequences.push(sequence);
        }
        sequences.sort_unstable();
        sequences.dedup();
        *self.0 = sequences;
        Ok(())
    }

    fn write(&self) -> Value {
        json!(self.0.iter().map(|sequence| ids(sequence)).collect::<Vec<_>>())
    }
}

/// What is added to single logits: `{"id": bias}` or `[[id, bias], …]`, kept ascending by id.
pub(super) struct Biases<'a>(pub &'a mut Vec<(TokenId, f64)>);

/// Largest bias, either way; beyond the range of any model's logits.
const BIAS_MAX: f64 = 1e6;

impl Slot for Biases<'_> {
    fn read(&mut self, value: &Value) -> Result<(), Fault> {
        let mut biases = Vec::new();
        match value {
            Value::Object(map) => {
                for (key, bias) in map {
                    // An id has one spelling: no sign and no zero before it.
                    let id = key.parse().ok().filter(|id: &u32| id.to_string() == *key);
                    let Some(id) = id else {
                        return wrong_type(&json!(key), "a table of token ids and numbers");
                    };
                    biases.push((TokenId(id), as_bias(bias)?));
                }
            }
            _ => {
                for pair in as_list(value, "a table of token ids and numbers", LIST_MAX)? {
                    let Some([id, bias]) = pair.as_array().map(Vec::as_slice) else {
                        return wrong_type(pair, "a pair of a token id and a number");
                    };
                    biases.push((as_token(id)?, as_bias(bias)?));
                }
            }
        }
        biases.sort_unstable_by_key(|&(token, _)| token);
        if let Some(pair) = biases.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Fault::Repeated { value: format!("token {}", pair[0].0) });
        }
        *self.0 = biases;
        Ok(())
    }

    fn write(&self) -> Value {
        let entry = |&(token, bias): &(TokenId, f64)| (token.to_string(), number(bias));
        Value::Object(self.0.iter().map(entry).collect::<Map<_, _>>())
    }
}

fn as_token(value: &Value) -> Result<TokenId, Fault> {
    let id = whole(value, "a token id", (0, u64::from(u32::MAX)))?;
    Ok(TokenId(u32::try_from(id).expect("the limit is u32::MAX")))
}

fn as_tokens(value: &Value) -> Result<Vec<TokenId>, Fault> {
    as_list(value, "a list of token ids", LIST_MAX)?.iter().map(as_token).collect()
}

fn as_bias(value: &Value) -> Result<f64, Fault> {
    if value.as_str() == Some("-inf") || value.as_bool() == Some(false) {
        return Ok(f64::NEG_INFINITY);
    }
    let mut bias = 0.0;
    Number { value: &mut bias, min: -BIAS_MAX, max: BIAS_MAX, above: false }.read(value)?;
    Ok(bias)
}

fn ids(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}
