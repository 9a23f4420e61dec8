//! `causeway bench` on a tiny model: the form of its figures, and what it refuses.

mod support;

use support::{causeway, object, tiny};

#[test]
fn speed_gives_each_figure_with_its_conditions() {
    let model = tiny();
    let small = ["-p", "8", "-n", "3", "-b", "1,3", "--batch-prompt", "4", "-r", "2"];
    let args = [&["bench", "speed", "-m", &model, "--json"], &small[..]].concat();
    let answer = object(&causeway(&args));
    for figure in ["prefill_tokens_per_s", "decode_tokens_per_s"] {
        assert!(answer[figure].as_f64().unwrap() > 0.0, "{answer}");
    }
    let rows: Vec<_> = answer["batches"].as_array().unwrap().iter().map(|b| &b["rows"]).collect();
    assert_eq!(rows, [1, 3]);
    for figure in ["load_ms", "decode_read_share", "prefill_int8_share"] {
        assert!(answer[figure].as_f64().unwrap() > 0.0, "{figure} of {answer}");
    }
    for limit in ["read_gb_per_s", "int8_gop_per_s", "step_ns"] {
        assert!(answer["limits"][limit].as_f64().unwrap() > 0.0, "{limit} of {answer}");
    }
    for bytes in ["file_bytes", "weights_bytes", "kv_bytes"] {
        assert!(answer["memory"][bytes].as_u64().unwrap() > 0, "{bytes} of {answer}");
    }
    for condition in ["model", "sha256", "isa", "threads", "threads_by", "kv_type", "cpu"] {
        assert!(!answer["conditions"][condition].is_null(), "{condition} of {answer}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_its_limit() {
    let model = tiny();
    let check = |args: &[&str], want: &str| {
        let ran = causeway(&[&["bench"], args, &["-m", &model]].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(want), "{ran:?}");
    };
    check(&["speed", "-p", "0"], "the least is 1");
    check(&["speed", "-r", "0"], "the least is 1");
    check(&["speed", "-b", "0"], "the least is 1");
    check(&["speed", "-p", "100000"], "context limit");
    check(&["speed", "-p", "18446744073709551615"], "context limit");
    check(&["speed", "-d", "18446744073709551615"], "context limit");
    check(&["speed", "-b", "4000000000"], "the limit is 1024");
    check(&["kernels", "--rows", "0"], "8192");
    check(&["kernels", "--rows", "9999"], "8192");
}
