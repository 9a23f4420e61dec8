//! Prompts as text: each way to give one, what a policy adds, and every refusal.

use causeway_text::CivilTime;

use super::*;
use crate::toy;

/// The prompt spelled out, with a bar where the response prefill begins.
fn spelled(prompt: &Prompt) -> String {
    let side = toy::text();
    let at = prompt.tokens.len() - prompt.prefilled;
    let piece = |token: &TokenId| String::from_utf8(side.tokenizer.piece(*token).unwrap().to_vec());
    let text = |tokens: &[TokenId]| tokens.iter().map(|t| piece(t).unwrap()).collect::<String>();
    let (before, prefill) = prompt.tokens.split_at(at);
    if prefill.is_empty() { text(before) } else { format!("{}|{}", text(before), text(prefill)) }
}

fn check(given: Given, policy: &str, want: &str) {
    let shown = format!("{given:?} {policy}");
    let prompt = toy::made(given, policy).unwrap_or_else(|error| panic!("{shown}: {error}"));
    assert_eq!(spelled(&prompt), want, "{shown}");
}

fn check_refused(given: Given, policy: &str, want: &str) {
    let shown = format!("{given:?} {policy}");
    let error = toy::made(given, policy).expect_err(&shown);
    assert_eq!(error.to_string(), want, "{shown}");
    assert!(error.is_callers_mistake(), "{shown}");
}

fn chat(message: &str) -> Given {
    Given::Chat(message.to_owned())
}

fn messages(list: &[(&str, &str)], continues: bool) -> Given {
    let messages: Vec<ChatValue> =
        list.iter().map(|(role, content)| message_of(role, content)).collect();
    let messages = ChatValue::from(messages);
    Given::Messages(Chat { messages, continue_final_message: continues, ..Chat::default() })
}

#[test]
fn each_way_to_give_a_prompt() {
    check(Given::Raw("go<|end|>".to_owned()), "", "go<|end|>");
    check(Given::Ids(vec![2, 4 + 97]), "", "<|user|>a");
    check(chat("go"), "", "<|user|>go<|end|><|assistant|>");
    let turns = [("user", "a"), ("assistant", "b"), ("user", "c")];
    check(
        messages(&turns, false),
        "",
        "<|user|>a<|end|><|assistant|>b<|end|><|user|>c<|end|><|assistant|>",
    );
    check(
        messages(&[("user", "a"), ("assistant", "b")], true),
        "",
        "<|user|>a<|end|><|assistant|>|b",
    );
}

#[test]
fn control_tokens_come_from_the_template_only() {
    let prompt = toy::made(chat("<|end|>"), "").unwrap();
    let ends = prompt.tokens.iter().filter(|token| token.0 == 1).count();
    assert_eq!((ends, prompt.tokens.len()), (1, 1 + "<|end|>".len() + 1 + 1));
}

#[test]
fn a_policy_adds_its_texts() {
    let both = "[prompt]\nsystem = \"s\"\nprefill = \"{\"";
    check(chat("go"), both, "<|system|>s<|end|><|user|>go<|end|><|assistant|>|{");
    check(Given::Raw("go".to_owned()), "[prompt]\nprefill = \"{\"", "go|{");
    check(Given::Ids(vec![2]), "[prompt]\nprefill = \"{\"", "<|user|>|{");
    // An empty system text is another prompt than none.
    check(chat("go"), "[prompt]\nsystem = \"\"", "<|system|><|end|><|user|>go<|end|><|assistant|>");
    let prompt = toy::made(chat("go"), both).unwrap();
    assert_eq!(prompt.text.unwrap(), "<|system|>s<|end|><|user|>go<|end|><|assistant|>");
    assert_eq!(prompt.template.unwrap().text, toy::TEMPLATE);
}

#[test]
fn what_is_at_odds_is_refused() {
    check_refused(chat(""), "", "the prompt is empty: at least one character is needed");
    check_refused(messages(&[], false), "", "there are no messages: at least one is needed");
    for field in ["template", "system"] {
        let policy = format!("[prompt]\n{field} = \"x\"");
        let want = format!("the policy sets `prompt.{field}`, which only a chat has");
        check_refused(Given::Raw("go".to_owned()), &policy, &want);
        check_refused(Given::Ids(vec![4]), &policy, &want);
    }
    check_refused(
        messages(&[("system", "a"), ("user", "b")], false),
        "[prompt]\nsystem = \"s\"",
        "the policy sets `prompt.system`, but the messages begin with a system message",
    );
    check_refused(
        messages(&[("user", "a"), ("assistant", "b")], true),
        "[prompt]\nprefill = \"{\"",
        "the policy sets `prompt.prefill`, but the messages end with an answer to continue",
    );
}

#[test]
fn a_model_without_a_tokenizer_takes_ids_only() {
    let about = toy::about();
    let made = |given, toml: &str| prompt(given, &toy::file(toml), &about, None, None);
    assert_eq!(made(Given::Ids(vec![7]), "").unwrap().tokens, [TokenId(7)]);
    let want = "`toy.gguf` has no tokenizer.json: it takes token ids only";
    for given in [Given::Raw("a".to_owned()), chat("a"), messages(&[("user", "a")], false)] {
        assert_eq!(made(given, "").unwrap_err().to_string(), want);
    }
    let error = made(Given::Ids(vec![7]), "[prompt]\nprefill = \"{\"").unwrap_err();
    assert_eq!(error.to_string(), want);
}

#[test]
fn a_template_may_print_the_date_it_is_given() {
    let policy = "[prompt]\ntemplate = \"{{ strftime_now('%Y-%m-%d') }}\"";
    let side = crate::with_template(toy::text(), &toy::file(policy)).unwrap();
    let now = CivilTime::from_unix(86_400);
    let prompt = prompt(chat("go"), &toy::file(policy), &toy::about(), Some(&side), now).unwrap();
    assert_eq!(prompt.text.unwrap(), "1970-01-02");
}

#[test]
fn a_template_that_cannot_be_read_is_refused() {
    let error = crate::with_template(toy::text(), &toy::file("[prompt]\ntemplate = \"{% if\""));
    assert!(error.unwrap_err().is_callers_mistake());
}
