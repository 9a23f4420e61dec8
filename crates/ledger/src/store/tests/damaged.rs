//! Files that are no ledger, that fail, and that were edited by hand.

use rusqlite::Connection;

use super::*;
use crate::tests::random_numbers;

fn causes(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

/// What opening a file with these bytes says.
fn check_file(bytes: &[u8], want_write: &str, want_read: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    let write = |_: ()| std::fs::write(&path, bytes).unwrap();
    write(());
    let said = Store::open_to_read(&path).map_or_else(|error| causes(&error), |_| "ok".to_owned());
    assert!(said.contains(want_read), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "a reader writes nothing");
    let said = Store::open(&path).map_or_else(|error| causes(&error), |_| "ok".to_owned());
    assert!(said.contains(want_write), "{said}");
}

/// The bytes of a ledger with one record, and the record's id.
fn one_record() -> (Vec<u8>, Sha256) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    let mut store = Store::open(&path).unwrap();
    let mut entry = Entry::from(sample());
    entry.tags.request_id = Some("r1".to_owned());
    let id = store.insert(entry).unwrap();
    drop(store);
    (std::fs::read(&path).unwrap(), id)
}

#[test]
fn what_is_no_ledger_is_refused() {
    check_file(b"", "ok", "is not a ledger");
    check_file(b"# A page of text\n", "is not a ledger", "is not a ledger");
    check_file(&[b'x'; 4_096], "is not a ledger", "is not a ledger");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.sqlite");
    Connection::open(&path).unwrap().execute("CREATE TABLE notes (text TEXT)", []).unwrap();
    let other = std::fs::read(&path).unwrap();
    check_file(&other, "is not a ledger", "is not a ledger");
    check_file(&one_record().0, "ok", "ok");
}

#[test]
fn a_place_where_no_ledger_can_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check = |path: &Path, want_write: &str, want_read: &str| {
        let error = Store::open(path).unwrap_err();
        assert!(error.is_callers_mistake() && error.to_string().contains(want_write), "{error}");
        let error = Store::open_to_read(path).unwrap_err();
        assert!(error.is_callers_mistake() && error.to_string().contains(want_read), "{error}");
    };
    check(folder.path(), "is not a ledger", "is not a ledger");
    let missing = folder.path().join("none").join("l.sqlite");
    check(&missing, "there is no folder for a ledger", "there is no ledger");
    let error = Store::open_to_read(&folder.path().join("l.sqlite")).unwrap_err();
    assert!(error.to_string().starts_with("there is no ledger"), "{error}");
}

#[test]
fn a_newer_schema_is_named_and_left_alone() {
    let check = |sql: &str, want: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.sqlite");
        std::fs::write(&path, one_record().0).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        for error in [Store::open(&path).unwrap_err(), Store::open_to_read(&path).unwrap_err()] {
            assert!(causes(&error).contains(want), "{}", causes(&error));
            assert!(!error.is_callers_mistake());
        }
    };
    let newer = "INSERT INTO migrations (version, engine) VALUES (7, '9.9.9')";
    check(newer, "has schema version 7, where this program knows up to 1");
    check("DROP TABLE migrations", "cannot be used: no such table: migrations");
}

#[test]
fn a_locked_ledger_is_named_and_nothing_is_written() {
    let (folder, mut store) = new_store();
    let path = folder.path().join(STORE_FILE_NAME);
    store.connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.insert(sample()).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }) && error.may_pass(), "{error}");
    assert!(error.to_string().contains("locked by another program"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    store.insert(sample()).unwrap();
}

#[test]
fn a_full_disk_is_named_and_nothing_half_is_written() {
    let (_folder, mut store) = new_store();
    let limit = |store: &Store, pages: i64| {
        store
            .connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .unwrap();
    };
    limit(&store, 1);
    let big = record_at(0, |record| record.end.text = "x".repeat(1 << 20));
    let error = store.insert(big.clone()).unwrap_err();
    assert!(error.to_string().ends_with("cannot be written: the disk is full"), "{error}");
    assert!(matches!(error, StoreError::Full { .. }) && error.may_pass());
    assert_eq!(store.list(&Filter::default()).unwrap(), []);
    limit(&store, 1_000_000);
    let id = store.insert(big.clone()).unwrap();
    assert_eq!(store.find(&id.to_string()).unwrap().record, big);
}

#[test]
fn who_reads_cannot_write() {
    let (folder, _store) = new_store();
    let path = folder.path().join(STORE_FILE_NAME);
    let error = Store::open_to_read(&path).unwrap().insert(sample()).unwrap_err();
    assert!(error.to_string().ends_with("the file or its folder is read-only"), "{error}");
}

/// A folder in which not even the superuser makes a file.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_may_not_be_written_takes_no_ledger() {
    let error = Store::open(Path::new("/sys/l.sqlite")).unwrap_err();
    let want = "ledger `/sys/l.sqlite` cannot be written: the file or its folder is read-only";
    assert_eq!(causes(&error), want);
    assert!(!error.is_callers_mistake());
}

