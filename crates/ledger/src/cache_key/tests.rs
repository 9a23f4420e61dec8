//! Which changes of a request make another key, and which do not.

use super::*;
use crate::Template;
use crate::tests::start;

fn key(start: &Start) -> CacheKey {
    cache_key(start, CacheScope::Everyone)
}

#[test]
fn all_that_reaches_the_answer_is_in_the_key() {
    check("nothing", |_| {}, false);
    check("weights", |start| start.model.sha256 = Sha256::of(b"x"), true);
    check("settings", |start| start.model.settings.clear(), true);
    check("tokenizer", |start| start.model.tokenizer_sha256 = None, true);
    check("numerics", |start| start.numerics.version += 1, true);
    check("kv type", |start| start.numerics.kv_type = "f32".to_owned(), true);
    check("policy", |start| start.policy.sha256 = Sha256::of(b"x"), true);
    check("engine", |start| start.conditions.engine = "0.2.0".to_owned(), true);
    check("template", |start| start.template = Some(Template::new("x".to_owned())), true);
    check("prompt", |start| start.request.effective.prompt_tokens[1] += 1, true);
    check("prefill", |start| start.request.effective.prefilled_tokens.clear(), true);
    check(
        "split",
        |start| {
            let effective = &mut start.request.effective;
            effective.prompt_tokens.append(&mut effective.prefilled_tokens);
        },
        true,
    );
    check("budget", |start| start.request.effective.tokens_max -= 1, true);
    check("stop tokens", |start| start.request.effective.stop_tokens.clear(), true);
    check("eos tokens", |start| start.request.effective.eos_tokens.clear(), true);
    check("stop strings", |start| start.request.effective.stop_strings.clear(), true);
    check("seed", |start| start.request.effective.seed -= 1, true);
    check("choice", |start| start.request.effective.choice += 1, true);
}

#[test]
fn nothing_else_is_in_the_key() {
    check("request id", |start| start.request.id += 1, false);
    check("received", |start| start.request.received = "x".into(), false);
    check("model name", |start| start.model.name.clear(), false);
    check("context", |start| start.request.effective.context_len += 1, false);
    check("threads", |start| start.conditions.threads += 1, false);
    check("isa", |start| start.conditions.isa.clear(), false);
    check("prompt text", |start| start.request.effective.prompt = None, false);
}

fn check(what: &str, change: impl Fn(&mut Start), want_other: bool) {
    let mut changed = start();
    change(&mut changed);
    assert_eq!(key(&changed) != key(&start()), want_other, "{what}");
}

#[test]
fn a_greedy_answer_has_neither_seed_nor_choice() {
    let mut greedy = start();
    greedy.policy.greedy = true;
    let mut other = greedy.clone();
    other.request.effective.seed -= 1;
    other.request.effective.choice += 1;
    assert_eq!(key(&greedy), key(&other));
    assert_ne!(key(&greedy), key(&start()));
}

#[test]
fn tenants_share_nothing() {
    let scopes = [
        CacheScope::Everyone,
        CacheScope::Salt(""),
        CacheScope::Salt("a"),
        CacheScope::ApiKey(""),
        CacheScope::ApiKey("a"),
        CacheScope::Salt("everyone"),
    ];
    let keys: std::collections::HashSet<Sha256> =
        scopes.iter().map(|scope| cache_key(&start(), *scope).sha256()).collect();
    assert_eq!(keys.len(), scopes.len());
}
