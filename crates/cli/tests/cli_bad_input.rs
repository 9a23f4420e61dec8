//! Bad input from outside: an exit code that says whose mistake it was, and one sentence.
#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

#[path = "../../weights/tests/support/mod.rs"]
mod gguf;
mod support;
#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use gguf::{Folder, Gguf, U8};
use serde_json::json;
use support::{Ran, causeway, command, gemma3, lines, ran, smollm2, tiny, with_stdin};
use tiny_gguf::{tiny_gguf, with_scores_of};

/// One sentence on stderr that holds `want`, nothing on stdout, and the exit code.
fn check_ran(Ran { code, stdout, stderr }: &Ran, want_code: i32, want: &str, what: &str) {
    assert_eq!((*code, stdout.as_str()), (want_code, ""), "{what} said {stderr}");
    let is_one = stderr.starts_with("causeway: ") && stderr.lines().count() == 1;
    assert!(is_one, "{what} said {stderr:?}");
    assert!(stderr.contains(want), "{what} said {stderr:?}, not {want:?}");
}

/// A command that is the caller's mistake.
fn check<S: AsRef<OsStr> + std::fmt::Debug>(args: &[S], want: &str) {
    check_ran(&causeway(args), 2, want, &format!("{args:?}"));
}

/// A run of the tiny model that is the caller's mistake.
fn check_run(flags: &[&str], want: &str) {
    check(&[&["run", "-m", &tiny()], flags].concat(), want);
}

#[test]
fn policy_values_have_ranges() {
    for (flags, want) in [
        (&["--temperature", "-1"][..], "`shape.temperature` is -1.0, but must be 0 to 100"),
        (&["--temperature", "nan"], "`shape.temperature`"),
        (&["--temperature", "inf"], "`shape.temperature`"),
        (&["--temperature", "true"], "invalid value 'true' for '--temperature <T>'"),
        (&["--top-p", "0"], "`shape.top_p` is 0.0, but must be above 0 and at most 1"),
        (&["--top-p", "1.5"], "`shape.top_p` is 1.5, but must be above 0 and at most 1"),
        (&["--top-k", "-1"], "'-1' for '--top-k <K>': must be a whole number from 0"),
        (&["--min-p", "2"], "`shape.min_p` is 2.0"),
        (&["--repetition-penalty", "0"], "`constraints.repetition_penalty` is 0"),
        (&["--tokens-max", "0"], "`stop.tokens_max` is 0, but must be 1 to 1099511627776"),
        (&["--tokens-max", "-5"], "'-5' for '--tokens-max <N>': must be a whole number from 0"),
        (&["--max-tokens", "1.5"], "'1.5' for '--tokens-max <N>': must be a whole number"),
        (&["--seed", "-1"], "'-1' for '--seed <SEED>': must be a whole number from 0"),
        (&["--seed", "18446744073709551616"], "must be a whole number from 0 to 1844674407370955"),
        (&["--stop", ""], "`stop.strings`"),
        (&["--like", "vllm", "--temperature", "0.001"], "temperature"),
        (&["--like", "ollama"], "must be one of vllm, sglang, llama.cpp, transformers, mistral.rs"),
        (&["--order", "top_z"], "there is no stage `top_z`"),
        (&["--forbidden-tokens", "512"], "512"),
        (&["--account", "tokens"], "`account.level`, which is not supported yet"),
        (&["--system", "x"], "the policy sets `prompt.system`, which --ids leaves out"),
        (&["--prefill", "x"], "has no tokenizer.json"),
        (&["--stop", "x"], "the policy sets `stop.strings`, but `"),
        (
            &["--reasoning-open", "x", "--reasoning-close", "y"],
            "the policy sets `reasoning.open`, b",
        ),
        (&["--reasoning-close", "y"], "but needs both"),
    ] {
        check_run(&[&["--ids", "1"], flags].concat(), want);
    }
}

