//! Cases of what the environment says of the hub.

use std::ffi::OsString;

use super::{Hub, Token};

fn hub(variables: &[(&str, &str)]) -> Option<Hub> {
    Hub::from_variables(&|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

fn check_cache(variables: &[(&str, &str)], want: Option<&str>) {
    let cache = hub(variables).map(|hub| hub.cache.display().to_string());
    assert_eq!(cache.as_deref(), want, "{variables:?}");
}

#[cfg(unix)]
#[test]
fn the_cache_is_where_the_hubs_own_client_keeps_it() {
    check_cache(&[("HOME", "/u")], Some("/u/.cache/huggingface/hub"));
    check_cache(&[("HOME", "/u"), ("XDG_CACHE_HOME", "/x")], Some("/x/huggingface/hub"));
    check_cache(&[("HOME", "/u"), ("HF_HOME", "/h")], Some("/h/hub"));
    check_cache(&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "/c")], Some("/c"));
    check_cache(&[("HF_HOME", "/h"), ("HUGGINGFACE_HUB_CACHE", "/old")], Some("/old"));
    check_cache(&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "")], Some("/h/hub"));
    check_cache(&[], None);
}

#[test]
fn the_token_comes_from_a_variable_or_a_file_and_is_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let other = folder.path().join("other");
    std::fs::write(folder.path().join("token"), "hf_file\n").unwrap();
    std::fs::write(&other, "hf_other\n").unwrap();
    let token = |variables: &[(&str, &str)]| hub(variables).unwrap().token;
    let home = ("HF_HOME", home);
    let path = ("HF_TOKEN_PATH", other.to_str().unwrap());
    assert_eq!(token(&[home]), Token::new("hf_file"));
    assert_eq!(token(&[home, path]), Token::new("hf_other"));
    assert_eq!(token(&[home, path, ("HF_TOKEN", " hf_variable\n")]), Token::new("hf_variable"));
    assert_eq!(token(&[home, ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]), None);
    assert_eq!(Token::new("two words"), None);
    assert!(!format!("{:?}", hub(&[home])).contains("hf_file"));
}

#[test]
fn the_endpoint_has_no_slash_and_offline_is_a_word() {
    let home = ("HF_HOME", "h");
    assert_eq!(hub(&[home]).unwrap().endpoint, "https://huggingface.co");
    assert_eq!(hub(&[home, ("HF_ENDPOINT", "http://m:1/")]).unwrap().endpoint, "http://m:1");
    for (value, want) in [("1", true), ("yes", true), ("True", true), ("0", false), ("", false)] {
        assert_eq!(hub(&[home, ("HF_HUB_OFFLINE", value)]).unwrap().offline, want, "{value}");
    }
}
