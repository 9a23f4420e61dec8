//! What is kept of sequences that are gone: found as whole blocks, told apart, given up in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use causeway_kernels::{HeadQueries, Kernels, NUMERICS_VERSION};
use causeway_request::{RequestId, TokenId};

use super::cache;
use crate::{BLOCK_POSITIONS, BlockCounts, Cache, ChainHash, KvType, Shelf};

const HEAD_DIM: usize = 20;

fn root() -> ChainHash {
    ChainHash::root(&[7; 32], "f32", None)
}

/// A link for each whole block.
fn chain(root: ChainHash, tokens: &[TokenId]) -> Vec<ChainHash> {
    let mut last = root;
    let link = |block: &[TokenId]| {
        last = last.next(block);
        last
    };
    tokens.chunks_exact(BLOCK_POSITIONS).map(link).collect()
}

fn tokens(count: u32, seed: u32) -> Vec<TokenId> {
    (0..count).map(|i| TokenId(i.wrapping_mul(31) ^ seed)).collect()
}

/// What a position holds in these tests: a number of all tokens up to it.
fn content(tokens: &[TokenId], position: usize) -> f32 {
    let fold = |sum: u32, token: &TokenId| (sum * 131 + token.0 % 9_973 + 1) % 65_521;
    f32::from(u16::try_from(tokens[..=position].iter().fold(0, fold)).unwrap())
}

/// Computes positions `first..end`, as a pass does.
fn compute(cache: &mut Cache, id: RequestId, tokens: &[TokenId], first: usize, end: usize) {
    cache.reserve(id, end).unwrap();
    for position in first..end {
        let value = content(tokens, position);
        let row: Vec<f32> = (0..40u8).map(|i| value + f32::from(i % 20)).collect();
        for layer in 0..2 {
            cache.open_blocks(layer, &[(id, position)])[0].write(position, &row, &row);
        }
    }
    cache.offer(id, &chain(root(), tokens), end);
    cache.retire(id, end);
}

/// Reads every position that a query at `next` sees: one query over one position is its value.
fn check_contents(cache: &Cache, id: RequestId, tokens: &[TokenId], next: usize) {
    let query = [0.0; HEAD_DIM];
    for (layer, window) in [(0, None), (1, Some(20))] {
        let first = window.map_or(0, |window: usize| (next + 1).saturating_sub(window));
        let (store, table) = cache.view(id, layer);
        for position in first..next {
            let mut out = [0.0; 32];
            let visible = [(position, position + 1)];
            let queries =
                HeadQueries { queries: &[&query], visible: &visible, ..HeadQueries::default() };
            Kernels::best().attend(queries, &store.slab(table, 1), &mut out);
            let want = content(tokens, position);
            let bits = [out[0], out[19]].map(f32::to_bits);
            let wants = [want, want + 19.0].map(f32::to_bits);
            assert_eq!(bits, wants, "{id} reads {position} of {layer}");
        }
    }
}

fn both() -> Cache {
    cache(&[None, Some(20)], KvType::F32, 160)
}

#[test]
fn a_root_tells_every_part_apart() {
    let roots = [
        ChainHash::root(&[7; 32], "f32", None),
        ChainHash::root(&[8; 32], "f32", None),
        ChainHash::root(&[7; 32], "f16", None),
        ChainHash::root(&[7; 32], "f32", Some("")),
        ChainHash::root(&[7; 32], "f32", Some("x")),
        ChainHash::root(&[7; 32], "f32", Some("y")),
        // The same letters, cut elsewhere.
        ChainHash::root(&[7; 32], "f32x", None),
        ChainHash::root_under(NUMERICS_VERSION + 1, &[7; 32], "f32", None),
    ];
    let links = roots.iter().map(|root| (chain(*root, &tokens(16, 0))[0], ()));
    assert_eq!(links.collect::<BTreeMap<_, _>>().len(), roots.len());
    let (one, other) = (tokens(32, 0), [tokens(16, 1), tokens(32, 0)[16..].to_vec()].concat());
    assert_ne!(chain(root(), &one)[1], chain(root(), &other)[1], "a link covers all before it");
}

