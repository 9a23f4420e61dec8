//! Templates and chats that are refused, and what transformers does beside Jinja.

use super::*;

fn render(template: &str, chat: &str) -> Result<String, TemplateError> {
    Template::new(template)?.render(&Chat::from_json(chat)?, &Names::new())
}

fn check(template: &str, chat: &str, wanted: &str) {
    assert_eq!(render(template, chat).unwrap(), wanted, "{template}");
}

fn refuse(template: &str, chat: &str, sentence: &str) {
    let refusal = render(template, chat).unwrap_err().to_string();
    assert!(refusal.starts_with(sentence), "{refusal}");
    assert!(!refusal.contains('\n'), "{refusal}");
}

const EMPTY: &str = r#"{"messages": []}"#;

#[test]
fn a_templates_refusal_is_its_own_words() {
    let sentence = "System role not supported";
    let template = "{{ raise_exception('System role not supported') }}";
    refuse(template, EMPTY, sentence);
    let nested = "{% macro m() %}{{ raise_exception('in ' ~ 'here') }}{% endmacro %}{{ m() }}";
    refuse(nested, EMPTY, "in here");
    let raised = render(template, EMPTY).unwrap_err();
    assert!(matches!(raised, TemplateError::Raised { .. }) && raised.is_callers_mistake());
}

#[test]
fn generation_blocks_print_their_body() {
    check("{% generation %}x{% endgeneration %}", EMPTY, "x");
    check("{% set y = 1 %}{% generation %}{% set y = 2 %}{% endgeneration %}{{ y }}", EMPTY, "1");
}

