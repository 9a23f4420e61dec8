//! Sixty-four mixed requests on the real models give the bits that each gives alone.
//!
//! The full grid of all models takes long and runs only where `CAUSEWAY_FULL_GRID` is set.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its model must stop")]
#![expect(clippy::print_stdout, reason = "the grid's progress is worth seeing")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use causeway_engine::{Ended, Engine, Limits, Load, Output, Submission};
use causeway_kernels::{Kernels, KvType};
use causeway_model::{Model, Settings};
use causeway_policy::{Method, Policy, PolicyFile};
use causeway_request::{Canceller, Priority, Request, RequestId, TokenId};
use causeway_weights::ModelFile;

const REQUESTS: u64 = 64;
/// Every so many requests one is cancelled.
const CANCELLED: u64 = 8;
/// More steps than all requests need one after the other, in chunks of 16.
const STEPS_MAX: usize = 20_000;

/// Token and digest, step by step.
type Bits = Vec<(u32, u128)>;

/// How long prompts and answers are.
#[derive(Debug, Clone, Copy)]
struct Mix {
    prompt_max: u64,
    new_max: u64,
}

/// One way to run the requests.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    concurrency: usize,
    prefix_cache: bool,
    chunk: usize,
    threads: usize,
}

const fn way(concurrency: usize, prefix_cache: bool, chunk: usize, threads: usize) -> Way {
    Way { concurrency, prefix_cache, chunk, threads }
}

/// What each request alone is run as; with `PAIRWISE`, all pairs of values occur.
const ALONE: Way = way(1, false, 512, 2);
const PAIRWISE: [Way; 5] = [
    way(1, true, 16, 1),
    way(8, false, 16, 2),
    way(8, true, 512, 1),
    way(32, false, 512, 1),
    way(32, true, 16, 2),
];

fn model(file: &str, name: &str, threads: usize) -> Model {
    let home = std::env::var_os("CAUSEWAY_HOME").map(PathBuf::from).unwrap_or_else(|| {
        let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let base = base.unwrap_or_else(|| {
            PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share")
        });
        base.join("causeway")
    });
    let path = home.join("models").join(file);
    assert!(path.is_file(), "{} is missing: run `causeway pull {name}`", path.display());
    let file = Arc::new(ModelFile::open(&path).unwrap());
    let settings = Settings { context_len: None, kv_type: KvType::F16, threads };
    Model::load(file, settings, Kernels::best()).unwrap()
}

fn policy(id: u64, vocab_size: usize) -> Policy {
    let mut file = PolicyFile::default();
    match id % 3 {
        0 => file.choose.method = Method::Greedy,
        1 => (),
        _ => (file.shape.top_k, file.shape.top_p) = (40, 0.9),
    }
    Policy::from_file(&file, vocab_size, &[]).unwrap()
}

