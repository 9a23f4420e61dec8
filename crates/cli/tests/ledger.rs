//! `causeway ledger` from outside: what a run keeps, and how it is found, replayed and exported.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use support::{Ran, causeway, command, lines, object, ran, tiny};

/// Runs a tiny model with this seed into a store, and gives back the record's id.
fn kept(store: &Path, seed: &str, more: &[&str]) -> String {
    let (model, store) = (tiny(), store.to_str().unwrap());
    let asked = ["--ids", "1,2,3", "--ignore-eos", "--tokens-max", "6", "--temperature", "1"];
    let kept = ["run", "-m", &model, "--seed", seed, "--store", store, "--json"];
    let answer = object(&causeway(&[&kept, &asked[..], more].concat()));
    answer["record"].as_str().unwrap().to_owned()
}

/// `causeway ledger` on a store.
fn ledger(store: &Path, args: &[&str]) -> Ran {
    let args = [&["ledger", args[0], "--store", store.to_str().unwrap()], &args[1..]].concat();
    causeway(&args)
}

#[test]
fn a_kept_record_is_its_file_and_replays_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (folder.path().join("l.sqlite"), folder.path().join("r.json"));
    let id = kept(&store, "7", &["--record", file.to_str().unwrap()]);
    let other = kept(&store, "8", &[]);
    let shown = ledger(&store, &["show", &id[..12], "--json"]);
    assert_eq!((shown.code, shown.stdout), (0, fs::read_to_string(&file).unwrap()));
    let page = ledger(&store, &["show", &id, "--steps"]);
    assert!(page.stdout.starts_with(&format!("record      {id}\n")), "{page:?}");
    assert!(page.stdout.contains("seed 7, choice 0, at most 6 tokens"), "{page:?}");

    let store = store.to_str().unwrap();
    let replayed = causeway(&["replay", &id[..16], "--store", store, "--threads", "1", "--json"]);
    assert_eq!(object(&replayed)["outcome"], "equal");
    let by_file = causeway(&["replay", file.to_str().unwrap(), "--json"]);
    assert_eq!(object(&by_file)["equal_steps"], object(&replayed)["equal_steps"]);
    let same = causeway(&["diff", &id, file.to_str().unwrap(), "--store", store]);
    assert_eq!(same.code, 0, "{same:?}");
    let differing = causeway(&["diff", &id, &other, "--store", store]);
    assert_eq!(differing.code, 1, "{differing:?}");
    assert!(differing.stdout.contains("seed"), "{differing:?}");
}

#[test]
fn records_are_listed_and_exported_by_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("l.sqlite");
    let ids: Vec<String> = ["1", "2", "3"].map(|seed| kept(&store, seed, &[])).to_vec();
    let check = |args: &[&str], want: usize| {
        let listed = ledger(&store, &[&["ls", "--json"], args].concat());
        assert_eq!((listed.code, lines(&listed.stdout).len()), (0, want), "{listed:?}");
    };
    check(&[], 3);
    check(&["-n", "2"], 2);
    check(&["--model", &tiny()], 3);
    check(&["--model", "other"], 0);
    check(&["--stop", "max_tokens", "--since", "1h"], 3);
    check(&["--stop", "eos"], 0);
    check(&["--since", "9999-01-01"], 0);
    let newest = &lines(&ledger(&store, &["ls", "--json", "-n", "1"]).stdout)[0];
    assert_eq!(newest["id"], ids[2].as_str());
    assert_eq!(newest["tokens"]["prefix"], 6);
    let table = ledger(&store, &["ls"]).stdout;
    assert_eq!(table.lines().count(), 4, "{table}");

    let out = folder.path().join("out");
    let exported = ledger(&store, &["export", out.to_str().unwrap()]);
    assert_eq!((exported.code, exported.stderr.as_str()), (0, "3 records exported\n"));
    assert!(out.join(format!("{}.json", ids[0])).is_file());
    let file = folder.path().join("out.jsonl");
    assert_eq!(ledger(&store, &["export", file.to_str().unwrap()]).code, 0);
    let piped = ledger(&store, &["export", "-"]);
    assert_eq!(piped.stdout, fs::read_to_string(&file).unwrap());
    let order: Vec<String> =
        lines(&piped.stdout).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(order, ids, "oldest first");
}

#[test]
fn a_store_has_its_place_in_the_home() {
    let home = tempfile::tempdir().unwrap();
    let at_home = |args: &[&str]| {
        let mut command = command(args);
        command.env("CAUSEWAY_HOME", home.path().join("new"));
        ran(command, "")
    };
    let model = tiny();
    let asked = ["run", "-m", &model, "--ids", "1,2,3", "--tokens-max", "2"];
    let nothing = at_home(&asked);
    assert!(nothing.code == 0 && !nothing.stderr.contains("record"), "{nothing:?}");
    let none = at_home(&["ledger", "ls"]);
    assert_eq!(none.code, 2, "a run leaves nothing behind unasked: {none:?}");
    assert!(none.stderr.contains("there is no ledger"), "{none:?}");
    let missing = at_home(&["replay", "ab12"]);
    assert!(missing.code == 2 && missing.stderr.contains("no such file, and no ledger"));
    let kept = at_home(&[&asked[..], &["--keep"]].concat());
    let id = kept.stderr.trim_end().rsplit_once("record ").unwrap().1;
    assert_eq!((kept.code, id.len()), (0, 12), "{kept:?}");
    assert!(home.path().join("new").join("ledger.sqlite").is_file());
    assert_eq!(at_home(&["replay", id]).code, 0);
    assert_eq!(at_home(&["ledger", "show", &id[..5]]).code, 0);
}

#[test]
fn what_cannot_be_done_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("l.sqlite");
    kept(&store, "1", &[]);
    let check = |args: &[&str], code: i32, want: &str| {
        let refused = ledger(&store, args);
        assert_eq!((refused.code, refused.stdout.as_str()), (code, ""), "{refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
        assert!(refused.stderr.contains(want), "{refused:?}");
    };
    check(&["show", "zz"], 2, "there is no record `zz` in ledger");
    check(&["ls", "--since", "soon"], 2, "`soon` is no time");
    check(&["ls", "--stop", "tired"], 2, "max_tokens");
    check(&["ls", "-n", "0"], 2, "0 is not in 1..");
    check(&["export", "all.json"], 2, "`all.json` is neither a folder nor a .jsonl file");
    check(&["export", "none/all.jsonl"], 2, "there is no folder `none`");
    check(&["show", "a", "--steps", "--json"], 2, "cannot be used with");
    let text = folder.path().join("text.sqlite");
    fs::write(&text, "no ledger at all, but long enough to be taken for one").unwrap();
    let refused = ledger(&text, &["ls"]);
    assert!(refused.code == 2 && refused.stderr.contains("is not a ledger"), "{refused:?}");
    // A ledger that went bad is the world's failure.
    let mut bytes = fs::read(&store).unwrap();
    let place = bytes.windows(10).position(|part| part == b"max_tokens").unwrap();
    bytes[place] = b'M';
    fs::write(&store, bytes).unwrap();
    let edited = ledger(&store, &["ls"]);
    assert!(edited.code == 1 && edited.stderr.contains("is not what was written"), "{edited:?}");
}

#[test]
fn a_store_that_cannot_be_written_is_refused_before_the_model_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("none").join("l.sqlite");
    let asked =
        ["run", "-m", "no/such/model.gguf", "--ids", "1", "--store", store.to_str().unwrap()];
    let refused = causeway(&asked);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("there is no folder for a ledger"), "{refused:?}");
}
