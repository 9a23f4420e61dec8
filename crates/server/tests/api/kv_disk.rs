//! A folder for idle prefixes: warm after a restart, apart by salt, and seen in the metrics.

use std::path::Path;
use std::sync::Arc;

use causeway_session::KvDisk;
use serde_json::{Value, json};

use crate::support::{Server, options, script};

/// A server with a folder; another answer is another model.
fn start(folder: &Path, answer: &str) -> Server {
    let mut options = options(vec![script(&json!({ "answers": [{ "text": answer }] }))]);
    options.sizing.kv_disk = Some(Arc::new(KvDisk::open(folder, 1 << 30, |_| ()).unwrap()));
    Server::start(options)
}

fn cached(server: &Server, salt: Value) -> u64 {
    let body = json!({ "prompt": "p".repeat(100), "max_tokens": 2, "cache_salt": salt });
    let reply = server.post("/v1/completions", &body).json();
    reply["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

#[test]
fn a_server_begins_with_what_the_last_one_knew() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = start(folder.path(), "ok");
    assert_eq!([Value::Null, json!("a")].map(|salt| cached(&first, salt)), [0, 0]);
    assert_eq!(metric(&first, "causeway_kv_disk_blocks"), 0);
    first.shut_down();
    first.wait();
    let mut second = start(folder.path(), "ok");
    let blocks = metric(&second, "causeway_kv_disk_blocks");
    assert!(blocks >= 12, "{blocks}");
    assert!(metric(&second, "causeway_kv_disk_bytes") > blocks * 64);
    let salts = [Value::Null, json!("a"), json!("b"), json!("")];
    assert_eq!(salts.map(|salt| cached(&second, salt)), [96, 96, 0, 0]);
    assert_eq!(metric(&second, "causeway_kv_disk_moves_total{outcome=\"read\"}"), 12);
    assert_eq!(metric(&second, "causeway_prefix_restored_blocks_total{model=\"scripted\"}"), 12);
    second.shut_down();
    second.wait();
    let other = start(folder.path(), "no");
    assert_eq!(cached(&other, Value::Null), 0, "another model");
}
