//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use causeway_request::StopReason;
use causeway_session::Given;
use serde_json::{Map, Value, json};

use super::calls::Calls;
use super::choices::{self, Delivery, Whole};
use super::tools::{Tools, Words};
use super::{form, messages_in, thought};
use crate::ask::{Answering, Ask};
use crate::auth::Caller;
use crate::error::{ApiError, json_response};
use crate::event::{Ended, Event, Part, TokenLine};
use crate::fields::Fields;
use crate::fields::chat::CHAT;
use crate::http::body;
use crate::http::sse::{self, Sse};
use crate::outbox::Gone;
use crate::state::State;
use crate::wire;

mod calls;

/// Answers a chat, whole or as a stream.
///
/// # Errors
/// Whatever is wrong with the request, or has no room.
pub(crate) async fn answer(
    Shared(state): Shared<Arc<State>>,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = choices::caller(&request)?;
    let object = body::object(request, &state.bodies).await?;
    let (ask, delivery) = read(object, caller)?;
    let mut answering = Words::Chat.begin(&state, ask).await?;
    if delivery.streams {
        let (sse, response) = sse::stream();
        tokio::spawn(async move {
            // A reader that is gone needs no last word.
            let of = |choice| Calls::new("call", &answering, choice);
            let calls = (0..answering.choices as usize).map(of).collect();
            let _ = Chunks { answering, delivery, calls, sse, state }.write().await;
        });
        return Ok(response);
    }
    let wholes = choices::whole(&mut answering).await?;
    Ok(json_response(StatusCode::OK, &completion(&answering, &wholes, delivery)))
}

/// Reads a body into what every API asks for.
fn read(object: Map<String, Value>, caller: Caller) -> Result<(Ask, Delivery), ApiError> {
    let mut fields = Fields::read(CHAT, &object)?;
    let delivery = choices::delivery(&fields)?;
    check_modalities(&fields)?;
    let top = fields.count("top_logprobs");
    if top.is_some_and(|top| top > 0) && !fields.flag("logprobs") {
        let text = "`top_logprobs` is given, but `logprobs` is not true";
        return Err(ApiError::field("top_logprobs", text));
    }
    let top = usize::try_from(top.unwrap_or(0)).unwrap_or(usize::MAX);
    let tools = Tools::read(Words::Chat, &fields)?;
    let chat = messages_in::chat(&fields, tools.told())?;
    let mut edits = choices::edits(&mut fields)?;
    thought::of_effort(&fields, &mut edits)?;
    form::of_response_format(&fields, &mut edits)?;
    edits.extend(tools.edit());
    let wants_tokens = fields.flag("logprobs").then_some(top);
    let ask = Ask {
        wants_tokens,
        ..choices::ask(
            &fields,
            ("chatcmpl", "messages"),
            Given::Messages(chat),
            edits,
            caller,
            object,
        )
    };
    Ok((ask, delivery))
}

/// Answers are text.
fn check_modalities(fields: &Fields) -> Result<(), ApiError> {
    if let Some(modalities) = fields.value("modalities")
        && *modalities != json!(["text"])
    {
        let text = format!("`modalities` is {modalities}, only `[\"text\"]` is supported");
        return Err(ApiError::field("modalities", text).with_code("unsupported_parameter"));
    }
    Ok(())
}

fn completion(answering: &Answering, wholes: &[Whole], delivery: Delivery) -> Value {
    let choice = |(index, whole): (usize, &Whole)| {
        let Whole { part, ended } = whole;
        let (content, calls) =
            calls::whole(Calls::new("call", answering, index), part.visible.clone());
        let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
        let finish_reason = finish_reason(&ended.stop, !calls.is_empty());
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        if delivery.include_reasoning && !part.reasoning.is_empty() {
            message["reasoning_content"] = json!(part.reasoning);
        }
        json!({
            "index": index,
            "message": message,
            "logprobs": logprobs(answering, &part.tokens),
            "finish_reason": finish_reason,
        })
    };
    let ended: Vec<&Ended> = wholes.iter().map(|whole| &whole.ended).collect();
    let mut answer = json!({
        "id": answering.id,
        "object": "chat.completion",
        "created": answering.created,
        "model": answering.model.about.model.name,
        "system_fingerprint": answering.fingerprint(),
        "choices": wholes.iter().enumerate().map(choice).collect::<Vec<_>>(),
        "usage": wire::usage(&ended),
    });
    if delivery.extends {
        let all: Vec<(u32, &Ended)> = (0..).zip(ended).collect();
        answer["causeway"] = choices::extension(answering, &all);
    }
    answer
}

/// OpenAI's word for an end; calls that came have one of their own.
fn finish_reason(stop: &StopReason, has_calls: bool) -> &'static str {
    match wire::finish_reason(stop) {
        "stop" if has_calls => "tool_calls",
        other => other,
    }
}

