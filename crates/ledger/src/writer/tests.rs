//! The writer: it drains, it makes others wait, and it loses nothing while the disk fails.

use std::sync::mpsc;

use rusqlite::Connection;

use super::*;
use crate::tests::sample;
use crate::{CacheScope, Filter, Record, STORE_FILE_NAME, cache_key};

fn record_at(unix_ms: u64) -> Record {
    let mut record = sample();
    record.end.account.times.scheduled_unix_ms = unix_ms;
    record
}

/// A store that does not wait for locks, and another connection that can hold one.
fn new_store() -> (tempfile::TempDir, Store, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STORE_FILE_NAME);
    let store = Store::open(&path).unwrap();
    store.wait_for_no_lock();
    (folder, store, Connection::open(&path).unwrap())
}

fn limits(records_max: usize) -> WriterLimits {
    WriterLimits { records_max, batch_max: 4, ..WriterLimits::default() }
}

/// Waits, for as long as a slow machine may take, until `claim` holds.
fn wait_until(claim: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if claim() {
            return;
        }
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("it never came true");
}

#[test]
fn close_drains_and_every_record_is_acknowledged_with_its_id() {
    let (folder, store, _other) = new_store();
    let writer = Writer::start(store, WriterLimits::default());
    let (acknowledge, acknowledged) = mpsc::channel();
    for ms in 0..100 {
        let acknowledge = acknowledge.clone();
        let on_stored = move |outcome: StoreOutcome| acknowledge.send(outcome.unwrap()).unwrap();
        writer.push_then(record_at(ms), on_stored).unwrap();
    }
    let written = writer.close().unwrap();
    assert_eq!((written.stored, written.refused, written.lost), (100, 0, 0));
    assert!(written.batches < 100, "{} transactions", written.batches);
    assert_eq!(writer.pending(), 0);
    drop(acknowledge);
    let ids: Vec<Sha256> = acknowledged.iter().collect();
    let want: Vec<Sha256> = (0..100).map(|ms| record_at(ms).id()).collect();
    assert_eq!(ids, want, "in the order of the pushes");
    let store = Store::open_to_read(&folder.path().join(STORE_FILE_NAME)).unwrap();
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 100);
    // What comes too late comes back.
    let refused = writer.push(record_at(7)).unwrap_err();
    assert!(!refused.is_callers_mistake());
    assert_eq!(refused.to_string(), "the ledger is closed");
    assert_eq!(refused.into_entry().record, record_at(7));
    assert!(writer.is_under_pressure(), "a writer that has ended admits nothing");
    writer.close().unwrap();
}

#[test]
fn dropping_a_writer_drains_it_too() {
    let (folder, store, _other) = new_store();
    let writer = Writer::start(store, WriterLimits::default());
    (0..20).for_each(|ms| writer.push(record_at(ms)).unwrap());
    drop(writer);
    let store = Store::open_to_read(&folder.path().join(STORE_FILE_NAME)).unwrap();
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 20);
}

#[test]
fn a_full_queue_makes_the_sender_wait_and_loses_nothing() {
    let (folder, store, other) = new_store();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = Arc::new(Writer::start(store, limits(6)));
    assert!(!writer.is_under_pressure());
    (0..2).for_each(|ms| writer.push(record_at(ms)).unwrap());
    assert!(!writer.is_under_pressure(), "a third of the queue is taken");
    writer.push(record_at(2)).unwrap();
    assert!(writer.is_under_pressure(), "half the queue is taken");
    (3..6).for_each(|ms| writer.push(record_at(ms)).unwrap());
    let refused = writer.try_push_then(record_at(6), |_| {}).unwrap_err();
    assert_eq!(refused.to_string(), "6 records wait to be stored, which is the limit");
    assert_eq!(writer.pending(), 6);

    let waiting = Arc::clone(&writer);
    let sender = std::thread::spawn(move || waiting.push(refused.into_entry()).unwrap());
    wait_until(|| writer.fault().is_some());
    let fault = writer.fault().unwrap();
    assert!(matches!(*fault, StoreError::Locked { .. }), "{fault}");
    assert!(!sender.is_finished(), "it waits for room");
    other.execute_batch("ROLLBACK").unwrap();
    sender.join().unwrap();
    let written = writer.close().unwrap();
    assert_eq!((written.stored, written.lost), (7, 0));
    assert!(written.retries > 0 && writer.fault().is_none());
    let store = Store::open_to_read(&folder.path().join(STORE_FILE_NAME)).unwrap();
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 7);
}

