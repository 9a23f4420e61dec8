//! Cases of finding a model by name, and of catalogues that users write.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Alias, Carrier, Catalogue, DEFAULT_MODEL, Entry, Origin, Source, distance};
use crate::hub::HubName;
use crate::{Named, Sha256};

/// An entry of packages, for tests of other files.
pub(crate) fn entry(name: &str, content: &[u8]) -> Entry {
    Entry {
        name: name.to_owned(),
        file_name: "t.gguf".to_owned(),
        bytes: Some(content.len() as u64),
        sha256: Sha256::of(&mut { content }).unwrap(),
        carrier: Carrier::Packages(Vec::new()),
    }
}

/// The built-in names and those of a file with this text; the file's folder is kept.
fn with(text: &str) -> (tempfile::TempDir, Result<Catalogue, String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalogue.toml");
    fs::write(&path, text).unwrap();
    let read = Catalogue::built_in().with_file(&path).map_err(|error| {
        assert!(error.is_callers_mistake());
        let said = error.to_string();
        said.replace(&path.display().to_string(), "C")
    });
    (folder, read)
}

const SHA: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

#[test]
fn every_built_in_name_is_found_and_the_default_is_first() {
    let catalogue = Catalogue::built_in();
    for model in catalogue.models() {
        assert_eq!(model.origin, Origin::BuiltIn);
        let Source::File(entry) = &model.source else { panic!("{model:?}") };
        assert_eq!(catalogue.find(&model.name).unwrap(), Named::Model(entry.clone()));
        assert!(!model.summary.is_empty() && entry.bytes.is_some(), "{model:?}");
    }
    assert_eq!(catalogue.models()[0].name, DEFAULT_MODEL);
    assert_eq!(catalogue.models().len(), 3);
}

#[test]
fn a_users_names_stand_beside_the_built_in_ones() {
    let text = format!(
        r#"
        schema = 1
        [[model]]
        name = "mine"
        summary = "my own"
        path = "m.gguf"
        [[model]]
        name = "theirs:1b"
        url = "https://example.org/m.gguf"
        sha256 = "{SHA}"
        [[model]]
        name = "hubs"
        hf = "hf:o/r:Q8_0"
        [[model]]
        name = "gone"
        path = "gone.gguf"
        [alias]
        small = "smollm2:135m"
        "a:b" = "small"
        other = "hf:o/r"
        m = "mine"
        "#
    );
    let (folder, read) = with(&text);
    let catalogue = read.unwrap();
    fs::write(folder.path().join("m.gguf"), "").unwrap();
    let path = folder.path().join("m.gguf");
    let hub = |name| Named::Hub(HubName::parse(name).unwrap());
    let Named::Model(default) = catalogue.find(DEFAULT_MODEL).unwrap() else { panic!() };
    for (name, want) in [
        ("mine", Named::Path(path.clone())),
        ("m", Named::Path(path)),
        ("hubs", hub("hf:o/r:Q8_0")),
        ("other", hub("hf:o/r")),
        ("a:b", Named::Model(default)),
    ] {
        assert_eq!(catalogue.find(name).unwrap(), want, "{name}");
    }
    let Named::Model(theirs) = catalogue.find("theirs:1b").unwrap() else { panic!() };
    assert_eq!((theirs.file_name.as_str(), theirs.bytes), ("theirs-1b.gguf", None));
    assert_eq!(theirs.carrier, Carrier::Url("https://example.org/m.gguf".to_owned()));
    let gone = catalogue.find("gone").unwrap_err();
    assert!(gone.is_callers_mistake());
    assert!(gone.to_string().starts_with("model `gone` is `"), "{gone}");
    assert!(gone.to_string().ends_with("gone.gguf` in the catalogue, and nothing is there"));
    let first = &catalogue.aliases()[0];
    assert_eq!(*first, Alias { name: "a:b".to_owned(), of: "small".to_owned() });
    let origins: Vec<Origin> = catalogue.models().iter().map(|model| model.origin).collect();
    assert_eq!(origins[2..4], [Origin::BuiltIn, Origin::User]);
    // A misspelt name is compared with all of them.
    let unknown = catalogue.find("hubz").unwrap_err().to_string();
    let want = "no model is called `hubz`: there are `hubs`, ";
    assert!(unknown.starts_with(want) && unknown.contains(" and 3 more in `causeway models`"));
}

