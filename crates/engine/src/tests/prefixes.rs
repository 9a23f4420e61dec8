//! Cached prefixes and shared prompts: what is spared, what is told, and never another bit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use causeway_request::RequestId;

use super::{alone_on, bits, engine_of, greedy, request, run_all, sampled, steps_of};
use crate::{ChainHash, Engine, Limits, Output, PassAccount, Shelf, Submission};

fn account_of(outputs: &[Output], id: u64) -> PassAccount {
    let end = |output: &Output| match output {
        Output::Ended(ended) if ended.request == RequestId(id) => Some(ended.account),
        _ => None,
    };
    outputs.iter().find_map(end).unwrap()
}

/// Runs one request by itself; how many tokens came from the cache?
fn cached(engine: &mut Engine, id: u64, prompt_len: u32, salt: Option<&str>) -> usize {
    let cache_salt = salt.map(str::to_owned);
    let request = request(id, prompt_len, 3);
    engine.submit(Submission { cache_salt, ..Submission::new(request, greedy(), 0) }).unwrap();
    let outputs = run_all(engine, |_, _| ());
    account_of(&outputs, id).cached_tokens
}

#[test]
fn a_second_prompt_is_told_what_it_was_spared() {
    let mut engine = engine_of("llama", 250, Limits::new(2, 64));
    let asked = [(100, 0), (100, 96), (96, 80), (150, 96), (150, 144), (17, 16), (16, 0)];
    for (id, (prompt_len, want)) in asked.into_iter().enumerate() {
        let got = cached(&mut engine, id as u64, prompt_len, None);
        assert_eq!(got, want, "prompt {id} of {prompt_len} tokens");
    }
    let load = engine.load();
    assert_eq!((load.prefix_lookups, load.prefix_hits), (7, 5));
    assert_eq!(load.prefix_tokens_hit, 96 + 80 + 96 + 144 + 16);
    let mut off = engine_of("llama", 250, Limits { prefix_cache: false, ..Limits::new(2, 64) });
    assert_eq!([0, 1].map(|id| cached(&mut off, id, 100, None)), [0, 0]);
    assert_eq!((off.load().prefix_lookups, off.load().cached_blocks), (0, 0));
}

#[test]
fn a_salt_shares_with_its_like_alone() {
    let mut engine = engine_of("llama", 250, Limits::new(4, 64));
    let salts = [None, Some("X"), Some("Y"), Some("X"), None, Some(""), Some("Y")];
    let wants = [0, 0, 0, 96, 96, 0, 96];
    for (id, (salt, want)) in salts.into_iter().zip(wants).enumerate() {
        assert_eq!(cached(&mut engine, id as u64, 100, salt), want, "{id}: {salt:?}");
    }
}

#[test]
fn an_answer_is_a_prefix_too() {
    let mut engine = engine_of("gemma3", 250, Limits::new(1, 64));
    let first = request(0, 30, 40);
    engine.submit(Submission::new(first.clone(), greedy(), 0)).unwrap();
    let answer = steps_of(&run_all(&mut engine, |_, _| ()), 0);
    let mut second = request(1, 0, 5);
    second.tokens = first.tokens;
    second.tokens.extend(answer.iter().map(|step| step.choice.token));
    engine.submit(Submission::new(second.clone(), sampled(), 0)).unwrap();
    let outputs = run_all(&mut engine, |_, _| ());
    // The last token of the answer was chosen and never computed.
    assert_eq!(account_of(&outputs, 1).cached_tokens, 64);
    assert_eq!(bits(&steps_of(&outputs, 1)), bits(&alone_on("gemma3", second, sampled())));
}

