//! A server that is killed under load: every record that a client was told of is there, and whole.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use causeway_ledger::{Filter, Store, StoreError, Writer, WriterLimits};
use serde_json::{Value, json};

use crate::support::{Reply, Server, options, script, write_request};

/// Where the child keeps its records; only a child has it.
const PLACE: &str = "CAUSEWAY_SERVER_CRASH_STORE";
/// The line that says where it listens.
const LISTENING: &str = "listening ";
/// Clients at once.
const CLIENTS: usize = 8;
/// Longest that a child lives, in steps of 50 ms: a parent that was killed leaves none behind.
const CHILD_STEPS: usize = 1_200;
/// Most requests of one client, so that a server that cannot be killed ends the test.
const REQUESTS_MAX: usize = 10_000;

/// The child: serves until it is killed. No test by itself.
#[test]
fn child_that_serves_until_it_is_killed() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let store = Store::open(Path::new(&place)).unwrap();
    let answer = json!({ "pieces": ["a", "b", "c"], "repeats": true });
    let mut options = options(vec![script(&json!({ "answers": [answer] }))]);
    options.ledger = Some(Arc::new(Writer::start(store, WriterLimits::default())));
    let server = Server::start(options);
    eprintln!("{LISTENING}{}", server.addr);
    for _ in 0..CHILD_STEPS {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The ids of all records that an answer calls stored.
fn stored(extension: &Value) -> Vec<String> {
    let choices = extension["choices"].as_array().cloned().unwrap_or_default();
    let is_stored = |choice: &&Value| choice["stored"] == true;
    let ids = choices.iter().filter(is_stored).filter_map(|choice| choice["record"].as_str());
    ids.map(str::to_owned).collect()
}

/// Asks until the server is gone, and keeps what it was told of.
fn ask(server: &Server, client: usize, told: &Mutex<Vec<String>>) {
    for index in 0..REQUESTS_MAX {
        let streams = index % 2 == 0;
        let body = json!({
            "prompt": format!("{client} {index}"), "n": 1 + index % 3, "max_tokens": 1 + index % 40,
            "stream": streams,
        });
        let Ok(mut socket) = TcpStream::connect(server.addr) else { return };
        write_request(&mut socket, "POST", "/v1/completions", body.to_string().as_bytes());
        let mut bytes = Vec::new();
        // A kill ends the connection in the middle of an answer.
        let _ = socket.read_to_end(&mut bytes);
        let reply = Reply::parse(&bytes);
        let mut ids = Vec::new();
        if streams {
            // The last line may be cut by the kill.
            let lines = reply.body.lines().filter_map(|line| line.strip_prefix("data: "));
            let events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
            events.for_each(|event| ids.extend(stored(&event["causeway"])));
        } else if let Ok(answer) = serde_json::from_str::<Value>(&reply.body) {
            ids = stored(&answer["causeway"]);
        }
        told.lock().unwrap().extend(ids);
    }
}

/// Serves, asks, kills after so many records, and gives back what clients were told of.
fn killed_after(store: &Path, records: usize) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::child_that_serves_until_it_is_killed", "--nocapture"]);
    command.env(PLACE, store).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut addrs = lines
        .map_while(Result::ok)
        .filter_map(|line| line.split_once(LISTENING).map(|(_, addr)| addr.parse().unwrap()));
    let server = Server::at(addrs.next().unwrap());
    let told = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (server, told) = (&server, &told);
            scope.spawn(move || ask(server, client, told));
        }
        assert!(server.becomes(|_| told.lock().unwrap().len() >= records), "too slow");
        child.kill().unwrap();
        child.wait().unwrap();
    });
    told.into_inner().unwrap()
}

#[test]
fn what_clients_were_told_of_outlives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut told = Vec::new();
    for (round, records) in [1, 40, 7].into_iter().enumerate() {
        told.extend(killed_after(&path, records));
        let store = Store::open(&path).unwrap();
        let mut whole = std::collections::BTreeSet::new();
        let exported = store.export(&Filter::default(), |stored| {
            assert!(stored.is_unchanged());
            assert_eq!(stored.record.steps.len() as u64, stored.record.end.account.tokens.prefix);
            whole.insert(stored.id.to_string());
            Ok::<_, StoreError>(())
        });
        assert_eq!(exported.unwrap(), whole.len());
        let missing = told.iter().filter(|id| !whole.contains(*id)).count();
        assert_eq!(missing, 0, "round {round}: {} were told of", told.len());
    }
    assert!(told.len() >= 48, "{}", told.len());
}