/// A catalogue of one more model, which is refused as `want` says; `C` is the file.
fn check_refused(body: &str, want: &str) {
    let (_folder, read) = with(&format!("schema = 1\n{body}"));
    assert_eq!(read.expect_err(body), want);
}

#[test]
fn a_mistake_is_told_with_its_line_and_its_key() {
    let model = |rest: &str| format!("[[model]]\nname = \"x\"\n{rest}");
    for (rest, want) in [
        ("", "C, line 3: `x` has 0 of `path`, `hf`, `url` and `parts`, and one is wanted"),
        (
            "path = \"a\"\nhf = \"hf:a/b\"",
            "C, line 3: `x` has 2 of `path`, `hf`, `url` and `parts`, and one is wanted",
        ),
        (
            "url = \"https://a/b\"",
            "C, line 3: `x` lacks `sha256`, which says what its file must be",
        ),
        (
            "url = \"https://a/b\"\nsha256 = \"12\"",
            "C, line 3: `x` has a `sha256` that is none: 64 hexadecimal digits are wanted",
        ),
        ("path = \"a\"\nbytes = 1", "C, line 3: `x` has `bytes`, which says nothing of a `path`"),
        (
            "hf = \"hf:a\"",
            "C, line 3: `x` is of the hub, but `hf:a` is no model on the hub: it has no owner and \
             repository, joined by `/`; the form is hf:owner/repo[@revision][:quant] or \
             hf:owner/repo[@revision]/file.gguf",
        ),
    ] {
        check_refused(&model(rest), &want.replacen('C', "`C`", 1));
    }
    let url =
        |url: &str, rest: &str| model(&format!("url = \"{url}\"\nsha256 = \"{SHA}\"\n{rest}"));
    check_refused(
        &url("file:///a", ""),
        "`C`, line 3: `x` has the address `file:///a`: one that begins with `https://` or \
         `http://` is wanted",
    );
    check_refused(
        &url("https://a/b", "file = \"../a.gguf\""),
        "`C`, line 3: `x` has the file `../a.gguf`: a name that ends in `.gguf` is wanted, without \
         a folder",
    );
    check_refused(
        &url("https://a/b", "file = \"smollm2-135m.gguf\""),
        "`C`, line 3: `x` has the file `smollm2-135m.gguf`, which is that of `smollm2:135m`: give \
         it another as `file`",
    );
    let part = "parts = [{ package = \"a\", version = \"1\", member = \"a\", wheel_bytes = 1 }]";
    check_refused(
        &model(&format!("{part}\nsha256 = \"{SHA}\"")),
        "`C`, line 3: `x` lacks `bytes`, which says what its file must be",
    );
    check_refused(
        &model("path = \"a\"\ncolour = 1"),
        "`C`, line 5: unknown field `colour`, expected one of `name`, `summary`, `path`, `hf`, \
         `url`, `parts`, `file`, `bytes`, `sha256`",
    );
    check_refused(
        &model("path = 1"),
        "`C`, line 4: invalid type: integer `1`, expected path string",
    );
    check_refused("[[model]]\npath = \"a\"", "`C`, line 2: missing field `name`");
    check_refused("x", "`C`, line 2: key with no value, expected `=`");
    let (_folder, read) = with("\nschema = 2");
    assert_eq!(read.unwrap_err(), "`C`, line 2: schema is 2, this version reads 1");
    let (_folder, read) = with("[alias]");
    assert_eq!(read.unwrap_err(), "`C`, line 1: missing field `schema`");
}

