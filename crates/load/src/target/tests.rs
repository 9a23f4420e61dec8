//! Addresses, bodies and keys.

use super::*;

#[test]
fn addresses_are_read_or_refused() {
    let check = |text: &str, want: Option<(&str, &str)>| {
        let found = text.parse::<Server>().ok();
        let found = found.map(|server| (server.authority(), server.path_of("/v1/models")));
        let want = want.map(|(name, path)| (name.to_owned(), path.to_owned()));
        assert_eq!(found, want, "{text}");
    };
    check("http://127.0.0.1:8080", Some(("127.0.0.1:8080", "/v1/models")));
    check("http://127.0.0.1:8080/", Some(("127.0.0.1:8080", "/v1/models")));
    check("http://localhost:8080/v1", Some(("localhost:8080", "/v1/models")));
    check("http://localhost:8080/v1/", Some(("localhost:8080", "/v1/models")));
    check("http://host/gate/way", Some(("host:80", "/gate/way/v1/models")));
    check("http://[::1]:9", Some(("[::1]:9", "/v1/models")));
    check("https://host", None);
    check("127.0.0.1:8080", None);
    check("http://", None);
    check("http://host:0", None);
    check("http://host:99999", None);
    check("http://user@host", None);
    check("http://host/?q=1", None);
    let refusal = "https://h".parse::<Server>().unwrap_err().to_string();
    assert!(refusal.contains("`https://h` is no server: http://HOST:PORT"), "{refusal}");
}

fn planned() -> Planned {
    Planned { index: 3, at_us: None, prompt_words: 1, output_tokens: 7, hang_up: None, seed: 42 }
}

fn check_body(endpoint: Endpoint, flags: (bool, bool), body: &str, want: Value) {
    let shape = Shape {
        endpoint,
        model: Some("m".to_owned()),
        ignore_eos: flags.0,
        seeds: flags.1,
        body: read_body(body).unwrap(),
    };
    let found: Value = serde_json::from_str(&shape.body_of(&planned(), "hi".to_owned())).unwrap();
    assert_eq!(found, want);
}

#[test]
fn bodies_are_what_both_interfaces_take() {
    let usage = json!({ "include_usage": true });
    check_body(
        Endpoint::Chat,
        (false, false),
        "{}",
        json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }],
                "max_tokens": 7, "stream": true, "stream_options": usage }),
    );
    check_body(
        Endpoint::Completions,
        (true, true),
        r#"{"temperature": 0, "cache_prompt": false}"#,
        json!({ "model": "m", "prompt": "hi", "max_tokens": 7, "stream": true, "seed": 42,
                "ignore_eos": true, "stream_options": usage, "temperature": 0,
                "cache_prompt": false }),
    );
}

#[test]
fn fields_are_merged_as_rfc_7386_says() {
    check_body(
        Endpoint::Completions,
        (false, false),
        r#"{"stream_options": {"x": {"y": 1, "z": null}}, "model": null, "max_tokens": [1]}"#,
        json!({ "prompt": "hi", "max_tokens": [1], "stream": true,
                "stream_options": { "include_usage": true, "x": { "y": 1 } } }),
    );
    for text in ["[]", "5", "{", ""] {
        assert_eq!(read_body(text).unwrap_err(), SettingError::Body);
    }
}

#[test]
fn keys_travel_or_are_refused() {
    let Key(value) = "sk-1".parse().unwrap();
    assert!(value == "Bearer sk-1" && value.is_sensitive());
    assert_eq!("a\nb".parse::<Key>().unwrap_err(), SettingError::Key);
}
