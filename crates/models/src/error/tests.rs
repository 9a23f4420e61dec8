//! Cases of sorting errors and of their sentences.

use std::io::{Error, ErrorKind};
use std::path::PathBuf;

use super::ModelsError;

fn check_write(kind: ErrorKind, want: &str) {
    let error = ModelsError::write("create", "folder", 7, Error::from(kind));
    assert!(!error.is_callers_mistake());
    assert_eq!(error.to_string(), want);
}

#[test]
fn a_failed_write_says_what_to_do() {
    let not_writable = "cannot write to the models folder `folder` (make it writable, or set \
                        CAUSEWAY_HOME to one that is)";
    let disk_full = "no space left for `folder`: the download needs up to 7 bytes: free some, or \
                     set CAUSEWAY_HOME to a folder on another disk";
    check_write(ErrorKind::PermissionDenied, not_writable);
    check_write(ErrorKind::ReadOnlyFilesystem, not_writable);
    check_write(ErrorKind::StorageFull, disk_full);
    check_write(ErrorKind::QuotaExceeded, disk_full);
    check_write(ErrorKind::NotADirectory, "cannot create `folder`");
}

#[test]
fn asking_for_what_is_not_there_is_the_callers_mistake() {
    assert!(ModelsError::NotFetched { name: "a:1b".to_owned() }.is_callers_mistake());
    assert!(ModelsError::NoSuchPath { path: PathBuf::from("a.gguf") }.is_callers_mistake());
}

#[test]
fn names_are_listed_as_a_sentence_lists_them() {
    let listed = |names: &[&str], more| {
        super::listed(&names.iter().copied().map(str::to_owned).collect::<Vec<_>>(), more)
    };
    assert_eq!(listed(&[], 0), "");
    assert_eq!(listed(&["a"], 0), "`a`");
    assert_eq!(listed(&["a", "b"], 0), "`a` and `b`");
    assert_eq!(listed(&["a", "b", "c"], 0), "`a`, `b` and `c`");
    assert_eq!(listed(&["a", "b"], 3), "`a`, `b` and 3 more in `causeway models`");
}