/// A first sequence of `kept` tokens ends; how many positions does one of `asked` get?
fn hit_of(kept: u32, asked: u32) -> usize {
    let (mut cache, first, second) = (both(), RequestId(0), RequestId(1));
    let all = tokens(kept.max(asked), 5);
    compute(&mut cache, first, &all[..kept as usize], 0, kept as usize);
    cache.remove(first);
    let asked = &all[..asked as usize];
    let hit = cache.attach(second, &chain(root(), asked), asked.len());
    if hit > 0 {
        check_contents(&cache, second, asked, hit);
    }
    hit
}

#[test]
fn a_hit_is_whole_blocks_and_never_everything() {
    for (kept, asked, want) in [
        (15, 15, 0),
        (16, 16, 0),
        (16, 17, 16),
        (33, 33, 32),
        (32, 32, 16),
        (100, 100, 96),
        (100, 40, 32),
        (100, 97, 96),
        (40, 100, 32),
    ] {
        assert_eq!(hit_of(kept, asked), want, "{kept} kept, {asked} asked");
    }
}

#[test]
fn a_window_that_is_gone_hides_the_prefix_before_it() {
    // The layers with a window have twelve blocks, the sequence sixteen.
    let mut cache = cache(&[None, Some(20)], KvType::F32, 1_000);
    let (all, first, second) = (tokens(250, 4), RequestId(0), RequestId(1));
    for start in (0..250).step_by(25) {
        compute(&mut cache, first, &all, start, start + 25);
    }
    cache.remove(first);
    let links = chain(root(), &all);
    assert_eq!(cache.attach(second, &links[..2], 40), 0);
    assert_eq!(cache.attach(second, &links, 250), 240);
    check_contents(&cache, second, &all, 240);
}

#[test]
fn the_longest_idle_is_given_up_first_and_counted() {
    // Five blocks that everything can use: 3 * 16 positions and one for each of two sequences.
    let mut cache = cache(&[None, None], KvType::F32, 48);
    let prompts = [tokens(33, 1), tokens(33, 2), tokens(33, 3)];
    for (id, prompt) in prompts.iter().enumerate().take(2) {
        let id = RequestId(id as u64);
        compute(&mut cache, id, prompt, 0, 33);
        cache.remove(id);
    }
    let counts =
        |held, cached, free, evictions| BlockCounts { held, cached, free, evictions, restored: 0 };
    // Two whole blocks of each stay, and the half full ones were free at once.
    assert_eq!(cache.counts(), counts(0, 4, 1, 0));
    let used = cache.attach(RequestId(7), &chain(root(), &prompts[0]), 33);
    assert_eq!((used, cache.counts()), (32, counts(2, 2, 1, 0)));
    cache.remove(RequestId(7));
    compute(&mut cache, RequestId(8), &prompts[2], 0, 33);
    // The second prompt's blocks had been idle the longest.
    assert_eq!(cache.counts(), counts(3, 2, 0, 2));
    assert_eq!(cache.attach(RequestId(9), &chain(root(), &prompts[1]), 33), 0);
    assert_eq!(cache.attach(RequestId(9), &chain(root(), &prompts[0]), 33), 32);
}

#[test]
fn of_one_sequence_the_end_leaves_before_the_beginning() {
    let mut cache = cache(&[None, None], KvType::F32, 48);
    let prompt = tokens(49, 1);
    compute(&mut cache, RequestId(0), &prompt, 0, 49);
    cache.remove(RequestId(0));
    // Three blocks are kept and two are free.
    cache.reserve(RequestId(1), 48).unwrap();
    assert_eq!(cache.counts().evictions, 1);
    assert_eq!(cache.attach(RequestId(2), &chain(root(), &prompt), 49), 32);
}

#[test]
fn a_sibling_holds_what_it_shares() {
    let (mut cache, first, second) = (both(), RequestId(0), RequestId(1));
    let prompt = tokens(70, 9);
    cache.reserve(first, 70).unwrap();
    compute(&mut cache, first, &prompt, 0, 70);
    assert_eq!(cache.fork(first, second, 69), 64);
    compute(&mut cache, first, &tokens(80, 9), 70, 80);
    cache.remove(first);
    check_contents(&cache, second, &prompt, 64);
    cache.remove(second);
    // One that is far ahead has given back what a sibling would have to read.
    compute(&mut cache, RequestId(2), &tokens(140, 9), 0, 140);
    assert_eq!(cache.fork(RequestId(2), RequestId(3), 69), 0);
    assert_eq!(cache.fork(RequestId(77), RequestId(3), 69), 0, "nobody is there");
}

