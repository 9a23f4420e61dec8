//! Cases of stop strings, and the property that cutting the text changes nothing.

use proptest::prelude::*;

use super::*;

fn stops(stops: &[&str]) -> Vec<String> {
    stops.iter().map(|stop| (*stop).to_owned()).collect()
}

/// All pieces pushed, then the end; the text shown after each, and the stop string that matched.
fn run(stop_strings: &[&str], pieces: &[&str]) -> (Vec<String>, Option<usize>) {
    let mut matcher = StopMatcher::new(&stops(stop_strings)).unwrap();
    let mut shown = Vec::new();
    for piece in pieces {
        let emitted = matcher.push(piece);
        shown.push(emitted.text);
        if emitted.stopped.is_some() {
            return (shown, emitted.stopped);
        }
    }
    let last = matcher.finish();
    shown.push(last.text);
    (shown, last.stopped)
}

fn check(stop_strings: &[&str], pieces: &[&str], text: &str, stopped: Option<&str>) {
    let (shown, found) = run(stop_strings, pieces);
    assert_eq!(shown.concat(), text, "{stop_strings:?} in {pieces:?}");
    assert_eq!(found.map(|index| stop_strings[index]), stopped, "{stop_strings:?} in {pieces:?}");
}

#[test]
fn a_prefix_is_held_back_until_it_is_none() {
    check(&["DEFGHIJ"], &["ABC", "DEF", "G", "HI", "J", "K"], "ABC", Some("DEFGHIJ"));
    check(&["own fox"], &["The quick br", "own", " fox"], "The quick br", Some("own fox"));
    assert_eq!(run(&["DEFG"], &["ABC", "DE", "X"]).0, ["ABC", "", "DEX", ""]);
    check(&["aab"], &["a", "a", "a", "b"], "a", Some("aab"));
}

#[test]
fn the_stop_that_begins_first_wins() {
    let text = &["before<EARLY>mid<LATE>end"];
    check(&["<LATE>", "<EARLY>"], text, "before", Some("<EARLY>"));
    check(&["<EARLY>", "<LATE>"], text, "before", Some("<EARLY>"));
    check(&["bc", "abcd"], &["xabcdy"], "x", Some("abcd"));
    check(&["bc", "abcd"], &["x", "a", "b", "c", "d"], "x", Some("abcd"));
    check(&["bc", "abcd"], &["xabc", "e"], "xa", Some("bc"));
    check(&["bc", "abcd"], &["xabc"], "xa", Some("bc"));
}

#[test]
fn of_stops_that_begin_together_the_shortest_is_named() {
    let marker = [">>>>>>> UPDATED", ">>>>>>> UPDATED\n"];
    let pieces = ["code\n", ">>>>>>>", " UPD", "ATED"];
    check(&marker, &pieces, "code\n", Some(marker[0]));
    check(&[], &pieces, "code\n>>>>>>> UPDATED", None);
    check(&["\n\n", "\n"], &["a\n\nb"], "a", Some("\n"));
}

#[test]
fn characters_of_many_bytes_are_whole() {
    check(&["éx"], &["é", "y"], "éy", None);
    check(&["éx"], &["é", "x"], "", Some("éx"));
    for stop in ["é", "中", "😀", "×"] {
        check(
            &[stop],
            &["a", "éé中😀×"],
            &"aéé中😀×"[.."aéé中😀×".find(stop).unwrap()],
            Some(stop),
        );
    }
}

#[test]
fn half_a_stop_at_the_end_is_text() {
    check(&["stop"], &["sto"], "sto", None);
    check(&["stop"], &[], "", None);
}

#[test]
fn a_stop_before_min_tokens_does_not_count() {
    let mut matcher = StopMatcher::new(&stops(&["\n"])).unwrap();
    let mut text = String::new();
    let mut tokens = 0;
    for piece in ["a", "\n", "b", "\n", "c", "\n", "d"] {
        tokens += 1;
        let emitted = if tokens < 5 { matcher.push_exempt(piece) } else { matcher.push(piece) };
        text.push_str(&emitted.text);
        if emitted.stopped.is_some() {
            break;
        }
    }
    assert_eq!((tokens, text.as_str()), (6, "a\nb\nc"));
    // A stop that begins before and ends at the token that counts does count.
    let mut matcher = StopMatcher::new(&stops(&["ab"])).unwrap();
    assert_eq!(matcher.push_exempt("xa"), Emitted { text: "x".to_owned(), stopped: None });
    assert_eq!(matcher.push("b"), Emitted { text: String::new(), stopped: Some(0) });
    // One that was whole before does not come back while an earlier one is waited for.
    let mut matcher = StopMatcher::new(&stops(&["bc", "abcd"])).unwrap();
    assert_eq!(matcher.push_exempt("abc").text, "");
    assert_eq!(matcher.push("e"), Emitted { text: "abce".to_owned(), stopped: None });
}

#[test]
fn after_a_stop_nothing_comes() {
    let mut matcher = StopMatcher::new(&stops(&["b"])).unwrap();
    assert_eq!(matcher.push("abc"), Emitted { text: "a".to_owned(), stopped: Some(0) });
    assert_eq!(matcher.push("def"), Emitted::default());
    assert_eq!(matcher.push_exempt("def"), Emitted::default());
    assert_eq!(matcher.finish(), Emitted::default());
}

#[test]
fn what_cannot_be_a_stop_is_refused_with_its_numbers() {
    let refusal = |stops: &[String]| StopMatcher::new(stops).unwrap_err();
    let many = vec!["x".to_owned(); STOPS_MAX + 1];
    assert_eq!(refusal(&many).to_string(), "65 stop strings are given, the limit is 64");
    let empty = stops(&["a", ""]);
    assert_eq!(refusal(&empty).to_string(), "stop string 1 is empty");
    let long = vec!["x".repeat(STOP_BYTES_MAX + 1)];
    let sentence = "stop string 0 is 1025 bytes long, the limit is 1024";
    assert_eq!(refusal(&long).to_string(), sentence);
    assert!(refusal(&long).is_callers_mistake());
}

proptest! {
    #[test]
    fn streamed_equals_buffered(
        text in "[abé中]{0,24}",
        stop_strings in prop::collection::vec("[abé中]{1,4}", 0..4),
        cuts in prop::collection::vec(0usize..24, 0..8),
    ) {
        let stop_strings: Vec<&str> = stop_strings.iter().map(String::as_str).collect();
        let letters: Vec<char> = text.chars().collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(letters.len())).collect();
        cuts.extend([0, letters.len()]);
        cuts.sort_unstable();
        let pieces: Vec<String> =
            cuts.windows(2).map(|pair| letters[pair[0]..pair[1]].iter().collect()).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let (shown, stopped) = run(&stop_strings, &pieces);
        // The definition: cut at the smallest index over all stops.
        let first = stop_strings.iter().filter_map(|stop| text.find(stop)).min();
        prop_assert_eq!(shown.concat(), &text[..first.unwrap_or(text.len())]);
        prop_assert_eq!(stopped.is_some(), first.is_some());
        if let (Some(index), Some(first)) = (stopped, first) {
            prop_assert!(text[first..].starts_with(stop_strings[index]));
        }
    }
}