#[test]
fn policy_files_are_read_strictly() {
    let folder = Folder::with(&[
        ("unknown.toml", b"schema = 1\ntemprature = 1\n"),
        ("range.toml", b"schema = 1\n[shape]\ntop_p = 0\n"),
        ("broken.toml", b"schema = \n"),
        ("latin.toml", b"schema = 1 # \xe9\n"),
        ("pin.toml", format!("schema = 1\n[model]\nsha256 = '{}'\n", "0".repeat(64)).as_bytes()),
    ]);
    for (name, want) in [
        ("unknown.toml", "unknown field `temprature`: did you mean `temperature`?"),
        ("range.toml", "`shape.top_p` is 0"),
        ("latin.toml", "is not UTF-8 text"),
        ("broken.toml", "broken.toml`: the policy file is not valid TOML"),
        ("absent.toml", "cannot read the policy"),
        ("pin.toml", "the policy is for weights 000"),
    ] {
        let path = folder.join(name).display().to_string();
        check_run(&["--ids", "1", "--policy", &path], want);
        if name != "pin.toml" {
            assert_eq!(causeway(&["policy", "check", &path]).code, 2, "{name}");
            check(&["policy", "hash", &path], "");
        }
    }
}

#[test]
fn prompts_have_limits() {
    for (flags, want) in [
        (&["--ids", "1,512"][..], "token 512 is outside the vocabulary, whose size is 512"),
        (&["--ids", "999999999"], "token 999999999 is outside the vocabulary, whose size is 512"),
        (&["--ids=-1"], "'-1' for '--ids <ID,ID,…>': -1 is not in 0..=4294967295"),
        (&["--ids", "1.5"], "'1.5' for '--ids <ID,ID,…>'"),
        (&["--ids", ""], "'' for '--ids <ID,ID,…>'"),
        (&["--ids", "1", "hello"], "cannot be used with"),
        (&["--ids", "1", "--raw"], "cannot be used with"),
        (&["hello"], "has no tokenizer.json: it takes token ids only"),
        (&["--messages", "absent.json"], "the messages `absent.json` cannot be read"),
    ] {
        check_run(flags, want);
    }
    let long = ["1"; 16].join(",");
    let want = "prompt (16 tokens) leaves no room for an answer: the context limit is 16 tokens";
    check_run(&["--context", "16", "--ids", &long], want);
    let logits = ["logits", "-m", &tiny(), "--context", "8", "--ids", &long];
    check(&logits, "the sequence has 16 tokens, the context limit is 8 tokens");
    check(&["logits", "-m", &tiny(), "--ids", "600"], "600");
    check(&["logits", "-m", &tiny(), "--ids", "1", "--at", "512"], "--at 512 is outside");
    let words = "word ".repeat(600);
    let run = ["run", "-m", smollm2(), "--raw", "--context", "512", &words];
    check(&run, "tokens) leaves no room for an answer: the context limit is 512 tokens");
}

#[test]
fn an_empty_prompt_is_refused_wherever_it_comes_from() {
    let run = ["run", "-m", smollm2()];
    for flags in [&[""][..], &["--raw", ""], &["-"], &[], &["--raw"], &["--chat", ""]] {
        let args = [&run[..], flags].concat();
        check(&args, "the prompt is empty: at least one ");
        let mut closed = command(&args);
        closed.stdin(Stdio::null());
        let output = closed.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?} with nothing on stdin");
    }
    let ran = with_stdin(&[&run[..], &["--messages", "-"]].concat(), "[]");
    check_ran(&ran, 2, "there are no messages: at least one is needed", "no messages");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut child = support::spawned(command(&["run", "-m", smollm2(), "--raw"]));
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"caf\xe9").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("causeway: the prompt is not UTF-8: "), "{stderr}");
}

#[test]
fn sizes_have_limits() {
    for (flags, want) in [
        (&["--threads", "0"][..], "--threads is 0, the limits are 1 and 256"),
        (&["--threads", "100000"], "--threads is 100000, the limits are 1 and 256"),
        (&["--chunk", "0"], "--chunk is 0, the limits are 1 and 65536"),
        (&["--context", "0"], "a context of 0 positions was asked for, the limits are 1 and 256"),
        (
            &["--context", "257"],
            "a context of 257 positions was asked for, the limits are 1 and 256",
        ),
        (&["--kv-type", "q4_0"], "'q4_0' for '--kv-type <TYPE>' [possible values: f16, f32, q8_0]"),
        (&["--nonsense"], "unexpected argument '--nonsense' found"),
    ] {
        check_run(&[&["--ids", "1"], flags].concat(), want);
        check(&[&["logits", "-m", &tiny(), "--ids", "1"], flags].concat(), want);
    }
    check(&["rum"], "unrecognized subcommand 'rum'");
    check(&["replay"], "required arguments were not provided: <RECORD>");
}