#[test]
fn no_name_means_two_models_and_no_alias_leads_nowhere() {
    let two = "[[model]]\nname = \"x\"\npath = \"a\"\n[[model]]\nname = \"x\"\npath = \"b\"";
    check_refused(two, "`C`, line 6: `x` is a name already, in line 3");
    check_refused(
        "[[model]]\nname = \"x\"\npath = \"a\"\n[alias]\nx = \"smollm2:135m\"",
        "`C`, line 6: `x` is a name already, in line 3",
    );
    let built_in = "is the name of a built-in model, which no other may have: choose another name";
    check_refused(
        "[[model]]\nname = \"gemma3:270m\"\npath = \"a\"",
        &format!("`C`, line 3: `gemma3:270m` {built_in}"),
    );
    check_refused(
        "[alias]\n\"gemma3:270m\" = \"smollm2:135m\"",
        &format!("`C`, line 3: `gemma3:270m` {built_in}"),
    );
    check_refused("[alias]\na = \"b\"\na = \"c\"", "`C`, line 4: duplicate key");
    check_refused(
        "[alias]\na = \"smollm:135m\"",
        "`C`, line 3: `a` stands for `smollm:135m`, which is no name: is `smollm2:135m` meant?",
    );
    check_refused(
        "[alias]\na = \"b\"\nb = \"c\"\nc = \"b\"",
        "`C`, line 3: `a` stands for itself: `a` is `b` is `c` is `b`",
    );
    check_refused("[alias]\na = \"a\"", "`C`, line 3: `a` stands for itself: `a` is `a`");
    let sentence = "cannot be a name: letters, digits, `.`, `_`, `-` and `:` are taken, 128 at \
                    most, without `hf:` at the start or `.gguf` at the end";
    for name in ["", "a/b", "a b", "hf:a", "a.gguf", "a.GGUF", "ä", &"a".repeat(129)] {
        let body = format!("[alias]\n\"{name}\" = \"smollm2:135m\"");
        check_refused(&body, &format!("`C`, line 3: `{name}` {sentence}"));
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let read = |path: &Path| Catalogue::built_in().with_file(path).unwrap_err();
    let absent = read(&PathBuf::from("no/such.toml"));
    assert_eq!(absent.to_string(), "cannot read the catalogue `no/such.toml`");
    assert!(absent.is_callers_mistake());
    let folder = tempfile::tempdir().unwrap();
    assert!(!read(folder.path()).is_callers_mistake());
    fs::write(folder.path().join("c.toml"), b"schema = 1 # \xff").unwrap();
    assert!(read(&folder.path().join("c.toml")).is_callers_mistake());
    let (_folder, long) = with(&"#\n".repeat(1 << 20));
    assert_eq!(long.unwrap_err(), "the catalogue `C` has more than 1048576 bytes");
}

fn check_unknown(name: &str, want: &str) {
    let error = Catalogue::built_in().find(name).expect_err("the name is not in the catalogue");
    assert!(error.is_callers_mistake());
    assert_eq!(error.to_string(), want);
}

#[test]
fn an_unknown_name_lists_the_known_ones_nearest_first() {
    let (s, g, q) = ("`smollm2:135m`", "`gemma3:270m`", "`qwen2.5-coder:0.5b`");
    let sentence = |typed: &str, [first, second, third]: [&str; 3]| {
        format!(
            "no model is called `{typed}`: there are {first}, {second} and {third}, or give a path"
        )
    };
    check_unknown("smollm2", &sentence("smollm2", [s, g, q]));
    check_unknown("gemma3:1b", &sentence("gemma3:1b", [g, s, q]));
    check_unknown("Qwen2.5-Coder:0.5B", &sentence("Qwen2.5-Coder:0.5B", [q, s, g]));
    check_unknown("", &sentence("", [g, s, q]));
}

#[test]
fn distance_counts_single_character_edits() {
    let cases = [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("ä", "a", 1)];
    for (left, right, want) in cases {
        assert_eq!(distance(left, right), want, "{left:?} {right:?}");
    }
}
