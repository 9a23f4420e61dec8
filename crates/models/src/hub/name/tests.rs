//! Cases of reading names of models on the hub.

use super::{HubName, Wanted};

fn check(text: &str, want: (&str, &str, Option<&str>, Wanted), shown: &str) {
    let (owner, repo, revision, wanted) = want;
    let name = HubName::parse(text).unwrap();
    let revision = revision.map(str::to_owned);
    let want = HubName { owner: owner.to_owned(), repo: repo.to_owned(), revision, wanted };
    assert_eq!(name, want, "{text}");
    assert_eq!(name.to_string(), shown);
    assert_eq!(HubName::parse(shown).unwrap(), want, "what is shown can be typed");
}

fn check_refused(text: &str, want: &str) {
    let error = HubName::parse(text).unwrap_err();
    assert!(error.is_callers_mistake());
    let said = error.to_string();
    assert!(said.contains(want), "{said}");
    assert!(said.contains("hf:owner/repo[@revision][:quant]"), "{said}");
}

#[test]
fn a_name_has_an_owner_a_repository_and_what_is_wanted_of_it() {
    let quant = |quant: &str| Wanted::Quant(quant.to_owned());
    let file = |path: &str| Wanted::File(path.to_owned());
    check("hf:a/b", ("a", "b", None, Wanted::Default), "hf:a/b");
    check("hf://a/b", ("a", "b", None, Wanted::Default), "hf:a/b");
    check("hf:a/b:Q4_K_M", ("a", "b", None, quant("Q4_K_M")), "hf:a/b:Q4_K_M");
    check("hf:a-1/b.2_c/m.gguf", ("a-1", "b.2_c", None, file("m.gguf")), "hf:a-1/b.2_c/m.gguf");
    check("hf:a/b/x/m.GGUF", ("a", "b", None, file("x/m.GGUF")), "hf:a/b/x/m.GGUF");
    check("hf:a/b@v1", ("a", "b", Some("v1"), Wanted::Default), "hf:a/b@v1");
    check("hf:a/b@v1:q8_0", ("a", "b", Some("v1"), quant("q8_0")), "hf:a/b@v1:q8_0");
    check("hf:a/b:q8_0@v1", ("a", "b", Some("v1"), quant("q8_0")), "hf:a/b@v1:q8_0");
    check("hf:a/b@v1/m.gguf", ("a", "b", Some("v1"), file("m.gguf")), "hf:a/b@v1/m.gguf");
    check("hf:a/b/m.gguf@v1", ("a", "b", Some("v1"), file("m.gguf")), "hf:a/b@v1/m.gguf");
    let pr = "hf:a/b@refs%2Fpr%2F3:q8_0";
    check("hf:a/b@refs/pr/3:q8_0", ("a", "b", Some("refs/pr/3"), quant("q8_0")), pr);
    check("hf:a/b/m@2.gguf", ("a", "b", None, file("m@2.gguf")), "hf:a/b/m@2.gguf");
}

#[test]
fn a_name_of_another_form_is_one_sentence() {
    for text in ["hf:", "hf:a", "hf:/b", "hf:a/", "hf:a/:q", "hf:a/@v"] {
        check_refused(text, "it has no owner and repository");
    }
    for text in ["hf:../b", "hf:a/..", "hf:-a/b", "hf:a/b--c", "hf:a b/c", "hf:a/b?x"] {
        check_refused(text, "is no name there");
    }
    check_refused(&format!("hf:{}/b", "a".repeat(129)), "128 at most");
    for text in ["hf:a/b@", "hf:a/b@../x", "hf:a/b@a b", "hf:a/b@..%2Fx", "hf:a/b:q@"] {
        check_refused(text, "is no revision");
    }
    for text in ["hf:a/b:", "hf:a/b:q/4", "hf:a/b:q 4"] {
        check_refused(text, "is no quantisation");
    }
    for text in ["hf:a/b/", "hf:a/b/m.bin", "hf:a/b/../m.gguf", "hf:a/b//m.gguf", "hf:a/b/.gguf"] {
        check_refused(text, "is no GGUF file of a repository");
    }
}
