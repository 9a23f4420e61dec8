//! Three real models against float32 references: distributions, continuations, likelihoods.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its fixture must stop")]
#![expect(clippy::print_stdout, reason = "the figures reached are worth seeing")]

mod support;

use causeway_kernels::{Isa, KvType};
use causeway_kv_cache::Cache;
use causeway_model::Model;
use causeway_request::{RequestId, TokenId};
use serde_json::Value;
use support::{all_logits, bits, load, real_model, step, testdata, tokens};

/// What is allowed of one model. KL in nats, relative bits per byte of one passage and of all.
struct Limits {
    file: &'static str,
    name: &'static str,
    fixtures: &'static str,
    mean_kl: f64,
    /// With keys and values in q8_0.
    mean_kl_q8_0: f64,
    margin: f64,
    passage: f64,
    all_passages: f64,
}

const SMOLLM2: Limits = Limits {
    file: "smollm2-135m.gguf",
    name: "smollm2:135m",
    fixtures: "smollm2",
    mean_kl: 0.0034,
    mean_kl_q8_0: 0.0034,
    margin: 0.25,
    passage: 0.02,
    all_passages: 0.005,
};
const QWEN: Limits = Limits {
    file: "qwen2.5-coder-0.5b.gguf",
    name: "qwen2.5-coder:0.5b",
    fixtures: "qwen2.5-coder-0.5b",
    mean_kl: 0.001,
    mean_kl_q8_0: 0.0022,
    margin: 0.25,
    passage: 0.01,
    all_passages: 0.005,
};
const GEMMA: Limits = Limits {
    file: "gemma3-270m.gguf",
    name: "gemma3:270m",
    fixtures: "gemma3-270m",
    mean_kl: 0.0085,
    mean_kl_q8_0: 0.004,
    margin: 1.5,
    passage: 0.04,
    all_passages: 0.005,
};

fn open(limits: &Limits) -> Model {
    load(&real_model(limits.file, limits.name), Isa::best(), 2, KvType::F16)
}

fn fixture(limits: &Limits, kind: &str) -> Value {
    let path = testdata().join("logits").join(format!("{}.{kind}.json", limits.fixtures));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| u32::try_from(v.as_u64().unwrap()).unwrap()).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn logsumexp(row: &[f32]) -> f64 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&l| (f64::from(l) - f64::from(max)).exp()).sum();
    f64::from(max) + sum.ln()
}

/// KL of the reference's 64 best tokens, and of what is left as one, to the engine's.
fn kl(position: &Value, row: &[f32]) -> f64 {
    let (top, logits) = (ids(&position["top_ids"]), numbers(&position["top_logits"]));
    let (reference, engine) = (position["logsumexp"].as_f64().unwrap(), logsumexp(row));
    let (mut p_left, mut q_left, mut sum) = (1.0f64, 1.0f64, 0.0f64);
    for (&id, &logit) in top.iter().zip(&logits) {
        let log_p = logit - reference;
        let log_q = f64::from(row[id as usize]) - engine;
        sum += log_p.exp() * (log_p - log_q);
        p_left -= log_p.exp();
        q_left -= log_q.exp();
    }
    let left = if p_left > 1e-12 { p_left * (p_left / q_left.max(1e-12)).ln() } else { 0.0 };
    sum + left
}

fn check_distributions(limits: &Limits) {
    check_kl(limits, KvType::F16, limits.mean_kl);
    check_kl(limits, KvType::Q8_0, limits.mean_kl_q8_0);
}

fn check_kl(limits: &Limits, kv_type: KvType, limit: f64) {
    let model = load(&real_model(limits.file, limits.name), Isa::best(), 2, kv_type);
    let fixture = fixture(limits, "logits");
    let (mut sum, mut count) = (0.0, 0u32);
    for prompt in fixture["prompts"].as_array().unwrap() {
        let rows = all_logits(&model, &ids(&prompt["ids"]), 512);
        for position in prompt["positions"].as_array().unwrap() {
            let at = usize::try_from(position["pos"].as_u64().unwrap()).unwrap();
            sum += kl(position, &rows[at]);
            count += 1;
        }
    }
    let mean = sum / f64::from(count);
    let what = format!("{}, {}", limits.name, kv_type.name());
    println!("{what}: mean KL {mean:.6} nats over {count} positions");
    assert!(mean <= limit, "{what}: mean KL {mean}, limit {limit}");
}

