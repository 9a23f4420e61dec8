//! The store: every record comes back as it was, every edit and every failing file is refused.

mod damaged;
mod results;
mod round_trip;

use causeway_request::StopReason;

use super::*;
use crate::tests::{run, sample, start};
use crate::{Measured, Record, RecordBuilder, Sha256, to_json};

/// A record like `sample`, scheduled at this millisecond and changed by `change`.
pub(crate) fn record_at(unix_ms: u64, change: impl Fn(&mut Record)) -> Record {
    let mut record = sample();
    record.end.account.times.scheduled_unix_ms = unix_ms;
    change(&mut record);
    record
}

/// A new store in a folder of its own; not synchronous, since no test here pulls the plug.
pub(crate) fn new_store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join(STORE_FILE_NAME)).unwrap();
    store.connection.pragma_update(None, "synchronous", "off").unwrap();
    (folder, store)
}

#[test]
fn a_record_is_found_by_its_id_by_its_beginning_and_by_its_request() {
    let (_folder, mut store) = new_store();
    let mut entry = Entry::from(sample());
    entry.tags.request_id = Some("chatcmpl-7".to_owned());
    let id = store.insert(entry).unwrap();
    for length in [1, 2, 12, 63, 64] {
        assert_eq!(store.find(&id.to_string()[..length]).unwrap().id, id);
    }
    assert_eq!(store.find("chatcmpl-7").unwrap().record, sample());
}

#[test]
fn a_name_that_is_not_one_records_is_refused() {
    let (_folder, mut store) = new_store();
    // Of 17 ids, two begin with the same digit.
    let ids: Vec<Sha256> = (0..17).map(|ms| store.insert(record_at(ms, |_| {})).unwrap()).collect();
    let digits: Vec<String> = ids.iter().map(|id| id.to_string()[..1].to_owned()).collect();
    let twice = digits.iter().find(|digit| digits.iter().filter(|d| d == digit).count() > 1);
    let error = store.find(twice.unwrap()).unwrap_err();
    assert!(error.is_callers_mistake());
    assert!(error.to_string().contains("names several records, such as "), "{error}");
    for name in ["", "x", "chatcmpl", "g1", "%", "' OR 1=1 --", "ABCDEF", &"a".repeat(65)] {
        let error = store.find(name).unwrap_err();
        assert!(matches!(error, StoreError::NoRecord { .. }), "{name}: {error}");
        assert!(error.is_callers_mistake());
    }
}

