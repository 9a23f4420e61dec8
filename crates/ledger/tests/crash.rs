//! A writer that is killed at any moment: what it acknowledged is there and proves itself.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use causeway_ledger::{Filter, Record, Store, StoreError, Writer, WriterLimits, from_slice};

/// Where the child writes; only a child has it.
const PLACE: &str = "CAUSEWAY_LEDGER_CRASH_STORE";
/// Set for a child that acknowledges what it did not write, which the check must notice.
const CANARY: &str = "CAUSEWAY_LEDGER_CRASH_CANARY";
/// The line that acknowledges a record.
const STORED: &str = "stored ";

/// The golden record, at a time of its own and so with an id of its own.
fn record(unix_ms: u64) -> Record {
    let golden = include_bytes!("../../../testdata/records/golden.json");
    let mut record = from_slice(golden).expect("the golden record is one").record;
    record.end.account.times.scheduled_unix_ms = unix_ms;
    record
}

/// The child: writes records until it is killed, and says which are stored. No test by itself.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let is_canary = std::env::var_os(CANARY).is_some();
    let store = Store::open(Path::new(&place)).expect("the ledger opens");
    let first = store.list(&Filter::default()).expect("the ledger is read").len() as u64 * 1_000;
    let writer = Writer::start(store, WriterLimits::default());
    // Far more than a run of the test can take; the parent ends it.
    for unix_ms in first..first + 1_000_000 {
        if is_canary {
            eprintln!("{STORED}{}", record(unix_ms).id());
            continue;
        }
        let acknowledge = |outcome: Result<causeway_ledger::Sha256, _>| {
            if let Ok(id) = outcome {
                eprintln!("{STORED}{id}");
            }
        };
        writer.push_then(record(unix_ms), acknowledge).expect("the writer is open");
    }
}

/// Lets a child write, kills it after so many acknowledged records, and returns their ids.
fn killed_after(store: &Path, records: usize, pause: Duration, is_canary: bool) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own file"));
    command.args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"]);
    command.env(PLACE, store).stdout(Stdio::null()).stderr(Stdio::piped());
    if is_canary {
        command.env(CANARY, "1");
    }
    let mut child = command.spawn().expect("the test itself can be started");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
    let mut stored = Vec::new();
    let mut read = |line: Option<std::io::Result<String>>| {
        let line = line?.ok()?;
        // The last line may be cut by the kill; only whole ids count as acknowledged.
        let id = line.rsplit_once(STORED).map(|(_, id)| id.to_owned());
        stored.extend(id.filter(|id| id.len() == 64));
        Some(stored.len())
    };
    while read(lines.next()).expect("the child writes until it is killed") < records {}
    std::thread::park_timeout(pause);
    child.kill().expect("a child can be killed");
    child.wait().expect("a child that was killed ends");
    while read(lines.next()).is_some() {}
    stored
}

/// Acknowledged records that are not there, after checking that every one that is there is whole.
fn missing(path: &Path, acknowledged: &[String]) -> usize {
    let store = Store::open(path).expect("the ledger opens after a kill");
    let mut whole = std::collections::BTreeSet::new();
    let exported = store.export(&Filter::default(), |stored| {
        assert!(stored.is_unchanged());
        assert_eq!(stored.record, record(stored.record.end.account.times.scheduled_unix_ms));
        whole.insert(stored.id.to_string());
        Ok::<_, StoreError>(())
    });
    assert_eq!(exported.expect("every record that is there is whole"), whole.len());
    acknowledged.iter().filter(|id| !whole.contains(*id)).count()
}

#[test]
fn what_was_acknowledged_outlives_a_kill_at_any_moment() {
    let folder = tempfile::tempdir().expect("a folder for the ledger");
    let path = folder.path().join("ledger.sqlite");
    let mut acknowledged = Vec::new();
    // Kills in the first transaction, between transactions, in a checkpoint of the log; each
    // child goes on with the file that the one before left behind.
    for (round, records) in [1, 3, 70, 200, 1, 500, 40, 2].into_iter().enumerate() {
        let pause = Duration::from_micros(700 * (round as u64 % 4));
        acknowledged.extend(killed_after(&path, records, pause, false));
        assert_eq!(missing(&path, &acknowledged), 0, "round {round}");
    }
    assert!(acknowledged.len() > 800, "{}", acknowledged.len());
}

#[test]
fn canary_a_writer_that_acknowledges_too_early_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder for the ledger");
    let path = folder.path().join("ledger.sqlite");
    let acknowledged = killed_after(&path, 50, Duration::ZERO, true);
    assert_eq!(missing(&path, &acknowledged), acknowledged.len());
}
