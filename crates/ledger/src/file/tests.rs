//! Record files: every way in which reading and writing them can fail, and damaged bytes.

use super::*;
use crate::tests::{golden, random_numbers};

const GOLDEN: &str = include_str!("../../../../testdata/records/golden.json");

fn chain(error: &dyn std::error::Error) -> String {
    let source = error.source().map(|source| format!(": {}", chain(source)));
    format!("{error}{}", source.unwrap_or_default())
}

#[test]
fn the_golden_record_is_read_and_written_byte_for_byte() {
    let stored = from_slice(GOLDEN.as_bytes()).unwrap();
    assert!(stored.is_unchanged());
    assert_eq!(stored.record, golden());
    assert_eq!(to_json(&golden()).unwrap(), GOLDEN);
}

#[test]
fn any_layout_of_the_same_json_is_the_same_record() {
    let tree: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    let pretty = serde_json::to_string_pretty(&tree).unwrap();
    let stored = from_slice(pretty.as_bytes()).unwrap();
    assert_eq!(stored.record, golden());
    assert!(stored.is_unchanged());
}

#[test]
fn a_record_edited_by_hand_is_read_and_known_as_edited() {
    let edited = GOLDEN.replace(r#""seed":18446744073709551615"#, r#""seed":7"#);
    let stored = from_slice(edited.as_bytes()).unwrap();
    assert_eq!(stored.record.start.request.effective.seed, 7);
    assert!(!stored.is_unchanged());
    let check = |from: &str, to: &str, want: &str| {
        let stored = from_slice(GOLDEN.replacen(from, to, 1).as_bytes()).unwrap();
        let said = stored.edited().unwrap();
        assert_eq!(said, format!("its {want}'s"));
    };
    // What no answer depends on leaves the answer's hash as it is.
    check(r#""threads":2"#, r#""threads":3"#, "`id` is not its content");
    check(r#""seed":18446744073709551615"#, r#""seed":7"#, {
        "`id` and `answer_hash` are not its content"
    });
    let hash = golden().answer_hash().to_string();
    check(&hash, &"0".repeat(64), "`answer_hash` is not its content");
}

#[test]
fn bytes_that_are_no_record_are_refused_with_what_is_wrong() {
    let replaced = |from: &str, to: &str| {
        assert!(GOLDEN.contains(from), "{from}");
        GOLDEN.replacen(from, to, 1).into_bytes()
    };
    let json = "not a record in JSON: ";
    check_form(b"", &format!("{json}EOF while parsing a value at line 1 column 0"));
    check_form(b"\xff{}", "byte 0 is not UTF-8");
    check_form(b"{\"schema\":1,\"\xc3\"}", "byte 13 is not UTF-8");
    check_form(b"[1]", &format!("{json}invalid length 1, expected struct RecordFile"));
    check_form(b"{}", "no `schema` in it, where schema 1 is due");
    check_form(br#"{"schema":null}"#, "no `schema` in it, where schema 1 is due");
    check_form(
        &replaced(r#""schema":1"#, r#""schema":2"#),
        "schema 2, where only schema 1 is known",
    );
    check_form(br#"{"schema":0,"of":"another time"}"#, "schema 0, where only schema 1 is known");
    check_form(br#"{"schema":"1"}"#, &format!("{json}invalid type: string \"1\", expected u64"));
    check_form(br#"{"schema":-1}"#, &format!("{json}invalid value: integer `-1`, expected u64"));
    check_form(br#"{"schema":1,"schema":1}"#, &format!("{json}duplicate field `schema`"));
    check_form(&replaced(r#""id""#, r#""ID""#), &format!("{json}unknown field `ID`"));
    check_form(
        &replaced(r#""token":101"#, r#""token":-1"#),
        &format!("{json}invalid value: integer `-1`, expected u32"),
    );
    check_form(
        &replaced(r#""token":101"#, r#""token":4294967296"#),
        &format!("{json}invalid value: integer `4294967296`, expected u32"),
    );
    check_form(&replaced(r#""rank":2"#, r#""rank":1e999"#), &format!("{json}number out of range"));
    check_form(
        &replaced(r#""probability":"#, r#""probability":null,"x":"#),
        &format!("{json}invalid type: null, expected f64"),
    );
    check_form(
        &replaced(r#""cause":"chosen""#, r#""cause":"lucky""#),
        &format!("{json}unknown variant `lucky`"),
    );
    check_form(&[GOLDEN.as_bytes(), b"{}"].concat(), &format!("{json}trailing characters"));
    check_form(
        &replaced(r#""step":1,"#, r#""step":2,"#),
        "its steps do not fit together: step 2 where step 1 is due",
    );
    check_form(
        &replaced(r#""since_arrival_ns":4000000"#, r#""since_arrival_ns":1"#),
        "its steps do not fit together: step 1 at 1 ns, before the step before it at 1000000 ns",
    );
    let deep = format!(r#"{{"received":{}"#, "[".repeat(100_000));
    check_form(&replaced(r#"{"prompt""#, &format!(r#"{deep},"prompt""#)), json);
    let deep = format!(r#"{}{}"#, "[".repeat(1000), "]".repeat(1000));
    check_form(
        &replaced(r#""received":"#, &format!(r#""received":{deep},"x":"#)),
        &format!("{json}recursion limit exceeded"),
    );
    check_form(
        &vec![b' '; RECORD_BYTES_MAX + 1],
        "more than 67108864 bytes, the limit of a record",
    );
}

fn check_form(bytes: &[u8], want: &str) {
    let error = from_slice(bytes).unwrap_err();
    let found = chain(&error);
    assert!(found.starts_with(want), "found {found}, want {want}");
    assert!(!error.is_callers_mistake());
}

/// Cut off at any byte it is no record; with any byte changed it may be one, but never a panic.
#[test]
fn a_damaged_record_is_never_taken_for_whole() {
    let whole = GOLDEN.trim_end().as_bytes();
    for length in 0..whole.len() {
        assert!(from_slice(&whole[..length]).is_err(), "cut off at {length}");
    }
    let mut numbers = random_numbers(3);
    for index in 0..whole.len() {
        let mut damaged = whole.to_vec();
        let change = numbers.next().unwrap().to_le_bytes()[0] | 1;
        damaged[index] ^= change;
        if let Ok(stored) = from_slice(&damaged) {
            assert!(!stored.is_unchanged(), "byte {index} changed by {change} unseen");
        }
    }
}

#[test]
fn a_path_that_holds_no_record_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let shown = |name: &str| path(name).display().to_string();
    fs::write(path("bad"), "{").unwrap();
    check_read(&path("none"), true, &format!("there is no record `{}`", shown("none")));
    check_read(
        folder.path(),
        true,
        &format!("`{}` is a folder, not a record", folder.path().display()),
    );
    check_read(
        &path("bad"),
        false,
        &format!("record `{}` is damaged: not a record in JSON: EOF", shown("bad")),
    );
    check_read(
        &path("bad/below"),
        false,
        &format!("record `{}` cannot be read: ", shown("bad/below")),
    );
}

fn check_read(path: &Path, is_callers_mistake: bool, want: &str) {
    let error = read(path).unwrap_err();
    assert!(chain(&error).starts_with(want), "found {}, want {want}", chain(&error));
    assert_eq!(error.is_callers_mistake(), is_callers_mistake);
}

#[test]
fn a_place_where_no_record_can_be_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display().to_string();
    check_write(folder.path(), true, &format!("`{shown}` is not a file"));
    check_write(Path::new("/dev/null"), true, "`/dev/null` is not a file");
    check_write(&folder.path().join(".."), true, &format!("`{shown}/..` is not a file"));
    check_write(Path::new("/dev/stdout"), true, "`/dev/stdout` is not a file");
    check_write(Path::new("/proc/self/fd/1"), true, "`/proc/self/fd/1` is not a file");
    check_write(Path::new(""), true, "`` is not a file");
    check_write(
        &folder.path().join("none/a.json"),
        true,
        &format!("there is no folder `{shown}/none`"),
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn check_write(path: &Path, is_callers_mistake: bool, want: &str) {
    for error in [write(&golden(), path).unwrap_err(), probe(path).unwrap_err()] {
        assert!(chain(&error).starts_with(want), "found {}, want {want}", chain(&error));
        assert_eq!(error.is_callers_mistake(), is_callers_mistake);
    }
}

#[test]
fn what_the_disk_refuses_is_one_sentence() {
    let refused = |kind| {
        let error = io_error(Path::new("f/a.json"), Path::new("f"), 9, io::Error::from(kind));
        (chain(&error), error.is_callers_mistake())
    };
    let sentence = "record `f/a.json` (9 bytes) cannot be written";
    let read_only = refused(io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(read_only, (format!("{sentence}: read-only filesystem or storage medium"), false));
    let denied = refused(io::ErrorKind::PermissionDenied);
    assert_eq!(denied, (format!("{sentence}: permission denied"), false));
}

/// The file beside the destination is no business of the reader of an error.
#[test]
fn an_error_names_the_record_and_not_the_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    // No name may be longer than 255 bytes, and so no folder of that name can be entered.
    let long = folder.path().join("x".repeat(300));
    let source = open_beside(&long).unwrap_err();
    assert!(source.raw_os_error().is_some(), "{source}");
    assert!(!source.to_string().contains("xxx"), "{source}");
}

/// The device that is always full stands in for the disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_seen() {
    let mut full = File::options().write(true).open("/dev/full").unwrap();
    let source = full.write_all(b"{}").unwrap_err();
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    let error = io_error(Path::new("a.json"), Path::new("."), 2, source);
    assert!(chain(&error).contains("No space left on device"), "{}", chain(&error));
}

#[test]
fn a_failed_write_leaves_the_old_record_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write(&golden(), &path).unwrap();
    let mut broken = golden();
    broken.steps[2].reasons.entropy = f64::NAN;
    let error = write(&broken, &path).unwrap_err();
    assert_eq!(
        chain(&error),
        "the record cannot be written: step 2 has NaN as its `entropy`, which a record cannot hold"
    );
    assert!(!error.is_callers_mistake());
    broken.steps.remove(2);
    let error = write(&broken, &path).unwrap_err();
    assert_eq!(chain(&error), "the record cannot be written: step 3 where step 2 is due");
    assert_eq!(fs::read_to_string(&path).unwrap(), GOLDEN);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let mut large = golden();
    large.start.request.received = "x".repeat(RECEIVED_BYTES_MAX).into();
    let error = to_json(&large).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a request of 8388610 bytes as received, where a record holds 8388608"
    );
    assert!(error.is_callers_mistake());
    let mut large = golden();
    large.end.text = "x".repeat(RECORD_BYTES_MAX);
    let error = to_json(&large).unwrap_err();
    let WriteError::TooLarge { bytes, limit } = error else { panic!("{error}") };
    assert!(bytes > limit && limit == RECORD_BYTES_MAX);
    assert!(!error.is_callers_mistake());
    assert!(error.to_string().ends_with("bytes, where 67108864 are the limit"));
}

#[test]
fn an_old_record_is_replaced_and_a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, "old").unwrap();
    probe(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    write(&golden(), &path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), GOLDEN);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, symlink};
        let link = folder.path().join("link.json");
        symlink(&path, &link).unwrap();
        fs::write(&path, "old").unwrap();
        write(&golden(), &link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), GOLDEN);
        // As readable as any file made here.
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&path), mode(&plain));
    }
}
