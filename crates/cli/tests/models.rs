//! `pull`, `models` and `completions` as a user meets them, without a network.

use std::path::Path;
use std::process::Command;

/// Runs `causeway` in an empty home; the exit code, stdout and stderr.
fn run(home: Option<&Path>, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    // Nothing to be found along the PATH, and no other variable that names a folder.
    command.env_clear().env("PATH", "nowhere").args(args);
    if let Some(home) = home {
        command.env("CAUSEWAY_HOME", home);
    }
    let output = command.output().expect("the command was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(output.stdout), text(output.stderr))
}

fn check(args: &[&str], want_code: i32, want: &str) {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (code, stdout, stderr) = run(Some(home.path()), args);
    assert_eq!((code, stdout.as_str()), (want_code, ""), "{args:?} {stderr}");
    let last = stderr.lines().next_back().unwrap_or_default();
    assert!(last.starts_with(want), "{args:?} said {stderr:?}");
}

#[test]
fn what_cannot_be_fetched_is_one_sentence_and_an_exit_code() {
    check(
        &["pull", "smolm2:135m"],
        2,
        "causeway: no model is called `smolm2:135m`: there are `smollm2:135m`, `gemma3:270m` and",
    );
    // All names are looked up before anything is fetched.
    check(&["pull", "smollm2:135m", "x"], 2, "causeway: no model is called `x`: there are ");
    let python = "causeway: cannot fetch `smollm2:135m`: `python3` cannot be started (install Py";
    check(&["pull"], 1, python);
    check(&["pull", "--all"], 1, python);
}

#[test]
fn a_home_that_nothing_names_is_asked_for() {
    let (code, stdout, stderr) = run(None, &["models"]);
    let want = "causeway: cannot tell where models live: set CAUSEWAY_HOME to a folder\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (2, "", want));
}

#[test]
fn models_says_where_and_which_and_json_has_only_the_fetched() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let (code, stdout, stderr) = run(Some(home.path()), &["models"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let first = format!("models live in {}", home.path().join("models").display());
    assert_eq!(stdout.lines().next(), Some(first.as_str()));
    for name in ["smollm2:135m", "gemma3:270m", "qwen2.5-coder:0.5b"] {
        let line = stdout.lines().find(|line| line.starts_with(name)).expect("each has a line");
        assert!(line.contains("not fetched"), "{line}");
    }
    let (code, stdout, stderr) = run(Some(home.path()), &["models", "--json"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "", ""));
    assert!(!home.path().join("models").exists(), "a list makes nothing");
}

#[test]
fn a_damaged_model_is_said_to_be_damaged() {
    let home = tempfile::tempdir().expect("a folder can be made");
    std::fs::create_dir(home.path().join("models")).expect("the home is writable");
    std::fs::write(home.path().join("models/smollm2-135m.gguf"), "half").expect("so is this");
    let (code, stdout, stderr) = run(Some(home.path()), &["models", "--json"]);
    let want = "causeway: `smollm2:135m` is damaged: run `causeway pull smollm2:135m`\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "", want));
    let (code, stdout, _) = run(Some(home.path()), &["models"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("damaged"), "{stdout}");
}

#[test]
fn a_script_of_completions_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, stdout, stderr) = run(None, &["completions", shell]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{shell}");
        for command in ["pull", "tokenize", "completions"] {
            assert!(stdout.contains(command), "{shell} does not know {command}");
        }
    }
    assert_eq!(run(None, &["completions", "dos"]).0, 2);
}
