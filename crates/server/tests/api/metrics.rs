//! Every metric and every label that a server writes stands in the documents, and no other does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use causeway_ledger::{Store, Writer, WriterLimits};
use serde_json::{Value, json};

use crate::support::{Server, options, script};

const DOCUMENT: &str = include_str!("../../../../docs/operation.md");
/// Metrics that only a server with a folder for keys and values has.
const WITH_A_FOLDER: &str = "kv_disk_";

/// A metric's type, its labels, and the words that stand for its labels' values.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metric {
    kind: String,
    labels: BTreeSet<String>,
    values: BTreeSet<String>,
}

/// What stands between backquotes.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The rows of the tables of counters, histograms and gauges.
fn documented() -> BTreeMap<String, Metric> {
    let mut metrics = BTreeMap::new();
    let mut kind = None;
    for line in DOCUMENT.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            ["counter" | "histogram" | "gauge", "labels", _] => kind = Some(cells[0].to_owned()),
            [names, labels, meaning] if names.starts_with('`') => {
                let Some(kind) = &kind else { continue };
                for name in quoted(names) {
                    let (labels, values) = (quoted(labels), quoted(meaning));
                    let metric = Metric { kind: kind.clone(), labels, values };
                    assert!(metrics.insert(name.clone(), metric).is_none(), "{name} stands twice");
                }
            }
            _ if !line.starts_with('|') => kind = None,
            _ => {}
        }
    }
    metrics
}

/// What a server writes: the families by their short names, with all labels and their values.
fn written(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE causeway_")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let kind = kind.to_owned();
        metrics.insert(short(name).to_owned(), Metric { kind, ..Metric::default() });
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = match line.split_once('{') {
            Some((name, rest)) => (name, rest.rsplit_once('}').unwrap().0),
            None => (line.split(' ').next().unwrap(), ""),
        };
        let name = name.strip_prefix("causeway_").unwrap();
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
            let name = name.strip_suffix(end)?;
            metrics.get(name).is_some_and(|metric| metric.kind == "histogram").then_some(name)
        });
        let name = of_histogram.unwrap_or_else(|| short(name));
        let metric = metrics.get_mut(name).unwrap_or_else(|| panic!("{name} has no type"));
        for label in labels.split("\",").filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once("=\"").unwrap();
            if label != "le" {
                metric.labels.insert(label.to_owned());
                metric.values.insert(value.trim_end_matches('"').to_owned());
            }
        }
    }
    metrics
}

fn short(name: &str) -> &str {
    name.strip_suffix("_total").unwrap_or(name)
}

/// A server that has met one request of each kind.
fn text() -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let limits = WriterLimits { result_cache_bytes_max: Some(1 << 20), ..WriterLimits::default() };
    let writer = Writer::start(Store::open(&path).unwrap(), limits);
    let answers = json!([
        { "when": "long", "pieces": ["x"], "repeats": true, "delay_ms": 2 },
        { "when": "broken", "pieces": ["a", "b"], "fails_at": 1 },
        { "pieces": ["a", { "byte": 240 }, "b"] },
    ]);
    let mut options = options(vec![script(&json!({ "answers": answers }))]);
    options.ledger = Some(Arc::new(writer));
    options.results = Some(Store::open_to_read(&path).unwrap());
    let server = Server::start(options);
    let completion = |fields: Value| server.post("/v1/completions", &fields).status;
    assert_eq!(completion(json!({ "prompt": "a", "n": 2 })), 200);
    let again = || completion(json!({ "prompt": "b", "seed": 1, "result_cache": true }));
    assert_eq!((again(), again()), (200, 200));
    assert_eq!(completion(json!({ "prompt": "long", "timeout_ms": 20, "max_tokens": 900 })), 200);
    assert_eq!(completion(json!({ "prompt": "broken" })), 500);
    assert_eq!(completion(json!({ "prompt": 1.5 })), 400);
    let chat = json!({ "messages": [{ "role": "user", "content": "go" }], "stream": true });
    assert_eq!(server.post("/v1/chat/completions", &chat).status, 200);
    let messages = json!([{ "role": "user", "content": "go" }]);
    let held = json!({ "messages": messages, "guided_choice": ["ab", "ac"] });
    assert_eq!(server.post("/v1/chat/completions", &held).status, 200);
    let long = json!({ "prompt": "long", "max_tokens": 1500 });
    drop(server.begin("/v1/completions", &long));
    let cancelled = |server: &Server| server.get("/metrics").body.contains("by=\"disconnect\"");
    assert!(server.becomes(cancelled));
    let text = server.get("/metrics").body;
    assert!(text.contains("reason=\"given_again\""), "{text}");
    text
}

#[test]
fn what_is_written_and_what_is_documented_are_the_same() {
    let mut documented = documented();
    documented.retain(|name, _| !name.starts_with(WITH_A_FOLDER));
    let written = written(&text());
    let names = |metrics: &BTreeMap<String, Metric>| -> BTreeSet<String> {
        metrics.keys().cloned().collect()
    };
    assert_eq!(names(&written), names(&documented));
    for (name, found) in &written {
        let Metric { kind, labels, values } = &documented[name];
        assert_eq!((&found.kind, &found.labels), (kind, labels), "{name}");
        // Words that the code chooses are documented where they stand beside the model alone.
        let is_word = |value: &&String| *value != "scripted";
        if labels.iter().any(|label| ["kind", "by", "outcome"].contains(&label.as_str())) {
            let unknown: Vec<_> = found
                .values
                .iter()
                .filter(is_word)
                .filter(|value| !values.contains(*value))
                .collect();
            assert!(unknown.is_empty(), "{name}: {unknown:?}");
        }
    }
}

#[test]
fn a_table_is_read_as_it_stands() {
    let metrics = documented();
    assert!(metrics.len() > 30, "{metrics:?}");
    let labels = |name: &str| metrics[name].labels.iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(labels("http_requests"), ["method", "route", "status"]);
    assert_eq!(labels("records_pending"), [""; 0]);
    assert_eq!(metrics["ttft_seconds"].kind, "histogram");
}
