//! Runs the real command and catches all it says.

#![expect(dead_code, reason = "each test file that includes this one uses a part of it")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command with nothing on stdin.
pub(crate) fn causeway<S: AsRef<OsStr>>(args: &[S]) -> Ran {
    with_stdin(args, "")
}

/// The command with this text on stdin.
pub(crate) fn with_stdin<S: AsRef<OsStr>>(args: &[S], stdin: &str) -> Ran {
    ran(command(args), stdin)
}

/// The command as it would be started.
pub(crate) fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(args);
    command
}

/// Runs a command to its end.
pub(crate) fn ran(command: Command, stdin: &str) -> Ran {
    let mut child = spawned(command);
    let mut to = child.stdin.take().expect("stdin is piped");
    // A command that reads no input may be gone already; its output tells.
    let _ = to.write_all(stdin.as_bytes());
    drop(to);
    let output = child.wait_with_output().expect("the command ends by itself");
    let (code, stderr) = (code_of(output.status), text(output.stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    Ran { code, stdout: text(output.stdout), stderr }
}

/// A command that runs, with all of its streams in reach.
pub(crate) fn spawned(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command was built for this test")
}

/// The exit code; a signal has none, and no command may end by one.
pub(crate) fn code_of(status: ExitStatus) -> i32 {
    status.code().expect("the command ends by itself, not by a signal")
}

/// All that is left on a stream.
pub(crate) fn rest_of(mut stream: impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a pipe can be read");
    text(bytes)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the command writes UTF-8")
}

/// Strict JSON, one object a line: no NaN, no infinity, nothing beside it.
pub(crate) fn lines(stdout: &str) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    stdout.lines().map(line).collect()
}

/// The one object that a command wrote.
pub(crate) fn object(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 1), "{ran:?}");
    lines(&ran.stdout).remove(0)
}

/// The default model, which must be there before the tests run: no test fetches anything.
pub(crate) fn smollm2() -> &'static str {
    let path = models().join("smollm2-135m.gguf");
    assert!(path.exists(), "`{}` is missing: run `causeway pull smollm2:135m`", path.display());
    "smollm2:135m"
}

/// A model without a chat template.
pub(crate) fn gemma3() -> &'static str {
    let path = models().join("gemma3-270m.gguf");
    assert!(path.exists(), "`{}` is missing: run `causeway pull gemma3:270m`", path.display());
    "gemma3:270m"
}

fn models() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let home = variable("CAUSEWAY_HOME").unwrap_or_else(|| {
        let folder = variable("XDG_DATA_HOME");
        let home = || variable("HOME").expect("a user has a home").join(".local/share");
        folder.unwrap_or_else(home).join("causeway")
    });
    home.join("models")
}

/// A two-layer model of random weights, without a tokenizer: 512 tokens, a context of 256.
pub(crate) fn tiny() -> String {
    tree().join("testdata/tiny/llama").display().to_string()
}

/// The root of the source tree.
pub(crate) fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
