//! `run` as a user meets it: streams, stops, seeds, interrupts, and readers that go away.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{
    Ran, causeway, code_of, command, object, ran, rest_of, smollm2, spawned, tiny, with_stdin,
};

/// Smileys of several bytes each, over more tokens than characters.
const SMILEYS: &str = "Smileys: 😀 😃 😄 😁 😆 😅 😀 😃 😄 😁 😆 😅 😀 😃 😄";
const JAPANESE: &str = "日本語: こんにちは世界。こんにちは世界。こんにちは";

/// What streams equals what `--json` holds, byte for byte; the text is given back.
fn check_streamed(args: &[&str]) -> String {
    let args = [&["run", "-m", smollm2()], args].concat();
    let streamed = causeway(&args);
    let whole = object(&causeway(&[&args[..], &["--json"]].concat()));
    let text = whole["text"].as_str().unwrap();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    assert_eq!((streamed.code, streamed.stdout), (0, format!("{text}{end}")), "{args:?}");
    assert_eq!(streamed.stderr.lines().count(), 1, "one line of account");
    text.to_owned()
}

#[test]
fn streamed_text_is_the_whole_text() {
    let text = check_streamed(&["--raw", "--tokens-max", "24", SMILEYS]);
    assert!(text.contains('😊'), "{text}");
    // Each smiley is two tokens: an odd budget ends inside one.
    let cut = check_streamed(&["--raw", "--tokens-max", "23", SMILEYS]);
    assert!(cut.ends_with('\u{fffd}'), "{cut}");
    check_streamed(&["--raw", "--tokens-max", "24", JAPANESE]);
    check_streamed(&["--tokens-max", "16", "--temperature", "1.5", "--seed", "3", "Tell a joke"]);
}

#[test]
fn a_stop_string_is_never_seen() {
    let count = ["--raw", "--tokens-max", "18", "1, 2, 3, 4, 5, 6, 7,"];
    let stop = |stops: &[&str]| {
        let flags = stops.iter().flat_map(|stop| ["--stop", stop]);
        check_streamed(&[&count[..], &flags.collect::<Vec<_>>()].concat())
    };
    let all = stop(&[]);
    assert!(all.starts_with(" 8, 9, 10, 11, 12"), "{all}");
    // The earliest match wins, whatever the order, and a half match is delivered.
    assert_eq!(stop(&[", 12", "1, 1"]), " 8, 9, 10, 1");
    assert_eq!(stop(&["0, 1", ", 12"]), " 8, 9, 1");
    // A stop inside a character's bytes cannot be; one of several characters spans tokens.
    let cut = check_streamed(&["--raw", "--tokens-max", "24", "--stop", "です", JAPANESE]);
    assert!(!cut.contains("で") && !cut.contains('\u{fffd}'), "{cut}");
}

#[test]
fn an_account_adds_up() {
    let args = ["run", "-m", &tiny(), "--json", "--ids", "1,2,3", "--ignore-eos"];
    for chunk in ["1", "2", "512"] {
        let more = ["--tokens-max", "5", "--chunk", chunk];
        let whole = object(&causeway(&[&args[..], &more].concat()));
        let account = &whole["account"];
        assert_eq!(account["tokens"]["prompt"], 3);
        assert_eq!(account["tokens"]["prefix"], 5);
        assert_eq!(account["passes"]["decode"], 4);
        assert_eq!(account["passes"]["prefill"], 3_u64.div_ceil(chunk.parse().unwrap()));
        assert_eq!(whole["tokens"].as_array().unwrap().len(), 5);
        assert_eq!(whole["stop"]["reason"], "max_tokens");
    }
}

#[test]
fn a_full_context_is_a_reason_to_stop() {
    for budget in ["60", "100000000"] {
        let args = ["run", "-m", &tiny(), "--json", "--ignore-eos", "--context", "16"];
        let more = ["--ids", "1,2,3,4,5,6,7,8,9,10", "--tokens-max", budget];
        let whole = object(&causeway(&[&args[..], &more].concat()));
        assert_eq!(
            (&whole["stop"]["reason"], &whole["stop"]["context_len"]),
            (&"context_full".into(), &16.into())
        );
        assert_eq!(whole["tokens"].as_array().unwrap().len(), 6, "prompt and answer fill it");
    }
}

/// The tokens of a draw on the tiny model.
fn drawn(more: &[&str]) -> Vec<Value> {
    let args = ["run", "-m", &tiny(), "--json", "--ids", "7,8,9", "--ignore-eos"];
    let args = [&args[..], &["--tokens-max", "16", "--temperature", "2"], more].concat();
    object(&causeway(&args))["tokens"].as_array().unwrap().clone()
}