#[test]
fn bytes_fill_the_queue_too_but_one_record_always_fits() {
    let (_folder, store, other) = new_store();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = Writer::start(store, WriterLimits { bytes_max: 1, ..WriterLimits::default() });
    writer.push(record_at(0)).unwrap();
    assert!(writer.is_under_pressure());
    assert!(writer.try_push_then(record_at(1), |_| {}).is_err());
    other.execute_batch("ROLLBACK").unwrap();
    writer.push(record_at(1)).unwrap();
    assert_eq!(writer.close().unwrap().stored, 2);
}

#[test]
fn what_cannot_be_stored_at_the_end_is_counted_and_told() {
    let (_folder, store, other) = new_store();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = Writer::start(store, limits(100));
    let (tell, told) = mpsc::channel();
    for ms in 0..9 {
        let tell = tell.clone();
        writer
            .push_then(record_at(ms), move |outcome| tell.send(outcome.is_err()).unwrap())
            .unwrap();
    }
    let error = writer.close().unwrap_err();
    assert_eq!((error.count, error.is_callers_mistake()), (9, false));
    assert_eq!(error.to_string(), "9 records could not be stored");
    assert!(error.source.to_string().contains("is locked by another program"));
    drop(tell);
    assert_eq!(told.iter().collect::<Vec<_>>(), [true; 9]);
    assert_eq!(writer.pending(), 0);
}

#[test]
fn a_record_that_no_store_can_hold_does_not_stop_the_others() {
    let (_folder, store, _other) = new_store();
    let writer = Writer::start(store, WriterLimits::default());
    let (tell, told) = mpsc::channel();
    let mut broken = record_at(1);
    broken.steps[2].reasons.entropy = f64::NAN;
    for record in [record_at(0), broken, record_at(2)] {
        let tell = tell.clone();
        writer.push_then(record, move |outcome| tell.send(outcome.is_ok()).unwrap()).unwrap();
    }
    let written = writer.close().unwrap();
    assert_eq!((written.stored, written.refused), (2, 1));
    drop(tell);
    assert_eq!(told.iter().filter(|ok| *ok).count(), 2);
}

/// A table that refuses one record of a batch stands in for whatever SQLite may refuse.
#[test]
fn one_bad_record_of_a_batch_is_found_and_refused_alone() {
    let (_folder, store, other) = new_store();
    let sql = "CREATE TRIGGER no_five BEFORE INSERT ON records WHEN new.scheduled_unix_ms = 5 \
               BEGIN SELECT RAISE(ABORT, 'no'); END";
    other.execute_batch(sql).unwrap();
    let writer = Writer::start(store, WriterLimits::default());
    (0..20).for_each(|ms| writer.push(record_at(ms)).unwrap());
    let written = writer.close().unwrap();
    assert_eq!((written.stored, written.refused, written.lost), (19, 1, 0));
}

#[test]
fn a_panic_of_whoever_is_told_ends_nothing() {
    let (_folder, store, _other) = new_store();
    let writer = Writer::start(store, WriterLimits::default());
    writer.push_then(record_at(0), |_| std::panic::panic_any(())).unwrap();
    writer.push(record_at(1)).unwrap();
    assert_eq!(writer.close().unwrap().stored, 2);
}

#[test]
fn a_used_answer_is_kept_longer() {
    let (folder, store, _other) = new_store();
    let path = folder.path().join(STORE_FILE_NAME);
    let seeded = |seed| {
        let mut record = record_at(seed);
        record.start.request.effective.seed = seed;
        let key = cache_key(&record.start, CacheScope::Everyone);
        let mut entry = Entry::from(record);
        entry.cache_key = Some(key);
        (entry, key)
    };
    let bytes = Prepared::of(seeded(1).0).unwrap().bytes();
    let cache = Some(2 * bytes + 64);
    let limits = WriterLimits { result_cache_bytes_max: cache, ..WriterLimits::default() };
    let writer = Writer::start(store, limits);
    let reader = Store::open_to_read(&path).unwrap();
    for seed in [1, 2] {
        writer.push(seeded(seed).0).unwrap();
        wait_until(|| writer.pending() == 0);
    }
    writer.touch(&seeded(1).1);
    writer.push(seeded(3).0).unwrap();
    let written = writer.close().unwrap();
    assert_eq!(written.evicted, 1);
    let is_kept = |seed| reader.find_cached(&seeded(seed).1).unwrap().is_some();
    assert_eq!([1, 2, 3].map(is_kept), [true, false, true]);
}
