//! `choose` and `policy` as a user meets them: tables, lines of JSON, and refusals.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Runs the command with this standard input; exit code, stdout and stderr.
fn run(args: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_causeway"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built for this test");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A command that reads no input may be gone already; its output tells.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the command ends by itself");
    let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

/// Each line in must give its object out, as far as the wanted fields go.
fn check_lines(lines: &[(&str, Value)], want_code: i32) {
    let input: String = lines.iter().map(|(line, _)| line.replace('\n', " ") + "\n").collect();
    let (code, stdout, _) = run(&["choose", "--json"], &input);
    assert_eq!(code, want_code);
    assert_eq!(stdout.lines().count(), lines.len());
    for (answer, (line, want)) in stdout.lines().zip(lines) {
        let answer: Value = serde_json::from_str(answer).expect("each line is JSON");
        for (name, value) in want.as_object().expect("a table of fields") {
            assert_eq!(&answer[name], value, "{line} gave {answer}");
        }
    }
}

#[test]
fn the_worked_example_is_a_table() {
    let base = ["choose", "--logits", "1.2,0.1,2.4,1.7", "--top-k", "3", "--seed", "7"];
    let table = |rows: [&str; 3], last: &str| {
        let head = " token        logit  probability\n";
        let row = |at: usize| {
            let (token, logit) = [("2", "2.4"), ("3", "1.7"), ("0", "1.2")][at];
            format!("{token:>6} {logit:>12} {:>12}\n", rows[at])
        };
        format!("{head}{}{}{}{last}", row(0), row(1), row(2))
    };
    let warm = table(["0.646007", "0.237653", "0.116341"], "token 2 (seed 7)\n");
    let (code, stdout, _) = run(&[&base[..], &["--temperature", "0.7"]].concat(), "");
    assert_eq!((code, stdout), (0, warm.clone()));
    let numpy = [&base[..], &["--temperature", "0.7", "--rng", "numpy"]].concat();
    let (code, stdout, _) = run(&numpy, "");
    assert_eq!((code, stdout), (0, warm + "uniform 0.625095466604667\n"));
    let cold = table(["0.896630", "0.086948", "0.016422"], "token 2 (seed 7)\n");
    let (code, stdout, _) = run(&[&base[..], &["--temperature", "0.3"]].concat(), "");
    assert_eq!((code, stdout), (0, cold));
}

#[test]
fn lines_are_answered_one_by_one() {
    check_lines(
        &[
            (r#"{"probs":[0.3,0.1,0.1,0.5],"policy":{"top_p":0.8}}"#, json!({"survivors": [3, 0]})),
            (
                r#"{"logits":[1,3,0.5],"policy":{"shape":{"min_p":0.1}}}"#,
                json!({"survivors": [1, 0]}),
            ),
            (
                r#"{"logits":{"7":3,"8":2.9},"context":[7,7,7],"prompt_tokens":3,"policy":
                {"presence_penalty":2,"frequency_penalty":2,"temperature":0}}"#,
                json!({"token": 7, "probs": [1.0], "survivors": [7]}),
            ),
            (
                r#"{"logits":["-inf",1,"-Infinity",5],"mask":[1,2]}"#,
                json!({"token": 1, "survivors": [1]}),
            ),
            (
                r#"{"logits":[1.2,0.1,2.4,1.7],"policy":{"temperature":0.7,"top_k":3},
                "seed":"340282366920938463463374607431768211456","rng":"numpy"}"#,
                json!({"token": 3, "survivors": [2, 3, 0], "uniform": 0.677_196_856_975_101_9}),
            ),
        ],
        0,
    );
}

#[test]
fn a_bad_line_is_answered_by_its_error_and_exit_code_2() {
    let error = |text: &str| json!({"error": text});
    check_lines(
        &[
            (r#"{"logits":[0,1],"policy":{"temperature":0}}"#, json!({"token": 1})),
            (
                r#"{"logits":[null,1,5],"policy":{"temperature":0.8}}"#,
                error("the logit of token 0 at step 0 is not a number"),
            ),
            (
                r#"{"logits":[3,1],"policy":{"temperature":-1}}"#,
                error("`shape.temperature` is -1, but must be 0 to 100"),
            ),
            (r#"{"logits":[3,1],"polcy":{}}"#, error("unknown field `polcy`")),
            (r#"{"logits":[]}"#, error("`logits` is empty, but must hold at least one number")),
            (r"{}", error("`logits` or `probs` is missing")),
            (r"[1]", error("the line is not a JSON object")),
            (
                r#"{"logits":[1],"seed":-1}"#,
                error("`seed` is -1, but must be a whole number from 0 to 18446744073709551615"),
            ),
            (
                r#"{"logits":{"99999999":1}}"#,
                error("`logits` names token 99999999, but ids here go up to 16777216"),
            ),
            (
                r#"{"logits":[1,2],"rng":"numpy","policy":{"top_p":0.5}}"#,
                error("`rng` numpy runs `temperature` and `top_k` only, but the policy sets more"),
            ),
        ],
        2,
    );
}

#[test]
fn policy_files_are_checked_and_hashed() {
    let folder = std::env::temp_dir().join(format!("causeway-policy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let path = folder.join("p.toml");
    let path = path.to_str().expect("the path is UTF-8");
    let with = |text: &str, action: &str| {
        std::fs::write(path, text).expect("the temporary folder can be written");
        run(&["policy", action, path], "")
    };
    let (code, hash, _) = with("schema = 1\nname = 'a'\ntop_k = 3\n", "hash");
    assert_eq!((code, hash.len()), (0, 65));
    let (code, other, _) = with("# b\nname = 'a'\nschema = 1\n[shape]\ntop_k = 3\n", "hash");
    assert_eq!((code, &other), (0, &hash));
    let (code, ok, _) = with("schema = 1\nname = 'a'\ntop_k = 3\n", "check");
    assert_eq!((code, ok), (0, format!("ok: a (no version) {hash}")));
    let (code, stdout, stderr) = with("schema = 1\nx = 1\n[shape]\ntop_p = 2\n", "check");
    let problems = "`shape.top_p` is 2, but must be above 0 and at most 1\nunknown field `x`\n";
    assert_eq!((code, stdout.as_str()), (2, problems));
    assert_eq!(stderr, format!("causeway: `{path}` has 2 mistakes\n"));
    std::fs::remove_dir_all(&folder).expect("the test made the folder");
    let (code, stdout, stderr) = run(&["policy", "check", path], "");
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with(&format!("causeway: cannot read the policy `{path}`")));
}
