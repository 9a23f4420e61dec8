//! Cases of whole answers, byte by byte, and the property that streamed text is whole text.

use proptest::prelude::*;

use super::*;
use crate::toy;

fn rules(stops: &[&str], min_tokens: u64) -> AnswerRules {
    AnswerRules {
        stops: stops.iter().map(|stop| (*stop).to_owned()).collect(),
        min_tokens,
        markers: Some(("<think>".to_owned(), "</think>".to_owned())),
        starts_inside: false,
        continues: false,
    }
}

/// One token for each byte.
fn tokens(tokenizer: &Tokenizer, bytes: &[u8]) -> Vec<TokenId> {
    let of = |byte: &u8| (0..256).map(TokenId).find(|id| tokenizer.piece(*id).unwrap() == [*byte]);
    bytes.iter().map(|byte| of(byte).unwrap()).collect()
}

/// Runs an answer to its stop or its end: visible text, reasoning, the stop, tokens read.
fn run(bytes: &[u8], rules: &AnswerRules) -> (String, String, Option<usize>, usize) {
    let tokenizer = Tokenizer::from_vocabulary(&toy::byte_level()).unwrap();
    let mut answer = Answer::new(&tokenizer, rules).unwrap();
    let (mut visible, mut reasoning, mut whole_bytes) = (String::new(), String::new(), 0);
    for (index, token) in tokens(&tokenizer, bytes).into_iter().enumerate() {
        let part = answer.push(token).unwrap();
        visible.push_str(&part.visible);
        reasoning.push_str(&part.reasoning);
        whole_bytes += part.visible_bytes;
        assert!(visible.len() <= whole_bytes);
        if part.stopped.is_some() {
            return (visible, reasoning, part.stopped, index + 1);
        }
    }
    let part = answer.finish();
    (visible + &part.visible, reasoning + &part.reasoning, part.stopped, bytes.len())
}

fn check(text: &str, rules: &AnswerRules, visible: &str, reasoning: &str, stopped: Option<usize>) {
    let found = run(text.as_bytes(), rules);
    assert_eq!((&*found.0, &*found.1, found.2), (visible, reasoning, stopped), "{text:?}");
}

#[test]
fn an_answer_is_cut_split_and_whole() {
    check("héllo 😀", &rules(&[], 0), "héllo 😀", "", None);
    check("before<E>mid<L>", &rules(&["<L>", "<E>"], 0), "before", "", Some(1));
    check("<think>so</think>Answer.", &rules(&[], 0), "Answer.", "so", None);
    check("<think>9.8</think>A 9.8", &rules(&["9.8"], 0), "A ", "9.8", Some(0));
    check("<think>never closed", &rules(&[], 0), "", "never closed", None);
    check("éy", &rules(&["éx"], 0), "éy", "", None);
    check("code\n>>>>>>> UPD", &rules(&[">>>>>>> UPDATED"], 0), "code\n>>>>>>> UPD", "", None);
}

#[test]
fn a_stop_counts_from_the_least_number_of_tokens_on() {
    assert_eq!(run(b"a\nb\nc\nd", &rules(&["\n"], 5)), ("a\nb\nc".into(), "".into(), Some(0), 6));
    assert_eq!(run(b"a\nb", &rules(&["\n"], 2)), ("a".into(), "".into(), Some(0), 2));
}

#[test]
fn a_prompt_may_open_the_reasoning() {
    let rules = AnswerRules { starts_inside: true, ..rules(&[], 0) };
    check("weighing it</think>Answer.", &rules, "Answer.", "weighing it", None);
}

#[test]
fn an_unfinished_character_is_marked_at_the_end() {
    let found = run(&[0xF0, 0x9F, 0x98], &rules(&[], 0));
    assert_eq!((&*found.0, found.2), ("\u{FFFD}", None));
}

proptest! {
    /// Any text of these bricks gives what the same text gives in one go.
    #[test]
    fn streamed_text_is_whole_text(
        bricks in prop::collection::vec(
            prop::sample::select(vec!["<think>", "</think>", "stop", "st", "é", "😀", "中", "a", "<"]),
            0..24,
        ),
        min_tokens in 0u64..6,
    ) {
        let text = bricks.concat();
        let (visible, reasoning, stopped, _) = run(text.as_bytes(), &rules(&["stop", "中a"], min_tokens));
        // By hand: reasoning apart first, then the earliest stop in what is left.
        let mut splitter = ReasoningSplitter::new("<think>", "</think>", false);
        let mut parts = splitter.push(&text);
        let rest = splitter.finish();
        parts.visible.push_str(&rest.visible);
        parts.reasoning.push_str(&rest.reasoning);
        prop_assert!(parts.visible.starts_with(&visible));
        prop_assert!(parts.reasoning.starts_with(&reasoning));
        if stopped.is_none() {
            prop_assert_eq!(&visible, &parts.visible);
            prop_assert_eq!(&reasoning, &parts.reasoning);
        }
        if min_tokens == 0 {
            let first = ["stop", "中a"].iter().filter_map(|stop| parts.visible.find(stop)).min();
            prop_assert_eq!(visible.len(), first.unwrap_or(parts.visible.len()));
        }
    }
}

/// Reasoning and visible text where the last tokens are laid.
fn check_laid(chosen: &str, laid: &str, reasoning: &str, visible: &str) {
    let tokenizer = Tokenizer::from_vocabulary(&toy::byte_level()).unwrap();
    let mut answer = Answer::new(&tokenizer, &rules(&[], 0)).unwrap();
    let mut found = (String::new(), String::new());
    let mut show = |part: AnswerPart| {
        found.0.push_str(&part.reasoning);
        found.1.push_str(&part.visible);
    };
    for token in tokens(&tokenizer, chosen.as_bytes()) {
        show(answer.push(token).unwrap());
    }
    for token in tokens(&tokenizer, laid.as_bytes()) {
        show(answer.push_laid(token).unwrap());
    }
    show(answer.finish());
    assert_eq!((found.0.as_str(), found.1.as_str()), (reasoning, visible), "{chosen}|{laid}");
}

#[test]
fn half_a_marker_that_was_laid_is_nobodys_text() {
    check_laid("x<think>so", "</think>", "so", "x");
    check_laid("x<think>so", "</thi", "so", "x");
    check_laid("<think>so</", "</thi", "so</", "");
    check_laid("<think>so</thi", "", "so</thi", "");
    check_laid("<think>s\u{e9}", "<", "s\u{e9}", "");
}
