//! Every field of the policy file, once: its name, its kind and its range.

use super::bind::Binder;
use super::slot::{
    COUNT_MAX, Count, Flag, Hash, Like, MaybeCount, MaybeFlag, MaybeNumber, Number, Order, Reach,
    Text, Texts, Word,
};
use super::token_slot::{Biases, Sequences, Tokens};
use super::{
    AccountLevel, ChooseRule, Constraints, Dry, FailureMode, Fallback, Form, Identity, Method,
    ModelPin, OnDisconnect, Operation, PolicyFile, PromptText, Reasoning, Shape, Slo, Stop,
    Whitespace,
};

const METHODS: &[(&str, Method)] = &[("sample", Method::Sample), ("greedy", Method::Greedy)];
const LEVELS: &[(&str, AccountLevel)] =
    &[("full", AccountLevel::Full), ("tokens", AccountLevel::Tokens)];
const WHITESPACES: &[(&str, Whitespace)] =
    &[("compact", Whitespace::Compact), ("flexible", Whitespace::Flexible)];
const DISCONNECTS: &[(&str, OnDisconnect)] =
    &[("cancel", OnDisconnect::Cancel), ("finish", OnDisconnect::Finish)];

/// Longest name, in bytes.
const NAME_BYTES: usize = 256;
/// Longest sentence of a failure mode, in bytes.
const SENTENCE_BYTES: usize = 4096;
/// Longest template or prompt text, in bytes; templates in use are below 32 KiB.
const TEXT_BYTES: usize = 1 << 20;
/// Longest regular expression or grammar, in bytes.
const GRAMMAR_BYTES: usize = 256 << 10;
/// Most texts to choose among.
const CHOICES_MAX: usize = 10_000;
/// Longest limit in milliseconds: a day.
const MS_MAX: f64 = 86_400_000.0;
/// Longest n-gram that may not repeat.
const NGRAM_MAX: u64 = 1024;

impl PolicyFile {
    /// Walks every field; destructured so that a field left out does not compile.
    pub(super) fn bind(&mut self, b: &mut Binder<'_>) {
        let Self {
            identity,
            like,
            order,
            model,
            prompt,
            constraints,
            shape,
            choose,
            stop,
            reasoning,
            operation,
        } = self;
        let Identity { name, version, owner } = identity;
        b.field("name", label(name));
        b.field("version", label(version));
        b.field("owner", label(owner));
        b.field("like", Like(like));
        b.field("order", Order(order));
        b.section("model", |b| bind_model(model, b));
        b.section("prompt", |b| bind_prompt(prompt, b));
        b.section("constraints", |b| bind_constraints(constraints, b));
        b.section("shape", |b| bind_shape(shape, b));
        b.section("choose", |b| bind_choose(choose, b));
        b.section("stop", |b| bind_stop(stop, b));
        b.section("reasoning", |b| bind_reasoning(reasoning, b));
        bind_operation(operation, b);
    }
}

fn bind_model(model: &mut ModelPin, b: &mut Binder<'_>) {
    let ModelPin { name, sha256, tokenizer_sha256 } = model;
    b.field("name", label(name));
    b.field("sha256", Hash(sha256));
    b.field("tokenizer_sha256", Hash(tokenizer_sha256));
}

fn bind_prompt(prompt: &mut PromptText, b: &mut Binder<'_>) {
    let PromptText { template, system, prefill } = prompt;
    b.field("template", text(template, TEXT_BYTES));
    b.field("system", text(system, TEXT_BYTES));
    b.field("prefill", text(prefill, TEXT_BYTES));
}

fn bind_constraints(constraints: &mut Constraints, b: &mut Binder<'_>) {
    let Constraints {
        allowed_tokens,
        forbidden_tokens,
        bad_words,
        logit_bias,
        min_tokens,
        repetition_penalty,
        repetition_window,
        presence_penalty,
        frequency_penalty,
        penalty_window,
        no_repeat_ngram,
        dry,
        form,
    } = constraints;
    b.field("allowed_tokens", Tokens { value: allowed_tokens, may_be_empty: false });
    b.field("forbidden_tokens", Tokens { value: forbidden_tokens, may_be_empty: true });
    b.field("bad_words", Sequences(bad_words));
    b.field("logit_bias", Biases(logit_bias));
    b.field("min_tokens", Count { value: min_tokens, min: 0, max: COUNT_MAX });
    b.field(
        "repetition_penalty",
        Number { value: repetition_penalty, min: 0.0, max: 100.0, above: true },
    );
    b.field("repetition_window", Reach(repetition_window));
    b.field("presence_penalty", number(presence_penalty, -100.0, 100.0));
    b.field("frequency_penalty", number(frequency_penalty, -100.0, 100.0));
    b.field("penalty_window", Reach(penalty_window));
    b.field("no_repeat_ngram", Count { value: no_repeat_ngram, min: 0, max: NGRAM_MAX });
    let Dry { multiplier, base, allowed_length, window, breakers } = dry;
    b.field("dry_multiplier", number(multiplier, 0.0, 100.0));
    b.field("dry_base", number(base, 1.0, 100.0));
    b.field("dry_allowed_length", Count { value: allowed_length, min: 1, max: COUNT_MAX });
    b.field("dry_window", Reach(window));
    b.field("dry_breakers", Sequences(breakers));
    bind_form(form, b);
}

