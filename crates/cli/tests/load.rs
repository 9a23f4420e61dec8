//! `causeway load`: its plan on paper, and what it refuses before it asks anyone.

mod support;

use support::causeway;

#[test]
fn a_plan_is_the_same_each_time_it_is_written() {
    let plan = |seed: &str| {
        let ran = causeway(&[
            "load",
            "--arrivals",
            "poisson:5",
            "--requests",
            "20",
            "--seed",
            seed,
            "--dump-plan",
            "-",
        ]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    };
    let (one, again, other) = (plan("1"), plan("1"), plan("2"));
    assert_eq!(one, again);
    assert_ne!(one, other);
    let lines: Vec<serde_json::Value> =
        one.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 20);
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(line["request"]["index"], index);
        let words = line["prompt"].as_str().unwrap().split(' ').count();
        assert_eq!(line["request"]["prompt_words"], words);
    }
}

#[test]
fn what_cannot_be_asked_is_refused_in_one_sentence() {
    let check = |args: &str, want: &str| {
        let ran = causeway(&[&["load"], &args.split(' ').collect::<Vec<_>>()[..]].concat());
        assert_eq!(ran.code, 2, "{args}: {ran:?}");
        assert!(ran.stderr.contains(want), "{args}: {ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    };
    let server = "--url http://127.0.0.1:1";
    check(&format!("{server} --duration 1s"), "--arrivals");
    check("--arrivals poisson:1 --duration 1s", "--url");
    check("--url https://h --arrivals poisson:1 --duration 1s", "`https://h` is no server");
    check(&format!("{server} --arrivals poisson:0 --duration 1s"), "the rate of arrivals is 0");
    check(&format!("{server} --arrivals poisson:1"), "nothing ends the run");
    check(&format!("{server} --arrivals poisson:1 --duration soon"), "`soon` is no length of time");
    check(&format!("{server} --arrivals poisson:1 --requests 0"), "0 requests are out of range");
    check(&format!("{server} --arrivals poisson:1 --requests 1 --body [1]"), "--body are no JSON");
    check(&format!("{server} --arrivals poisson:1 --requests 1 --slo-itl-ms 0"), "out of range");
    check(
        &format!("{server} --arrivals poisson:1 --requests 1 --prompt-words 9..4"),
        "counts from 9 to 4",
    );
    check(
        &format!("{server} --arrivals poisson:1 --requests 1 --trace-speed 2"),
        "--trace-speed has no effect without a trace",
    );
    check(
        &format!("{server} --arrivals trace:t.csv --prompt-words 5"),
        "a trace has its own lengths",
    );
    check("--arrivals concurrency:2 --duration 1s --dump-plan -", "give --requests");
}

#[test]
fn a_run_that_nobody_answers_is_the_worlds_failure() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let args = ["load", "--url", &url, "--arrivals", "poisson:100", "--requests", "3"];
    let ran = causeway(&args);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("does not name its models (no server answers there)"), "{ran:?}");
    let ran = causeway(&[&args[..], &["--model", "m", "--json"]].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stderr.contains("none of the 3 requests measured was answered: connect 3"),
        "{ran:?}"
    );
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["requests"]["errors"]["connect"], 3);
    assert!(report["ttft_ms"]["p99"].is_null());
}
