//! Records for the tests of every file, and the way through all of them.

pub(crate) mod any_record;

use causeway_request::{
    Cause, Choice, Digest, Request as EngineRequest, RequestId, StepOutput, StopReason, TokenId,
};

use crate::*;

/// A start with awkward values: quotes, a character of four bytes, the largest seed.
pub(crate) fn start() -> Start {
    let request = EngineRequest {
        id: RequestId(3),
        tokens: [1, 9690, 198, 504].map(TokenId).to_vec(),
        prefilled: 1,
        tokens_max: 64,
        stop_tokens: vec![TokenId(7)],
        eos_tokens: vec![TokenId(2)],
        seed: u64::MAX,
        choice: 1,
    };
    let prompt = Some("say \"hi\" 🦀\u{0}".to_owned());
    let effective = Effective::from_request(&request, prompt, vec!["\n\n".to_owned()], 2048);
    let canonical = r#"{"choose":"sample","shape":[{"temperature":0.7}]}"#;
    Start {
        request: Request {
            id: 3,
            received: serde_json::json!({"prompt": "say \"hi\" 🦀\u{0}", "temperature": 0.7}),
            effective,
        },
        model: Model {
            name: "smollm2:135m".to_owned(),
            sha256: Sha256::of(b"weights"),
            tokenizer_sha256: Some(Sha256::of(b"tokenizer")),
            quantisation: "Q4_1".to_owned(),
            settings: [("rope_factors".to_owned(), "short".to_owned())].into(),
        },
        numerics: Numerics { version: 1, kv_type: "f16".to_owned() },
        template: Some(Template::new("{{ messages[0].content }}".to_owned())),
        policy: PolicyUsed {
            canonical: canonical.to_owned(),
            sha256: Sha256::of(canonical.as_bytes()),
            greedy: false,
        },
        conditions: Conditions {
            engine: "0.1.0".to_owned(),
            cpu: "a CPU".to_owned(),
            isa: "avx2".to_owned(),
            threads: 2,
            batch_occupancy: 1,
            queue: 0,
            concurrency: 1,
            cache: CacheState::Cold,
            chunk: 512,
        },
    }
}

/// The step of this index: each number follows from it, and none is round.
pub(crate) fn output(step: u32) -> StepOutput {
    let third = f64::from(step + 1) / 3.0;
    StepOutput {
        request: RequestId(3),
        step,
        choice: Choice {
            token: TokenId(100 + step),
            logprob: -third,
            rank: 2,
            probability: 1.0 / (third + 1.0),
            survivors: 40,
            entropy: third.sqrt(),
            raw_best: TokenId(5),
            removed_by: Some("forbidden"),
            runner_up: Some((TokenId(6), 0.1)),
            cause: Cause::Chosen,
            forced_by: None,
        },
        pass: u64::from(step) + 2,
        rows: 1,
        since_arrival_ns: 1_000_000 * u64::from(step + 1).pow(2),
        digest: Digest(u128::MAX / u128::from(step + 3)),
        top: Vec::new(),
        stop: None,
    }
}

pub(crate) const MEASURED: Measured = Measured {
    scheduled_unix_ms: 1_700_000_000_000,
    late_ns: 5,
    queued_ns: 100,
    ended_ns: 90_000_000,
    cached_tokens: 2,
    prefill_passes: 1,
    decode_passes: 3,
    masks: None,
    drafts: None,
};

/// A whole run of so many steps, each made by `output` and then changed by `change`.
pub(crate) fn run(step_count: u32, stop: &StopReason, change: impl Fn(&mut StepOutput)) -> Record {
    let mut builder = RecordBuilder::new(start());
    for step in 0..step_count {
        let mut output = output(step);
        change(&mut output);
        builder.push(&output, format!(" word{step}")).unwrap();
    }
    builder.finish(stop, &MEASURED, "word0 word1".to_owned())
}

/// A whole run that used up its budget.
pub(crate) fn sample() -> Record {
    run(5, &StopReason::MaxTokens { tokens_max: 5 }, |_| {})
}

/// The run of the golden record: a forced token, half characters, a token that the raw logits
/// rule out, an end token.
pub(crate) fn golden() -> Record {
    let mut builder = RecordBuilder::new(start());
    let pieces: [&[u8]; 6] =
        [b" say", "\n\"é".as_bytes(), b"\xf0\x9f", b"\xa6\x80", b"!", b"<end>"];
    for (step, piece) in (0..).zip(pieces) {
        let mut output = output(step);
        match step {
            0 => output.choice.removed_by = None,
            1 => output.choice.cause = Cause::Forced,
            2 => output.choice.runner_up = None,
            3 => output.choice.logprob = f64::NEG_INFINITY,
            4 => output.digest = Digest(7),
            _ => output.choice.token = TokenId(2),
        }
        builder.push(&output, piece).unwrap();
    }
    let stop = StopReason::Eos { token: TokenId(2) };
    builder.finish(&stop, &MEASURED, " say\n\"é🦀!".to_owned())
}

#[test]
fn a_record_goes_to_a_file_and_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answer.json");
    let record = sample();
    write(&record, &path).unwrap();
    let stored = read(&path).unwrap();
    assert_eq!(stored.record, record);
    assert!(stored.is_unchanged());
    assert_eq!(stored.id, record.id());
    assert!(compare(&record, &stored.record).is_equal());
}

/// Numbers that look random and are the same in every run: SplitMix64, Steele et al. 2014.
pub(crate) fn random_numbers(seed: u64) -> impl Iterator<Item = u64> {
    (1_u64..).map(move |index| {
        let mut mixed = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}