#[test]
fn a_promise_takes_all_or_nothing_and_leaves_some() {
    let mut cache = cache(&[None], KvType::F32, 48);
    cache.promise(RequestId(0), 40, 2).unwrap();
    assert_eq!(cache.counts().held, 3);
    assert!(cache.promise(RequestId(1), 17, 1).is_err());
    assert_eq!(cache.counts().held, 3);
    cache.promise(RequestId(1), 17, 0).unwrap();
    assert_eq!(cache.counts().held, 5);
}

/// A shelf in memory, which its test can look into and damage.
#[derive(Debug, Clone, Default)]
struct Board {
    blocks: Arc<Mutex<BTreeMap<ChainHash, Vec<u8>>>>,
    reads: Arc<Mutex<usize>>,
    room: Option<u64>,
    /// Takes a block only after it was waited for.
    is_busy: bool,
    has_time: bool,
}

impl Shelf for Board {
    fn bytes_max(&self) -> u64 {
        self.room.unwrap_or(u64::MAX)
    }

    fn holds(&self, name: &ChainHash) -> bool {
        self.blocks.lock().unwrap().contains_key(name)
    }

    fn wants(&mut self, name: &ChainHash, _bytes: usize) -> bool {
        !self.holds(name) && (self.has_time || !self.is_busy)
    }

    fn put(&mut self, name: &ChainHash, bytes: Vec<u8>) {
        assert!(self.blocks.lock().unwrap().insert(*name, bytes).is_none(), "put once");
        self.has_time = false;
    }

    fn wait_for_room(&mut self) {
        self.has_time = true;
    }

    fn get(&mut self, name: &ChainHash) -> Option<Vec<u8>> {
        *self.reads.lock().unwrap() += 1;
        self.blocks.lock().unwrap().get(name).cloned()
    }

    fn discard(&mut self, name: &ChainHash) {
        self.blocks.lock().unwrap().remove(name);
    }
}

/// Leaves a prompt of 100 tokens on a shelf, damages it, and asks another cache for it.
fn hit_after(damage: impl Fn(&mut Vec<u8>)) -> usize {
    let (board, prompt) = (Board::default(), tokens(100, 3));
    let mut before = both();
    before.set_shelf(Box::new(board.clone()));
    compute(&mut before, RequestId(0), &prompt, 0, 100);
    before.remove(RequestId(0));
    before.shelve();
    let count = board.blocks.lock().unwrap().len();
    assert_eq!(count, 12, "six whole blocks in each of two groups");
    // The third block of the layers that keep everything.
    let third = chain(root(), &prompt)[2].in_group(0);
    damage(board.blocks.lock().unwrap().get_mut(&third).unwrap());
    let mut after = both();
    after.set_shelf(Box::new(board.clone()));
    let hit = after.attach(RequestId(1), &chain(root(), &prompt), 100);
    if hit > 0 {
        check_contents(&after, RequestId(1), &prompt, hit);
    }
    let is_there = board.holds(&third);
    assert_eq!(is_there, hit == 96, "what is damaged is dropped");
    hit
}

#[test]
fn a_shelf_outlives_its_cache_and_damage_is_found() {
    assert_eq!(hit_after(|_| ()), 96);
    assert_eq!(hit_after(|bytes| bytes[7] ^= 1), 32);
    assert_eq!(hit_after(|bytes| *bytes.last_mut().unwrap() ^= 1), 32);
    assert_eq!(hit_after(|bytes| bytes.truncate(100)), 32);
    assert_eq!(hit_after(Vec::clear), 32);
    assert_eq!(hit_after(|bytes| bytes.push(0)), 32);
}

#[test]
fn what_leaves_memory_comes_back_from_the_shelf() {
    let mut cache = cache(&[None], KvType::F32, 48);
    cache.set_shelf(Box::new(Board::default()));
    let prompts = [tokens(49, 1), tokens(49, 2)];
    for turn in 0..4 {
        let (id, prompt) = (RequestId(turn), &prompts[usize::from(turn % 2 == 1)]);
        let hit = cache.attach(id, &chain(root(), prompt), 49);
        assert_eq!(hit, if turn < 2 { 0 } else { 48 });
        if hit == 0 {
            compute_one(&mut cache, id, prompt);
        }
        cache.remove(id);
    }
}

