//! The same bits through the command line: threads, chunks and instruction sets change none.
#![expect(clippy::print_stdout, reason = "an instruction set that is skipped says so")]

mod support;

use serde_json::Value;
use support::{Ran, command, lines, ran, smollm2, tiny};

const IDS: &str = "504,3575,282,4649,314,28,351,216,33,5,11,7042";

/// Position and digest of each row, on one instruction set; nothing where the CPU lacks it.
fn digests(model: &str, isa: &str, more: &[&str]) -> Option<Vec<(Value, Value)>> {
    let args = ["logits", "-m", model, "--json", "--ids", IDS];
    let mut command = command(&[&args[..], more].concat());
    command.env("CAUSEWAY_ISA", isa);
    let Ran { code, stdout, stderr } = ran(command, "");
    if code == 2 && stderr.contains(isa) {
        println!("skipped: {}", stderr.trim());
        return None;
    }
    assert_eq!(code, 0, "{more:?}: {stderr}");
    let pair = |row: Value| (row["position"].clone(), row["digest"].clone());
    Some(lines(&stdout).into_iter().map(pair).collect())
}

#[test]
fn threads_chunks_and_instruction_sets_change_no_bit() {
    let want = digests(smollm2(), "", &[]).unwrap();
    assert_eq!(want.len(), IDS.split(',').count());
    let check = |isa: &str, more: &[&str]| {
        if let Some(found) = digests(smollm2(), isa, more) {
            assert_eq!(found, want, "{isa} {more:?}");
        }
    };
    for (chunk, threads) in [("1", "1"), ("7", "2"), ("64", "1")] {
        check("", &["--chunk", chunk, "--threads", threads]);
    }
    for isa in ["scalar", "avx2", "avxvnni", "avx512", "avx512vnni"] {
        check(isa, &["--threads", "2", "--chunk", "7"]);
    }
    let last = digests(smollm2(), "", &["--last", "3"]).unwrap();
    assert_eq!(last, want[want.len() - 3..]);
}

#[test]
fn the_type_of_keys_and_values_is_part_of_the_bits() {
    let ids = ["--ids", "5,6,7,8,9,10,11,12"];
    let run = |kv: &str| {
        let tiny = tiny();
        let args = ["logits", "-m", &tiny, "--json", "--kv-type", kv];
        let ran = ran(command(&[&args[..], &ids].concat()), "");
        assert_eq!(ran.code, 0, "{ran:?}");
        let rows = lines(&ran.stdout);
        rows.into_iter().map(|row| row["digest"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(run("f32"), run("f32"));
    assert_ne!(run("f32"), run("f16"));
    assert_eq!(run("q8_0"), run("q8_0"));
    assert_ne!(run("f16"), run("q8_0"));
    assert_ne!(run("f32"), run("q8_0"));
}