#[test]
fn a_seed_owns_its_draws() {
    let alone = drawn(&["--seed", "42"]);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| drawn(&[]));
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| drawn(&["--seed", "42"]))).collect();
        for run in runs {
            assert_eq!(run.join().unwrap(), alone, "whatever runs beside it");
        }
        assert_ne!(other.join().unwrap(), alone);
    });
    assert_ne!(drawn(&["--seed", "43"]), alone);
    assert_eq!(drawn(&["--seed", "42", "--threads", "1", "--chunk", "1"]), alone);
}

#[test]
fn a_drawn_seed_is_told_and_draws_the_same() {
    let base = ["run", "-m", &tiny(), "--json", "--ids", "7", "--temperature", "2"];
    let base = [&base[..], &["--tokens-max", "12", "--ignore-eos"]].concat();
    let first = object(&causeway(&base));
    let seed = first["seed"].as_u64().unwrap();
    assert!(seed < 1 << 53, "every JSON reader keeps it");
    let again = object(&causeway(&[&base[..], &["--seed", &seed.to_string()]].concat()));
    assert_eq!(again["tokens"], first["tokens"]);
    assert_eq!(again["policy"], first["policy"], "a seed is the request's");
}

/// The record that a run of these arguments writes.
fn recorded(folder: &Path, name: &str, args: &[&str]) -> (String, Value) {
    let path = folder.join(name).display().to_string();
    let Ran { code, stderr, .. } = causeway(&[&["run", "--record", &path], args].concat());
    assert_eq!(code, 0, "{stderr}");
    let record = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    (path, record)
}

#[test]
fn raw_probabilities_do_not_follow_the_sampler() {
    let folder = tempfile::tempdir().unwrap();
    let settings: [&[&str]; 4] = [
        &["--temperature", "0"],
        &["--temperature", "1"],
        &["--temperature", "1", "--top-k", "1"],
        &["--temperature", "2", "--top-p", "0.1"],
    ];
    let rows = settings.map(|flags| {
        let base = ["-m", &tiny(), "--ids", "4,5,6", "--tokens-max", "1", "--seed", "1"];
        let (_, record) = recorded(folder.path(), "r.json", &[&base[..], flags].concat());
        let step = &record["steps"][0];
        let reasons = &step["reasons"];
        if reasons["rank"] == 1 {
            assert_eq!(reasons["raw_best"], step["token"]);
        }
        (step["digest"].clone(), reasons["entropy"].clone(), reasons["raw_best"].clone())
    });
    assert!(rows.iter().all(|row| *row == rows[0]), "{rows:?}");
}

#[test]
fn a_record_replays_on_other_threads_and_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["-m", smollm2(), "--temperature", "0.9", "--seed", "5", "--tokens-max", "12"];
    let args = [&args[..], &["--stop", "\n\n", "Name three rivers"]].concat();
    let (path, record) = recorded(folder.path(), "r.json", &args);
    assert_eq!(record["steps"].as_array().unwrap().len(), 12);
    for more in [&["--threads", "1", "--chunk", "7"][..], &["--chunk", "1", "--json"]] {
        let Ran { code, stdout, stderr } = causeway(&[&["replay", &path], more].concat());
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert!(stdout.contains("equal"), "{stdout}");
    }
    // Another token in the record is named with its step.
    let edited = fs::read_to_string(&path).unwrap();
    let token = record["steps"][4]["token"].to_string();
    let edited =
        edited.replacen(&format!("\"step\":4,\"token\":{token}"), "\"step\":4,\"token\":11", 1);
    fs::write(&path, edited).unwrap();
    let Ran { code, stdout, stderr } = causeway(&["replay", &path]);
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("first step that differs: 4"), "{stdout}");
}

#[test]
fn a_record_names_its_kv_type_and_replays_under_it() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["-m", smollm2(), "--kv-type", "q8_0", "--tokens-max", "6", "Name three rivers"];
    let (path, record) = recorded(folder.path(), "q.json", &args);
    assert_eq!(record["start"]["numerics"]["kv_type"], "q8_0");
    let check = |want_code: i32, want: &str| {
        let Ran { code, stdout, stderr } = causeway(&["replay", &path, "--chunk", "3"]);
        assert_eq!(code, want_code, "{stdout}{stderr}");
        assert!(format!("{stdout}{stderr}").contains(want), "{stdout}{stderr}");
    };
    check(0, "equal");
    let kept = fs::read_to_string(&path).unwrap();
    for (other, code, want) in [
        ("f16", 1, "first step that differs: 0"),
        ("q4_0", 2, "unknown KV type `q4_0`: f16, f32, q8_0 exist"),
    ] {
        let edited = kept.replacen("\"kv_type\":\"q8_0\"", &format!("\"kv_type\":\"{other}\""), 1);
        fs::write(&path, edited).unwrap();
        check(code, want);
    }
}

