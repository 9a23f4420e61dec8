//! Names of parts, read and made.

use std::path::Path;

use super::Names;

/// The stem, the count, and the path of the second part.
fn check(path: &str, want: Option<(&str, usize, &str)>) {
    let names = Names::of(Path::new(path));
    let got = names.as_ref().map(|names| (&*names.stem, names.count, names.path(2)));
    let want = want.map(|(stem, count, path)| (stem, count, Path::new(path).to_owned()));
    assert_eq!(got, want, "{path}");
}

#[test]
fn any_part_names_all() {
    check("a/m-00001-of-00003.gguf", Some(("m", 3, "a/m-00002-of-00003.gguf")));
    check("m-q8-00003-of-00003.gguf", Some(("m-q8", 3, "m-q8-00002-of-00003.gguf")));
    check("m-of-00002-of-00002.GGUF", Some(("m-of", 2, "m-of-00002-of-00002.GGUF")));
    check("m-00001-of-12345.gguf", Some(("m", 12_345, "m-00002-of-12345.gguf")));
}

#[test]
fn what_is_no_part_by_its_name() {
    for path in [
        "m.gguf",
        "m-00000-of-00003.gguf",
        "m-00004-of-00003.gguf",
        "m-1-of-3.gguf",
        "m-+0001-of-00003.gguf",
        "m-00001-of-00003",
        "00001-of-00003.gguf",
        "",
    ] {
        check(path, None);
    }
}
