//! What users of other engines met in streams, stops and reasoning, at every API there is here.

use serde_json::{Value, json};

use crate::support::{Reply, Server};

/// What an answer says, in the same words for every API.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    text: String,
    reasoning: String,
    /// `stop` or `length`.
    finish: String,
    tokens: u64,
}

/// One API: how it is asked, and how its answers are read.
struct Api {
    path: &'static str,
    budget: &'static str,
    stops: &'static str,
    splits_reasoning: bool,
    body: fn() -> Value,
    whole: fn(&Value) -> Said,
    streamed: fn(&Reply) -> Said,
}

const APIS: &[Api] = &[
    Api {
        path: "/v1/chat/completions",
        budget: "max_tokens",
        stops: "stop",
        splits_reasoning: true,
        body: || json!({ "messages": [{ "role": "user", "content": "go" }] }),
        whole: |answer| {
            let choice = &answer["choices"][0];
            let (message, usage) = (&choice["message"], &answer["usage"]["completion_tokens"]);
            said(
                &message["content"],
                &message["reasoning_content"],
                &choice["finish_reason"],
                usage,
            )
        },
        streamed: choices_said,
    },
    Api {
        path: "/v1/completions",
        budget: "max_tokens",
        stops: "stop",
        splits_reasoning: false,
        body: || json!({ "prompt": "go", "max_tokens": 100 }),
        whole: |answer| {
            let (choice, usage) = (&answer["choices"][0], &answer["usage"]["completion_tokens"]);
            said(&choice["text"], &Value::Null, &choice["finish_reason"], usage)
        },
        streamed: choices_said,
    },
    Api {
        path: "/v1/responses",
        budget: "max_output_tokens",
        stops: "stop",
        splits_reasoning: true,
        body: || json!({ "input": "go" }),
        whole: |answer| {
            let of = |kind| text_of(&answer["output"], kind, |item| &item["content"][0]["text"]);
            let reason = answer["incomplete_details"]["reason"].as_str().unwrap_or("stop");
            let (text, reasoning) = (json!(of("message")), json!(of("reasoning")));
            said(&text, &reasoning, &json!(reason), &answer["usage"]["output_tokens"])
        },
        streamed: |reply| {
            let events = json!(reply.events());
            let of = |kind| text_of(&events, kind, |event| &event["delta"]);
            let last = reply.events().last().unwrap()["response"].clone();
            let reason = last["incomplete_details"]["reason"].as_str().unwrap_or("stop");
            let text = json!(of("response.output_text.delta"));
            let reasoning = json!(of("response.reasoning_text.delta"));
            said(&text, &reasoning, &json!(reason), &last["usage"]["output_tokens"])
        },
    },
    Api {
        path: "/v1/messages",
        budget: "max_tokens",
        stops: "stop_sequences",
        splits_reasoning: true,
        body: || json!({ "messages": [{ "role": "user", "content": "go" }], "max_tokens": 100 }),
        whole: |answer| {
            let content = &answer["content"];
            let text = json!(text_of(content, "text", |block| &block["text"]));
            let reasoning = json!(text_of(content, "thinking", |block| &block["thinking"]));
            let usage = &answer["usage"]["output_tokens"];
            said(&text, &reasoning, &answer["stop_reason"], usage)
        },
        streamed: |reply| {
            let events = reply.events();
            let deltas = json!(events.iter().map(|one| one["delta"].clone()).collect::<Vec<_>>());
            let text = json!(text_of(&deltas, "text_delta", |delta| &delta["text"]));
            let thoughts = json!(text_of(&deltas, "thinking_delta", |delta| &delta["thinking"]));
            let ends: Vec<&Value> =
                events.iter().filter(|one| one["type"] == "message_delta").collect();
            assert_eq!(ends.len(), 1, "{events:?}");
            let usage = &ends[0]["usage"]["output_tokens"];
            said(&text, &thoughts, &ends[0]["delta"]["stop_reason"], usage)
        },
    },
];

