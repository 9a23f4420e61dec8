//! Answers of different forms, side by side on a real model, have the bits that each has alone.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its model must stop")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use causeway_engine::{Drafts, Engine, Limits, Output, Submission};
use causeway_kernels::KvType;
use causeway_model::Settings;
use causeway_policy::PolicyFile;
use causeway_request::{Cause, RequestId};
use causeway_session::{About, Asked, Forms, Given, Hashes, Loaded, Opening, Place};

/// More passes than all requests need one after the other, in chunks of 5.
const PASSES_MAX: usize = 2_000;

/// What each request is held to; the names of fields, colons and brackets are forced.
const FORMS: [&str; 6] = [
    r#"schema = '{"type":"object","properties":{"reasoning":{"type":"string","maxLength":30},"risk_score":{"type":"integer","minimum":0,"maximum":10}},"required":["reasoning","risk_score"],"additionalProperties":false}'"#,
    r#"schema = '{"type":"object","properties":{"category":{"enum":["billing","access","outage"]},"urgent":{"type":"boolean"},"escalate_to":{"enum":["nobody","team lead","duty officer"]}},"required":["category","urgent","escalate_to"],"additionalProperties":false}'"#,
    r#"regex = 'Ticket number [0-9]{4}, opened on (Monday|Tuesday|Friday)\.'"#,
    r#"choice = ["refund the customer", "reject the refund", "escalate"]"#,
    "json_object = true",
    "",
];

const PROMPTS: [&str; 3] = [
    "My invoice shows two seats, but we cancelled one last month.",
    "Since Monday the export button does nothing, and I have lost two hours of work over it.",
    "Nobody can log in.",
];

/// One way to run the requests.
#[derive(Debug, Clone, Copy)]
struct Way {
    concurrency: usize,
    chunk: usize,
    prefix_cache: bool,
    fast_forward: bool,
    drafts: Drafts,
}

const fn way(concurrency: usize, chunk: usize, prefix_cache: bool, fast_forward: bool) -> Way {
    Way { concurrency, chunk, prefix_cache, fast_forward, drafts: Drafts::Off }
}

/// What each request alone is run as; with the others, all pairs of values occur.
const ALONE: Way = way(1, 512, false, true);
const TOGETHER: [Way; 6] = [
    Way { drafts: Drafts::Forms, ..way(1, 512, false, true) },
    Way { drafts: Drafts::All, ..way(2, 16, true, true) },
    way(12, 512, false, true),
    way(12, 5, true, true),
    way(5, 16, true, false),
    way(3, 5, false, true),
];

/// Token, digest, and whether it was forced, step by step; and how the run ended.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    steps: Vec<(u32, u128, bool)>,
    stop: String,
}

fn opened() -> Loaded {
    let home = std::env::var_os("CAUSEWAY_HOME").map(PathBuf::from).unwrap_or_else(|| {
        let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let base = base.unwrap_or_else(|| {
            PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share")
        });
        base.join("causeway")
    });
    let path = home.join("models/smollm2-135m.gguf");
    assert!(path.is_file(), "{} is missing: run `causeway pull smollm2:135m`", path.display());
    let settings = Settings { context_len: Some(512), kv_type: KvType::F16, threads: 2 };
    Loaded::open(Opening { name: "smollm2:135m".to_owned(), path, settings }).unwrap()
}

/// Two requests for each form: one greedy, one drawn.
fn submissions(about: &About, forms: &Forms) -> Vec<Submission> {
    let text = forms.text();
    let mut all = Vec::new();
    for (id, (form, shape)) in (0_u64..).zip(
        FORMS.iter().flat_map(|form| [(form, "temperature = 0.0"), (form, "temperature = 0.9")]),
    ) {
        let toml = format!(
            "schema = 1\n[constraints]\n{form}\n[shape]\n{shape}\n[stop]\ntokens_max = 40\n"
        );
        let file = PolicyFile::from_toml(&toml).unwrap();
        let policy = causeway_session::compile(&file, about, &|_| None).unwrap();
        let given = Given::Chat(PROMPTS[all.len() % PROMPTS.len()].to_owned());
        let prompt = causeway_session::prompt(given, &file, about, Some(text), None).unwrap();
        let asked = Asked { id: RequestId(id), received: ().into(), seed: Some(7 + id), choice: 0 };
        let start = causeway_session::start(about, &policy, prompt, asked, &Place::alone(512));
        let rules = causeway_session::answer_rules(&policy, &start, Some(text));
        let plan = forms.plan(&file.constraints.form).unwrap();
        let guide = causeway_session::guide(&policy, &rules, plan.as_ref(), &[], text).unwrap();
        let request = start.request.effective.to_request(RequestId(id));
        all.push(Submission { guide, ..Submission::new(request, policy, 0) });
    }
    all
}

fn engine(way: Way) -> Engine {
    let Way { concurrency, chunk, prefix_cache, fast_forward, drafts } = way;
    let limits = Limits { prefix_cache, fast_forward, drafts, ..Limits::new(concurrency, chunk) };
    Engine::new(opened().model, limits)
}

/// Runs requests together until all of them have ended.
fn run(engine: &mut Engine, requests: Vec<Submission>) -> BTreeMap<u64, Answer> {
    for request in requests {
        engine.submit(request).unwrap();
    }
    let mut answers: BTreeMap<u64, Answer> = BTreeMap::new();
    for _ in 0..PASSES_MAX {
        if engine.is_idle() {
            break;
        }
        for output in engine.step(&mut || 0) {
            match output {
                Output::Step(step) => {
                    let is_forced = step.choice.cause == Cause::Forced;
                    let told = (step.choice.token.0, step.digest.0, is_forced);
                    answers.entry(step.request.0).or_default().steps.push(told);
                }
                Output::Ended(ended) => {
                    answers.entry(ended.request.0).or_default().stop = ended.stop.name().to_owned();
                }
            }
        }
    }
    assert!(engine.is_idle(), "{} requests do not end", engine.request_count());
    answers
}

#[test]
fn every_form_gives_the_bits_that_it_gives_alone() {
    let mut loaded = opened();
    let about = loaded.about(&Hashes::new("")).unwrap();
    let forms = Forms::new(Arc::new(loaded.text.take().unwrap()), &about);
    let requests = submissions(&about, &forms);
    let mut lonely = engine(ALONE);
    let alone: BTreeMap<u64, Answer> =
        requests.iter().flat_map(|request| run(&mut lonely, vec![request.clone()])).collect();
    let forced = |id: u64| alone[&id].steps.iter().filter(|(_, _, is_forced)| *is_forced).count();
    // Schemas and the expression lay much, the free answer nothing.
    assert!((0..6).all(|id| forced(id) > 3), "{alone:?}");
    assert_eq!(forced(10) + forced(11), 0);
    assert!((2..8).all(|id| alone[&id].stop == "schema_complete"), "{alone:?}");
    for way in TOGETHER {
        let together = run(&mut engine(way), requests.clone());
        assert_eq!(together.len(), requests.len(), "{way:?}");
        for (id, answer) in &together {
            assert_eq!(answer, &alone[id], "request {id}, {way:?}");
        }
    }
}
