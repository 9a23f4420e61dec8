//! Files that change, are empty, or are no files at all.

use std::fs;

use super::Mapping;

#[test]
fn an_empty_file_is_mapped_as_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    fs::write(&path, b"").unwrap();
    let mapping = Mapping::open(&path).unwrap();
    assert_eq!(mapping.bytes(), b"");
    mapping.release_pages().unwrap();
    mapping.release_part(0..0).unwrap();
    mapping.will_need().unwrap();
}

#[test]
fn what_is_not_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Mapping::open(folder.path()).is_err());
    assert!(Mapping::open(&folder.path().join("absent")).is_err());
    #[cfg(unix)]
    assert!(Mapping::open(std::path::Path::new("/dev/zero")).is_err());
}

#[test]
fn released_pages_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&path, &content).unwrap();
    let mapping = Mapping::open(&path).unwrap();
    assert!(mapping.bytes() == content);
    mapping.release_pages().unwrap();
    assert!(mapping.bytes() == content);
    for part in [0..0, 0..1, 4095..4097, 5000..9000, 399_999..400_000, 0..400_000] {
        mapping.release_part(part).unwrap();
        assert!(mapping.bytes() == content);
    }
}

#[test]
fn a_file_cut_short_after_opening_is_noticed_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, vec![7; 20_000]).unwrap();
    let mapping = Mapping::open(&path).unwrap();
    assert!(mapping.is_unchanged().unwrap());
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert!(!mapping.is_unchanged().unwrap());
    assert_eq!(mapping.bytes().len(), 20_000);
}

#[test]
fn a_file_replaced_under_its_name_is_still_the_one_that_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("file"), folder.path().join("other"));
    fs::write(&path, b"first").unwrap();
    fs::write(&other, b"second one").unwrap();
    let mapping = Mapping::open(&path).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(mapping.bytes(), b"first");
    assert!(mapping.is_unchanged().unwrap());
}