#[test]
fn a_folder_that_may_not_be_written_can_be_read_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd ?#%41é&=.sqlite");
    let (bytes, id) = one_record();
    std::fs::write(&path, bytes).unwrap();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let store = Store::open_with(&path, immutable_uri(&path).as_ref(), flags, false).unwrap();
    assert_eq!(store.find(&id.to_string()).unwrap().record, sample());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is made beside it");
}

/// Every column of a record's rows, edited in several ways, is noticed.
#[test]
fn a_row_that_was_edited_is_refused_by_its_name() {
    let (bytes, id) = one_record();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    let mut edits = 0;
    for table in ["records", "bodies", "texts"] {
        std::fs::write(&path, &bytes).unwrap();
        let connection = Connection::open(&path).unwrap();
        let mut columns: Vec<String> = Vec::new();
        let name = |row: &rusqlite::Row<'_>| row.get("name").map(|name| columns.push(name));
        let sql = format!("PRAGMA table_info({table})");
        connection.prepare(&sql).unwrap().query_map([], name).unwrap().for_each(Result::unwrap);
        drop(connection);
        for column in columns {
            for value in ["'x'", "NULL", "-1", "7", "1e300", "x'ff00'", "'\u{1b}[2J'"] {
                std::fs::write(&path, &bytes).unwrap();
                let connection = Connection::open(&path).unwrap();
                let sql =
                    format!("UPDATE {table} SET {column} = {value} WHERE {column} IS NOT {value}");
                // What the table itself refuses need not be noticed.
                if connection.execute(&sql, []).is_ok_and(|changed| changed > 0) {
                    drop(connection);
                    edits += 1;
                    check_edited(&path, &id, &sql);
                }
            }
        }
    }
    assert!(edits > 200, "{edits}");
}

fn check_edited(path: &Path, id: &Sha256, sql: &str) {
    let store = Store::open_to_read(path).unwrap();
    let mut exported = 0;
    let error = store.export(&Filter::default(), |_| {
        exported += 1;
        Ok::<_, StoreError>(())
    });
    let error = error.expect_err(sql);
    assert_eq!(exported, 0, "{sql}");
    let said = causes(&error);
    assert!(said.contains("is not what was written"), "{sql}: {said}");
    assert!(!said.contains(char::is_control) && !error.is_callers_mistake(), "{sql}: {said}");
    let StoreError::Row { source, .. } = &error else { panic!("{sql}: {said}") };
    assert!(!source.is_callers_mistake());
    // The columns alone are enough for a list to know.
    if sql.contains("UPDATE records") && !sql.contains("SET seq") {
        assert!(store.list(&Filter::default()).is_err(), "{sql}");
    }
    let is_named = store.find(&id.to_string()).is_err_and(|error| match error {
        StoreError::Row { id: named, .. } => named == id.to_string(),
        // Its id was what was edited.
        StoreError::NoRecord { .. } => sql.contains("SET id"),
        _ => false,
    });
    assert!(is_named, "{sql}");
}

/// Bytes of the file that change by chance: a record comes back as it was, or not at all.
#[test]
fn a_damaged_file_never_gives_another_record() {
    let (bytes, _) = one_record();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    let mut numbers = random_numbers(11);
    let mut next = |below: usize| usize::try_from(numbers.next().unwrap()).unwrap() % below;
    let (mut refused, mut read) = (0, 0);
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + next(4) {
            let place = next(damaged.len());
            damaged[place] = u8::try_from(next(256)).unwrap();
        }
        if next(4) == 0 {
            damaged.truncate(next(bytes.len()));
        }
        std::fs::write(&path, &damaged).unwrap();
        let outcome = Store::open_to_read(&path).and_then(|store| {
            store.list(&Filter::default())?;
            store.export(&Filter::default(), |stored| {
                assert_eq!(stored.record, sample());
                Ok::<_, StoreError>(())
            })
        });
        match outcome {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 25 && read > 25, "{refused} refused, {read} read");
}