fn bind_form(form: &mut Form, b: &mut Binder<'_>) {
    let Form { schema, json_object, regex, grammar, choice, tools, whitespace } = form;
    b.field("schema", Text { value: schema, bytes_max: TEXT_BYTES, may_be_empty: false });
    b.field("json_object", Flag(json_object));
    b.field("regex", Text { value: regex, bytes_max: GRAMMAR_BYTES, may_be_empty: false });
    b.field("grammar", Text { value: grammar, bytes_max: GRAMMAR_BYTES, may_be_empty: false });
    let (count_max, bytes_max) = (CHOICES_MAX, GRAMMAR_BYTES);
    b.field("choice", Texts { value: choice, count_max, bytes_max });
    b.field("tools", Text { value: tools, bytes_max: TEXT_BYTES, may_be_empty: false });
    b.field("whitespace", Word { value: whitespace, words: WHITESPACES });
}

fn bind_shape(shape: &mut Shape, b: &mut Binder<'_>) {
    let Shape {
        temperature,
        top_k,
        top_p,
        min_p,
        typical_p,
        top_n_sigma,
        epsilon_cutoff,
        eta_cutoff,
    } = shape;
    b.field("temperature", number(temperature, 0.0, 100.0));
    b.field("top_k", Count { value: top_k, min: 0, max: COUNT_MAX });
    b.field("top_p", Number { value: top_p, min: 0.0, max: 1.0, above: true });
    b.field("min_p", number(min_p, 0.0, 1.0));
    b.field("typical_p", Number { value: typical_p, min: 0.0, max: 1.0, above: true });
    b.field("top_n_sigma", number(top_n_sigma, 0.0, 1000.0));
    b.field("epsilon_cutoff", number(epsilon_cutoff, 0.0, 1.0));
    b.field("eta_cutoff", number(eta_cutoff, 0.0, 1.0));
    for name in ["xtc_probability", "xtc_threshold", "dynatemp_range", "mirostat", "top_h"] {
        b.not_yet(name);
    }
}

fn bind_choose(choose: &mut ChooseRule, b: &mut Binder<'_>) {
    let ChooseRule { method, seed } = choose;
    b.field("method", Word { value: method, words: METHODS });
    b.field("seed", MaybeCount(seed, 0, u64::MAX));
}

fn bind_stop(stop: &mut Stop, b: &mut Binder<'_>) {
    let Stop { tokens_max, strings, tokens, ignore_eos } = stop;
    b.field("tokens_max", MaybeCount(tokens_max, 1, COUNT_MAX));
    b.field("strings", Texts { value: strings, count_max: 64, bytes_max: SENTENCE_BYTES });
    b.field("tokens", Tokens { value: tokens, may_be_empty: true });
    b.field("ignore_eos", Flag(ignore_eos));
}

fn bind_reasoning(reasoning: &mut Reasoning, b: &mut Binder<'_>) {
    let Reasoning { open, close, tokens_max } = reasoning;
    b.field("open", label(open));
    b.field("close", label(close));
    b.field("tokens_max", MaybeCount(tokens_max, 0, COUNT_MAX));
}

fn bind_operation(operation: &mut Operation, b: &mut Binder<'_>) {
    let Operation { account, on_disconnect, result_cache, slo, fallback, failure_modes } =
        operation;
    b.section("account", |b| b.field("level", Word { value: account, words: LEVELS }));
    b.section("delivery", |b| {
        b.field("on_disconnect", Word { value: on_disconnect, words: DISCONNECTS });
        b.field("result_cache", MaybeFlag(result_cache));
    });
    let Slo { ttft_ms, itl_ms, tpot_ms, total_ms } = slo;
    b.section("slo", |b| {
        b.field("ttft_ms", MaybeNumber(ttft_ms, MS_MAX));
        b.field("itl_ms", MaybeNumber(itl_ms, MS_MAX));
        b.field("tpot_ms", MaybeNumber(tpot_ms, MS_MAX));
        b.field("total_ms", MaybeNumber(total_ms, MS_MAX));
    });
    let Fallback { policy, version, sha256 } = fallback;
    b.section("fallback", |b| {
        b.field("policy", label(policy));
        b.field("version", label(version));
        b.field("sha256", Hash(sha256));
    });
    b.tables("failure_modes", failure_modes, |b, mode: &mut FailureMode| {
        let FailureMode { name, detector, owner, mitigation, stop_condition } = mode;
        b.field("name", label(name));
        b.field("detector", sentence(detector));
        b.field("owner", sentence(owner));
        b.field("mitigation", sentence(mitigation));
        b.field("stop_condition", sentence(stop_condition));
    });
}

fn number(value: &mut f64, min: f64, max: f64) -> Number<'_> {
    Number { value, min, max, above: false }
}

fn label(value: &mut Option<String>) -> Text<'_> {
    Text { value, bytes_max: NAME_BYTES, may_be_empty: false }
}

fn sentence(value: &mut Option<String>) -> Text<'_> {
    Text { value, bytes_max: SENTENCE_BYTES, may_be_empty: false }
}

/// A text whose emptiness has a meaning: no system text is another thing than the default one.
fn text(value: &mut Option<String>, bytes_max: usize) -> Text<'_> {
    Text { value, bytes_max, may_be_empty: true }
}