fn best(row: &[f32]) -> u32 {
    let best = (0..row.len()).reduce(|best, i| if row[i] > row[best] { i } else { best });
    u32::try_from(best.unwrap()).unwrap()
}

fn check_continuations(limits: &Limits) {
    let (model, fixture) = (open(limits), fixture(limits, "greedy"));
    for case in fixture["cases"].as_array().unwrap() {
        let (prompt, want) = (ids(&case["prompt_ids"]), ids(&case["output_ids"]));
        let mut cache = Cache::new(&model.kv_shape(1, 512));
        let mut position = 0;
        let mut next = tokens(&prompt);
        for (index, margin) in numbers(&case["margins"]).into_iter().enumerate() {
            let logits = step(&model, &mut cache, RequestId(0), position, &next, 1);
            if margin < limits.margin {
                break;
            }
            let got = best(&logits[0]);
            assert_eq!(got, want[index], "{} {} step {index}", limits.name, case["name"]);
            position += next.len();
            next = vec![TokenId(got)];
        }
    }
}

fn check_likelihoods(limits: &Limits) {
    let (model, fixture) = (open(limits), fixture(limits, "nll"));
    let (mut all, mut all_want) = (0.0, 0.0);
    for passage in fixture["passages"].as_array().unwrap() {
        let ids = ids(&passage["ids"]);
        let rows = all_logits(&model, &ids, 128);
        let predicted = rows.iter().zip(&ids[1..]);
        let nll: f64 =
            predicted.map(|(row, &id)| logsumexp(row) - f64::from(row[id as usize])).sum();
        let want = passage["nll_nats"].as_f64().unwrap();
        let error = (nll / want - 1.0).abs();
        let name = &passage["name"];
        assert!(error <= limits.passage, "{} {name}: {nll} for {want}", limits.name);
        all += nll;
        all_want += want;
    }
    println!("{}: all passages {all:.2} nats for {all_want:.2}", limits.name);
    assert!((all / all_want - 1.0).abs() <= limits.all_passages, "{all} for {all_want}");
}

/// Same bits for 1 and 2 threads, in chunks of 1, 7, 64 and all, on every path, after eviction.
fn check_exactness(limits: &Limits, length: usize) {
    let file = real_model(limits.file, limits.name);
    let prompts = fixture(limits, "logits");
    let prompts = prompts["prompts"].as_array().unwrap();
    let longest = prompts.iter().max_by_key(|p| p["ids"].as_array().unwrap().len()).unwrap();
    let mut ids = ids(&longest["ids"]);
    ids.truncate(length);
    let model = load(&file, Isa::best(), 2, KvType::F16);
    let want = bits(&all_logits(&model, &ids, ids.len()));
    for chunk in [1, 7, 64] {
        let got = bits(&all_logits(&model, &ids, chunk));
        assert!(got == want, "{}: chunks of {chunk}", limits.name);
    }
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_present()) {
        let model = load(&file, isa, 1, KvType::F16);
        // The scalar path is slow: it is compared on fewer positions.
        let ids = if isa == Isa::Scalar { &ids[..ids.len().min(4)] } else { &ids };
        let got = bits(&all_logits(&model, ids, ids.len()));
        assert!(got == want[..ids.len()], "{}: {isa:?}, one thread", limits.name);
    }
    let mut cache = Cache::new(&model.kv_shape(1, 512));
    let all = tokens(&ids);
    step(&model, &mut cache, RequestId(0), 0, &all[..all.len() / 2], 0);
    cache.remove(RequestId(0));
    let again = step(&model, &mut cache, RequestId(0), 0, &all, all.len());
    assert!(bits(&again) == want, "{}: after eviction", limits.name);
}

#[test]
fn smollm2_agrees_with_float32() {
    check_distributions(&SMOLLM2);
    check_continuations(&SMOLLM2);
    check_likelihoods(&SMOLLM2);
}

#[test]
fn qwen_agrees_with_float32() {
    check_distributions(&QWEN);
    check_continuations(&QWEN);
    check_likelihoods(&QWEN);
}

#[test]
fn gemma_agrees_with_float32() {
    check_distributions(&GEMMA);
    check_continuations(&GEMMA);
    check_likelihoods(&GEMMA);
}

#[test]
fn smollm2_gives_the_same_bits_on_every_way() {
    check_exactness(&SMOLLM2, 150);
}

#[test]
fn qwen_gives_the_same_bits_on_every_way() {
    check_exactness(&QWEN, 70);
}

#[test]
fn gemma_gives_the_same_bits_on_every_way() {
    check_exactness(&GEMMA, 600);
}
