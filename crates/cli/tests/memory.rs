//! Too little memory is one sentence with the bytes that were wanted, never an abort.
#![cfg(target_os = "linux")]

mod support;

use std::process::Command;

use support::{ran, smollm2};

/// Runs one short answer in an address space of so many KiB.
fn check(limit_kib: u32, want: &str) {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {limit_kib} && exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_causeway")]);
    command.args(["run", "--raw", "--threads", "1", "--tokens-max", "1", "-m", smollm2(), "a"]);
    let ran = ran(command, "");
    assert_eq!(ran.code, 1, "{limit_kib} KiB: {ran:?}");
    assert!(ran.stderr.contains(want), "{limit_kib} KiB: {ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{limit_kib} KiB: {ran:?}");
}

#[test]
fn a_model_too_large_for_memory_is_refused_with_its_size() {
    // The file takes 96,057 KiB, its re-laid weights 94,177, the program itself some 20,000.
    check(90_000, "98362432 bytes cannot be mapped");
    check(190_000, "96436224 bytes do not fit into memory");
}
