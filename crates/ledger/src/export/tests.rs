//! Records exported in each form are records again, and nothing half is left behind.

use super::*;
use crate::tests::sample;
use crate::{from_slice, read};

fn filled() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    for ms in [30, 10, 20] {
        let mut record = sample();
        record.end.account.times.scheduled_unix_ms = ms;
        record.end.text = "a line\nand another".to_owned();
        store.insert(record).unwrap();
    }
    (folder, store)
}

#[test]
fn lines_are_records_in_the_order_of_time() {
    let (folder, store) = filled();
    let mut lines = Vec::new();
    assert_eq!(export_lines(&store, &Filter::default(), &mut lines).unwrap(), 3);
    let path = folder.path().join("all.jsonl");
    assert_eq!(export_file(&store, &Filter::default(), &path).unwrap(), 3);
    assert_eq!(std::fs::read(&path).unwrap(), lines);
    let records: Vec<Stored> = String::from_utf8(lines)
        .unwrap()
        .lines()
        .map(|line| from_slice(line.as_bytes()).unwrap())
        .collect();
    let time = |stored: &Stored| stored.record.end.account.times.scheduled_unix_ms;
    assert_eq!(records.iter().map(time).collect::<Vec<_>>(), [10, 20, 30]);
    assert!(records.iter().all(Stored::is_unchanged));
}

#[test]
fn a_folder_gets_one_file_for_each() {
    let (folder, store) = filled();
    let to = folder.path().join("new").join("deep");
    assert_eq!(export_folder(&store, &Filter::default(), &to).unwrap(), 3);
    let mut names = Vec::new();
    for file in std::fs::read_dir(&to).unwrap() {
        let path = file.unwrap().path();
        let stored = read(&path).unwrap();
        assert!(stored.is_unchanged());
        assert_eq!(path.file_stem().unwrap().to_str().unwrap(), stored.id.to_string());
        names.push(path);
    }
    assert_eq!(names.len(), 3);
    // A second time it is the same files.
    assert_eq!(export_folder(&store, &Filter::default(), &to).unwrap(), 3);
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 3);
}

#[test]
fn an_export_that_fails_says_why_and_leaves_nothing() {
    let (folder, store) = filled();
    let check = |error: ExportError, is_callers_mistake: bool, want: &str| {
        assert_eq!(error.is_callers_mistake(), is_callers_mistake, "{error}");
        assert!(error.to_string().contains(want), "{error}");
    };
    let nowhere = folder.path().join("none").join("all.jsonl");
    check(export_file(&store, &Filter::default(), &nowhere).unwrap_err(), true, "no folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    check(
        export_folder(&store, &Filter::default(), &file).unwrap_err(),
        false,
        "cannot be written",
    );
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let full = export_lines(&store, &Filter::default(), &mut Full).unwrap_err();
    check(full, false, "the output cannot be written");
    let edit = rusqlite::Connection::open(folder.path().join("l.sqlite")).unwrap();
    edit.execute("UPDATE bodies SET answer = 'another' WHERE seq = 2", []).unwrap();
    std::fs::write(&file, "kept").unwrap();
    let error = export_file(&store, &Filter::default(), &file).unwrap_err();
    check(error, false, "is not what was written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept", "whole or not at all");
    let left = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
}
