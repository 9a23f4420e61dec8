//! One run as spans: the run, and inside it its wait, its prefill and its decoding.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use causeway_ledger::Stop;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _,
    TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::SdkTracer;

use super::meters::operation;
use crate::observe::EndedRun;

/// Sends the spans of a run that has ended.
pub(super) fn send(tracer: &SdkTracer, ended: &EndedRun<'_>) {
    let times = &ended.record.end.account.times;
    let arrived = UNIX_EPOCH + Duration::from_millis(times.scheduled_unix_ms);
    let at = |ns: u64| arrived + Duration::from_nanos(ns);
    let name = format!("{} {}", operation(ended), ended.record.start.model.name);
    let parent = ended.origin.traceparent.as_deref().and_then(parent).unwrap_or_default();
    let builder = SpanBuilder::from_name(name)
        .with_kind(SpanKind::Server)
        .with_start_time(arrived)
        .with_attributes(attributes(ended));
    let mut span = builder.start_with_context(tracer, &parent);
    if let Stop::Error { message, .. } = &ended.record.end.stop {
        span.set_status(Status::error(message.clone()));
        span.set_attribute(KeyValue::new("error.type", "error"));
    }
    let inside = Context::new().with_remote_span_context(span.span_context().clone());
    let part = |name: &'static str, from: SystemTime, to: SystemTime| {
        let builder = SpanBuilder::from_name(name).with_start_time(from);
        builder.start_with_context(tracer, &inside).end_with_timestamp(to);
    };
    if !ended.is_given_again && ended.passes.queued_ns.is_some() {
        let first_ns = times.ttft_ns.unwrap_or(times.total_ns);
        part("queue", arrived, at(times.queued_ns));
        part("prefill", at(times.queued_ns), at(first_ns));
        if times.ttft_ns.is_some() {
            part("decode", at(first_ns), at(times.total_ns));
        }
    }
    span.end_with_timestamp(if ended.is_given_again { arrived } else { at(times.total_ns) });
}

fn attributes(ended: &EndedRun<'_>) -> Vec<KeyValue> {
    let (start, end) = (&ended.record.start, &ended.record.end);
    let (tokens, passes) = (&end.account.tokens, &end.account.passes);
    let effective = &start.request.effective;
    let reasons = vec![StringValue::from(end.stop.name())];
    let mut attributes = vec![
        KeyValue::new("gen_ai.operation.name", operation(ended)),
        KeyValue::new("gen_ai.provider.name", "causeway"),
        KeyValue::new("gen_ai.request.model", start.model.name.clone()),
        KeyValue::new("gen_ai.response.model", start.model.name.clone()),
        KeyValue::new("gen_ai.response.id", ended.id.to_owned()),
        KeyValue::new("gen_ai.response.finish_reasons", Value::Array(Array::from(reasons))),
        KeyValue::new("gen_ai.request.max_tokens", whole(effective.tokens_max)),
        KeyValue::new("gen_ai.request.seed", whole(effective.seed)),
        KeyValue::new("gen_ai.usage.input_tokens", whole(tokens.prompt)),
        KeyValue::new("gen_ai.usage.output_tokens", whole(tokens.prefix)),
        KeyValue::new("causeway.tokens.cached", whole(tokens.cached)),
        KeyValue::new("causeway.tokens.reasoning", whole(tokens.reasoning)),
        KeyValue::new("causeway.passes.prefill", whole(passes.prefill)),
        KeyValue::new("causeway.passes.decode", whole(passes.decode)),
        KeyValue::new("causeway.choice", i64::from(effective.choice)),
        KeyValue::new("causeway.policy", start.policy.sha256.to_string()),
        KeyValue::new("causeway.record", ended.record_id.to_string()),
        KeyValue::new("causeway.given_again", ended.is_given_again),
    ];
    attributes.extend(ended.owner.map(|owner| KeyValue::new("causeway.owner", owner.to_owned())));
    attributes
}

/// The span that a request was sent from (W3C Trace Context, version 00); `None` for what is none.
fn parent(traceparent: &str) -> Option<Context> {
    let parts: Vec<&str> = traceparent.split('-').collect();
    let &["00", trace, span, flags] = parts.as_slice() else { return None };
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::default(),
    );
    context.is_valid().then(|| Context::new().with_remote_span_context(context))
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
