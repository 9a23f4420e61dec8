//! The JSON Schema Test Suite, draft 2020-12, through the mask that decoding uses.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a failure is read beside what was found")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use causeway_constraint::{Constraint, Environment, Limits, Plan, Whitespace, accepts, compile};
use causeway_text::Text;
use causeway_weights::ModelFile;
use serde_json::Value;

/// What `expected.json` holds.
struct Expected {
    groups_compiled: u64,
    /// Reason to the documents that are valid and rejected for it.
    rejected: BTreeMap<String, Vec<String>>,
}

/// What became of the suite.
#[derive(Default)]
struct Found {
    groups: u64,
    groups_compiled: u64,
    accepted: Vec<String>,
    rejected: BTreeMap<String, Vec<String>>,
    refused: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/json-schema")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the suite is in testdata") {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ext| ext == "json") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn expected() -> Expected {
    let text = std::fs::read_to_string(folder().join("expected.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let rejected = serde_json::from_value(value["rejected"].clone()).unwrap();
    Expected { groups_compiled: value["groups_compiled"].as_u64().unwrap(), rejected }
}

fn is_accepted(plan: &Plan, environment: &Environment, text: &str) -> bool {
    accepts(&mut plan.matcher(), environment, text).is_ok()
}

/// Why a valid document may be rejected: none of the three is a fault of the document.
fn reason(plan: &Plan, environment: &Environment, document: &Value, file: &str) -> &'static str {
    if orders(document).iter().any(|other| is_accepted(plan, environment, &other.to_string())) {
        "order of names"
    } else if is_accepted(plan, environment, &whole(document)) {
        "spelling of numbers"
    } else if file.contains("format") {
        "asserted format"
    } else {
        "other"
    }
}

/// The document with the names of its objects in every order, up to a few hundred.
fn orders(document: &Value) -> Vec<Value> {
    match document {
        Value::Object(map) => {
            let mut made: Vec<Vec<(String, Value)>> = vec![Vec::new()];
            for (name, value) in map {
                let variants = orders(value);
                let mut longer: Vec<_> =
                    made.iter().flat_map(|fields| with_field(fields, name, &variants)).collect();
                longer.truncate(400);
                made = longer;
            }
            made.into_iter().map(|fields| Value::Object(fields.into_iter().collect())).collect()
        }
        Value::Array(items) => {
            let mut made: Vec<Vec<Value>> = vec![Vec::new()];
            for item in items {
                let variants = orders(item);
                made = made
                    .iter()
                    .flat_map(|list| {
                        variants.iter().map(|v| list.iter().cloned().chain([v.clone()]).collect())
                    })
                    .take(400)
                    .collect();
            }
            made.into_iter().map(Value::Array).collect()
        }
        other => vec![other.clone()],
    }
}

/// The fields with one more, each of its variants at each place.
fn with_field(
    fields: &[(String, Value)],
    name: &str,
    variants: &[Value],
) -> Vec<Vec<(String, Value)>> {
    let at = |at: usize, variant: &Value| {
        let mut fields = fields.to_vec();
        fields.insert(at, (name.to_owned(), variant.clone()));
        fields
    };
    let places = 0..=fields.len();
    variants
        .iter()
        .flat_map(|v| {
            places.clone().map({
                let at = &at;
                move |place| at(place, v)
            })
        })
        .collect()
}

/// The document's text with whole numbers written without a fraction or an exponent.
fn whole(document: &Value) -> String {
    match document {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        Value::Array(items) => {
            format!("[{}]", items.iter().map(whole).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            let fields = map.iter();
            let fields = fields.map(|(k, v)| format!("{}:{}", Value::from(k.as_str()), whole(v)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fn run(environment: &Environment) -> Found {
    let mut found = Found::default();
    let root = folder().join("draft2020-12");
    for path in files(&root) {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let groups: Vec<Value> = serde_json::from_str(&text).unwrap();
        for group in &groups {
            found.groups += 1;
            let schema = group["schema"].clone();
            let told = format!("{name} | {}", group["description"].as_str().unwrap());
            let constraint = Constraint::JsonSchema { schema, whitespace: Whitespace::Compact };
            let plan = match compile(&constraint, environment, &Limits::default()) {
                Ok(plan) => plan,
                Err(error) => {
                    assert!(error.path().is_some(), "{told}: {error}");
                    found.refused.push(format!("{told}: {error}"));
                    continue;
                }
            };
            found.groups_compiled += 1;
            for test in group["tests"].as_array().unwrap() {
                let told = format!("{told} | {}", test["description"].as_str().unwrap());
                let is_valid = test["valid"].as_bool().unwrap();
                let document = &test["data"];
                match (is_accepted(&plan, environment, &document.to_string()), is_valid) {
                    (true, false) => found.accepted.push(told),
                    (false, true) => {
                        let reason = reason(&plan, environment, document, &name);
                        found.rejected.entry(reason.to_owned()).or_default().push(told);
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

#[test]
fn nothing_is_wrongly_accepted_and_little_rejected() {
    let environment = Environment::of_bytes();
    let found = run(&environment);
    let Expected { groups_compiled, rejected } = expected();
    for line in &found.refused {
        println!("refused: {line}");
    }
    for (reason, list) in &found.rejected {
        for line in list {
            println!("rejected for {reason}: {line}");
        }
    }
    for line in &found.accepted {
        println!("accepted: {line}");
    }
    println!("{} of {} groups compile", found.groups_compiled, found.groups);
    assert_eq!(found.accepted, Vec::<String>::new(), "invalid documents were accepted");
    assert_eq!(found.rejected, rejected, "expected.json lists what is rejected");
    assert!(
        found.groups_compiled >= groups_compiled,
        "{} groups compile, it was {groups_compiled} before",
        found.groups_compiled
    );
}

/// The vocabulary of the default model, which the test command pulls before.
fn smollm2() -> Environment {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let home = variable("CAUSEWAY_HOME").unwrap_or_else(|| {
        let share = || variable("HOME").expect("a user has a home").join(".local/share");
        variable("XDG_DATA_HOME").unwrap_or_else(share).join("causeway")
    });
    let path = home.join("models/smollm2-135m.gguf");
    let model = ModelFile::open(&path)
        .unwrap_or_else(|error| panic!("{error}: run `causeway pull smollm2:135m`"));
    let tokenizer = Text::open(&model).unwrap().tokenizer;
    let (rows, ends) = (tokenizer.vocab_size(), tokenizer.end_tokens().to_vec());
    Environment::new(tokenizer, rows, &ends).unwrap()
}

/// Tokens of many bytes decide as single bytes do; documents that those reject are not asked again.
#[test]
fn a_real_vocabulary_decides_the_same() {
    let environment = smollm2();
    let known: Vec<String> = expected().rejected.into_values().flatten().collect();
    let (mut accepted, mut rejected) = (Vec::new(), Vec::new());
    let root = folder().join("draft2020-12");
    for path in files(&root) {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let groups: Vec<Value> = serde_json::from_str(&text).unwrap();
        for group in groups {
            let schema = group["schema"].clone();
            let constraint = Constraint::JsonSchema { schema, whitespace: Whitespace::Compact };
            let Ok(plan) = compile(&constraint, &environment, &Limits::default()) else {
                continue;
            };
            for test in group["tests"].as_array().unwrap() {
                let described = [&group["description"], &test["description"]];
                let [of, this] = described.map(|told| told.as_str().unwrap());
                let told = format!("{name} | {of} | {this}");
                let found = is_accepted(&plan, &environment, &test["data"].to_string());
                match (found, test["valid"].as_bool().unwrap()) {
                    (true, false) => accepted.push(told),
                    (false, true) if !known.contains(&told) => rejected.push(told),
                    _ => {}
                }
            }
        }
    }
    let none = Vec::<String>::new();
    assert_eq!((accepted, rejected), (none.clone(), none), "wrongly accepted, wrongly rejected");
}
