//! What a model's files say of decoding: shown, taken, said aloud, and left out where asked.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../weights/tests/support/mod.rs"]
mod gguf;
mod support;
#[path = "support/tiny_gguf.rs"]
#[expect(dead_code, reason = "another test file uses the rest of it")]
mod tiny_gguf;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use gguf::{F32, Folder, Gguf, I32};
use serde_json::{Value, json};
use support::{Ran, causeway, command, object, rest_of, spawned, tiny};
use tiny_gguf::tiny_gguf;

/// What it takes to be told of: drawn, shaped, and a key that no policy has.
const CONFIG: &str = r#"{"do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8,
    "repetition_penalty": 1.05, "num_beams": 2, "eos_token_id": [300, 2]}"#;
const NAME: &str = "the model's own: generation_config.json";

/// A copy of the tiny folder with a `generation_config.json`.
fn folder(config: &str) -> Folder {
    let folder = Folder::with(&[("generation_config.json", config.as_bytes())]);
    for name in ["config.json", "model.safetensors"] {
        fs::copy(Path::new(&tiny()).join(name), folder.join(name)).unwrap();
    }
    folder
}

/// The tiny GGUF file in a folder, with further keys.
fn file(keys: impl FnOnce(Gguf) -> Gguf) -> (Folder, String) {
    let folder = Folder::with(&[("tiny.gguf", &keys(tiny_gguf(None)).build())]);
    let path = folder.join("tiny.gguf").display().to_string();
    (folder, path)
}

/// Sampling as `llama.cpp` writes it, and three templates.
fn with_sampling(file: Gguf) -> Gguf {
    let last = "{{ messages[-1].content }}";
    file.number("general.sampling.temp", F32, &0.6_f32.to_le_bytes())
        .number("general.sampling.top_k", I32, &40_i32.to_le_bytes())
        .number("general.sampling.mirostat", I32, &2_i32.to_le_bytes())
        .string("tokenizer.chat_template", &format!("<think></think>{last}"))
        .string("tokenizer.chat_template.tool_use", &format!("tools:{last}"))
        .string("tokenizer.chat_template.rag", &format!("rag:{last}"))
        .strings("tokenizer.chat_templates", &["tool_use", "rag"])
}

fn run(model: &str, more: &[&str]) -> (Value, String) {
    let ran = causeway(&[&["run", "-m", model, "--json", "--tokens-max", "8"], more].concat());
    (object(&ran), ran.stderr)
}

