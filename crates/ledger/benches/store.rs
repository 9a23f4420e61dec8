//! What a record costs: its hashes, its bytes, the push, and records a second by one writer.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails says so by ending")]

use std::time::{Duration, Instant};

use causeway_ledger::{
    CacheState, Conditions, Effective, Measured, Model, Numerics, PolicyUsed, Record,
    RecordBuilder, Request, Sha256, Start, Store, Stored, Template, Writer, WriterLimits,
};
use causeway_request::{Cause, Choice, Digest, RequestId, StepOutput, StopReason, TokenId};

/// Steps of each record, and tokens of its prompt.
const STEPS: u32 = 200;
const PROMPT_TOKENS: u32 = 300;
/// Records of each measurement.
const RECORDS: u64 = 2_000;

fn main() {
    // `cargo test` builds and starts benches too; without the flag there is nothing to measure.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..RECORDS).map(record).collect();
    let json_bytes = causeway_ledger::to_json(&records[0]).unwrap().len();
    println!("record: {STEPS} steps, {PROMPT_TOKENS} prompt tokens, {json_bytes} bytes as a file");
    hashes(&records);
    one_by_one(&records[..200], &folder.path().join("one.sqlite"));
    by_writer(&records, &folder.path().join("many.sqlite"));
}

fn us(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap())
}

fn hashes(records: &[Record]) {
    let begin = Instant::now();
    for record in records {
        std::hint::black_box(record.id());
    }
    println!("id: {:.0} us a record", us(begin.elapsed(), records.len()));
    let begin = Instant::now();
    for record in records {
        std::hint::black_box(record.answer_hash());
    }
    println!("answer hash: {:.0} us a record", us(begin.elapsed(), records.len()));
}

fn one_by_one(records: &[Record], path: &std::path::Path) {
    let mut store = Store::open(path).unwrap();
    let begin = Instant::now();
    for record in records {
        store.insert(record.clone()).unwrap();
    }
    println!("insert, one transaction each: {:.0} us a record", us(begin.elapsed(), records.len()));
}

fn by_writer(records: &[Record], path: &std::path::Path) {
    let writer = Writer::start(Store::open(path).unwrap(), WriterLimits::default());
    let mut pushes = Vec::new();
    let begin = Instant::now();
    for record in records.iter().cloned() {
        // At most half the queue, so that what is timed is a push and not a wait.
        while writer.is_under_pressure() {
            std::thread::yield_now();
        }
        let push = Instant::now();
        writer.push(record).unwrap();
        pushes.push(push.elapsed());
    }
    let written = writer.close().unwrap();
    let elapsed = begin.elapsed();
    pushes.sort_unstable();
    let at = |share: usize| us(pushes[(pushes.len() - 1) * share / 100], 1);
    println!("push: p50 {:.1} us, p99 {:.1} us, max {:.1} us", at(50), at(99), at(100));
    println!(
        "writer: {:.0} us a record, {:.0} records/s, {} transactions",
        us(elapsed, records.len()),
        1e6 / us(elapsed, records.len()),
        written.batches
    );
    let bytes = path.metadata().unwrap().len();
    let record_bytes = bytes / RECORDS;
    println!("file: {record_bytes} bytes a record, {} a step", record_bytes / u64::from(STEPS));
    let store = Store::open_to_read(path).unwrap();
    let id = records[77].id().to_string();
    let begin = Instant::now();
    for _ in 0..100 {
        std::hint::black_box::<Stored>(store.find(&id).unwrap());
    }
    println!("find: {:.0} us", us(begin.elapsed(), 100));
    let begin = Instant::now();
    let listed = store.list(&causeway_ledger::Filter::default()).unwrap();
    println!("list: {:.1} us a row", us(begin.elapsed(), listed.len()));
}

/// A record of numbers that look random, as real ones do.
fn record(index: u64) -> Record {
    let mut state = index;
    let mut random = move || {
        // SplitMix64, Steele et al. 2014.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut builder = RecordBuilder::new(start(index));
    for step in 0..STEPS {
        let small = |value: u64| u32::try_from(value % 49_152).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "any number will do")]
        let fraction = random() as f64 / u64::MAX as f64;
        let output = StepOutput {
            request: RequestId(index),
            step,
            choice: Choice {
                token: TokenId(small(random())),
                logprob: -fraction,
                rank: 1 + small(random() % 3),
                probability: fraction,
                survivors: 40,
                entropy: 3.0 * fraction,
                raw_best: TokenId(small(random())),
                removed_by: None,
                runner_up: Some((TokenId(small(random())), fraction / 2.0)),
                cause: Cause::Chosen,
                forced_by: None,
            },
            pass: 1_000_000 + u64::from(step),
            rows: 8,
            since_arrival_ns: 5_000_000 * u64::from(step + 1) + random() % 1_000_000,
            digest: Digest(u128::from(random()) << 64 | u128::from(random())),
            top: Vec::new(),
            stop: None,
        };
        builder.push(&output, " word").unwrap();
    }
    let measured = Measured {
        scheduled_unix_ms: 1_700_000_000_000 + index,
        queued_ns: random() % 1_000_000,
        ended_ns: 2_000_000_000,
        prefill_passes: 1,
        masks: None,
        decode_passes: u64::from(STEPS) - 1,
        ..Measured::default()
    };
    let stop = StopReason::MaxTokens { tokens_max: STEPS as usize };
    builder.finish(&stop, &measured, " word".repeat(STEPS as usize))
}

fn start(index: u64) -> Start {
    let prompt = "a word of the prompt ".repeat(PROMPT_TOKENS as usize / 5);
    let canonical = format!("{{\"name\":\"bench\",\"rules\":\"{}\"}}", "x".repeat(1_500));
    Start {
        request: Request {
            id: index,
            received: serde_json::json!({
                "model": "smollm2:135m",
                "messages": [{ "role": "user", "content": prompt }],
            }),
            effective: Effective {
                prompt: Some(prompt),
                prompt_tokens: (0..PROMPT_TOKENS).map(|token| token * 131 % 49_152).collect(),
                prefilled_tokens: Vec::new(),
                tokens_max: u64::from(STEPS),
                stop_tokens: Vec::new(),
                eos_tokens: vec![2],
                stop_strings: Vec::new(),
                context_len: 8_192,
                seed: index,
                choice: 0,
            },
        },
        model: Model {
            name: "smollm2:135m".to_owned(),
            sha256: Sha256::of(b"weights"),
            tokenizer_sha256: Some(Sha256::of(b"tokenizer")),
            quantisation: "Q4_1".to_owned(),
            settings: std::collections::BTreeMap::new(),
        },
        numerics: Numerics { version: 1, kv_type: "f16".to_owned() },
        template: Some(Template::new("{{ messages }}".repeat(100))),
        policy: PolicyUsed { sha256: Sha256::of(canonical.as_bytes()), canonical, greedy: false },
        conditions: Conditions {
            engine: "0.1.0".to_owned(),
            cpu: "a CPU".to_owned(),
            isa: "avx2".to_owned(),
            threads: 2,
            batch_occupancy: 8,
            queue: 0,
            concurrency: 16,
            cache: CacheState::Cold,
            chunk: 512,
        },
    }
}