/// The tokens of a part; `null` where none were asked for.
pub(super) fn logprobs(answering: &Answering, tokens: &[TokenLine]) -> Value {
    if !answering.tells_tokens {
        return Value::Null;
    }
    let entry = |line: &TokenLine| {
        let tokenizer = &answering.model.text.tokenizer;
        let top = line.top.iter().map(|(token, logprob)| {
            let piece = tokenizer.piece(*token).unwrap_or_default();
            json!({
                "token": String::from_utf8_lossy(piece),
                "bytes": piece,
                "logprob": wire::logprob(*logprob),
            })
        });
        json!({
            "token": String::from_utf8_lossy(&line.piece),
            "bytes": line.piece,
            "logprob": wire::logprob(line.logprob),
            "top_logprobs": top.collect::<Vec<_>>(),
            "policy_probability": line.probability,
            "rank": line.rank,
            "id": line.token.0,
        })
    };
    json!({ "content": tokens.iter().map(entry).collect::<Vec<_>>(), "refusal": null })
}

/// A stream of chunks.
struct Chunks {
    answering: Answering,
    delivery: Delivery,
    /// By choice.
    calls: Vec<Calls>,
    sse: Sse,
    state: Arc<State>,
}

impl Chunks {
    async fn write(mut self) -> Result<(), Gone> {
        let mut ends: Vec<Option<Ended>> = (0..self.answering.choices).map(|_| None).collect();
        for choice in 0..self.answering.choices {
            let delta = json!({ "role": "assistant", "content": "" });
            self.chunk(choice, delta, Value::Null).await?;
        }
        while let Some((choice, event)) =
            self.sse.next(&mut self.answering, self.state.wire.keep_alive).await?
        {
            match event {
                Event::Prefilled { computed, known } => {
                    if self.delivery.returns_progress {
                        let progress = json!({ "computed": computed, "known": known });
                        let mut chunk = self.envelope(json!([]));
                        chunk["causeway"] = json!({ "prefill": progress });
                        self.sse.send(&chunk).await?;
                    }
                }
                Event::Part(part) => self.part(choice, part).await?,
                Event::Ended(ended) => {
                    if let Some(error) = choices::failure(&ended) {
                        return self.fail(&error).await;
                    }
                    self.last(choice, &ended).await?;
                    ends[choice as usize] = Some(*ended);
                }
            }
        }
        let ended: Vec<&Ended> = ends.iter().flatten().collect();
        if ended.len() < ends.len() {
            return self.fail(&choices::broken()).await;
        }
        self.close(&ended).await
    }

    async fn part(&mut self, choice: u32, part: Part) -> Result<(), Gone> {
        let Part { visible, reasoning, tokens } = part;
        let mut deltas = calls::feed(&mut self.calls[choice as usize], visible);
        if self.delivery.include_reasoning && !reasoning.is_empty() {
            let reasoning = json!(reasoning);
            match deltas.first_mut() {
                Some(first) => first["reasoning_content"] = reasoning,
                None => deltas.push(json!({ "reasoning_content": reasoning })),
            }
        }
        if deltas.is_empty() && !tokens.is_empty() {
            deltas.push(json!({}));
        }
        // Tokens come with the first text that they are a part of.
        let mut tokens = tokens.as_slice();
        for delta in deltas {
            let told = logprobs(&self.answering, std::mem::take(&mut tokens));
            self.chunk(choice, delta, told).await?;
        }
        Ok(())
    }

    async fn close(&self, ended: &[&Ended]) -> Result<(), Gone> {
        // A chunk without choices comes only to those who asked for it.
        if self.delivery.include_usage {
            let mut chunk = self.envelope(json!([]));
            chunk["usage"] = wire::usage(ended);
            self.sse.send(&chunk).await?;
        }
        self.sse.done().await
    }

    async fn fail(&self, error: &ApiError) -> Result<(), Gone> {
        self.sse.send(&error.to_json()).await?;
        self.sse.done().await
    }

    /// The chunk that says why a choice ended, and what it took; before it, what still waited.
    async fn last(&mut self, index: u32, ended: &Ended) -> Result<(), Gone> {
        for delta in calls::finish(&mut self.calls[index as usize]) {
            self.chunk(index, delta, Value::Null).await?;
        }
        let has_calls = self.calls[index as usize].count() > 0;
        let choice = json!({
            "index": index,
            "delta": {},
            "logprobs": null,
            "finish_reason": finish_reason(&ended.stop, has_calls),
        });
        let mut chunk = self.envelope(json!([choice]));
        if self.delivery.extends {
            chunk["causeway"] = choices::extension(&self.answering, &[(index, ended)]);
        }
        self.sse.send(&chunk).await
    }

    async fn chunk(&self, index: u32, delta: Value, logprobs: Value) -> Result<(), Gone> {
        let choice = json!({
            "index": index,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": null,
        });
        self.sse.send(&self.envelope(json!([choice]))).await
    }

    fn envelope(&self, choices: Value) -> Value {
        let mut chunk = json!({
            "id": self.answering.id,
            "object": "chat.completion.chunk",
            "created": self.answering.created,
            "model": self.answering.model.about.model.name,
            "system_fingerprint": self.answering.fingerprint(),
            "choices": choices,
        });
        if self.delivery.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}
