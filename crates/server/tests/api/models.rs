//! Several models in one process: by name, on demand, within a memory budget.

use serde_json::{Value, json};

use crate::support::{Server, options, script};

fn model(name: &str, bytes: u64) -> Value {
    json!({ "name": name, "bytes": bytes, "answers": [{ "text": format!("I am {name}") }] })
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
    assert!(error["error"]["message"].as_str().unwrap().contains("the limit is 15"), "{error}");
    drop(socket);
    assert!(server.becomes(|server| say(server, "two").0 == 200));
}