fn choices_said(reply: &Reply) -> Said {
    let events = reply.events();
    let reasons = reply.finish_reasons();
    assert_eq!(reasons.len(), 1, "{reply:?}");
    // A reason stands in the last chunk with a choice, and in no other; usage comes behind it.
    let with_choice: Vec<&Value> =
        events.iter().filter(|event| event["choices"] != json!([])).collect();
    let (last, before) = with_choice.split_last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], reasons[0].as_str(), "{reply:?}");
    assert!(before.iter().all(|event| event["choices"][0]["finish_reason"].is_null()));
    assert!(reply.body.ends_with("data: [DONE]\n\n"), "{reply:?}");
    let usage = &events.last().unwrap()["usage"]["completion_tokens"];
    let (text, reasoning) = (json!(reply.streamed()), json!(reply.streamed_reasoning()));
    said(&text, &reasoning, &json!(reasons[0]), usage)
}

fn said(text: &Value, reasoning: &Value, finish: &Value, tokens: &Value) -> Said {
    let finish = match finish.as_str().unwrap() {
        "end_turn" | "stop_sequence" => "stop",
        "max_tokens" | "max_output_tokens" => "length",
        other => other,
    };
    Said {
        text: text.as_str().unwrap().to_owned(),
        reasoning: reasoning.as_str().unwrap_or_default().to_owned(),
        finish: finish.to_owned(),
        tokens: tokens.as_u64().unwrap(),
    }
}

/// The texts of all values of a type, joined.
fn text_of(list: &Value, kind: &str, of: impl Fn(&Value) -> &Value) -> String {
    let all = list.as_array().unwrap().iter();
    all.filter(|one| one["type"] == kind).map(|one| of(one).as_str().unwrap()).collect()
}

