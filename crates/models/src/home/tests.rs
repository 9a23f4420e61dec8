//! Cases of turning what a user typed into a path.

use std::fs;

use super::{Home, Named, State, looks_like_path};
use crate::catalogue::tests;
use crate::{Catalogue, Entry, ModelsError};

fn entry() -> Entry {
    tests::entry("tiny:1b", b"stone")
}

/// What a text means to someone without a catalogue of his own.
fn named(text: &str) -> Result<Named, ModelsError> {
    super::named(text, &|| Ok(Catalogue::built_in()))
}

#[test]
fn a_separator_or_the_ending_makes_a_path() {
    let paths =
        ["./a", "a/b", "/a", "a.gguf", "a.GGUF", "smollm2:135m/", "qwen2.5-coder:0.5b.gguf"];
    let names = ["smollm2:135m", "qwen2.5-coder:0.5b", "folder", "", "."];
    for text in paths {
        assert!(looks_like_path(text), "{text:?}");
    }
    for text in names {
        assert!(!looks_like_path(text), "{text:?}");
    }
}

#[test]
fn a_model_is_absent_then_ready_and_damaged_when_a_byte_differs() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path());
    assert_eq!(home.state(&entry()).unwrap(), State::Absent);
    let absent = "model `tiny:1b` is not fetched yet: run `causeway pull tiny:1b`";
    assert_eq!(home.checked(&entry()).unwrap_err().to_string(), absent);
    fs::create_dir(home.models()).unwrap();
    for (text, want) in
        [("stone", State::Ready), ("stome", State::Damaged), ("stones", State::Damaged)]
    {
        fs::remove_file(home.file_of(&entry())).ok();
        fs::write(home.file_of(&entry()), text).unwrap();
        assert_eq!(home.state(&entry()).unwrap(), want, "{text}");
    }
    let error = home.checked(&entry()).unwrap_err();
    assert!(!error.is_callers_mistake());
    let text = error.to_string();
    assert!(text.contains("t.gguf` is damaged: 6 bytes with sha256 "), "{text}");
    assert!(text.contains("but `tiny:1b` has 5 bytes with sha256 "), "{text}");
    assert!(text.ends_with("(`causeway pull tiny:1b` fetches it anew)"), "{text}");
}

#[test]
fn a_folder_in_a_models_place_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path());
    fs::create_dir_all(home.file_of(&entry())).unwrap();
    assert!(matches!(home.state(&entry()), Err(ModelsError::File { operation: "read", .. })));
}

#[test]
fn paths_are_taken_as_they_are_and_names_from_the_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.gguf");
    fs::write(&file, "").unwrap();
    for path in [file.as_path(), folder.path()] {
        assert_eq!(named(path.to_str().unwrap()).unwrap(), Named::Path(path.to_owned()));
    }
    assert_eq!(named("smollm2:135m").unwrap(), Catalogue::built_in().find("smollm2:135m").unwrap());
    // The tests run in the crate's folder, which has this one in it.
    assert_eq!(named("src").unwrap(), Named::Path("src".into()));
    let hub = crate::hub::HubName::parse("hf:a/b:q8_0").unwrap();
    assert_eq!(named("hf:a/b:q8_0").unwrap(), Named::Hub(hub));
    assert!(named("hf:a/b.bin/c").unwrap_err().is_callers_mistake());
    let sentence = |text: &str| named(text).unwrap_err().to_string();
    assert_eq!(sentence("./nowhere"), "no model file or folder at `./nowhere`");
    assert_eq!(sentence("nowhere.gguf"), "no model file or folder at `nowhere.gguf`");
    assert!(sentence("nowhere").starts_with("no model is called `nowhere`: there are "));
    assert!(sentence("").starts_with("no model is called ``: there are "));
}