#[test]
fn json_is_not_escaped_for_html() {
    let chat = r#"{"messages": [{"d": "a<b & 'é' 中/"}]}"#;
    check("{{ messages[0] | tojson }}", chat, r#"{"d": "a<b & 'é' 中/"}"#);
    check("{{ [1, {'a': 2}] | tojson(indent=2) }}", EMPTY, "[\n  1,\n  {\n    \"a\": 2\n  }\n]");
    check("{{ {'a': [1, 2]} | tojson(separators=(',', ':')) }}", EMPTY, r#"{"a":[1,2]}"#);
    check(
        "{{ {'b': 'é', 'a': 1} | tojson(true, none, none, true) }}",
        EMPTY,
        "{\"a\": 1, \"b\": \"\\u00e9\"}",
    );
    refuse("{{ missing | tojson }}", EMPTY, "the chat template fails on these messages");
    refuse("{{ 1 | tojson(indent=65) }}", EMPTY, "the chat template fails on these messages");
    refuse("{{ 1 | tojson(sepia=1) }}", EMPTY, "the chat template fails on these messages");
}

#[test]
fn absent_things_are_defined_or_not_as_transformers_has_it() {
    let template = "{{ tools is defined }} {{ tools is none }} {{ documents is none }} \
        {{ add_generation_prompt }} {{ bos_token is defined }} {{ strftime_now is defined }}";
    check(template, EMPTY, "True True True False False False");
    check("{{ flag }}", r#"{"messages": [], "flag": [true, null]}"#, "[True, None]");
    check(
        "{{ none is iterable }} {{ 'a' is iterable }} {{ {} is iterable }}",
        EMPTY,
        "False True True",
    );
}

#[test]
fn truncate_cuts_as_jinja_does() {
    check("{{ 'aaa bbb ccc' | truncate(9, leeway=0) }}", EMPTY, "aaa...");
    check("{{ 'aaa bbb ccc' | truncate(9, true, leeway=0) }}", EMPTY, "aaa bb...");
    check("{{ 'aaa bbb ccc' | truncate(9) }}", EMPTY, "aaa bbb ccc");
    refuse("{{ 'aaa bbb ccc' | truncate(2, leeway=0) }}", EMPTY, "the chat template fails");
}

#[test]
fn a_message_is_continued_with_its_spaces_or_without() {
    let chat = |content: &str, more: &str| {
        format!(
            r#"{{"messages": [{{"role": "assistant", "content": {content}}}],
            "continue_final_message": true{more}}}"#
        )
    };
    let kept = "<{{ messages[-1].content }}>";
    check(kept, &chat("\"one \"", ""), "<one ");
    check("<{{ messages[-1].content | trim }}>", &chat("\"one \"", ""), "<one");
    let parts = r#"[{"type": "text", "text": "a"}, {"type": "image"}]"#;
    check("<{{ messages[-1].content[0].text }}>", &chat(parts, ""), "<a");
    let sentence = "the final message, `one`, does not appear in the rendered chat";
    refuse("nothing", &chat("\"one\"", ""), sentence);
    let sentence = "the final message has no text to continue";
    refuse(kept, &chat("null", ""), sentence);
    refuse(kept, &chat("[]", ""), sentence);
    refuse(kept, r#"{"messages": [], "continue_final_message": true}"#, sentence);
    let sentence = "continue_final_message and add_generation_prompt exclude each other";
    refuse(kept, &chat("\"a\"", r#", "add_generation_prompt": true"#), sentence);
}

#[test]
fn what_is_no_chat_is_refused() {
    refuse("", "{", "the chat is not valid JSON");
    refuse("", "3", "a chat must be an object or a list");
    refuse("", "{}", "messages must be a list of objects");
    refuse("", r#"{"messages": "x"}"#, "messages must be a list of objects");
    refuse("", r#"{"messages": ["x"]}"#, "each message must be an object");
    refuse("", r#"{"messages": [], "tools": {}}"#, "tools must be a list");
    refuse(
        "",
        r#"{"messages": [], "add_generation_prompt": 1}"#,
        "add_generation_prompt must be true or false",
    );
    refuse(
        "",
        r#"{"messages": [], "now": "noon"}"#,
        "now must be a time such as `2024-07-26T15:04:05`",
    );
    check("{{ strftime_now('%H') }}", r#"{"messages": [], "now": 3600}"#, "01");
}

#[test]
fn what_is_no_template_is_refused() {
    refuse("{% if %}", EMPTY, "the chat template cannot be read");
    refuse("{{ x", EMPTY, "the chat template cannot be read");
    let sentence = "the chat template is 1048577 bytes long, the limit is 1048576";
    refuse(&"x".repeat(TEMPLATE_BYTES_MAX + 1), EMPTY, sentence);
    assert!(!Template::new("{{ x").unwrap_err().is_callers_mistake());
}

#[test]
fn a_template_without_end_is_ended() {
    let chat = Chat::from_json(EMPTY).unwrap();
    for body in [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='xxxxxxxx') %}\
         {% for a in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[1]) %}\
         {% for a in range(40) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
        "{% set ns = namespace(s=[1]) %}\
         {% for a in range(40) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}",
    ] {
        let template = Template::with_fuel(body, 1_000_000).unwrap();
        let refusal = template.render(&chat, &Names::new()).unwrap_err().to_string();
        assert!(refusal.starts_with("the chat template fails on these messages"), "{refusal}");
    }
}

#[test]
fn a_value_nested_deep_is_dropped_without_harm() {
    let chat = Chat::from_json(EMPTY).unwrap();
    for tail in ["ok", "{{ ns.x == ns.x }}"] {
        let body = format!(
            "{{% set ns = namespace(x=[]) %}}{{% for j in range(10) %}}\
             {{% for i in range(99999) %}}{{% set ns.x = [ns.x] %}}{{% endfor %}}{{% endfor %}}{tail}"
        );
        // Ends with its text or for want of steps; what it built is dropped either way.
        let _ = Template::new(&body).unwrap().render(&chat, &Names::new());
    }
}

#[test]
fn a_chain_too_long_for_the_stack_is_refused() {
    let chain =
        |open: &str, link: &str, close: &str| format!("{open}{}{close}", link.repeat(40_000));
    for source in [
        chain("{{ ", "-", "1 }}"),
        chain("{{ ", "not ", "1 }}"),
        chain("{{ 1", "~1", " }}"),
        chain("{{ {'a': {}}|string", "+'b'", " }}"),
        chain("{{ a", ".a", " }}"),
        chain("{{ a", "|e", " }}"),
        chain("{{ ", "1 if 1 else ", "1 }}"),
        chain("{% set x = 1", " and 1", " %}"),
        chain("{% filter e", "|e", " %}{% endfilter %}"),
    ] {
        let refusal = Template::new(&source).unwrap_err();
        assert!(!refusal.is_callers_mistake());
        let refusal = refusal.to_string();
        let (begin, end) = ("the chat template has ", " words in one tag, the limit is 2000");
        assert!(refusal.starts_with(begin) && refusal.ends_with(end), "{refusal}");
    }
    let branches = chain("{% if 0 %}", "{% elif 0 %}", "{% endif %}");
    refuse(&branches, EMPTY, "the chat template has 40000 `elif` tags, the limit is 500");
    // What the limits let through fits the stack of a test.
    check(&format!("{{{{ {}1 }}}}", "-".repeat(1990)), EMPTY, "1");
    let branches = format!("{{% if 0 %}}{}{{% else %}}x{{% endif %}}", "{% elif 0 %}".repeat(500));
    check(&branches, EMPTY, "x");
}