/// What a case asks for beside the prompt.
#[derive(Debug, Clone, Default)]
struct Asked {
    stops: Option<Value>,
    budget: Option<u64>,
    min_tokens: u64,
    markers: Option<[&'static str; 2]>,
}

impl Asked {
    fn body(&self, api: &Api, stream: bool) -> Value {
        let mut body = (api.body)();
        let Self { stops, budget, min_tokens, markers } = self;
        if let Some(stops) = stops {
            body[api.stops] = stops.clone();
        }
        if let Some(budget) = budget {
            body[api.budget] = json!(budget);
        }
        if let Some(markers) = markers {
            body["reasoning_markers"] = json!(markers);
        }
        body["min_tokens"] = json!(min_tokens);
        body["stream"] = json!(stream);
        if stream && api.path.ends_with("completions") {
            body["stream_options"] = json!({ "include_usage": true });
        }
        body
    }
}

/// What an API says whole, and what it says as a stream.
fn both(server: &Server, api: &Api, asked: &Asked) -> [(&'static str, Said); 2] {
    let whole = server.post(api.path, &asked.body(api, false));
    assert_eq!(whole.status, 200, "{} {asked:?} {whole:?}", api.path);
    let stream = server.post(api.path, &asked.body(api, true));
    [(api.path, (api.whole)(&whole.json())), (api.path, (api.streamed)(&stream))]
}

/// Runs a script's pieces at every API, whole and streamed; all say the same.
fn check(script: &Value, asked: &Asked, text: &str, reasoning: &str, finish: &str, tokens: u64) {
    let server = Server::of(script);
    for api in APIS.iter().filter(|api| api.splits_reasoning || asked.markers.is_none()) {
        let want = Said {
            text: text.to_owned(),
            reasoning: reasoning.to_owned(),
            finish: finish.to_owned(),
            tokens,
        };
        for (path, said) in both(&server, api, asked) {
            assert_eq!(said, want, "{path} {script} {asked:?}");
        }
    }
}

fn pieces(pieces: &Value) -> Value {
    json!({ "answers": [{ "pieces": pieces }] })
}

fn stops(stops: &[&str]) -> Asked {
    Asked { stops: Some(json!(stops)), ..Asked::default() }
}

fn bytes(bytes: &[u8]) -> Vec<Value> {
    bytes.iter().map(|byte| json!({ "byte": byte })).collect()
}

#[test]
fn a_stop_that_spans_tokens_leaks_nothing() {
    let spread = pieces(&json!(["ABC", "DEF", "G", "HI", "J", "K"]));
    check(&spread, &stops(&["DEFGHIJ"]), "ABC", "", "stop", 5);
    check(&spread, &stops(&["DEFGHIJX"]), "ABCDEFGHIJK", "", "stop", 7);
    check(&spread, &stops(&["K", "HIJK"]), "ABCDEFG", "", "stop", 6);
    let fox = pieces(&json!(["The quick br", "own", " fox"]));
    check(&fox, &stops(&["own fox"]), "The quick br", "", "stop", 3);
    check(&fox, &stops(&["T"]), "", "", "stop", 1);
    let marker = pieces(&json!(["code\n", ">>>>>>>", " UPD", "ATED"]));
    let both = [">>>>>>> UPDATED", ">>>>>>> UPDATED\n"];
    check(&marker, &stops(&both), "code\n", "", "stop", 4);
    check(&marker, &stops(&[both[1], both[0]]), "code\n", "", "stop", 4);
    check(&marker, &stops(&[both[1]]), "code\n>>>>>>> UPDATED", "", "stop", 5);
    check(&marker, &Asked::default(), "code\n>>>>>>> UPDATED", "", "stop", 5);
}

#[test]
fn of_several_stops_the_one_that_begins_first_cuts() {
    let tags = pieces(&json!(["before<EARLY>mid<LATE>end"]));
    check(&tags, &stops(&["<LATE>", "<EARLY>"]), "before", "", "stop", 1);
    check(&tags, &stops(&["<EARLY>", "<LATE>"]), "before", "", "stop", 1);
    // Stops inside each other, met in one token or in several.
    for cut in [json!(["xaabab"]), json!(["x", "a", "a", "b", "a", "b"]), json!(["xa", "ab", "ab"])]
    {
        let script = pieces(&cut);
        let server = Server::of(&script);
        for list in [["aab", "ab"], ["ab", "aab"]] {
            for (path, said) in APIS.iter().flat_map(|api| both(&server, api, &stops(&list))) {
                assert_eq!(said.text, "x", "{path} {cut} {list:?}");
            }
        }
    }
}

#[test]
fn stops_and_characters_of_many_bytes_go_together() {
    check(&pieces(&json!(["é", "y"])), &stops(&["éx"]), "éy", "", "stop", 3);
    check(&pieces(&json!(["é", "x"])), &stops(&["éx"]), "", "", "stop", 2);
    for stop in ["é", "中", "😀", "×"] {
        let script = pieces(&json!(["a", "é", "中", "😀", "×"]));
        let before = "aé中😀×".split(stop).next().unwrap();
        check(&script, &stops(&[stop]), before, "", "stop", before.chars().count() as u64 + 1);
        // The same stop, byte by byte.
        let script = pieces(&json!(
            [json!("a")].into_iter().chain(bytes(stop.as_bytes())).collect::<Vec<_>>()
        ));
        check(&script, &stops(&[stop]), "a", "", "stop", 1 + stop.len() as u64);
    }
}

#[test]
fn a_character_comes_whole_or_as_one_mark() {
    let smile = "😀".as_bytes();
    let mut all = bytes(smile);
    all.push(json!("ok"));
    check(&pieces(&json!(all)), &Asked::default(), "😀ok", "", "stop", 6);
    for budget in 1..=3 {
        let asked = Asked { budget: Some(budget), ..Asked::default() };
        check(&pieces(&json!(bytes(smile))), &asked, "\u{FFFD}", "", "length", budget);
    }
    let asked = Asked { budget: Some(4), ..Asked::default() };
    check(&pieces(&json!(bytes(smile))), &asked, "😀", "", "length", 4);
    // Bytes that no character has, between letters.
    let broken = json!([json!("a"), json!({ "byte": 0xFF }), json!("b")]);
    check(&pieces(&broken), &Asked::default(), "a\u{FFFD}b", "", "stop", 4);
}

#[test]
fn spaces_of_the_vocabulary_are_kept_but_for_the_first() {
    for (list, want) in [
        (json!([" Hello", " world", " world"]), "Hello world world"),
        (json!([" ", " a", "  ", "."]), " a  ."),
        (json!([" Hello", "   ", ".", " x"]), "Hello   . x"),
    ] {
        let tokens = list.as_array().unwrap().len() as u64 + 1;
        let script = json!({ "space_prefix": true, "answers": [{ "pieces": list }] });
        let server = Server::of(&script);
        // A completion goes on from its prompt, so that its first space is a space.
        for api in APIS {
            let want =
                if api.path == "/v1/completions" { format!(" {want}") } else { want.to_owned() };
            for (path, said) in both(&server, api, &Asked::default()) {
                assert_eq!((said.text, said.tokens), (want.clone(), tokens), "{path}");
            }
        }
    }
}

#[test]
fn the_least_number_of_tokens_comes_before_any_end() {
    let script = pieces(&json!(["a", "\n", "b", "\n", "c", "\n", "d"]));
    for (min_tokens, text, tokens) in [(0, "a", 2), (2, "a", 2), (3, "a\nb", 4), (5, "a\nb\nc", 6)]
    {
        let asked = Asked { min_tokens, ..stops(&["\n"]) };
        check(&script, &asked, text, "", "stop", tokens);
    }
    // The script ends after one token, and may not.
    let server = Server::of(&pieces(&json!(["a"])));
    for api in APIS {
        let asked = Asked { min_tokens: 5, budget: Some(9), ..Asked::default() };
        let said = (api.whole)(&server.post(api.path, &asked.body(api, false)).json());
        assert!(said.tokens >= 5, "{} {said:?}", api.path);
    }
}

#[test]
fn a_budget_ends_an_answer_after_exactly_so_many_tokens() {
    let script = pieces(&json!(["a", "b", "c"]));
    for (budget, text, finish, tokens) in [
        (1, "a", "length", 1),
        (2, "ab", "length", 2),
        (3, "abc", "length", 3),
        (4, "abc", "stop", 4),
        (50, "abc", "stop", 4),
    ] {
        let asked = Asked { budget: Some(budget), ..Asked::default() };
        check(&script, &asked, text, "", finish, tokens);
    }
}

const MARKERS: Option<[&str; 2]> = Some(["<think>", "</think>"]);

#[test]
fn reasoning_is_apart_however_its_tags_are_cut() {
    let asked = Asked { markers: MARKERS, ..Asked::default() };
    for (all, reasoning, text) in [
        ("<think>weighing it</think>Answer.", "weighing it", "Answer."),
        ("<think></think>Answer.", "", "Answer."),
        ("<think>a </thin b</think>c </think", "a </thin b", "c </think"),
        ("<think>never done </thi", "never done </thi", ""),
        ("<thin air", "", "<thin air"),
        ("<think>é中</think>😀", "é中", "😀"),
    ] {
        for width in [1, 2, 5, 100] {
            let mut list = Vec::new();
            for cut in all.as_bytes().chunks(width) {
                match std::str::from_utf8(cut) {
                    Ok(text) => list.push(json!(text)),
                    Err(_) => list.extend(bytes(cut)),
                }
            }
            let tokens = list.len() as u64 + 1;
            check(&pieces(&json!(list)), &asked, text, reasoning, "stop", tokens);
        }
    }
}

#[test]
fn stops_are_not_looked_for_in_thoughts() {
    let script = pieces(&json!(["<think>", "9.8 is more", "</think>", "Answer 9", ".8", "!"]));
    let asked = |stop: &str| Asked { markers: MARKERS, ..stops(&[stop]) };
    check(&script, &asked("9.8"), "Answer ", "9.8 is more", "stop", 5);
    check(&script, &asked("is more"), "Answer 9.8!", "9.8 is more", "stop", 7);
    // Not across the edge either.
    check(&script, &asked("moreAns"), "Answer 9.8!", "9.8 is more", "stop", 7);
    check(&script, &asked("</think>"), "Answer 9.8!", "9.8 is more", "stop", 7);
}

#[test]
fn every_choice_ends_once_and_all_are_counted() {
    let server = Server::of(&pieces(&json!(["a", "b", "c"])));
    for api in &APIS[..2] {
        for (budget, finish, tokens) in [(2u64, "length", 2u64), (9, "stop", 4)] {
            let mut body = (api.body)();
            body["n"] = json!(16);
            body[api.budget] = json!(budget);
            let whole = server.post(api.path, &body).json();
            assert_eq!(whole["usage"]["completion_tokens"], tokens * 16, "{whole}");
            body["stream"] = json!(true);
            body["stream_options"] = json!({ "include_usage": true });
            let reply = server.post(api.path, &body);
            assert_eq!(reply.finish_reasons(), vec![finish; 16], "{reply:?}");
            let events = reply.events();
            let usage = &events.last().unwrap()["usage"];
            for count in ["prompt_tokens", "completion_tokens", "total_tokens"] {
                assert_eq!(usage[count], whole["usage"][count], "{count} {usage} {whole}");
            }
            for index in 0..16 {
                let of = |event: &&Value| event["choices"][0]["index"] == index;
                let last = events.iter().rfind(of).unwrap();
                assert_eq!(last["choices"][0]["finish_reason"], finish, "{last}");
            }
        }
    }
}
