//! `POST /v1/completions`.

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use causeway_session::Given;
use serde_json::{Map, Value, json};

use super::choices::{self, Delivery, Whole};
use crate::ask::{Answering, Ask};
use crate::auth::Caller;
use crate::error::{ApiError, json_response};
use crate::event::{Ended, Event, Part, TokenLine};
use crate::fields::completions::COMPLETIONS;
use crate::fields::{Edit, Fields};
use crate::http::body;
use crate::http::sse::{self, Sse};
use crate::outbox::Gone;
use crate::state::State;
use crate::wire;

/// Tokens of an answer where the request names no budget: OpenAI's default.
const TOKENS_MAX_DEFAULT: u64 = 16;

/// Continues a prompt, whole or as a stream.
///
/// # Errors
/// Whatever is wrong with the request, or has no room.
pub(crate) async fn answer(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = choices::caller(&request)?;
    let object = body::object(request, &state.bodies).await?;
    let (ask, delivery, echoes) = read(object, caller, &state)?;
    let answering = state.begin(ask).await?;
    let echo = if echoes { echo(&answering) } else { String::new() };
    let mut writing = Writing { answering, delivery, echo, offsets: Vec::new() };
    if delivery.streams {
        let (sse, response) = sse::stream();
        tokio::spawn(async move {
            // A reader that is gone needs no last word.
            let _ = writing.stream(&sse, &state).await;
        });
        return Ok(response);
    }
    let wholes = choices::whole(&mut writing.answering).await?;
    Ok(json_response(StatusCode::OK, &writing.completion(&wholes)))
}

fn read(
    object: Map<String, Value>,
    caller: Caller,
    state: &State,
) -> Result<(Ask, Delivery, bool), ApiError> {
    let mut fields = Fields::read(COMPLETIONS, &object)?;
    let delivery = choices::delivery(&fields)?;
    let given = given(fields.value("prompt"))?;
    let mut edits = choices::edits(&mut fields)?;
    let base = state.registry.base(fields.text("model"));
    if !base.limits_tokens() && !edits.iter().any(|edit| edit.path == "stop.tokens_max") {
        let value = json!(TOKENS_MAX_DEFAULT);
        edits.push(Edit { field: "max_tokens", path: "stop.tokens_max", value });
    }
    let wants_tokens = fields.count("logprobs").and_then(|count| usize::try_from(count).ok());
    let ask = Ask {
        wants_tokens,
        ..choices::ask(&fields, ("cmpl", "prompt"), given, edits, caller, object)
    };
    Ok((ask, delivery, fields.flag("echo")))
}

/// A text or token ids, either also as the only one of a list.
fn given(prompt: Option<&Value>) -> Result<Given, ApiError> {
    let wrong = |text: &str| ApiError::field("prompt", text).with_code("invalid_value");
    let Some(prompt) = prompt else {
        return Err(wrong("`prompt` is missing: a text or a list of token ids is needed"));
    };
    let one = match prompt.as_array().map(Vec::as_slice) {
        Some([one @ (Value::String(_) | Value::Array(_))]) => one,
        Some([Value::String(_) | Value::Array(_), ..]) => {
            return Err(wrong("`prompt` has several prompts: send one request for each"));
        }
        _ => prompt,
    };
    if let Some(text) = one.as_str() {
        if text.is_empty() {
            return Err(wrong("`prompt` is empty: at least one character is needed"));
        }
        return Ok(Given::Raw(text.to_owned()));
    }
    let Some(list) = one.as_array() else {
        return Err(wrong("`prompt` must be a text or a list of token ids"));
    };
    if list.is_empty() {
        return Err(wrong("`prompt` is empty: at least one token is needed"));
    }
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let ids: Option<Vec<u32>> = list.iter().map(id).collect();
    ids.map(Given::Ids).ok_or_else(|| {
        wrong("`prompt` holds something else than token ids, which are whole numbers of 32 bits")
    })
}

/// The prompt's text, as the answer's text follows it.
fn echo(answering: &Answering) -> String {
    let raw = answering.prompt.clone();
    raw.unwrap_or_else(|| {
        let options = causeway_text::DetokenizeOptions { show_control: true, continues: true };
        let tokens = &answering.prompt_tokens;
        answering.model.text.tokenizer.decode(tokens, options).unwrap_or_default()
    })
}

/// An answer on its way out.
struct Writing {
    answering: Answering,
    delivery: Delivery,
    echo: String,
    /// Characters of each choice that are out.
    offsets: Vec<usize>,
}

impl Writing {
    fn completion(&mut self, wholes: &[Whole]) -> Value {
        self.offsets = vec![self.echo.chars().count(); wholes.len()];
        let mut choices_out = Vec::new();
        for (index, Whole { part, ended }) in (0..).zip(wholes) {
            let text = format!("{}{}", self.echo, part.visible);
            choices_out.push(json!({
                "index": index,
                "text": text,
                "logprobs": self.logprobs(index, &part.tokens),
                "finish_reason": wire::finish_reason(&ended.stop),
            }));
        }
        let ended: Vec<&Ended> = wholes.iter().map(|whole| &whole.ended).collect();
        let mut answer = self.envelope(json!(choices_out));
        answer["usage"] = wire::usage(&ended);
        if self.delivery.extends {
            let all: Vec<(u32, &Ended)> = (0..).zip(ended).collect();
            answer["causeway"] = choices::extension(&self.answering, &all);
        }
        answer
    }