/// Computes a prompt in a cache of one layer.
fn compute_one(cache: &mut Cache, id: RequestId, prompt: &[TokenId]) {
    cache.reserve(id, prompt.len()).unwrap();
    for position in 0..prompt.len() {
        let row = [content(prompt, position); 2 * HEAD_DIM];
        cache.open_blocks(0, &[(id, position)])[0].write(position, &row, &row);
    }
    cache.offer(id, &chain(root(), prompt), prompt.len());
}

/// Puts twelve blocks of two groups on a shelf that holds some of them; asks for them again.
fn hit_of_shelf(room: Option<u64>, is_busy: bool) -> (usize, usize) {
    let (board, prompt) = (Board { room, is_busy, ..Board::default() }, tokens(100, 3));
    let mut before = both();
    before.set_shelf(Box::new(board.clone()));
    compute(&mut before, RequestId(0), &prompt, 0, 100);
    before.remove(RequestId(0));
    before.shelve();
    let mut after = both();
    after.set_shelf(Box::new(board.clone()));
    let hit = after.attach(RequestId(1), &chain(root(), &prompt), 100);
    let count = board.blocks.lock().unwrap().len();
    assert_eq!(after.counts().restored, if hit == 0 { 0 } else { hit as u64 / 16 + 2 });
    (count, hit)
}

#[test]
fn a_small_shelf_gets_the_beginnings_of_every_group_and_a_busy_one_is_waited_for() {
    // 2 heads, 32 dimensions with the padding, 16 positions, 4 bytes, keys and values, a seal.
    let block = 2 * 32 * 16 * 4 * 2 + 32;
    assert_eq!(hit_of_shelf(None, false), (12, 96));
    assert_eq!(hit_of_shelf(None, true), (12, 96));
    assert_eq!(hit_of_shelf(Some(8 * block), false), (8, 64));
    assert_eq!(hit_of_shelf(Some(9 * block - 1), true), (8, 64));
    assert_eq!(hit_of_shelf(Some(block - 1), false), (0, 0));
}

#[test]
fn what_is_held_is_not_read_from_the_shelf_in_vain() {
    let board = Board::default();
    let mut cache = cache(&[None], KvType::F32, 48);
    cache.set_shelf(Box::new(board.clone()));
    let prompt = tokens(49, 1);
    compute_one(&mut cache, RequestId(0), &prompt);
    cache.remove(RequestId(0));
    cache.reserve(RequestId(1), 80).unwrap();
    assert_eq!(cache.counts().free, 0, "everything is held");
    for _ in 0..3 {
        assert_eq!(cache.attach(RequestId(2), &chain(root(), &prompt), 49), 0);
    }
    assert_eq!(*board.reads.lock().unwrap(), 0);
}

/// Sequences that begin alike come, go on and go, in a pool that is too small to keep them.
#[test]
fn every_hit_reads_what_it_would_have_computed() {
    let without = check_hits(both());
    let mut cache = both();
    cache.set_shelf(Box::new(Board::default()));
    let with = check_hits(cache);
    assert!(with > without && without > 60, "{with} and {without} hits of 600");
}

fn check_hits(mut cache: Cache) -> usize {
    let mut numbers = (1u64..).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33);
    let mut roll = |end: u32| u32::try_from(numbers.next().unwrap() % u64::from(end)).unwrap();
    let mut hits = 0;
    for id in 0..600 {
        let id = RequestId(id);
        let mut all = tokens(64, roll(3));
        all.truncate(1 + roll(64) as usize);
        all.extend(tokens(roll(60), 1_000 + roll(2)));
        let mut first = cache.attach(id, &chain(root(), &all), all.len());
        hits += usize::from(first > 0);
        while first < all.len() {
            let end = all.len().min(first + 1 + roll(32) as usize);
            if first > 0 {
                check_contents(&cache, id, &all, first);
            }
            compute(&mut cache, id, &all, first, end);
            first = end;
        }
        cache.remove(id);
        let BlockCounts { held, cached, free, .. } = cache.counts();
        assert_eq!((held, cached + free), (0, cache.blocks_max()), "no block is lost");
    }
    assert!(cache.counts().evictions > 100);
    hits
}
