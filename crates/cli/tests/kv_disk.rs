//! `causeway serve --kv-disk`: a real model, ended by a signal, begins again with what it knew.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;

use serde_json::{Value, json};

use crate::support::{causeway, command, spawned};

/// A server that runs, and where it listens.
struct Serving {
    child: Child,
    addr: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
    }
}

fn serve(folder: &Path) -> Serving {
    let (store, kv) = (folder.join("ledger.sqlite"), folder.join("kv"));
    let line =
        "serve --model smollm2:135m --addr 127.0.0.1:0 --json --threads 2 --kv-disk-max 1GiB";
    let mut command = command(&line.split(' ').collect::<Vec<_>>());
    command.arg("--store").arg(store).arg("--kv-disk").arg(kv);
    let mut child = spawned(command);
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    Serving { child, addr: said["addr"].as_str().unwrap().to_owned() }
}

fn ask(serving: &Serving) -> Value {
    let prompt = "The causeway is a road that is laid one stone at a time. ".repeat(20);
    let body = json!({ "prompt": prompt, "max_tokens": 12, "seed": 7, "temperature": 0.8 });
    let body = body.to_string();
    let mut socket = TcpStream::connect(&serving.addr).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\
                Content-Type: application/json\r\n";
    write!(socket, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).unwrap();
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Ends a server as a service manager does.
fn terminate(mut serving: Serving) {
    let id = serving.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(serving.child.wait().unwrap().success());
}

/// Token and digest of every step of the records of a store.
fn steps(folder: &Path) -> Vec<Value> {
    let out = folder.join("records.jsonl");
    let args = ["ledger", "export", "--store"].map(std::ffi::OsString::from);
    let rest = [folder.join("ledger.sqlite").into_os_string(), out.clone().into_os_string()];
    let ran = causeway(&args.into_iter().chain(rest).collect::<Vec<_>>());
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = std::fs::read_to_string(out).unwrap();
    let of_record = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let of_step = |step: &Value| json!([step["token"], step["digest"]]);
        let steps: Vec<Value> = record["steps"].as_array().unwrap().iter().map(of_step).collect();
        assert!(steps.len() == 12 && !steps[0][1].is_null(), "{line}");
        Value::Array(steps)
    };
    text.lines().map(of_record).collect()
}

#[test]
fn a_restart_after_a_signal_begins_with_what_was_known() {
    let folder = tempfile::tempdir().unwrap();
    let cached = |reply: &Value| reply["usage"]["prompt_tokens_details"]["cached_tokens"].clone();
    let first = serve(folder.path());
    let reply = ask(&first);
    assert_eq!(cached(&reply), 0, "{reply}");
    let refused = causeway(&[
        "serve",
        "--addr",
        "127.0.0.1:0",
        "--no-ledger",
        "--kv-disk",
        folder.path().join("kv").to_str().unwrap(),
    ]);
    assert!(refused.stderr.contains("is in use by another process"), "{refused:?}");
    terminate(first);
    let second = serve(folder.path());
    let again = ask(&second);
    assert!(cached(&again).as_u64().unwrap() > 200, "{again}");
    assert_eq!(again["choices"][0]["text"], reply["choices"][0]["text"]);
    terminate(second);
    let steps = steps(folder.path());
    assert_eq!((steps.len(), &steps[0]), (2, &steps[1]));
}

/// What is refused before anything is loaded, with one sentence that names it.
fn check_refused(line: &str, code: i32, want: &str) {
    let ran = causeway(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, code, "{line}: {ran:?}");
    assert!(ran.stderr.contains(want), "{line}: {ran:?}");
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{ran:?}");
}

#[test]
fn a_folder_or_a_size_that_is_none_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let serve = "serve --no-ledger --addr 127.0.0.1:0";
    check_refused(&format!("{serve} --kv-disk {file}"), 1, file);
    check_refused(&format!("{serve} --kv-disk {file}/below"), 1, "cannot make the KV folder");
    for size in ["0", "4GB!", "-1", "1.5GiB", "99999999999TiB"] {
        let line = format!("{serve} --kv-disk {file} --kv-disk-max={size}");
        check_refused(&line, 2, "--kv-disk-max");
    }
    check_refused(&format!("{serve} --kv-disk-max 4GiB"), 2, "--kv-disk");
    check_refused(&format!("{serve} --kv-disk {file} --no-prefix-cache"), 2, "--no-prefix-cache");
}
