//! The loop on a tiny model: steps, stops, refusals, cancels and recomputation.

mod accounts;
mod drafts;
mod guides;
mod held;
mod prefixes;
mod stand_in;
mod stress;
mod waits;

use std::path::Path;
use std::sync::Arc;

use causeway_kernels::{Kernels, KvType};
use causeway_model::{Model, Settings};
use causeway_policy::{Method, Policy, PolicyFile};
use causeway_request::{Canceller, Request, RequestId, StepOutput, StopReason, TokenId};
use causeway_weights::ModelFile;

use crate::{Ended, Engine, Limits, Output, Refusal, Submission, digest};

const VOCAB_SIZE: usize = 512;
/// More passes than any test here needs, so that a fault ends it.
const PASSES_MAX: usize = 2_000;

fn engine(context_len: usize, running_max: usize, budget: usize) -> Engine {
    engine_of("llama", context_len, Limits::new(running_max, budget))
}

fn engine_of(model: &str, context_len: usize, limits: Limits) -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny").join(model);
    let file = Arc::new(ModelFile::open(&folder).unwrap());
    let settings = Settings { context_len: Some(context_len), kv_type: KvType::F16, threads: 2 };
    let model = Model::load(file, settings, Kernels::best()).unwrap();
    Engine::new(model, limits)
}

fn greedy() -> Policy {
    let mut file = PolicyFile::default();
    file.choose.method = Method::Greedy;
    Policy::from_file(&file, VOCAB_SIZE, &[]).unwrap()
}

fn sampled() -> Policy {
    Policy::from_file(&PolicyFile::default(), VOCAB_SIZE, &[]).unwrap()
}

fn request(id: u64, prompt_len: u32, tokens_max: usize) -> Request {
    Request {
        id: RequestId(id),
        tokens: (0..prompt_len).map(|i| TokenId((i * 37 + 11) % 512)).collect(),
        prefilled: 0,
        tokens_max,
        stop_tokens: Vec::new(),
        eos_tokens: Vec::new(),
        seed: 42 + id,
        choice: 0,
    }
}

/// An interactive request that arrived at 0.
fn submission(id: u64, prompt_len: u32, tokens_max: usize) -> Submission {
    Submission::new(request(id, prompt_len, tokens_max), greedy(), 0)
}

/// Runs until nobody is left; calls `between` before each step.
fn run_all(engine: &mut Engine, mut between: impl FnMut(&mut Engine, usize)) -> Vec<Output> {
    let (mut outputs, mut now) = (Vec::new(), 0);
    for pass in 0..PASSES_MAX {
        if engine.is_idle() {
            break;
        }
        between(engine, pass);
        outputs.extend(engine.step(&mut || {
            now += 1_000;
            now
        }));
    }
    assert!(engine.is_idle(), "everything ended");
    assert_eq!(engine.load().held_blocks, 0, "every block is free again");
    outputs
}

fn steps_of(outputs: &[Output], id: u64) -> Vec<StepOutput> {
    let step = |output: &Output| match output {
        Output::Step(step) if step.request == RequestId(id) => Some(step.clone()),
        _ => None,
    };
    outputs.iter().filter_map(step).collect()
}

/// What exactness promises of a run: its tokens and the digests of their logits.
fn bits(steps: &[StepOutput]) -> Vec<(u32, u128)> {
    steps.iter().map(|step| (step.choice.token.0, step.digest.0)).collect()
}

fn alone(request: Request, policy: Policy) -> Vec<StepOutput> {
    alone_on("llama", request, policy)
}

fn alone_on(model: &str, request: Request, policy: Policy) -> Vec<StepOutput> {
    let (mut engine, id) = (engine_of(model, 200, Limits::new(1, 512)), request.id.0);
    engine.submit(Submission::new(request, policy, 0)).unwrap();
    steps_of(&run_all(&mut engine, |_, _| ()), id)
}

