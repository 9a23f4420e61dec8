//! Servers with a policy file, which no request changes, or a model's own, which requests go over.

use causeway_policy::PolicyFile;
use serde_json::{Value, json};

use crate::support::{Server, options, script};

const POLICY: &str = r#"
schema = 1
name = "careful"
[prompt]
system = "Be brief."
[shape]
temperature = 0.5
top_k = 40
[reasoning]
open = "<think>"
close = "</think>"
"#;

fn server(policy: &str) -> Server {
    let answers = json!([{ "pieces": ["<think>", "so", "</think>", "Yes."] }]);
    let mut options = options(vec![script(&json!({ "answers": answers }))]);
    options.policy = Some(PolicyFile::from_toml(policy).unwrap());
    Server::start(options)
}

fn ask(server: &Server, fields: Value) -> (u16, Value) {
    let mut body = fields;
    body["messages"] = json!([{ "role": "user", "content": "go" }]);
    let reply = server.post("/v1/chat/completions", &body);
    (reply.status, reply.json())
}

#[test]
fn a_request_may_repeat_the_policy_but_not_change_it() {
    let server = server(POLICY);
    let (status, plain) = ask(&server, json!({}));
    assert_eq!((status, &plain["choices"][0]["message"]["content"]), (200, &json!("Yes.")));
    assert_eq!(plain["choices"][0]["message"]["reasoning_content"], "so");
    let own = PolicyFile::from_toml(POLICY).unwrap().hash_hex();
    assert_eq!(plain["causeway"]["policy"], own);
    let (_, same) = ask(&server, json!({ "temperature": 0.5, "top_p": 1, "top_k": 40, "seed": 5 }));
    assert_eq!(same["causeway"]["policy"], own);
    for (fields, param) in [
        (json!({ "temperature": 0.7 }), "temperature"),
        (json!({ "top_p": 0.9 }), "top_p"),
        (json!({ "presence_penalty": 1 }), "presence_penalty"),
        (json!({ "logit_bias": { "5": 1 } }), "logit_bias"),
        (json!({ "ignore_eos": true }), "ignore_eos"),
        (json!({ "reasoning_markers": ["<a>", "</a>"] }), "reasoning_markers"),
    ] {
        let (status, error) = ask(&server, fields.clone());
        assert_eq!(status, 400, "{fields} {error}");
        assert_eq!(error["error"]["param"], param, "{fields} {error}");
        assert_eq!(error["error"]["code"], "fixed_by_policy", "{fields} {error}");
    }
    // How much is asked for, and what ends it, is the request's where the policy leaves it open.
    for fields in [json!({ "max_tokens": 2 }), json!({ "stop": ["x"] }), json!({ "seed": 1 })] {
        assert_eq!(ask(&server, fields.clone()).0, 200, "{fields}");
    }
}

#[test]
fn limits_and_seeds_of_the_policy_are_fixed_too() {
    let server =
        server("schema = 1\n[choose]\nseed = 11\n[stop]\ntokens_max = 2\nstrings = [\"!\"]\n");
    let (_, answer) = ask(&server, json!({}));
    assert_eq!(answer["causeway"]["seed"], 11);
    assert_eq!(answer["usage"]["completion_tokens"], 2);
    for (fields, param) in [
        (json!({ "seed": 12 }), "seed"),
        (json!({ "max_tokens": 3 }), "max_tokens"),
        (json!({ "stop": ["x"] }), "stop"),
    ] {
        let (status, error) = ask(&server, fields.clone());
        assert_eq!((status, &error["error"]["param"]), (400, &json!(param)), "{fields} {error}");
    }
    assert_eq!(ask(&server, json!({ "seed": 11, "max_tokens": 2, "stop": "!" })).0, 200);
}

#[test]
fn a_policys_system_text_and_a_requests_do_not_mix() {
    let server = server(POLICY);
    let body = json!({ "messages": [
        { "role": "system", "content": "be long" },
        { "role": "user", "content": "go" },
    ] });
    let reply = server.post("/v1/chat/completions", &body);
    assert_eq!(reply.status, 400, "{reply:?}");
    assert!(reply.message().contains("prompt.system"), "{reply:?}");
}

/// A policy as a model file makes it of itself.
const OWN: &str = r#"
schema = 1
name = "the model's own: generation_config.json, the chat template"
[shape]
temperature = 0.6
top_k = 20
[stop]
tokens_max = 1000
[reasoning]
open = "<think>"
close = "</think>"
"#;

/// A server of a model with a policy of its own, and of one without.
fn own_server() -> Server {
    let answers = json!([{ "pieces": ["<think>", "so", "</think>", "Yes."] }]);
    let own = json!({ "name": "own", "own_policy": OWN, "context_len": 64, "answers": answers });
    let plain = json!({ "name": "plain", "context_len": 64, "answers": answers });
    Server::start(options(vec![script(&own), script(&plain)]))
}

#[test]
fn a_models_own_policy_is_taken_and_said() {
    let server = own_server();
    let (status, answer) = ask(&server, json!({}));
    // Its budget is larger than the context, which is no fault of the request.
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("Yes.")));
    assert_eq!(answer["choices"][0]["message"]["reasoning_content"], "so");
    let own = PolicyFile::from_toml(OWN).unwrap();
    assert_eq!(answer["causeway"]["policy"], own.hash_hex());
    assert_eq!(answer["causeway"]["policy_name"], json!(own.identity.name));
    let (_, plain) = ask(&server, json!({ "model": "plain" }));
    assert_eq!(plain["choices"][0]["message"]["content"], "<think>so</think>Yes.");
    assert_eq!(plain["causeway"].get("policy_name"), None);
    let models = server.get("/v1/models").json();
    let told = |place: usize| models["data"][place]["causeway"]["policy"].clone();
    let fields = json!({
        "shape": { "temperature": 0.6, "top_k": 20 },
        "stop": { "tokens_max": 1000 },
        "reasoning": { "open": "<think>", "close": "</think>" },
    });
    assert_eq!((&told(0)["fields"], &told(0)["fixed"]), (&fields, &json!(false)));
    assert_eq!((&told(0)["sha256"], &told(1)["fields"]), (&json!(own.hash_hex()), &json!({})));
}

#[test]
fn a_request_goes_over_a_models_own_policy() {
    let server = own_server();
    let mut want = PolicyFile::from_toml(OWN).unwrap();
    want.shape.temperature = 0.9;
    want.shape.top_k = 0;
    want.stop.tokens_max = Some(8);
    let (_, answer) = ask(&server, json!({ "temperature": 0.9, "top_k": 0, "max_tokens": 8 }));
    assert_eq!(answer["causeway"]["policy"], want.hash_hex());
    // A budget that the request names must fit, as ever.
    let (status, refusal) = ask(&server, json!({ "max_tokens": 1000 }));
    assert_eq!((status, &refusal["error"]["param"]), (400, &json!("max_tokens")));
    // What the model says of itself is in force in every API.
    let message = json!({ "messages": [{ "role": "user", "content": "go" }] });
    assert_eq!(server.post("/v1/messages", &message).status, 200);
    let response = server.post("/v1/responses", &json!({ "input": "go" })).json();
    assert_eq!(response["temperature"], 0.6);
}
