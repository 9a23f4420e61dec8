//! `causeway diff` from outside: what it prints, and whose mistake its exit code says it was.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const GOLDEN: &str = include_str!("../../../testdata/records/golden.json");
const GOLDEN_PATH: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/records/golden.json");

/// Writes a record for one test.
fn record(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Runs `causeway diff` on the golden record and another; the exit code, and whether each part of
/// `want` is in what it prints to stdout and stderr.
fn check(arguments: &[&str], other: &Path, exit_code: i32, want: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    let output = command.arg("diff").args(arguments).arg(GOLDEN_PATH).arg(other).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let printed = format!("{stdout}{stderr}");
    assert_eq!(output.status.code(), Some(exit_code), "{printed}");
    for part in want {
        assert!(printed.contains(part), "`{part}` is not in: {printed}");
    }
    if arguments.contains(&"--json") {
        assert_eq!(stdout.lines().count(), 1);
        serde_json::from_str::<serde_json::Value>(&stdout).unwrap();
    }
}

#[test]
fn equal_records_end_with_0() {
    let same = record("same.json", GOLDEN);
    check(&[], &same, 0, &["equal: 6 steps"]);
    check(&["--json"], &same, 0, &[r#""outcome":"equal""#, r#""difference":null"#]);
}

#[test]
fn records_that_differ_end_with_1_and_the_step() {
    let seed = "\"seed\":18446744073709551615";
    let edited = GOLDEN.replace(seed, "\"seed\":7").replace("\"token\":103", "\"token\":9");
    let other = record("other.json", &edited);
    let want = ["first step that differs: 3 (in token)", "draw differed", "seed", "was changed"];
    check(&[], &other, 1, &want);
    check(&["--json"], &other, 1, &[r#""cause":"draw""#, r#""step":3"#]);
}

#[test]
fn a_records_own_words_do_not_drive_the_terminal() {
    let hostile = GOLDEN.replacen("\"id\"", "\"\\u001b[2Jid\"", 1);
    let other = record("hostile.json", &hostile);
    check(&[], &other, 1, &["is damaged", r"unknown field `\u{1b}[2Jid`"]);
}

#[test]
fn a_damaged_record_ends_with_1_and_a_missing_one_with_2() {
    let cut = record("cut.json", &GOLDEN[..1000]);
    check(&[], &cut, 1, &["cut.json` is damaged", "EOF"]);
    let version = record("version.json", &GOLDEN.replace("\"schema\":1", "\"schema\":2"));
    check(&[], &version, 1, &["schema 2, where only schema 1 is known"]);
    check(&[], Path::new("no such file"), 2, &["there is no record `no such file`"]);
    check(&[], Path::new(env!("CARGO_TARGET_TMPDIR")), 2, &["is a folder, not a record"]);
}