    /// OpenAI's older form: parallel lists; `null` where no tokens were asked for.
    fn logprobs(&mut self, choice: usize, tokens: &[TokenLine]) -> Value {
        if !self.answering.tells_tokens {
            return Value::Null;
        }
        let tokenizer = &self.answering.model.text.tokenizer;
        let mut offsets = Vec::new();
        for line in tokens {
            offsets.push(self.offsets[choice]);
            self.offsets[choice] += String::from_utf8_lossy(&line.piece).chars().count();
        }
        let top = tokens.iter().map(|line| {
            let entry = |(token, logprob): &(causeway_request::TokenId, f64)| {
                let piece = tokenizer.piece(*token).unwrap_or_default();
                (String::from_utf8_lossy(piece).into_owned(), wire::logprob(*logprob))
            };
            line.top.iter().map(entry).collect::<Map<String, Value>>()
        });
        let texts = tokens.iter().map(|line| String::from_utf8_lossy(&line.piece));
        json!({
            "tokens": texts.collect::<Vec<_>>(),
            "token_logprobs": tokens.iter().map(|line| wire::logprob(line.logprob)).collect::<Vec<_>>(),
            "top_logprobs": top.collect::<Vec<_>>(),
            "text_offset": offsets,
            "policy_probabilities": tokens.iter().map(|line| line.probability).collect::<Vec<_>>(),
            "token_ids": tokens.iter().map(|line| line.token.0).collect::<Vec<_>>(),
        })
    }

    async fn stream(&mut self, sse: &Sse, state: &State) -> Result<(), Gone> {
        let count = self.answering.choices;
        let mut ends: Vec<Option<Ended>> = (0..count).map(|_| None).collect();
        self.offsets = vec![self.echo.chars().count(); ends.len()];
        if !self.echo.is_empty() {
            for choice in 0..count {
                let part = Part { visible: self.echo.clone(), ..Part::default() };
                self.chunk(sse, choice, part, None).await?;
            }
        }
        while let Some((choice, event)) =
            sse.next(&mut self.answering, state.wire.keep_alive).await?
        {
            match event {
                Event::Prefilled { computed, known } => {
                    if self.delivery.returns_progress {
                        let mut chunk = self.envelope(json!([]));
                        let progress = json!({ "computed": computed, "known": known });
                        chunk["causeway"] = json!({ "prefill": progress });
                        sse.send(&chunk).await?;
                    }
                }
                Event::Part(part) if part.visible.is_empty() && part.tokens.is_empty() => {}
                Event::Part(part) => self.chunk(sse, choice, part, None).await?,
                Event::Ended(ended) => {
                    if let Some(error) = choices::failure(&ended) {
                        sse.send(&error.to_json()).await?;
                        return sse.done().await;
                    }
                    self.chunk(sse, choice, Part::default(), Some(&ended)).await?;
                    ends[choice as usize] = Some(*ended);
                }
            }
        }
        let ended: Vec<&Ended> = ends.iter().flatten().collect();
        if ended.len() < ends.len() {
            sse.send(&choices::broken().to_json()).await?;
            return sse.done().await;
        }
        self.close(sse, &ended).await
    }

    async fn close(&self, sse: &Sse, ended: &[&Ended]) -> Result<(), Gone> {
        // A chunk without choices comes only to those who asked for it.
        if self.delivery.include_usage {
            let mut chunk = self.envelope(json!([]));
            chunk["usage"] = wire::usage(ended);
            sse.send(&chunk).await?;
        }
        sse.done().await
    }

    async fn chunk(
        &mut self,
        sse: &Sse,
        choice: u32,
        part: Part,
        ended: Option<&Ended>,
    ) -> Result<(), Gone> {
        let line = json!({
            "index": choice,
            "text": part.visible,
            "logprobs": self.logprobs(choice as usize, &part.tokens),
            "finish_reason": ended.map(|ended| wire::finish_reason(&ended.stop)),
        });
        let mut chunk = self.envelope(json!([line]));
        if let Some(ended) = ended.filter(|_| self.delivery.extends) {
            chunk["causeway"] = choices::extension(&self.answering, &[(choice, ended)]);
        }
        if self.delivery.include_usage {
            chunk["usage"] = Value::Null;
        }
        sse.send(&chunk).await
    }

    fn envelope(&self, choices: Value) -> Value {
        json!({
            "id": self.answering.id,
            "object": "text_completion",
            "created": self.answering.created,
            "model": self.answering.model.about.model.name,
            "system_fingerprint": self.answering.fingerprint(),
            "choices": choices,
        })
    }
}
