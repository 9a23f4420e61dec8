//! Cases of where models live.

use std::ffi::OsString;
use std::path::PathBuf;

use super::root;

fn check(variables: &[(&str, &str)], want: Option<&str>) {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    };
    assert_eq!(root(&variable), want.map(PathBuf::from), "{variables:?}");
}

#[cfg(unix)]
#[test]
fn the_first_variable_that_says_something_wins() {
    check(&[("CAUSEWAY_HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("HOME", "/u")], Some("/h"));
    check(&[("CAUSEWAY_HOME", "here"), ("HOME", "/u")], Some("here"));
    check(&[("CAUSEWAY_HOME", ""), ("XDG_DATA_HOME", "/x")], Some("/x/causeway"));
    check(&[("XDG_DATA_HOME", "/x"), ("HOME", "/u")], Some("/x/causeway"));
    check(&[("XDG_DATA_HOME", "x"), ("HOME", "/u")], Some("/u/.local/share/causeway"));
    check(&[("HOME", "/u")], Some("/u/.local/share/causeway"));
    check(&[("HOME", "")], None);
    check(&[], None);
}
