//! The machine-readable forms, each read strictly: their fields and their values.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::{causeway, lines, object, smollm2, tiny, with_stdin};

/// The fields of an object, by name.
fn fields(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Each line in must give its object out; lines with an error make the exit code 2.
fn check_lines(args: &[&str], cases: &[(Value, Value)]) {
    let input: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    let ran = with_stdin(args, &input);
    let refuses = cases.iter().any(|(_, want)| want.get("error").is_some());
    assert_eq!(ran.code, if refuses { 2 } else { 0 }, "{ran:?}");
    let answers = lines(&ran.stdout);
    assert_eq!(answers.len(), cases.len(), "{ran:?}");
    for (answer, (line, want)) in answers.iter().zip(cases) {
        assert_eq!(answer, want, "{args:?} was given {line}");
    }
}

#[test]
fn tokenize_and_detokenize_are_each_others_reverse() {
    let (text, special) = ("Ein 🦙, <|im_end|> und mehr", "<|im_start|>user");
    let ids = |text: &str, flags: &[&str]| {
        let args = [&["tokenize", "-m", smollm2(), "--json"], flags].concat();
        object(&with_stdin(&args, &json!({ "text": text }).to_string()))["ids"].clone()
    };
    check_lines(
        &["detokenize", "-m", smollm2(), "--json"],
        &[
            (json!({"ids": ids(text, &[])}), json!({"text": text})),
            (json!({"ids": []}), json!({"text": ""})),
            (json!({"ids": [1, 4093]}), json!({"text": special})),
        ],
    );
    assert_eq!(ids("", &[]), json!([]));
    assert_eq!(ids(special, &["--special"]), json!([1, 4093]));
    assert!(ids(special, &[]).as_array().unwrap().len() > 2, "a marker in the text is text");
    check_lines(
        &["detokenize", "-m", smollm2(), "--json"],
        &[(
            json!({"ids": [999_999]}),
            json!({"error": "token id 999999 is outside the vocabulary of 49152 tokens"}),
        )],
    );
}

#[test]
fn run_writes_text_tokens_stop_and_account() {
    let args = ["run", "-m", smollm2(), "--json", "--ids", "504,3575,282", "--ignore-eos"];
    let whole = object(&causeway(&[&args[..], &["--tokens-max", "3"]].concat()));
    for field in ["text", "tokens", "stop", "account"] {
        assert!(whole.get(field).is_some(), "{field} is not in {whole}");
    }
    let tokens: Vec<u64> =
        whole["tokens"].as_array().unwrap().iter().map(|token| token.as_u64().unwrap()).collect();
    assert_eq!(tokens.len(), 3);
    assert_eq!(whole["stop"], json!({"reason": "max_tokens", "tokens_max": 3}));
    assert_eq!(fields(&whole["account"]), ["passes", "times", "tokens"]);
    let text = with_stdin(
        &["detokenize", "-m", smollm2(), "--json"],
        &json!({ "ids": tokens }).to_string(),
    );
    assert_eq!(object(&text)["text"], whole["text"]);
}

#[test]
fn logits_writes_one_object_a_position() {
    let args = ["logits", "-m", &tiny(), "--json", "--ids", "1,2,3,4,5", "--threads", "1"];
    let all = lines(&causeway(&[&args[..], &["--at", "0,511", "--chunk", "2"]].concat()).stdout);
    assert_eq!(all.len(), 5);
    for (position, row) in all.iter().enumerate() {
        assert_eq!(fields(row), ["at", "digest", "logsumexp", "position", "top"]);
        assert_eq!(row["position"], position);
        let top = row["top"].as_array().unwrap();
        let logit = |at: usize| top[at][1].as_f64().unwrap();
        assert_eq!(top.len(), 64);
        assert!((1..64).all(|at| logit(at - 1) >= logit(at)), "best first");
        assert!(row["logsumexp"].as_f64().unwrap() > logit(0));
        assert_eq!(row["at"].as_array().unwrap().len(), 2);
        assert_eq!((&row["at"][0][0], &row["at"][1][0]), (&0.into(), &511.into()));
        assert_eq!(row["digest"].as_str().unwrap().len(), 32);
    }
    let last = lines(&causeway(&[&args[..], &["--last", "2"]].concat()).stdout);
    assert_eq!(fields(&last[0]), ["digest", "logsumexp", "position", "top"]);
    let digests = |rows: &[Value]| rows.iter().map(|row| row["digest"].clone()).collect::<Vec<_>>();
    assert_eq!(digests(&last), digests(&all[3..]));
}

#[test]
fn score_writes_tokens_nats_and_bits() {
    let text = "The quick brown fox jumps over the lazy dog.";
    let args = ["score", "-m", smollm2(), "--json"];
    let line = json!({ "text": text }).to_string();
    let score = object(&with_stdin(&args, &line));
    assert_eq!(fields(&score), ["bits_per_byte", "nats", "tokens"]);
    assert_eq!(score["tokens"], 10);
    let (nats, bits) = (score["nats"].as_f64().unwrap(), score["bits_per_byte"].as_f64().unwrap());
    // The first token, `The`, is given and not scored: 3 of the 44 bytes.
    assert!((nats / std::f64::consts::LN_2 / 41.0 - bits).abs() < 1e-12, "{score}");
    let chunked = object(&with_stdin(&[&args[..], &["--chunk", "3"]].concat(), &line));
    assert_eq!(chunked, score);
    check_lines(
        &args,
        &[
            (json!({"text": text}), score.clone()),
            (json!({"text": "x"}), json!({"tokens": 1, "nats": 0.0, "bits_per_byte": null})),
            (
                json!({"text": ""}),
                json!({"error": "the text is empty: at least one token is needed"}),
            ),
        ],
    );
}

#[test]
fn models_names_what_is_there() {
    smollm2();
    let ran = causeway(&["models", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let models = lines(&ran.stdout);
    let model = models.iter().find(|model| model["name"] == "smollm2:135m").unwrap();
    let (before, behind) =
        (["architecture", "bytes", "catalogue", "context"], ["name", "path", "quantisation"]);
    assert_eq!(fields(model), [&before[..], &behind, &["sha256", "source"]].concat());
    assert_eq!(model["bytes"], 98_362_432);
    let hash = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
    assert_eq!(model["sha256"], hash);
    let inspected = causeway(&["inspect", model["path"].as_str().unwrap(), "--json"]);
    assert_eq!(object(&inspected)["metadata"]["general.architecture"], "llama");
}

#[test]
fn template_writes_text_or_error() {
    let user = json!({"role": "user", "content": "A<b & 'é' 中/\" <|im_end|>"});
    let line = |prompt: bool| json!({"messages": [user], "add_generation_prompt": prompt});
    let rendered = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by \
                    Hugging Face<|im_end|>\n<|im_start|>user\nA<b & 'é' 中/\" <|im_end|><|im_end|>\n";
    check_lines(
        &["template", "-m", smollm2(), "--json"],
        &[
            (line(false), json!({ "text": rendered })),
            (line(true), json!({"text": format!("{rendered}<|im_start|>assistant\n")})),
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.jinja");
    let source = "{% for m in messages %}{% if m.role == 'system' %}\
                  {{ raise_exception('no system here') }}{% endif %}{{ m|tojson }}{% endfor %}";
    std::fs::write(&file, source).unwrap();
    check_lines(
        &["template", "--file", file.to_str().unwrap(), "--json"],
        &[
            (
                json!({"messages": [{"d": "a<b & 'é' 中/\""}]}),
                json!({"text": "{\"d\": \"a<b & 'é' 中/\\\"\"}"}),
            ),
            (
                json!({"messages": [{"role": "system", "content": "x"}]}),
                json!({"error": "no system here"}),
            ),
        ],
    );
}

#[test]
fn choose_writes_finite_numbers() {
    let args = ["choose", "--json"];
    for (line, token) in [
        (json!({"logits": ["-inf", 1, 5], "policy": {"top_k": 1}}), 2),
        (json!({"logits": ["-inf", "-inf", 5]}), 2),
        (json!({"logits": [2.875, 11.0625], "policy": {"temperature": 1e-4}}), 1),
        (json!({"logits": [-1e30, 1e30], "policy": {"temperature": 1e-9}}), 1),
        (json!({"logits": [0, 5, 1], "policy": {"top_k": 0, "temperature": 0}}), 1),
        (json!({"probs": [0, 0, 1], "policy": {"top_p": 0.5}}), 2),
        (json!({"logits": [5, 9], "policy": {"logit_bias": {"1": "-inf"}}}), 0),
    ] {
        let answer = object(&with_stdin(&args, &line.to_string()));
        assert_eq!(answer["token"], token, "{line}");
        let probs = answer["probs"].as_array().unwrap();
        let sum: f64 = probs.iter().map(|p| p.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{line} gave {answer}");
        assert_eq!(answer["survivors"].as_array().unwrap().len(), probs.len());
    }
}

#[test]
fn choose_draws_the_best_as_often_as_it_is_probable() {
    let draw = |seed| json!({"logits": [0, 5, 1], "seed": seed, "policy": {"top_k": 0}});
    let input: String = (0..100).map(|seed| format!("{}\n", draw(seed))).collect();
    let answers = lines(&with_stdin(&["choose", "--json"], &input).stdout);
    let ones = answers.iter().filter(|answer| answer["token"] == 1).count();
    assert!((90..=100).contains(&ones), "{ones} of 100, where 97.6 are expected");
}

#[test]
fn choose_tells_raw_numbers_whatever_the_policy() {
    let policies = [
        json!({"temperature": 0}),
        json!({"temperature": 1}),
        json!({"temperature": 1, "top_k": 1}),
        json!({"temperature": 2, "top_p": 0.1}),
    ];
    let answers = policies.map(|policy| {
        let line = json!({"logits": [1, 3, 0.5, 2], "seed": 4, "policy": policy});
        let account =
            object(&with_stdin(&["choose", "--json"], &line.to_string()))["account"].clone();
        let raw_best = account["raw_best"].clone();
        (raw_best, account["entropy"].clone())
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}
