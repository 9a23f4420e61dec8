//! Cases of hashing files and of remembering.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{Hashes, Sha256};

/// SHA-256 of "abc", from FIPS 180-2, appendix B.1.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// SHA-256 of nothing.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn write(path: &Path, text: &str, seconds: u64) {
    fs::write(path, text).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn known_texts_have_their_known_hashes() {
    for (text, want) in [("abc", ABC), ("", EMPTY)] {
        assert_eq!(Sha256::of(&mut text.as_bytes()).unwrap().to_string(), want);
    }
}

#[test]
fn hexadecimal_is_read_back_and_nothing_else_is() {
    assert_eq!(Sha256::from_hex(ABC).unwrap().to_string(), ABC);
    assert_eq!(Sha256::from_hex(&ABC.to_uppercase()).unwrap().to_string(), ABC);
    for wrong in ["", &ABC[1..], &format!("{ABC}0"), &ABC.replace('b', "g"), &ABC.replace('b', "é")]
    {
        assert_eq!(Sha256::from_hex(wrong), None, "{wrong}");
    }
}

#[test]
fn a_hash_is_remembered_until_the_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (file, memory) = (folder.path().join("f"), folder.path().join("deep/memory.txt"));
    let hashes = Hashes::new(&memory);
    write(&file, "abc", 1000);
    assert_eq!(hashes.sha256_of(&file).unwrap().to_string(), ABC);
    // Proof that it is the memory that answers: what it says is changed, and believed.
    let text = fs::read_to_string(&memory).unwrap();
    fs::write(&memory, text.replace(ABC, EMPTY)).unwrap();
    assert_eq!(hashes.sha256_of(&file).unwrap().to_string(), EMPTY);
    // Another time, another length, another inode: each is computed anew.
    write(&file, "abc", 1001);
    assert_eq!(hashes.sha256_of(&file).unwrap().to_string(), ABC);
    write(&file, "", 1001);
    assert_eq!(hashes.sha256_of(&file).unwrap().to_string(), EMPTY);
    let other = folder.path().join("other");
    write(&file, "abd", 1001);
    hashes.sha256_of(&file).unwrap();
    write(&other, "abc", 1001);
    fs::rename(&other, &file).unwrap();
    assert_eq!(hashes.sha256_of(&file).unwrap().to_string(), ABC);
}

#[test]
fn a_memory_that_cannot_be_used_costs_only_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("with a space\tand a tab");
    write(&file, "abc", 1000);
    for memory in [folder.path().to_owned(), file.join("below a file"), "".into()] {
        assert_eq!(Hashes::new(&memory).sha256_of(&file).unwrap().to_string(), ABC);
    }
    let memory = folder.path().join("memory.txt");
    fs::write(&memory, format!("nonsense\n\n{ABC} 3 x 4 /f\n{ABC} 3 1\n")).unwrap();
    for _ in 0..2 {
        assert_eq!(Hashes::new(&memory).sha256_of(&file).unwrap().to_string(), ABC);
    }
    fs::write(&memory, [0xff, 0xfe]).unwrap();
    assert_eq!(Hashes::new(&memory).sha256_of(&file).unwrap().to_string(), ABC);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = Hashes::new(folder.path().join("m")).sha256_of(Path::new("nowhere")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read `nowhere`");
    assert!(!error.is_callers_mistake());
}