#[test]
fn a_run_counts_its_steps_passes_and_time() {
    let steps = alone(request(0, 5, 4), greedy());
    assert_eq!(steps.iter().map(|s| s.step).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(steps.iter().map(|s| s.pass).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(steps.iter().map(|s| s.rows).collect::<Vec<_>>(), [5, 1, 1, 1]);
    assert_eq!(steps[3].since_arrival_ns, 8_000);
    assert_eq!(steps[3].stop, Some(StopReason::MaxTokens { tokens_max: 4 }));
    assert!(steps[..3].iter().all(|step| step.stop.is_none()));
}

#[test]
fn each_stop_reason_is_told_apart() {
    let third = alone(request(0, 5, 9), greedy())[2].choice.token;
    let mut eos = request(0, 5, 9);
    eos.eos_tokens = vec![third];
    let steps = alone(eos.clone(), greedy());
    assert_eq!(steps.last().unwrap().stop, Some(StopReason::Eos { token: third }));
    let mut stop = request(0, 5, 9);
    stop.stop_tokens = vec![third];
    let steps = alone(stop, greedy());
    assert_eq!(steps.last().unwrap().stop, Some(StopReason::StopToken { token: third }));
    let mut engine = engine(8, 1, 512);
    engine.submit(submission(0, 5, 9)).unwrap();
    let steps = steps_of(&run_all(&mut engine, |_, _| ()), 0);
    assert_eq!(steps.len(), 3, "prompt and answer together fill the context");
    assert_eq!(steps[2].stop, Some(StopReason::ContextFull { context_len: 8 }));
}

#[test]
fn a_request_that_cannot_run_is_refused_with_its_numbers() {
    let mut engine = engine(16, 1, 512);
    let mut check = |request: Request, policy: Policy, want: Refusal| {
        let refusal = engine.submit(Submission::new(request, policy, 0)).unwrap_err();
        assert_eq!(refusal, want);
        assert_eq!(refusal.is_callers_mistake(), !matches!(refusal, Refusal::QueueFull { .. }));
    };
    check(request(0, 0, 1), greedy(), Refusal::EmptyPrompt);
    check(request(0, 3, 0), greedy(), Refusal::NothingToGenerate);
    let too_long = Refusal::PromptTooLong { tokens: 16, context_len: 16 };
    check(request(0, 16, 1), greedy(), too_long);
    let mut outside = request(0, 3, 1);
    outside.tokens[1] = TokenId(512);
    check(outside, greedy(), Refusal::TokenOutside { token: 512, vocab_size: 512 });
    let mut prefilled = request(0, 3, 1);
    prefilled.prefilled = 3;
    check(prefilled, greedy(), Refusal::PrefillTooLong { prefilled: 3, tokens: 3 });
    let other = Policy::from_file(&PolicyFile::default(), 100, &[]).unwrap();
    check(request(0, 3, 1), other, Refusal::OtherVocabulary { policy: 100, model: 512 });
    assert!(engine.is_idle());
}

#[test]
fn the_same_request_twice_is_refused() {
    let mut engine = engine(16, 2, 512);
    engine.submit(submission(7, 3, 1)).unwrap();
    let refusal = engine.submit(submission(7, 3, 1)).unwrap_err();
    assert_eq!(refusal, Refusal::Duplicate { id: RequestId(7) });
}

#[test]
fn neighbours_chunks_and_preemption_change_no_bit() {
    let requests = [(0, 3, 20), (1, 70, 12), (2, 1, 30), (3, 33, 8)];
    let policy = |id: u64| if id.is_multiple_of(2) { sampled() } else { greedy() };
    // gemma3 has layers that forget what lies outside their window.
    for (model, budget) in
        ["llama", "gemma3"].into_iter().flat_map(|m| [1, 7, 64, 512].map(|b| (m, b)))
    {
        let want: Vec<_> = requests
            .iter()
            .map(|&(id, prompt, new)| bits(&alone_on(model, request(id, prompt, new), policy(id))))
            .collect();
        let mut engine = engine_of(model, 200, Limits::new(4, budget));
        for (id, prompt, new) in requests {
            engine.submit(Submission::new(request(id, prompt, new), policy(id), 0)).unwrap();
        }
        let outputs = run_all(&mut engine, |engine, pass| {
            // Only early on: with one token a pass an evicted prompt takes many passes.
            if pass % 9 == 5 && pass < 60 {
                engine.preempt(RequestId(pass as u64 % 4));
            }
        });
        for (id, want) in want.iter().enumerate() {
            assert_eq!(
                bits(&steps_of(&outputs, id as u64)),
                *want,
                "{model}, budget {budget}, {id}"
            );
        }
    }
}

#[test]
fn a_cancelled_run_ends_between_passes_and_frees_its_blocks() {
    let mut engine = engine(200, 2, 512);
    engine.submit(submission(0, 40, 50)).unwrap();
    engine.submit(submission(1, 40, 3)).unwrap();
    let mut stop = None;
    let outputs = run_all(&mut engine, |engine, pass| {
        if pass == 5 {
            stop = engine.cancel(RequestId(0), Canceller::Client);
        }
    });
    let ended: Ended = stop.unwrap();
    assert_eq!(ended.stop, StopReason::Cancelled { by: Canceller::Client, after_step: 5 });
    assert_eq!((ended.account.steps, ended.account.unscheduled_steps), (5, 45));
    assert_eq!(steps_of(&outputs, 0).len(), 5);
    assert_eq!(engine.cancel(RequestId(0), Canceller::Client), None);
}

#[test]
fn a_run_whose_policy_leaves_nothing_ends_alone_and_says_why() {
    let mut file = PolicyFile::default();
    file.constraints.forbidden_tokens = (0..512).map(TokenId).collect();
    let nothing = Policy::from_file(&file, VOCAB_SIZE, &[]).unwrap();
    let mut engine = engine(200, 2, 512);
    engine.submit(Submission::new(request(0, 4, 3), nothing, 0)).unwrap();
    engine.submit(submission(1, 4, 3)).unwrap();
    let outputs = run_all(&mut engine, |_, _| ());
    assert_eq!(bits(&steps_of(&outputs, 1)), bits(&alone(request(1, 4, 3), greedy())));
    let ended = outputs.iter().find_map(|output| match output {
        Output::Ended(Ended {
            request,
            stop: StopReason::Error { message, is_callers_mistake },
            ..
        }) => {
            assert!(is_callers_mistake, "the policy is the caller's");
            Some((*request, message.clone()))
        }
        _ => None,
    });
    let (id, message) = ended.unwrap();
    assert_eq!(id, RequestId(0));
    assert!(message.contains("step 0"), "{message}");
}

#[test]
fn the_response_prefill_is_prefix_to_the_policy() {
    let mut prefilled = request(0, 8, 2);
    prefilled.prefilled = 3;
    let steps = alone(prefilled, sampled());
    assert_eq!(steps.iter().map(|s| s.step).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_digest_follows_every_bit() {
    let row: Vec<f32> = (0..5000u16).map(f32::from).collect();
    let same = digest(&row);
    assert_eq!(digest(&row.clone()), same);
    for at in [0, 1023, 1024, 4999] {
        let mut other = row.clone();
        other[at] = f32::from_bits(other[at].to_bits() ^ 1);
        assert_ne!(digest(&other), same, "{at}");
    }
    assert_ne!(digest(&[0.0]), digest(&[-0.0]));
}