/// A run that will not end by itself soon, and is heard of after its first text.
fn long_run(record: &str, more: &[&str]) -> Command {
    let args = ["run", "-m", smollm2(), "--ignore-eos", "--raw", "--record", record];
    let long = ["--tokens-max", "1500", "Once upon a time"];
    command(&[&args[..], more, &long].concat())
}

/// Sends a signal by the system's own command.
fn signal(name: &str, id: u32) {
    let sent = Command::new("kill").args([name, &id.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn an_interrupt_ends_with_the_account_and_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json").display().to_string();
    let mut child = spawned(long_run(&path, &[]));
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0];
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    signal("-INT", child.id());
    rest_of(stdout);
    let stderr = rest_of(child.stderr.take().unwrap());
    assert_eq!(code_of(child.wait().unwrap()), 0, "{stderr}");
    assert!(stderr.contains("cancelled (by client, after ") && stderr.lines().count() == 1);
    let record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let stop = &record["end"]["stop"];
    let steps = record["steps"].as_array().unwrap().len();
    assert_eq!((&stop["reason"], &stop["after_step"]), (&"cancelled".into(), &steps.into()));
    assert_eq!(record["end"]["account"]["tokens"]["prefix"], steps);
    let replayed = causeway(&["replay", &path]);
    assert_eq!(replayed.code, 0, "{replayed:?}");
    assert!(replayed.stdout.contains("equal as far as both ran"), "{replayed:?}");
}

/// The record of a run whose reader leaves after its first line.
fn abandoned(more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json").display().to_string();
    let mut child = spawned(long_run(&path, more));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let stderr = rest_of(child.stderr.take().unwrap());
    assert_eq!(code_of(child.wait().unwrap()), 0, "{stderr}");
    assert!(!stderr.contains("panicked") && stderr.lines().count() == 1, "{stderr}");
    serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

#[test]
fn a_reader_that_goes_away_ends_the_run_as_the_policy_says() {
    let stop = abandoned(&[])["end"]["stop"].clone();
    assert_eq!((&stop["reason"], &stop["by"]), (&"cancelled".into(), &"disconnect".into()));
    // Of two budgets the last one holds: the run is finished for nobody.
    let record = abandoned(&["--on-disconnect", "finish", "--context", "90"]);
    assert_eq!(record["end"]["stop"]["reason"], "context_full");
}

#[test]
fn a_reader_that_goes_away_is_no_failure_anywhere() {
    for args in [
        &["logits", "-m", &tiny(), "--json", "--ids", &["3"; 200].join(",")][..],
        &["completions", "bash"],
        &["trace", "-m", &tiny(), "--ids", "1", "--tokens-max", "200"],
        &["inspect", &tiny()],
    ] {
        let mut child = spawned(command(args));
        drop(child.stdout.take());
        let stderr = rest_of(child.stderr.take().unwrap());
        let code = code_of(child.wait().unwrap());
        assert!(!stderr.contains("panicked") && !stderr.contains("pipe"), "{args:?}: {stderr}");
        assert_eq!(code, 0, "{args:?}: {stderr}");
    }
}

#[test]
fn a_closed_stream_is_no_failure() {
    let binary = env!("CARGO_BIN_EXE_causeway");
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let line = format!("'{binary}' run -m '{}' --ids 1 --tokens-max 2 {closed}", tiny());
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{closed}: {stderr}");
        assert!(!stderr.contains("panicked"), "{closed}: {stderr}");
    }
}

#[test]
fn a_prompt_comes_from_stdin_too() {
    let args = ["run", "-m", smollm2(), "--json", "--raw", "--tokens-max", "4"];
    let given = object(&causeway(&[&args[..], &["The sky is"]].concat()));
    let piped = object(&with_stdin(&args, "The sky is"));
    let dashed = object(&with_stdin(&[&args[..], &["-"]].concat(), "The sky is"));
    assert_eq!((&piped["text"], &dashed["text"]), (&given["text"], &given["text"]));
}

#[test]
fn trace_shows_each_step_and_keeps_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json").display().to_string();
    let args = ["trace", "-m", smollm2(), "--raw", "--tokens-max", "3", "--probs"];
    let args = [&args[..], &["--record", &path, "The sky is"]].concat();
    let Ran { code, stdout, stderr } = causeway(&args);
    assert_eq!(code, 0, "{stderr}");
    for part in ["3 known tokens", "1 new token (3 before it)", "1 new token (4 before it)"] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
    for heading in ["sequence so far", "generation prefix", "runner-up"] {
        assert!(stdout.contains(heading), "{heading} is not in\n{stdout}");
    }
    assert_eq!(causeway(&["replay", &path]).code, 0);
    // The response prefill is the start of the generation prefix.
    let more = ["trace", "-m", smollm2(), "--tokens-max", "1", "--prefill", "Well,", "Hi"];
    let Ran { stdout, .. } = causeway(&more);
    assert!(stdout.contains("assistant\\nWell,") && stdout.contains("  Well,"), "{stdout}");
    // Where a form is not offered, it is refused and not ignored.
    assert_eq!(causeway(&[&args[..], &["--json"]].concat()).code, 2);
}

