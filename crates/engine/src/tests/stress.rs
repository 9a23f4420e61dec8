//! Bursts, cancels and preemptions on tiny models in tiny caches: never another bit.

use std::collections::BTreeMap;

use causeway_request::{Canceller, Priority, Request, RequestId};

use super::{alone_on, bits, engine_of, greedy, request, sampled};
use crate::{Drafts, Ended, Limits, Output, Submission};

/// Numbers from a seed: the high bits of a Weyl sequence times an odd constant.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) % end
    }
}

/// Prompts that begin alike in four ways, some with a tail of their own.
fn any_request(id: u64, dice: &mut Dice) -> Request {
    let mut request = request(id, 1 + u32::try_from(dice.below(70)).unwrap(), 1);
    let first = u32::try_from(dice.below(4)).unwrap();
    request.tokens.iter_mut().for_each(|token| token.0 = (token.0 + first) % 512);
    if dice.below(2) == 0 {
        let tail = super::request(id, 1 + u32::try_from(dice.below(30)).unwrap(), 1);
        let own = u32::try_from(id).unwrap();
        request.tokens.extend(tail.tokens.iter().map(|t| super::TokenId((t.0 * 3 + own) % 512)));
    }
    request.tokens_max = 1 + usize::try_from(dice.below(12)).unwrap();
    request
}

fn check(model: &str, seed: u64, limits: Limits) {
    let mut dice = Dice(seed);
    let mut engine = engine_of(model, 120, limits);
    let all_blocks = engine.load().free_blocks;
    let (mut requests, mut got) = (BTreeMap::new(), BTreeMap::<u64, Vec<_>>::new());
    let (mut ends, mut preemptions) = (BTreeMap::new(), 0);
    let policy = |id: u64| if id.is_multiple_of(2) { sampled() } else { greedy() };
    for step in 0..4_000 {
        if step < 60 && dice.below(3) == 0 {
            for id in requests.len() as u64..requests.len() as u64 + dice.below(5) {
                let request = any_request(id, &mut dice);
                requests.insert(id, request.clone());
                let priority = [Priority::Interactive, Priority::Batch, Priority::Idle];
                let shares_with = (dice.below(4) == 0).then(|| RequestId(id.saturating_sub(1)));
                engine
                    .submit(Submission {
                        priority: priority[usize::try_from(dice.below(3)).unwrap()],
                        cache_salt: (dice.below(3) == 0).then(|| "salt".to_owned()),
                        shares_with,
                        ..Submission::new(request, policy(id), 0)
                    })
                    .unwrap();
            }
        }
        if !requests.is_empty() && dice.below(15) == 0 {
            let id = RequestId(dice.below(requests.len() as u64));
            let cancelled = engine.cancel(id, Canceller::Client);
            ends.extend(cancelled.map(|Ended { request, account, .. }| (request.0, account)));
        }
        engine.set_budget(1 + usize::try_from(dice.below(64)).unwrap());
        for output in engine.step(&mut || 0) {
            match output {
                Output::Step(step) => got.entry(step.request.0).or_default().push(step),
                Output::Ended(Ended { request, account, .. }) => {
                    assert!(ends.insert(request.0, account).is_none(), "{request} ends once");
                }
            }
        }
        let load = engine.load();
        let blocks = load.held_blocks + load.cached_blocks + load.free_blocks;
        assert_eq!(blocks, all_blocks, "no block is lost");
        assert_eq!(load.running + load.waiting, engine.request_count());
        preemptions = load.preemptions;
        if step > 60 && engine.is_idle() {
            break;
        }
    }
    assert!(engine.is_idle() && engine.load().held_blocks == 0, "{model}, seed {seed}");
    assert_eq!(ends.len(), requests.len());
    for (id, request) in requests {
        let want = bits(&alone_on(model, request.clone(), policy(id)));
        let got = bits(&got.remove(&id).unwrap_or_default());
        let account = ends[&id];
        assert_eq!(account.steps as usize, got.len());
        assert_eq!(got, want[..got.len()], "{model}, seed {seed}, request {id}");
        assert!(account.cached_tokens + account.shared_tokens < request.tokens.len());
        assert!(limits.prefix_cache || account.cached_tokens == 0);
    }
    let is_tight = limits.kv_positions_max.is_some();
    assert!(!is_tight || preemptions > 0, "{model}, seed {seed}: the cache is small enough");
}

#[test]
fn load_changes_no_bit_and_loses_nothing() {
    let seeds = 0..6;
    for (seed, model) in seeds.flat_map(|seed| ["llama", "gemma3"].map(|model| (seed, model))) {
        let limits = Limits {
            drafts: if seed < 3 { Drafts::Off } else { Drafts::All },
            prefix_cache: seed % 2 == 0,
            kv_positions_max: (seed < 3).then_some(128),
            batch_patience: 20,
            ..Limits::new([3, 8, 6, 12, 2, 1][usize::try_from(seed).unwrap()], 64)
        };
        check(model, seed, limits);
    }
}
