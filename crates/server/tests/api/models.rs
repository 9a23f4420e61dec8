//! Several models in one process: by name, on demand, within a memory budget.

use serde_json::{Value, json};

use crate::support::{Server, options, script};

/// A model of so many bytes, most of them its weights.
fn model(name: &str, bytes: u64) -> Value {
    json!({
        "name": name,
        "bytes": bytes - 4,
        "kv_bytes": 3,
        "workspace_bytes": 1,
        "answers": [{ "text": format!("I am {name}") }],
    })
}

fn say(server: &Server, name: &str) -> (u16, Value) {
    let reply = server.post("/v1/completions", &json!({ "model": name, "prompt": "who?" }));
    (reply.status, reply.json())
}

fn state(server: &Server, name: &str) -> String {
    let model = server.get(&format!("/v1/models/{name}")).json();
    model["causeway"]["state"].as_str().unwrap().to_owned()
}

#[test]
fn models_are_loaded_when_they_are_asked_for() {
    let server =
        Server::start(options(vec![script(&model("one", 10)), script(&model("org/two", 10))]));
    assert_eq!(server.get("/v1/models").json()["data"].as_array().unwrap().len(), 2);
    assert_eq!(
        (state(&server, "one"), state(&server, "org/two")),
        ("loaded".into(), "not loaded".into())
    );
    assert_eq!(say(&server, "org/two").1["choices"][0]["text"], "I am org/two");
    assert_eq!(say(&server, "one").1["choices"][0]["text"], "I am one");
    assert_eq!(state(&server, "org/two"), "loaded");
    let unnamed = server.post("/v1/completions", &json!({ "prompt": "who?" })).json();
    assert_eq!(unnamed["model"], "one");
    let (status, error) = say(&server, "three");
    assert_eq!((status, &error["error"]["code"]), (404, &json!("model_not_found")));
    assert_eq!(server.get("/v1/models/three").status, 404);
}

#[test]
fn models_make_room_for_each_other_unless_they_are_in_use() {
    let mut busy = model("one", 10);
    busy["answers"] = json!([
        { "when": "long", "pieces": ["x"], "repeats": true, "delay_ms": 5 },
        { "text": "I am one" },
    ]);
    let mut options =
        options(vec![script(&busy), script(&model("two", 10)), script(&model("three", 5))]);
    options.models_bytes_max = Some(15);
    let server = Server::start(options);
    assert_eq!(say(&server, "three").0, 200);
    assert_eq!(say(&server, "two").0, 200);
    // The longest unused made room.
    let states = |server: &Server| ["one", "two", "three"].map(|name| state(server, name));
    assert_eq!(states(&server), ["not loaded", "loaded", "loaded"]);
    let long = json!({ "model": "one", "prompt": "long", "max_tokens": 1000, "stream": true });
    let socket = server.begin("/v1/completions", &long);
    assert!(server.becomes(|server| state(server, "one") == "loaded"));
    let (status, error) = say(&server, "two");
    assert_eq!(status, 503, "{error}");
    let message = error["error"]["message"].as_str().unwrap();
    let want = "`two` needs 10 bytes (6 of weights, 3 of keys and values, 1 of workspace) \
                beside the 10 bytes of models in use, the limit is 15";
    assert_eq!(message, want);
    drop(socket);
    assert!(server.becomes(|server| say(server, "two").0 == 200));
}

/// A request with the header that Anthropic's clients send.
fn as_anthropic(server: &Server, path: &str) -> crate::support::Reply {
    use std::io::{Read as _, Write as _};
    let mut socket = server.connect();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\
         anthropic-version: 2023-06-01\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).unwrap();
    crate::support::Reply::parse(&bytes)
}

#[test]
fn whoever_speaks_anthropics_words_is_answered_in_them() {
    let models = ["one", "org/two", "three"].map(|name| script(&model(name, 10)));
    let server = Server::start(options(models.to_vec()));
    let page = |query: &str| {
        let page = as_anthropic(&server, &format!("/v1/models{query}")).json();
        let ids = page["data"].as_array().unwrap().iter().map(|model| model["id"].clone());
        let ids: Vec<Value> = ids.collect();
        assert_eq!(page["first_id"], ids.first().cloned().unwrap_or_default(), "{page}");
        assert_eq!(page["last_id"], ids.last().cloned().unwrap_or_default(), "{page}");
        (ids, page["has_more"].clone())
    };
    assert_eq!(page(""), (vec![json!("one"), json!("org/two"), json!("three")], json!(false)));
    assert_eq!(page("?limit=1"), (vec![json!("one")], json!(true)));
    assert_eq!(page("?after_id=org%2Ftwo&limit=5"), (vec![json!("three")], json!(false)));
    assert_eq!(page("?after_id=three"), (vec![], json!(false)));
    let one = as_anthropic(&server, "/v1/models/org/two").json();
    assert_eq!((&one["type"], &one["id"]), (&json!("model"), &json!("org/two")));
    assert_eq!(one["display_name"], "org/two");
    let created = one["created_at"].as_str().unwrap();
    assert!(created.len() == 20 && created.ends_with('Z') && &created[10..11] == "T", "{created}");
    assert_eq!(one.as_object().unwrap().len(), 4, "nothing else: {one}");
    for (path, status, kind) in [
        ("/v1/models/nobody", 404, "not_found_error"),
        ("/v1/models?limit=0", 400, "invalid_request_error"),
        ("/v1/models?nonsense=1", 400, "invalid_request_error"),
    ] {
        let reply = as_anthropic(&server, path);
        assert_eq!(reply.status, status, "{reply:?}");
        assert_eq!(reply.json()["type"], "error", "{reply:?}");
        assert_eq!(reply.json()["error"]["type"], kind, "{reply:?}");
    }
    // Everybody else is answered as ever.
    assert_eq!(server.get("/v1/models/one").json()["object"], "model");
}
