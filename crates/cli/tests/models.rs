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

/// A catalogue whose path is a model of the source tree.
fn own_catalogue() -> String {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny/llama");
    format!(
        "schema = 1\n[[model]]\nname = \"mine\"\nsummary = \"two layers\"\npath = {:?}\n\
         [[model]]\nname = \"gone\"\npath = \"gone.gguf\"\n\
         [alias]\nsmall = \"smollm2:135m\"\nm = \"mine\"\n",
        tiny.display().to_string()
    )
}

/// A home with that catalogue; with `CAUSEWAY_CATALOGUE`, where one is given.
fn run_with_catalogue(named: Option<&str>, args: &[&str]) -> (i32, String, String) {
    let home = tempfile::tempdir().expect("a folder can be made");
    let file = home.path().join("catalogue.toml");
    std::fs::write(&file, own_catalogue()).expect("the home is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.env_clear().env("PATH", "nowhere").env("CAUSEWAY_HOME", home.path()).args(args);
    if let Some(named) = named {
        command.env("CAUSEWAY_CATALOGUE", home.path().join(named));
    }
    let output = command.output().expect("the command was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn a_users_names_work_wherever_a_models_name_does() {
    let run = |args: &[&str]| run_with_catalogue(None, args);
    let (code, stdout, stderr) = run(&["models"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let line = |name: &str| {
        let found = stdout.lines().find(|line| line.split(' ').next() == Some(name));
        found.unwrap_or_else(|| panic!("`{name}` is not in {stdout}"))
    };
    let words: Vec<&str> = line("mine").split_whitespace().collect();
    assert_eq!(
        words,
        ["mine", "1", "MB", "fetched", "llama", "F32", "256", "path", "two", "layers"]
    );
    assert!(line("gone").contains("missing"), "{stdout}");
    assert_eq!(
        line("small").split_whitespace().collect::<Vec<_>>(),
        ["small", "is", "smollm2:135m"]
    );
    let (_, json, _) = run(&["models", "--json"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let [mine] = lines.as_slice() else { panic!("{json}") };
    assert_eq!((&mine["name"], &mine["catalogue"]), (&"mine".into(), &"user".into()));
    assert_eq!((&mine["architecture"], &mine["context"]), (&"llama".into(), &256.into()));
    for (args, want_code, want) in [
        (&["inspect", "m"][..], 0, ""),
        (&["doctor", "m"], 0, ""),
        (&["pull", "m"], 0, ""),
        (&["logits", "-m", "m", "--ids", "1,2"], 0, ""),
        (
            &["inspect", "small"],
            2,
            "causeway: model `smollm2:135m` is not fetched yet: run `causew",
        ),
        (&["inspect", "mien"], 2, "causeway: no model is called `mien`: there are `mine`, "),
        (&["inspect", "gone"], 2, "causeway: model `gone` is `"),
        (&["rm", "--yes", "m"], 2, "causeway: `"),
        (&["rm", "small"], 2, "causeway: model `smollm2:135m` is not fetched"),
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!(code, want_code, "{args:?} {stdout} {stderr}");
        assert!(want_code == 0 || stderr.starts_with(want), "{args:?} {stderr}");
    }
}

#[test]
fn a_catalogue_with_a_mistake_is_named_and_bars_no_path() {
    let (code, _, stderr) = run_with_catalogue(Some("other.toml"), &["models"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("cannot read the catalogue `") && stderr.contains("other.toml`"));
    let home = tempfile::tempdir().expect("a folder can be made");
    let file = home.path().join("catalogue.toml");
    std::fs::write(&file, "schema = 1\n[alias]\na = \"nothing\"\n").expect("the home is writable");
    for args in [&["models"][..], &["inspect", "smollm2:135m"], &["pull"], &["rm", "a"]] {
        let (code, stdout, stderr) = run(Some(home.path()), args);
        let want = format!("causeway: `{}`, line 3: `a` stands for `nothing`", file.display());
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}");
        assert!(stderr.starts_with(&want) && stderr.lines().count() == 1, "{stderr}");
    }
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny/llama");
    let (code, _, stderr) = run(Some(home.path()), &["inspect", tiny.to_str().expect("UTF-8")]);
    assert_eq!(code, 0, "{stderr}");
}

/// Runs the command on a terminal of Python's making, types the answer, and repeats what it says.
#[cfg(unix)]
const TERMINAL: &str = r#"
import os, pty, signal, sys
signal.alarm(60)
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said, answer = b"", sys.argv[1].encode()
while True:
    try:
        part = os.read(terminal, 1024)
    except OSError:
        break
    if not part:
        break
    said += part
    if answer and b"[y/N]" in said:
        os.write(terminal, answer)
        answer = b""
sys.stdout.buffer.write(said.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[cfg(unix)]
#[test]
fn rm_asks_on_a_terminal_and_takes_a_line_that_says_yes() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let file = home.path().join("models/smollm2-135m.gguf");
    std::fs::create_dir(home.path().join("models")).expect("the home is writable");
    let question = "remove `smollm2:135m` and free 1 MB? [y/N] ";
    for (answer, end) in [
        ("n\n", "n\nnothing was removed\n"),
        ("\n", "\nnothing was removed\n"),
        ("\u{4}", "nothing was removed\n"),
        ("yes\n", "yes\nremoved `smollm2:135m`: 1 MB are free again\n"),
    ] {
        std::fs::write(&file, "half").expect("the home is writable");
        let mut command = Command::new("python3");
        command.args(["-c", TERMINAL, answer, env!("CARGO_BIN_EXE_causeway"), "rm"]);
        command.arg("smollm2:135m").env("CAUSEWAY_HOME", home.path());
        let output = command.output().expect("Python 3 is there, as `causeway pull` needs it");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!((said, output.status.code()), (format!("{question}{end}"), Some(0)));
        assert_eq!(file.exists(), answer != "yes\n", "{answer:?}");
    }
}