#[test]
fn an_instruction_set_that_is_not_there_is_refused_by_name() {
    let run = |isa: &str| {
        let mut command = command(&["run", "-m", &tiny(), "--ids", "1", "--tokens-max", "1"]);
        command.env("CAUSEWAY_ISA", isa);
        ran(command, "")
    };
    let want = "`sse9`: scalar, avx2, avxvnni, avx512 and avx512vnni exist";
    check_ran(&run("sse9"), 2, want, "sse9");
    check_ran(&run("AVX2 "), 2, "unknown instruction set", "AVX2 and a space");
    let mut lacking = 0;
    for isa in ["scalar", "avx2", "avxvnni", "avx512", "avx512vnni"] {
        let ran = run(isa);
        match ran.code {
            0 => {}
            _ => {
                lacking += 1;
                check_ran(&ran, 2, isa, isa);
            }
        }
    }
    println!("{lacking} instruction sets are not on this CPU");
}

#[test]
fn a_model_without_a_template_takes_no_chat() {
    check(&["run", "-m", gemma3(), "--chat", "hello"], "this model has no chat template");
    let want = "the model `gemma3:270m` has no chat template";
    check(&["template", "-m", gemma3(), "--message", "user=hello"], want);
    let ran = with_stdin(&["run", "-m", gemma3(), "--messages", "-"], r#"[{"role":"user"}]"#);
    check_ran(&ran, 2, "this model has no chat template", "messages");
}

#[test]
fn models_that_are_not_there_are_the_callers_mistake() {
    for command in ["run", "logits", "score", "tokenize", "inspect"] {
        let ids = if command == "logits" { &["--ids", "1"][..] } else { &["x"] };
        let args = match command {
            "inspect" => vec![command, "absent.gguf"],
            _ => [&[command, "-m", "absent.gguf"], ids].concat(),
        };
        check(&args, "absent.gguf");
    }
    check(&["run", "-m", "smolm2:135m", "x"], "no model is called `smolm2:135m`");
    let home = tempfile::tempdir().unwrap();
    let mut command = command(&["tokenize", "x"]);
    command.env("CAUSEWAY_HOME", home.path());
    check_ran(&ran(command, ""), 2, "causeway pull smollm2:135m", "a model not fetched");
}

#[test]
fn logits_that_are_no_numbers_are_refused() {
    let cases = [
        (json!({"logits": [null, 1, 5], "policy": {"temperature": 0}}), "not a number"),
        (
            json!({"logits": [null, 1, 5], "policy": {"temperature": 0.8, "top_p": 0.9}}),
            "not a num",
        ),
        (
            json!({"logits": ["inf", 1, 5], "policy": {"temperature": 0.8}}),
            "token 0 at step 0 is inf",
        ),
        (json!({"logits": ["-inf", "-inf"]}), "there is no token left"),
        (json!({"logits": [3, 1], "policy": {"temperature": -1}}), "must be 0 to 100"),
        (json!({"logits": [3, 1], "policy": {"temperature": true}}), "temperature"),
        (json!({"logits": [3, 1], "policy": {"temperature": "0.7"}}), "temperature"),
        (json!({"logits": [3, 1], "policy": {"top_p": 0}}), "must be above 0 and at most 1"),
        (json!({"probs": [0.5, 0.1]}), "sum"),
        (json!({"logits": [3, 1], "context": [-1]}), "context"),
    ];
    let input: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    let Ran { code, stdout, stderr } = with_stdin(&["choose", "--json"], &input);
    assert_eq!((code, stderr.as_str()), (2, "causeway: 10 of 10 lines were refused\n"), "{stdout}");
    for (answer, (line, want)) in lines(&stdout).iter().zip(&cases) {
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(want), "{line} gave {error}");
    }
    check(&["choose", "--logits", "nan,1"], "the logit of token 0 at step 0 is not a number");
    check(&["choose", "--logits", "1,x"], "`x` is no number");
}