#[test]
fn parallel_choices_compute_their_prompt_once() {
    for (model, prefix_cache, running_max) in
        [("llama", true, 8), ("llama", false, 8), ("gemma3", false, 2), ("gemma3", true, 1)]
    {
        let choice = |index: u32| {
            let mut request = request(u64::from(index), 70, 6);
            (request.choice, request.seed) = (index, 7);
            request
        };
        let want: Vec<_> = (0..4).map(|i| bits(&alone_on(model, choice(i), sampled()))).collect();
        let limits = Limits { prefix_cache, ..Limits::new(running_max, 32) };
        let mut engine = engine_of(model, 250, limits);
        let submission = |index| Submission {
            shares_with: (index > 0).then_some(RequestId(0)),
            ..Submission::new(choice(index), sampled(), 0)
        };
        engine.submit_all((0..4).map(submission).collect()).unwrap();
        let mut rows = 0;
        let outputs = run_all(&mut engine, |engine, _| rows += engine.last_pass().rows);
        rows += engine.last_pass().rows;
        for (id, want) in want.iter().enumerate() {
            assert_eq!(bits(&steps_of(&outputs, id as u64)), *want, "{model}, choice {id}");
        }
        // The prompt once, its last six positions for each further choice, five decodes each.
        assert_eq!(rows, 70 + 3 * 6 + 4 * 5, "{model}, {prefix_cache}, {running_max}");
        let shared = [0, 1, 2, 3].map(|id| account_of(&outputs, id).shared_tokens);
        assert_eq!(shared, [0, 64, 64, 64]);
    }
}

#[test]
fn choices_outlive_the_first_one() {
    // The first choice ends with its first token, or is cancelled before its prompt is computed.
    for cancelled in [false, true] {
        let mut engine =
            engine_of("llama", 250, Limits { prefix_cache: false, ..Limits::new(2, 16) });
        let want = bits(&alone_on("llama", request(1, 40, 5), sampled()));
        let mut first = request(0, 40, 1);
        first.tokens = request(1, 40, 1).tokens;
        engine.submit(Submission::new(first, greedy(), 0)).unwrap();
        let second = Submission::new(request(1, 40, 5), sampled(), 0);
        engine.submit(Submission { shares_with: Some(RequestId(0)), ..second }).unwrap();
        let outputs = run_all(&mut engine, |engine, pass| {
            if cancelled && pass == 1 {
                engine.cancel(RequestId(0), causeway_request::Canceller::Client).unwrap();
            }
        });
        assert_eq!(bits(&steps_of(&outputs, 1)), want);
        let shared = account_of(&outputs, 1).shared_tokens;
        assert_eq!(shared, if cancelled { 0 } else { 32 });
    }
}

#[test]
fn another_salt_shares_no_prompt() {
    let mut engine = engine_of("llama", 250, Limits::new(2, 512));
    engine.submit(Submission::new(request(0, 40, 5), greedy(), 0)).unwrap();
    let second = Submission::new(request(1, 40, 5), greedy(), 0);
    let (shares_with, cache_salt) = (Some(RequestId(0)), Some("X".to_owned()));
    engine.submit(Submission { shares_with, cache_salt, ..second }).unwrap();
    let outputs = run_all(&mut engine, |_, _| ());
    let PassAccount { shared_tokens, cached_tokens, .. } = account_of(&outputs, 1);
    assert_eq!((shared_tokens, cached_tokens), (0, 0));
}

/// A shelf in memory.
#[derive(Debug, Clone, Default)]
struct Board(Arc<Mutex<BTreeMap<ChainHash, Vec<u8>>>>);

impl Shelf for Board {
    fn holds(&self, name: &ChainHash) -> bool {
        self.0.lock().unwrap().contains_key(name)
    }

    fn wants(&mut self, name: &ChainHash, _bytes: usize) -> bool {
        !self.holds(name)
    }

    fn put(&mut self, name: &ChainHash, bytes: Vec<u8>) {
        self.0.lock().unwrap().insert(*name, bytes);
    }

    fn get(&mut self, name: &ChainHash) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(name).cloned()
    }

    fn discard(&mut self, name: &ChainHash) {
        self.0.lock().unwrap().remove(name);
    }
}

#[test]
fn a_shelf_carries_prefixes_from_engine_to_engine() {
    for model in ["llama", "gemma3"] {
        let board = Board::default();
        let want = bits(&alone_on(model, request(0, 100, 5), sampled()));
        for (model_key, cached_tokens) in [([1; 32], 0), ([1; 32], 96), ([2; 32], 0)] {
            let limits = Limits { model_key, ..Limits::new(2, 64) };
            let mut engine = engine_of(model, 250, limits);
            engine.set_shelf(Box::new(board.clone()));
            engine.submit(Submission::new(request(0, 100, 5), sampled(), 0)).unwrap();
            let outputs = run_all(&mut engine, |_, _| ());
            assert_eq!(bits(&steps_of(&outputs, 0)), want, "{model}");
            assert_eq!(account_of(&outputs, 0).cached_tokens, cached_tokens, "{model}");
            engine.shelve();
        }
    }
}