#[test]
fn two_choices_of_one_request_are_two_records() {
    let (_folder, mut store) = new_store();
    for choice in [0, 1] {
        let mut entry =
            Entry::from(record_at(5, |record| record.start.request.effective.choice = choice));
        entry.tags.request_id = Some("chatcmpl-8".to_owned());
        store.insert(entry).unwrap();
    }
    assert!(matches!(store.find("chatcmpl-8"), Err(StoreError::Ambiguous { .. })));
    let filter = Filter { request_id: Some("chatcmpl-8".to_owned()), ..Filter::default() };
    let listed = store.list(&filter).unwrap();
    assert_eq!(listed.iter().map(|listed| listed.choice).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_record_that_is_there_stays_as_it_is() {
    let (_folder, mut store) = new_store();
    let first = store.insert(sample()).unwrap();
    assert_eq!(store.insert(Stored::new(sample())).unwrap(), first);
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn texts_that_many_records_have_are_kept_once() {
    let (_folder, mut store) = new_store();
    for ms in 0..10 {
        store.insert(record_at(ms, |_| {})).unwrap();
    }
    let sql = "SELECT count(*) FROM texts";
    let count: i64 = store.connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 2, "one template and one policy");
}

#[test]
fn a_filter_takes_what_meets_all_of_it() {
    let (_folder, mut store) = new_store();
    let stop = StopReason::Eos { token: causeway_request::TokenId(2) };
    let mut first = run(2, &stop, |_| {});
    first.end.account.times.scheduled_unix_ms = 100;
    first.start.model.name = "qwen2.5-coder:0.5b".to_owned();
    let mut owned = Entry::from(record_at(200, |record| {
        let canonical = r#"{"name":"ticket","shape":[]}"#.to_owned();
        record.start.policy.sha256 = Sha256::of(canonical.as_bytes());
        record.start.policy.canonical = canonical;
    }));
    owned.tags.owner = Some("alice's key".to_owned());
    owned.tags.session = Some("s1".to_owned());
    let third = record_at(300, |record| record.start.model.sha256 = Sha256::of(b"other"));
    store.insert(first).unwrap();
    store.insert(owned).unwrap();
    store.insert(third).unwrap();

    let check = |change: &dyn Fn(&mut Filter), want: &[u64]| {
        let mut filter = Filter::default();
        change(&mut filter);
        let listed = store.list(&filter).unwrap();
        let times: Vec<u64> = listed.iter().map(|row| row.times.scheduled_unix_ms).collect();
        assert_eq!(times, want, "{filter:?}");
        let mut exported = Vec::new();
        let count = store.export(&filter, |stored| {
            exported.push(stored.record.end.account.times.scheduled_unix_ms);
            Ok::<_, StoreError>(())
        });
        assert_eq!(count.unwrap(), want.len());
        exported.reverse();
        assert_eq!(exported, want, "an export goes from old to new");
    };
    let text = |text: &str| Some(text.to_owned());
    check(&|_| {}, &[300, 200, 100]);
    check(&|filter| filter.model = text("smollm2:135m"), &[300, 200]);
    check(&|filter| filter.model = text(&Sha256::of(b"weights").to_string()[..9]), &[200, 100]);
    check(&|filter| filter.policy = text("ticket"), &[200]);
    check(&|filter| filter.policy = text(&start().policy.sha256.to_string()), &[300, 100]);
    check(&|filter| filter.stop = text("eos"), &[100]);
    check(&|filter| filter.owner = text("alice's key"), &[200]);
    check(&|filter| filter.session = text("s1"), &[200]);
    check(&|filter| filter.since_unix_ms = Some(200), &[300, 200]);
    check(&|filter| filter.since_unix_ms = Some(u64::MAX), &[]);
    check(&|filter| filter.limit = Some(2), &[300, 200]);
    check(&|filter| filter.limit = Some(0), &[]);
    check(&|filter| filter.limit = Some(usize::MAX), &[300, 200, 100]);
    let both = |filter: &mut Filter| {
        filter.model = text("smollm2:135m");
        filter.since_unix_ms = Some(250);
    };
    check(&both, &[300]);
    check(&|filter| filter.model = text("' OR '1'='1"), &[]);
}

#[test]
fn the_store_is_read_while_another_writes() {
    let (folder, mut store) = new_store();
    let id = store.insert(sample()).unwrap();
    let path = folder.path().join(STORE_FILE_NAME);
    let reader = Store::open_to_read(&path).unwrap();
    let writing = store.connection.transaction().unwrap();
    writing.execute("UPDATE records SET stop = 'eos'", []).unwrap();
    assert_eq!(reader.find(&id.to_string()).unwrap().record, sample());
    drop(writing);
    // Two that write take turns.
    let mut second = Store::open(&path).unwrap();
    for ms in 0..10 {
        store.insert(record_at(ms, |_| {})).unwrap();
        second.insert(record_at(100 + ms, |_| {})).unwrap();
    }
    assert_eq!(reader.list(&Filter::default()).unwrap().len(), 21);
}

#[test]
fn a_record_that_no_file_can_hold_is_refused() {
    let (_folder, mut store) = new_store();
    let mut check = |change: &dyn Fn(&mut Record), want: &str| {
        let error = store.insert(record_at(0, change)).unwrap_err();
        let source = std::error::Error::source(&error).expect("a refusal has a cause");
        let causes = format!("{error}: {source}");
        assert!(matches!(error, StoreError::Refused { .. }) && !error.may_pass(), "{causes}");
        assert!(causes.contains(want), "{causes}");
    };
    check(&|record| record.steps[1].step = 7, "the record cannot be written");
    check(&|record| record.steps[1].reasons.entropy = f64::NAN, "cannot be written");
    let long = |record: &mut Record| {
        record.start.request.received = "x".repeat(9 << 20).into();
    };
    check(&long, "bytes as received");
    let piece = |record: &mut Record| record.steps[0].piece.0 = vec![0; 11 << 20];
    check(&piece, "67108864 are the limit");
    let stage = |record: &mut Record| {
        record.steps[0].reasons.removed_by = Some("\u{1}".repeat(11 << 20));
    };
    check(&stage, "67108864 are the limit");
    assert_eq!(store.list(&Filter::default()).unwrap(), []);
}

#[test]
fn a_run_without_a_step_is_a_record_too() {
    let (_folder, mut store) = new_store();
    let builder = RecordBuilder::new(start());
    let stop = StopReason::Deadline { after_step: 0 };
    let record = builder.finish(&stop, &Measured::default(), String::new());
    let id = store.insert(record.clone()).unwrap();
    let found = store.find(&id.to_string()).unwrap();
    assert_eq!(to_json(&found.record).unwrap(), to_json(&record).unwrap());
}