/// A number below `end` that depends on `seed` alone, small ones more often.
fn number(seed: u64, end: u64) -> u64 {
    let mixed = |salt: u64| (seed + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    (mixed(1) % end) * (mixed(1_000) % end) / end
}

/// Every third prompt begins with the words of all others of its kind.
fn request(id: u64, mix: Mix) -> Request {
    let length = 1 + number(id, mix.prompt_max);
    // Batch requests run long, so that others find them running.
    let new = if is_batch(id) { mix.new_max } else { 1 + number(id + 500, mix.new_max) };
    let kind = if id.is_multiple_of(3) { 7 } else { id };
    let token = |i: u64| {
        let own = if i < length * 3 / 4 { kind } else { id };
        TokenId(u32::try_from(1_000 + (i * 7_919 + own * 104_729) % 30_000).unwrap())
    };
    Request {
        id: RequestId(id),
        tokens: (0..length).map(token).collect(),
        prefilled: 0,
        tokens_max: usize::try_from(new).unwrap(),
        stop_tokens: Vec::new(),
        eos_tokens: Vec::new(),
        seed: 42 + id,
        choice: 0,
    }
}

fn is_batch(id: u64) -> bool {
    id.is_multiple_of(5)
}

fn submission(id: u64, mix: Mix, vocab_size: usize) -> Submission {
    let priority = if is_batch(id) { Priority::Batch } else { Priority::Interactive };
    let submission = Submission::new(request(id, mix), policy(id, vocab_size), 0);
    Submission { priority, ..submission }
}

/// Takes `steps` steps, or as many as it needs until everyone is gone; a run that is to be
/// cancelled ends after its first token.
fn run(engine: &mut Engine, steps: usize, cancels: bool, bits: &mut BTreeMap<u64, Bits>) {
    for _ in 0..steps {
        if engine.is_idle() {
            break;
        }
        let mut cancelled = Vec::new();
        for output in engine.step(&mut || 0) {
            match output {
                Output::Ended(Ended { stop, .. }) => assert_eq!(stop.name(), "max_tokens"),
                Output::Step(step) => {
                    let id = step.request.0;
                    cancelled.extend((cancels && id % CANCELLED == 3).then_some(step.request));
                    bits.entry(id).or_default().push((step.choice.token.0, step.digest.0));
                }
            }
        }
        for id in cancelled {
            engine.cancel(id, Canceller::Client);
        }
    }
}

fn all_alone(model: Model, mix: Mix) -> BTreeMap<u64, Bits> {
    let vocab_size = model.config().shape.vocab_size;
    let limits = Limits { prefix_cache: ALONE.prefix_cache, ..Limits::new(1, ALONE.chunk) };
    let mut engine = Engine::new(model, limits);
    let mut bits = BTreeMap::new();
    for id in 0..REQUESTS {
        engine.submit(submission(id, mix, vocab_size)).unwrap();
        run(&mut engine, STEPS_MAX, false, &mut bits);
    }
    bits
}

fn together(model: Model, mix: Mix, way: Way) -> (BTreeMap<u64, Bits>, u64) {
    let Way { concurrency, prefix_cache, chunk, .. } = way;
    let vocab_size = model.config().shape.vocab_size;
    // Less room than all who may run could use, so that some wait and some are preempted.
    let positions = usize::try_from((mix.prompt_max + mix.new_max) * 2).unwrap();
    let kv_positions_max = Some(positions.max(256));
    let limits = Limits { prefix_cache, kv_positions_max, ..Limits::new(concurrency, chunk) };
    let mut engine = Engine::new(model, limits);
    let mut bits = BTreeMap::new();
    // The urgent ones come when the others run, and take their slots.
    for is_batch_turn in [true, false] {
        let ids = || (0..REQUESTS).filter(|&id| is_batch(id) == is_batch_turn);
        engine.submit_all(ids().map(|id| submission(id, mix, vocab_size)).collect()).unwrap();
        for id in ids().filter(|id| id % CANCELLED == 5) {
            engine.cancel(RequestId(id), Canceller::Disconnect).unwrap();
        }
        run(&mut engine, if is_batch_turn { 6 } else { STEPS_MAX }, true, &mut bits);
    }
    assert!(engine.is_idle(), "everyone ends");
    let Load { held_blocks, prefix_hits, preemptions, .. } = engine.load();
    println!("{way:?}: {prefix_hits} prefix hits, {preemptions} preemptions");
    assert_eq!(prefix_hits > 0, prefix_cache, "the prompts begin alike");
    assert_eq!(held_blocks, 0, "every block is given back");
    (bits, preemptions)
}

/// Compares every way with each request alone.
fn check((file, name): (&str, &str), mix: Mix, ways: &[Way]) {
    let want = all_alone(model(file, name, ALONE.threads), mix);
    let steps: usize = want.values().map(Vec::len).sum();
    println!("{name}: {steps} steps of {REQUESTS} requests, each alone");
    let mut all_preemptions = 0;
    for &way in ways {
        let (got, preemptions) = together(model(file, name, way.threads), mix, way);
        all_preemptions += preemptions;
        for id in 0..REQUESTS {
            let (got, want) = (got.get(&id), &want[&id]);
            let count = match id % CANCELLED {
                3 => 1,
                5 => 0,
                _ => want.len(),
            };
            assert_eq!(got.map_or(&[][..], |got| got), &want[..count], "{way:?}, request {id}");
        }
    }
    assert!(all_preemptions > 0, "the urgent take slots");
}

#[test]
fn mixed_requests_give_the_bits_that_each_gives_alone() {
    let smollm2 = ("smollm2-135m.gguf", "smollm2:135m");
    if std::env::var_os("CAUSEWAY_FULL_GRID").is_none() {
        return check(smollm2, Mix { prompt_max: 60, new_max: 10 }, &PAIRWISE);
    }
    let mut ways = Vec::new();
    for concurrency in [1, 8, 32] {
        for (prefix_cache, chunk) in [(true, 16), (true, 512), (false, 16), (false, 512)] {
            ways.extend([1, 2].map(|threads| way(concurrency, prefix_cache, chunk, threads)));
        }
    }
    let qwen = ("qwen2.5-coder-0.5b.gguf", "qwen2.5-coder:0.5b");
    let gemma = ("gemma3-270m.gguf", "gemma3:270m");
    for file in [smollm2, gemma, qwen] {
        check(file, Mix { prompt_max: 300, new_max: 40 }, &ways);
    }
}
