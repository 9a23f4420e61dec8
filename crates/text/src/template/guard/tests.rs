//! Which parts of a rendered chat may not become control tokens.

use proptest::prelude::*;

use crate::TemplateError;
use crate::template::{Chat, CivilTime, Names, Rendered, Template};

const MARKERS: [&str; 4] = ["<|im_end|>", "<|im_start|>", "<s>", "<|user|>"];

fn render(template: &str, chat: &str) -> Result<Rendered, TemplateError> {
    let mut chat = Chat::from_json(chat).unwrap();
    chat.now = CivilTime::parse("2024-07-26");
    let names: Names = vec![("bos_token", "<s>".to_owned())];
    Template::new(template).unwrap().render_guarded(&chat, &names, MARKERS)
}

/// The text with every control token that may stand in square brackets.
fn check(template: &str, chat: &str, wanted: &str) {
    let Rendered { text, users } = render(template, chat).unwrap();
    let mut shown = String::new();
    let mut at = 0;
    while at < text.len() {
        let marker = MARKERS.iter().find(|marker| {
            let end = at + marker.len();
            text[at..].starts_with(**marker)
                && users.iter().all(|user| user.end <= at || user.start >= end)
        });
        if let Some(marker) = marker {
            shown.push_str(&format!("[{marker}]"));
            at += marker.len();
        } else {
            let letter = text[at..].chars().next().unwrap();
            shown.push(letter);
            at += letter.len_utf8();
        }
    }
    assert_eq!(shown, wanted, "{template} {chat}");
}

fn says(content: &str) -> String {
    // In the order in which a client writes it, which a template shows.
    serde_json::json!([{"role": "user", "content": content}]).to_string()
}

#[test]
fn only_the_templates_own_markers_count() {
    let template = "{{ bos_token }}{{ messages[0].content }}<|im_end|>";
    check(template, &says("AB"), "[<s>]AB[<|im_end|>]");
    check(template, &says("A<|im_end|>B"), "[<s>]A<|im_end|>B[<|im_end|>]");
    check(template, &says("<s><|im_end|>"), "[<s>]<s><|im_end|>[<|im_end|>]");
    check(template, &says(""), "[<s>][<|im_end|>]");
}

#[test]
fn filters_and_joins_do_not_wash_a_users_text() {
    let content = " <|im_end|> ";
    for (expression, shown) in [
        ("messages[0].content | trim", "<|im_end|>"),
        ("messages[0].content | upper | lower", " <|im_end|> "),
        ("messages[0].content.strip() ~ ''", "<|im_end|>"),
        ("'<' + messages[0].content.strip()[1:]", "<|im_end|>"),
        ("messages[0].content.split('_') | join('_')", " <|im_end|> "),
        ("messages[0].content | replace('X', '')", " <|im_end|> "),
        ("messages[0] | tojson", r#"{"role": "user", "content": " <|im_end|> "}"#),
        ("messages", "[{'role': 'user', 'content': ' <|im_end|> '}]"),
        ("messages[0].content | length", "12"),
        ("messages[0].content[:5]", " <|im"),
    ] {
        check(
            &format!("{{{{ {expression} }}}}<|im_end|>"),
            &says(content),
            &format!("{shown}[<|im_end|>]"),
        );
    }
    check("{{ messages[0].content | lower }}<s>", &says("<|IM_END|>"), "<|im_end|>[<s>]");
}

#[test]
fn pieces_of_a_marker_do_not_join_up() {
    let parts = r#"[{"role": "user", "content": [{"type": "text", "text": "<|im_"},
        {"type": "text", "text": "end"}, {"type": "text", "text": "|>"}]}]"#;
    let template = "{% for p in messages[0].content %}{% if p.type == 'text' %}{{ p.text }}\
        {% endif %}{% endfor %}<|im_end|>";
    check(template, parts, "<|im_end|>[<|im_end|>]");
    check("<|im_{{ messages[0].content }}", &says("end|>"), "<|im_end|>");
    check("{{ messages[0].content }}end|>", &says("<|im_"), "<|im_end|>");
}

#[test]
fn known_roles_make_markers_and_others_do_not() {
    let template = "<|{{ messages[0].role }}|>{{ messages[0].content }}";
    check(template, &says("x"), "[<|user|>]x");
    let odd = r#"[{"role": "im_end", "content": "x"}]"#;
    check(template, odd, "<|im_end|>x");
}

#[test]
fn templates_may_look_into_messages() {
    let think = "{% set c = messages[0].content %}{% if '</think>' in c %}\
        {% set c = c.split('</think>')[-1] %}{% endif %}{{ c }}<s>";
    check(think, &says("old</think>new<|im_end|>"), "new<|im_end|>[<s>]");
    let starts = "{% if messages[0].content.startswith('<tool>') %}T{% endif %}\
        {{ messages[0].content }}<s>";
    check(starts, &says("<tool>x<s>"), "T<tool>x<s>[<s>]");
    let counts = "{{ messages[0].content | length }}:{{ messages[0].content }}<s>";
    check(counts, &says("ab<s>"), "5:ab<s>[<s>]");
}

#[test]
fn tools_documents_and_variables_are_users_too() {
    let chat = r#"{"messages": [], "tools": [{"description": "<s>", "a<s>": 1}],
        "documents": [{"text": "<s>"}], "extra": "<s>", "now": "2024-07-26"}"#;
    check("{{ tools | tojson }}", chat, r#"[{"description": "<s>", "a<s>": 1}]"#);
    check("{{ documents[0].text }}{{ extra }}<s>", chat, "<s><s>[<s>]");
    check("{{ strftime_now('%Y') }}<s>", chat, "2024[<s>]");
}

#[test]
fn a_message_that_is_continued_stays_a_users() {
    let chat = r#"{"messages": [{"role": "assistant", "content": "a<s>"}],
        "continue_final_message": true}"#;
    check("<s>{{ messages[0].content }}<|im_end|>", chat, "[<s>]a<s>");
}

#[test]
fn a_template_that_rewrites_what_spells_a_marker_is_refused() {
    let template = "{{ messages[0].content | length }}{{ messages[0].content | e }}";
    assert_eq!(render(template, &says("ab")).unwrap().text, "2ab");
    let refusal = render(template, &says("a<s>")).unwrap_err();
    let sentence = "the chat template rewrites a message that spells the control token `<s>`";
    assert_eq!(refusal.to_string(), sentence);
    assert!(refusal.is_callers_mistake());
}

#[test]
fn marks_are_characters_that_nobody_wrote() {
    let content = "\u{13000}\u{13001}<s>\u{13002}";
    check("{{ messages[0].content }}<s>", &says(content), &format!("{content}[<s>]"));
}

proptest! {
    #[test]
    fn no_cut_of_a_users_text_makes_a_control_token(
        parts in prop::collection::vec("[<|>s_imend ]{0,6}|<s>|<[|]im_|end[|]>", 0..5),
    ) {
        let parts: Vec<_> =
            parts.iter().map(|text| serde_json::json!({"type": "text", "text": text})).collect();
        let chat = serde_json::json!([{"role": "user", "content": parts}]).to_string();
        let template = "{% for p in messages[0].content %}{{ p.text | trim }}{% endfor %}";
        let Rendered { text, users } = render(template, &chat).unwrap();
        for marker in MARKERS {
            for (start, found) in text.match_indices(marker) {
                let end = start + found.len();
                prop_assert!(users.iter().any(|user| user.start < end && start < user.end));
            }
        }
    }
}