#[test]
fn a_folder_is_shown_as_the_policy_it_would_be() {
    let folder = folder(CONFIG);
    let path = folder.path().to_str().unwrap();
    let Ran { code, stdout, stderr } = causeway(&["policy", "show", path]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    for line in [
        "# `run` and `serve` begin with it, and `--policy none` leaves it out.",
        "schema = 1",
        &format!("name = {NAME:?}"),
        "repetition_penalty = 1.05 # generation_config.json: repetition_penalty",
        "temperature = 0.7 # generation_config.json: temperature",
        "method = \"sample\" # generation_config.json: do_sample",
        "# num_beams = 2 is no field, and not taken (generation_config.json: num_beams)",
        "# token 300 ends an answer (the tokenizer and the ids of end tokens)",
    ] {
        assert!(stdout.lines().any(|found| found == line), "{line} in {stdout}");
    }
    let shown = object(&causeway(&["policy", "show", path, "--json"]));
    let policy = json!({
        "schema": 1,
        "name": NAME,
        "constraints": { "repetition_penalty": 1.05 },
        "shape": { "temperature": 0.7, "top_k": 20, "top_p": 0.8 },
    });
    assert_eq!((&shown["model"], &shown["policy"]), (&json!(path), &policy));
    let ends = json!([{ "id": 300, "text": null }, { "id": 2, "text": null }]);
    assert_eq!((&shown["end_tokens"], &shown["templates"]), (&ends, &json!([])));
    let said = shown["said"].as_array().unwrap();
    let method = json!({
        "field": "choose.method", "value": "sample", "origin": "generation_config.json: do_sample",
    });
    assert!(said.contains(&method), "{said:?}");
    assert_eq!(shown["not_taken"][0]["origin"], "generation_config.json: num_beams");
    // The file that is shown is the policy that is taken.
    let toml = folder.join("own.toml");
    fs::write(&toml, stdout).unwrap();
    let hash = causeway(&["policy", "hash", toml.to_str().unwrap()]).stdout;
    assert_eq!(shown["sha256"], hash.trim_end());
}

#[test]
fn a_run_takes_it_and_says_so() {
    let folder = folder(CONFIG);
    let path = folder.path().to_str().unwrap();
    let record = folder.join("r.json").display().to_string();
    let ids = ["--ids", "7,8", "--ignore-eos"];
    let (own, said) = run(path, &[&ids[..], &["--seed", "3", "--record", &record]].concat());
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in [
        "causeway: decoding as the model's file says: ",
        "sample",
        "temperature 0.7",
        "top_k 20",
        "top_p 0.8",
        "repetition_penalty 1.05",
        " (generation_config.json), but not its num_beams; `--policy none` leaves that out",
    ] {
        assert!(said.contains(word), "{word} in {said}");
    }
    assert_eq!(own["policy_name"], NAME);
    let written: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    let canonical = written["start"]["policy"]["canonical"].as_str().unwrap();
    assert!(canonical.contains("\"temperature\":0.7") && canonical.contains(NAME), "{canonical}");
    assert_eq!(causeway(&["replay", &record]).code, 0);
    // Kept as a file, it is the same policy.
    let toml = folder.join("own.toml").display().to_string();
    fs::write(&toml, causeway(&["policy", "show", path]).stdout).unwrap();
    let flags = ["--tokens-max", "8", "--seed", "3", "--policy", &toml];
    let (file, said) = run(path, &[&ids[..], &flags[2..]].concat());
    assert_eq!((&file["policy"], &file["tokens"]), (&own["policy"], &own["tokens"]));
    assert_eq!(said, "");
    // Left out, the answer is the one of a folder that says nothing.
    let (none, said) = run(path, &[&ids[..], &["--policy", "none"]].concat());
    let (plain, _) = run(&tiny(), &ids);
    assert_eq!((&none["tokens"], &none["policy"]), (&plain["tokens"], &plain["policy"]));
    assert_eq!((said.as_str(), none.get("policy_name")), ("", None));
    assert_ne!(none["tokens"], own["tokens"]);
}

#[test]
fn flags_go_over_it() {
    let folder = folder(CONFIG);
    let path = folder.path().to_str().unwrap();
    let ids = ["--ids", "7,8", "--ignore-eos"];
    let over =
        ["--temperature", "0.7", "--top-k", "0", "--top-p", "1", "--repetition-penalty", "1"];
    let (_, said) = run(path, &[&ids[..], &over].concat());
    let want = "causeway: decoding as the model's file says: ";
    assert!(said.starts_with(want) && said.contains("temperature 0.7"), "{said}");
    assert!(!["top_k", "top_p", "repetition"].iter().any(|word| said.contains(word)), "{said}");
    let (best, _) = run(path, &[&ids[..], &over[6..], &["--temperature", "0"]].concat());
    let (plain, _) = run(&tiny(), &ids);
    assert_eq!(best["tokens"], plain["tokens"]);
    // A file that takes the best token draws where a flag shapes a draw.
    let greedy = self::folder(r#"{"do_sample": false, "max_new_tokens": 3}"#);
    let path = greedy.path().to_str().unwrap();
    let ask = ["run", "-m", path, "--json", "--ids", "7,8", "--ignore-eos"];
    let (own, drawn) = (causeway(&ask), causeway(&[&ask[..], &["--seed", "1"]].concat()));
    let said = "causeway: decoding as the model's file says: tokens_max 3, greedy \
                (generation_config.json); `--policy none` leaves that out\n";
    assert_eq!(sorted(&own.stderr), sorted(said));
    let tokens = object(&own)["tokens"].clone();
    assert_eq!(tokens.as_array().unwrap()[..], plain["tokens"].as_array().unwrap()[..3]);
    assert!(!drawn.stderr.contains("greedy"), "{drawn:?}");
    // What does not go together is refused with the way out.
    let refused = causeway(
        &[&["run", "-m", &folder_path(&folder)][..], &ids, &["--order", "top_p"]].concat(),
    );
    let way_out = "beside what the model's file says, which `--policy none` leaves out";
    assert!(refused.code == 2 && refused.stderr.contains(way_out), "{refused:?}");
}

fn folder_path(folder: &Folder) -> String {
    folder.path().display().to_string()
}

/// The words of a sentence whose parts may come in any order.
fn sorted(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split([' ', ',']).collect();
    words.sort_unstable();
    words
}

#[test]
fn every_end_token_ends_an_answer() {
    let ids = ["--ids", "7,8", "--policy", "none"];
    let (plain, _) = run(&tiny(), &ids);
    let tokens: Vec<u64> =
        plain["tokens"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    let check = |ends: Value, want: usize| {
        let config = json!({ "eos_token_id": ends }).to_string();
        let (found, _) = run(&folder_path(&folder(&config)), &ids);
        let count = found["tokens"].as_array().unwrap().len();
        assert_eq!((count, &found["stop"]["reason"]), (want, &json!("eos")), "{config} {found}");
    };
    let first = |token: u64| tokens.iter().position(|&id| id == token).unwrap() + 1;
    let (early, late) = (tokens[1], *tokens.last().unwrap());
    check(json!(early), first(early));
    check(json!([511, late]), first(late));
    check(json!([late, early, early]), first(early).min(first(late)));
    // A GGUF file has them under names of their own.
    let raw = ["--raw", "a", "--policy", "none"];
    let (_kept, path) = file(|file| file);
    let (plain, _) = run(&path, &raw);
    let tokens = plain["tokens"].as_array().unwrap();
    assert_eq!(tokens.len(), 8, "{plain}");
    for name in ["eot", "eom"] {
        let end = u32::try_from(tokens[2].as_u64().unwrap()).unwrap();
        let (_kept, path) = file(|file| file.u32(&format!("tokenizer.ggml.{name}_token_id"), end));
        let (found, _) = run(&path, &raw);
        assert_eq!(found["stop"]["reason"], "eos", "{name} {found}");
    }
}

#[test]
fn a_gguf_file_is_shown_and_taken() {
    let (_kept, path) = file(with_sampling);
    let Ran { code, stdout, .. } = causeway(&["policy", "show", &path]);
    assert_eq!(code, 0);
    for line in [
        "name = \"the model's own: general.sampling, the chat template\"",
        "temperature = 0.6 # general.sampling.temp",
        "top_k = 40 # general.sampling.top_k",
        "method = \"sample\" # general.sampling.*",
        "open = \"<think>\" # the chat template",
        "close = \"</think>\" # the chat template",
        "# mirostat = 2 is no field, and not taken (general.sampling.mirostat)",
        "# token 2 `</s>` ends an answer (the tokenizer and the ids of end tokens)",
        "# chat template `default`, 41 bytes, for every chat (the model's own)",
        "# chat template `rag`, 30 bytes, for none but by its name (the model's own)",
        "# chat template `tool_use`, 32 bytes, for chats with tools (the model's own)",
    ] {
        assert!(stdout.lines().any(|found| found == line), "{line} in {stdout}");
    }
    let shown = object(&causeway(&["policy", "show", &path, "--json"]));
    let reasoning = json!({ "open": "<think>", "close": "</think>" });
    assert_eq!(shown["policy"]["reasoning"], reasoning);
    assert_eq!(shown["templates"][2]["name"], "tool_use");
    assert_eq!(shown["end_tokens"], json!([{ "id": 2, "text": "</s>" }]));
    let (own, said) = run(&path, &["--seed", "1", "a"]);
    assert_eq!(own["policy_name"], shown["policy"]["name"]);
    let want = "temperature 0.6, top_k 40, sample, a thought from <think> on, to </think>, which \
                is no part of the answer (general.sampling, the chat template), but not its mirostat; ";
    assert!(said.contains(want), "{said}");
}

#[test]
fn templates_are_listed_and_chosen_by_name() {
    let (folder, path) = file(with_sampling);
    let template = |more: &[&str]| causeway(&[&["template", "-m", &path], more].concat());
    let list = template(&["--list"]);
    let want = "default\t41 bytes\tevery chat\nrag\t30 bytes\t--chat-template\n\
                tool_use\t32 bytes\tchats with tools\n";
    assert_eq!((list.code, list.stdout.as_str()), (0, want), "{list:?}");
    let chat = folder.join("chat.json");
    let tool = json!({ "type": "function", "function": { "name": "f", "parameters": {} } });
    let messages = json!([{ "role": "user", "content": "ab" }]);
    fs::write(&chat, json!({ "messages": messages, "tools": [tool] }).to_string()).unwrap();
    let chat = chat.to_str().unwrap();
    let record = folder.join("r.json").display().to_string();
    let used = |more: &[&str]| {
        let ask = ["--record", &record, "--policy", "none"];
        run(&path, &[&ask[..], more].concat());
        let written: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
        assert_eq!(causeway(&["replay", &record]).code, 0);
        written["start"]["template"]["text"].as_str().unwrap().split('{').next().unwrap().to_owned()
    };
    for (input, name, want) in [
        (&["--message", "user=ab"][..], None, "<think></think>ab\n"),
        (&["--messages", chat], None, "tools:ab\n"),
        (&["--messages", chat], Some("default"), "<think></think>ab\n"),
        (&["--message", "user=ab"], Some("rag"), "rag:ab\n"),
    ] {
        let by_name = name.map(|name| ["--chat-template", name]);
        let by_name = by_name.as_ref().map_or(&[][..], |flags| &flags[..]);
        assert_eq!(template(&[input, by_name].concat()).stdout, want, "{input:?} {name:?}");
        let asked = if input[0] == "--message" { &["ab"] } else { input };
        let begins = want.strip_suffix("ab\n").unwrap();
        assert_eq!(used(&[asked, by_name].concat()), begins, "{input:?} {name:?}");
    }
    let want = "causeway: this model has no chat template `nope`: it has `default`, `rag`, \
                `tool_use`\n";
    let by_name = ["--chat-template", "nope"];
    let refused = template(&[&["--message", "user=ab"][..], &by_name].concat());
    assert_eq!((refused.code, refused.stderr.as_str()), (2, want));
    let refused =
        causeway(&[&["run", "-m", &path, "--policy", "none", "ab"][..], &by_name].concat());
    assert_eq!((refused.code, refused.stderr.as_str()), (2, want));
    let refused = causeway(&[&["serve", "-m", &path, "--policy", "none"][..], &by_name].concat());
    assert!(refused.code == 2 && refused.stderr.contains("no chat template `nope`"), "{refused:?}");
}

#[test]
fn a_server_says_what_it_took_and_requests_go_over_it() {
    let (_kept, path) = file(with_sampling);
    let serve = ["serve", "-m", &path, "--addr", "127.0.0.1:0", "--json", "--no-ledger"];
    let mut child = spawned(command(&serve));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let addr: Value = serde_json::from_str(&line).unwrap();
    let ask = |fields: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "a" }], "max_tokens": 3 });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let body = body.to_string();
        let mut socket = TcpStream::connect(addr["addr"].as_str().unwrap()).unwrap();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                    Content-Type: application/json\r\n";
        write!(socket, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()["causeway"].clone()
    };
    let (own, warm) = (ask(json!({})), ask(json!({ "temperature": 0.9 })));
    child.kill().unwrap();
    child.wait().unwrap();
    let said = rest_of(child.stderr.take().unwrap());
    let want = format!("{path}: decoding as the model's file says: temperature 0.6, top_k 40");
    assert!(said.contains(&want), "{said}");
    assert_eq!(own["policy_name"], "the model's own: general.sampling, the chat template");
    assert_ne!(own["policy"], warm["policy"]);
}