#[test]
fn lines_that_are_no_json_are_refused_one_by_one() {
    for command in ["tokenize", "detokenize", "score", "template"] {
        let lines_in = "{\"text\":\n[1]\n{\"text\": \"\\ud83d\"}\n{}\n";
        let ran = with_stdin(&[command, "-m", smollm2(), "--json"], lines_in);
        let errors = lines(&ran.stdout).iter().filter(|line| line.get("error").is_some()).count();
        let refused = format!("causeway: {errors} of 4 lines were refused\n");
        assert_eq!((ran.code, ran.stderr), (2, refused), "{command}: {}", ran.stdout);
        assert!(errors >= 3, "{command}: {}", ran.stdout);
    }
}

/// A model file with these bytes is the world's fault, in every command that opens it.
fn check_file(file: &Gguf, want: &str) {
    let folder = Folder::with(&[("m.gguf", &file.build())]);
    let path = folder.join("m.gguf").display().to_string();
    let run = ["run", "-m", &path, "--ids", "1", "--tokens-max", "2"];
    check_ran(&causeway(&run), 1, want, "run");
    check_ran(&causeway(&["logits", "-m", &path, "--ids", "1"]), 1, want, "logits");
}

#[test]
fn the_tiny_file_is_good_before_it_is_bent() {
    let folder = Folder::with(&[("m.gguf", &tiny_gguf(None).build())]);
    let path = folder.join("m.gguf").display().to_string();
    let ran = causeway(&["run", "-m", &path, "--raw", "--tokens-max", "2", "ab"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn numbers_of_a_header_that_cannot_be_are_refused() {
    for (key, number) in [
        ("llama.block_count", 0),
        ("llama.block_count", 2),
        ("llama.block_count", 513),
        ("llama.block_count", 100_000),
        ("llama.attention.head_count", 0),
        ("llama.attention.head_count_kv", 0),
        ("llama.attention.head_count_kv", 7),
        ("llama.embedding_length", 0),
        ("llama.embedding_length", u32::MAX),
        ("llama.feed_forward_length", u32::MAX),
        ("llama.context_length", 0),
        ("tokenizer.ggml.bos_token_id", 999_999),
        ("tokenizer.ggml.eos_token_id", 999_999),
    ] {
        check_file(&tiny_gguf(Some((key, number))), "");
    }
    check_file(&Gguf::new().string("general.architecture", "llama"), "");
    check_file(&Gguf::new(), "");
}

#[test]
fn an_unknown_architecture_or_type_is_refused_by_name() {
    let mut other = tiny_gguf(None);
    other.keys[0] = Gguf::new().string("general.architecture", "mamba").keys.remove(0);
    check_file(&other, "mamba");
    // NVFP4, which is listed but not read; and a number that no type has.
    for (dtype, want) in [(40, "NVFP4"), (200, "200")] {
        let mut file = tiny_gguf(None);
        // The last tensor, `ffn_down`: its type is the number before its offset of 8 bytes.
        let entry = file.tensors.last_mut().unwrap();
        let place = entry.len() - 12;
        entry[place..place + 4].copy_from_slice(&u32::to_le_bytes(dtype));
        check_file(&file, want);
    }
}

#[test]
fn scores_of_another_type_are_refused() {
    check_file(&with_scores_of(U8), "tokenizer.ggml.scores");
}

#[test]
fn shapes_that_overflow_are_refused() {
    for (dimensions, dtype) in [
        (&[1152, (1 << 42) + 1][..], 0),
        (&[1 << 32, 1 << 32], 0),
        (&[u64::MAX - 3], 0),
        (&[1, 1, 1, 1, 1], 0),
        (&[33, 1], 2),
    ] {
        let mut file = tiny_gguf(None);
        let entry =
            Gguf::new().entry("blk.0.ffn_up.weight", dimensions, dtype, 0).tensors.remove(0);
        let place = file.tensors.len() - 2;
        file.tensors[place] = entry;
        check_file(&file, "blk.0.ffn_up.weight");
    }
}

#[test]
fn a_file_that_is_cut_is_refused() {
    let whole = tiny_gguf(None).build();
    for length in [0, 3, 5000, whole.len() / 2, whole.len() - 1] {
        let folder = Folder::with(&[("m.gguf", &whole[..length])]);
        let path = folder.join("m.gguf").display().to_string();
        let ran = causeway(&["run", "-m", &path, "--ids", "1"]);
        check_ran(&ran, 1, "", &format!("a file cut at {length}"));
    }
}

#[test]
fn a_record_that_has_no_place_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("absent/r.json").display().to_string();
    let run = |path: &str| {
        let args = ["run", "-m", &tiny(), "--ids", "1", "--tokens-max", "1", "--record", path];
        causeway(&args)
    };
    check_ran(&run(&inside), 2, "there is no folder", "a missing folder");
    check_ran(&run(&folder.path().display().to_string()), 2, "", "a folder");
    check_ran(&run("/dev/full"), 2, "is not a file", "a full device");
    let under_file = folder.path().join("f");
    std::fs::write(&under_file, "x").unwrap();
    let ran = run(&under_file.join("r.json").display().to_string());
    assert!(ran.code == 2 || ran.code == 1, "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half written");
}

#[test]
fn a_full_disk_is_the_worlds_failure() {
    if !std::path::Path::new("/dev/full").exists() {
        println!("skipped: there is no /dev/full here");
        return;
    }
    let run = ["run", "-m", &tiny(), "--ids", "1", "--tokens-max", "2"];
    let logits = ["logits", "-m", &tiny(), "--ids", "1", "--json"];
    let json = [&run[..], &["--json"]].concat();
    for args in [&run[..], &json, &logits, &["completions", "bash"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(args).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.starts_with("causeway: the output cannot be written: "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

/// Whether a folder without permission can be written all the same, as root can.
fn permissions_are_void(folder: &std::path::Path) -> bool {
    std::fs::write(folder.join("probe"), "").is_ok()
}

#[test]
fn a_read_only_home_or_folder_is_the_worlds_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut permissions = std::fs::metadata(folder.path()).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(folder.path(), permissions).unwrap();
    if permissions_are_void(folder.path()) {
        println!("skipped: this user may write everywhere");
        return;
    }
    let path = folder.path().join("r.json").display().to_string();
    let ran = causeway(&["run", "-m", &tiny(), "--ids", "1", "--record", &path]);
    check_ran(&ran, 1, "", "a record in a read-only folder");
    let mut pull = command(&["pull"]);
    pull.env("CAUSEWAY_HOME", folder.path());
    check_ran(&support::ran(pull, ""), 1, "set CAUSEWAY_HOME", "a pull into a read-only home");
}

#[test]
fn a_home_that_is_a_file_keeps_no_hash_and_hinders_no_run() {
    let folder = Folder::with(&[("home", b"x")]);
    let mut run = command(&["run", "-m", &tiny(), "--ids", "1", "--tokens-max", "1"]);
    run.env("CAUSEWAY_HOME", folder.join("home"));
    assert_eq!(support::ran(run, "").code, 0);
    let mut pull: Command = command(&["pull"]);
    pull.env("CAUSEWAY_HOME", folder.join("home"));
    check_ran(&support::ran(pull, ""), 1, "", "a pull into a file");
}

#[test]
fn weights_that_give_no_distribution_are_named() {
    let tiny = std::path::PathBuf::from(tiny());
    let mut weights = std::fs::read(tiny.join("model.safetensors")).unwrap();
    let end = weights.len();
    // The last numbers of the file are the weight of a norm, or of the output.
    weights[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let config = std::fs::read(tiny.join("config.json")).unwrap();
    let folder = Folder::with(&[("config.json", &config), ("model.safetensors", &weights)]);
    let model = folder.path().display().to_string();
    let check = |args: &[&str], want: &str| {
        let ran = causeway(&[args, &["-m", &model, "--ids", "1,2,3"]].concat());
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains(want), "{ran:?}");
    };
    check(&["logits", "--json"], "at position 0 is NaN");
    check(&["run", "--tokens-max", "3"], "at step 0 is not a number");
}
