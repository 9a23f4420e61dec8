//! Sources before and after.

use super::*;

fn check(source: &str, wanted: &str, literals: &[&str]) {
    let found = rewrite(source);
    assert_eq!(
        (found.source.as_str(), found.literals),
        (wanted, literals.iter().map(|s| (*s).to_owned()).collect())
    );
}

#[test]
fn the_generation_tag_becomes_a_plain_block() {
    let source = "a{% generation %}x{%- endgeneration -%}b";
    check(source, "a{% with %}x{%- endwith -%}b", &[]);
    check("{%+generation%}{% endgeneration+%}", "{%+with%}{% endwith+%}", &[]);
}

#[test]
fn other_places_of_the_word_stay() {
    for source in [
        "generation {{ generation }} {# {% generation %} #}",
        "{% raw %}{% generation %}{% endraw %}",
        "{% set generation_x = 1 %}",
        "{% raw %}{% generation %}",
        "{# {% generation %}",
        "{",
        "{{",
        "{%",
        "{{ 'x",
    ] {
        assert_eq!(rewrite(source).source, source);
    }
    check("{{ '%} {% generation %}' }}", "{{ '%} {% generation %}' }}", &["%} {% generation %}"]);
}

#[test]
fn literals_are_found_with_their_escapes() {
    let source = r#"{{ "a\n'b" ~ 'c\'d' }}{% if x == '</t>' %}'no'{% endif %}"#;
    check(source, source, &["a\n'b", "c'd", "</t>"]);
}

#[test]
fn the_end_of_a_tag_counts_outside_brackets_only() {
    let source = "{{ {'a': {'b': 1}} ~ '{% generation %}' }}{% generation %}";
    let wanted = "{{ {'a': {'b': 1}} ~ '{% generation %}' }}{% with %}";
    check(source, wanted, &["a", "b", "{% generation %}"]);
}

#[test]
fn words_and_branches_are_counted() {
    for (source, tag_words, branches) in [
        ("plain { text", 0, 0),
        ("{{ a.bc[1] + 'x y' }}{{ a }}", 8, 0),
        ("{% if a %}{%- elif b %}{% elif c -%}{% endif %}", 3, 2),
        ("{% raw %}{% elif + + + + %}{% endraw %}{# {% elif %} #}", 0, 0),
        ("{{ {'a': {}} + 1", 8, 0),
    ] {
        let found = rewrite(source);
        assert_eq!((found.tag_words, found.branches), (tag_words, branches), "{source}");
    }
}
