//! The result cache: what is given again, to whom, and what is forgotten first.

use causeway_request::Canceller;

use super::*;
use crate::{CacheKey, CacheScope, cache_key};

/// An entry whose answer may be given again to everyone, with its key.
fn cached(record: Record) -> (Entry, CacheKey) {
    let key = cache_key(&record.start, CacheScope::Everyone);
    let mut entry = Entry::from(record);
    entry.cache_key = Some(key);
    (entry, key)
}

fn insert(store: &mut Store, entry: Entry, bytes_max: u64) -> u64 {
    store.insert_all([&Prepared::of(entry).unwrap()], &[], Some(bytes_max)).unwrap()
}

/// A record with this seed, and so with a key of its own.
fn seeded(seed: u64) -> Record {
    record_at(seed, |record| record.start.request.effective.seed = seed)
}

#[test]
fn an_answer_is_given_again_to_the_same_question_only() {
    let (_folder, mut store) = new_store();
    let (entry, key) = cached(seeded(1));
    insert(&mut store, entry, 1 << 30);
    assert_eq!(store.find_cached(&key).unwrap().map(|found| found.record), Some(seeded(1)));
    let (_, other) = cached(seeded(2));
    assert_eq!(store.find_cached(&other).unwrap(), None);
    let of_salt = cache_key(&seeded(1).start, CacheScope::Salt("s"));
    assert_eq!(store.find_cached(&of_salt).unwrap(), None);
}

#[test]
fn only_a_run_that_came_to_its_own_end_is_kept() {
    let (_folder, mut store) = new_store();
    let mut check = |stop: &StopReason, want: bool| {
        let (entry, key) = cached(run(5, stop, |_| {}));
        insert(&mut store, entry, 1 << 30);
        assert_eq!(store.find_cached(&key).unwrap().is_some(), want, "{stop:?}");
        store.connection.execute("DELETE FROM result_cache", []).unwrap();
    };
    let token = causeway_request::TokenId(2);
    check(&StopReason::Eos { token }, true);
    check(&StopReason::StopToken { token }, true);
    check(&StopReason::StopString { string: "\n\n".to_owned() }, true);
    check(&StopReason::MaxTokens { tokens_max: 5 }, true);
    check(&StopReason::SchemaComplete, true);
    check(&StopReason::ContextFull { context_len: 9 }, false);
    check(&StopReason::Cancelled { by: Canceller::Client, after_step: 5 }, false);
    check(&StopReason::Deadline { after_step: 5 }, false);
    check(&StopReason::Error { message: "no".to_owned(), is_callers_mistake: false }, false);
}

#[test]
fn what_was_used_longest_ago_is_forgotten_first_and_its_record_stays() {
    let (_folder, mut store) = new_store();
    let prepared = Prepared::of(cached(seeded(1)).0).unwrap();
    let bytes = prepared.bytes();
    let keys: Vec<CacheKey> = (1..=4).map(|seed| cached(seeded(seed)).1).collect();
    for seed in 1..=3 {
        assert_eq!(insert(&mut store, cached(seeded(seed)).0, 3 * bytes + 64), 0);
    }
    let none: [&Prepared; 0] = [];
    store.insert_all(none, &[keys[0].sha256()], Some(3 * bytes + 64)).unwrap();
    assert_eq!(insert(&mut store, cached(seeded(4)).0, 3 * bytes + 64), 1);
    let found: Vec<bool> =
        keys.iter().map(|key| store.find_cached(key).unwrap().is_some()).collect();
    assert_eq!(found, [true, false, true, true], "the second was used longest ago");
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 4);
    // A bound below one record keeps none.
    assert_eq!(insert(&mut store, cached(seeded(5)).0, 1), 4);
    assert!(keys.iter().all(|key| store.find_cached(key).unwrap().is_none()));
}

#[test]
fn a_second_answer_to_the_same_question_takes_the_place_of_the_first() {
    let (_folder, mut store) = new_store();
    let later = |ms| record_at(ms, |record| record.start.request.effective.seed = 9);
    let (_, key) = cached(later(1));
    insert(&mut store, cached(later(1)).0, 1 << 30);
    insert(&mut store, cached(later(2)).0, 1 << 30);
    let found = store.find_cached(&key).unwrap().unwrap();
    assert_eq!(found.record.end.account.times.scheduled_unix_ms, 2);
}

#[test]
fn an_edited_cache_gives_no_answer_of_another_question() {
    let (_folder, mut store) = new_store();
    let (first, key) = cached(seeded(1));
    let (second, _) = cached(seeded(2));
    insert(&mut store, first, 1 << 30);
    insert(&mut store, second, 1 << 30);
    let sql = "UPDATE result_cache SET seq = (SELECT max(seq) FROM records)";
    store.connection.execute(sql, []).unwrap();
    let error = store.find_cached(&key).unwrap_err();
    assert!(matches!(error, StoreError::Row { source: RowError::CacheKey, .. }), "{error}");
    store.connection.execute("PRAGMA foreign_keys = off", []).unwrap();
    store.connection.execute("UPDATE result_cache SET seq = 99", []).unwrap();
    assert!(matches!(store.find_cached(&key), Err(StoreError::Row { .. })));
}

#[test]
fn without_a_cache_no_answer_is_kept() {
    let (_folder, mut store) = new_store();
    let (entry, key) = cached(seeded(1));
    store.insert(entry).unwrap();
    assert_eq!(store.find_cached(&key).unwrap(), None);
}