#[test]
fn the_default_is_greedy_and_a_shape_flag_draws() {
    let base = ["run", "-m", &tiny(), "--json", "--ids", "7,8", "--tokens-max", "8"];
    let tokens = |more: &[&str]| {
        object(&causeway(&[&base[..], &["--ignore-eos"], more].concat()))["tokens"].clone()
    };
    let greedy = tokens(&[]);
    assert_eq!(tokens(&["--seed", "2"]), tokens(&["--seed", "2", "--temperature", "1"]));
    assert_eq!(tokens(&["--method", "greedy", "--temperature", "3"]), greedy);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    fs::write(&path, "schema = 1\n[shape]\ntemperature = 2\n[choose]\nseed = 3\n").unwrap();
    let file = ["--policy", path.to_str().unwrap()];
    let three = tokens(&file);
    assert_eq!(tokens(&["--temperature", "2", "--seed", "3"]), three);
    assert_ne!(tokens(&[&file[..], &["--seed", "4"]].concat()), three, "a flag goes first");
    assert_eq!(tokens(&["--temperature", "0"]), greedy);
    assert_eq!(tokens(&["--top-k", "1", "--seed", "9"]), greedy);
    assert_ne!(tokens(&["--temperature", "2", "--seed", "2"]), greedy);
    let mut scalar = command(&[&base[..], &["--ignore-eos"]].concat());
    scalar.env("CAUSEWAY_ISA", "scalar");
    assert_eq!(object(&ran(scalar, ""))["tokens"], greedy);
}

#[test]
fn a_sampling_flag_draws_even_with_its_default() {
    let base = ["run", "-m", &tiny(), "--ids", "7,8", "--tokens-max", "2", "--ignore-eos"];
    let seed_is_told = |more: &[&str]| {
        let Ran { code, stderr, .. } = causeway(&[&base[..], more].concat());
        assert_eq!(code, 0, "{stderr}");
        stderr.contains(", seed ")
    };
    for flags in
        [["--temperature", "1"], ["--top-p", "1"], ["--top-k", "0"], ["--method", "sample"]]
    {
        assert!(seed_is_told(&flags), "{flags:?} draws, and tells its seed");
    }
    assert!(!seed_is_told(&[]), "a greedy run draws nothing");
}

#[test]
fn a_policy_for_another_model_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    let run = |name: &str| {
        fs::write(&path, format!("schema = 1\n[model]\nname = {name:?}\n")).unwrap();
        let policy = path.display().to_string();
        causeway(&["run", "-m", &tiny(), "--ids", "1", "--tokens-max", "1", "--policy", &policy])
    };
    let ran = run("gemma3:270m");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("the policy is for model `gemma3:270m`"), "{ran:?}");
    assert_eq!(run(&tiny()).code, 0);
}

#[test]
fn a_folders_hash_is_of_the_files_that_reach_the_logits() {
    let tiny = std::path::PathBuf::from(tiny());
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(tiny.join(name), folder.path().join(name)).unwrap();
    }
    let model = folder.path().display().to_string();
    let hash = || {
        let args = ["-m", &model, "--ids", "1", "--tokens-max", "1"];
        recorded(folder.path(), "r.json", &args).1["start"]["model"]["sha256"].clone()
    };
    let first = hash();
    fs::write(folder.path().join("unrelated.safetensors"), "x").unwrap();
    assert_eq!(hash(), first, "a file that nothing reads");
    // The same weights as the one shard of an index: another way to the tensors is told apart.
    let weights = folder.path().join("model.safetensors");
    fs::rename(&weights, folder.path().join("part.safetensors")).unwrap();
    let header = fs::read(tiny.join("model.safetensors")).unwrap();
    let len = usize::try_from(u64::from_le_bytes(header[..8].try_into().unwrap())).unwrap();
    let header: Value = serde_json::from_slice(&header[8..8 + len]).unwrap();
    let names = header.as_object().unwrap().keys().filter(|name| *name != "__metadata__");
    let map: serde_json::Map<_, _> =
        names.map(|name| (name.clone(), "part.safetensors".into())).collect();
    let index = serde_json::json!({ "metadata": {}, "weight_map": map });
    fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    assert_ne!(hash(), first, "the index is part of the hash");
}
