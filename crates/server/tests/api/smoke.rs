//! One real model behind the server, whole and streamed.

use causeway_kernels::KvType;
use causeway_model::Settings;
use causeway_server::Source;
use causeway_session::{Opening, threads_by_default};
use serde_json::json;

use crate::support::{Server, options};

fn model() -> Source {
    let home = std::env::var_os("CAUSEWAY_HOME").map_or_else(
        || {
            let folder = std::env::var_os("XDG_DATA_HOME").map(std::path::PathBuf::from);
            let user = std::env::var_os("HOME").map(std::path::PathBuf::from).unwrap();
            folder.unwrap_or_else(|| user.join(".local/share")).join("causeway")
        },
        std::path::PathBuf::from,
    );
    let path = home.join("models/smollm2-135m.gguf");
    assert!(path.exists(), "{} is missing: run `causeway pull smollm2:135m`", path.display());
    let threads = threads_by_default().0;
    let settings = Settings { context_len: Some(512), kv_type: KvType::F16, threads };
    let opening = Opening { name: "smollm2:135m".to_owned(), path, settings };
    Source::File { opening, own: None }
}

#[test]
fn a_real_model_says_the_same_alone_and_in_company() {
    let server = Server::start(options(vec![model()]));
    let ask = |text: &str, stream: bool| {
        let messages = json!([{ "role": "user", "content": text }]);
        let body = json!({
            "messages": messages, "max_tokens": 12, "temperature": 0.8, "seed": 42, "stream": stream,
        });
        server.post("/v1/chat/completions", &body)
    };
    let alone = ask("Why is the sky blue?", false).json();
    let alone = alone["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(!alone.is_empty());
    std::thread::scope(|scope| {
        let ask = &ask;
        let others: Vec<_> = (0..4)
            .map(|index| scope.spawn(move || ask(&format!("Count to {index}."), index % 2 == 0)))
            .collect();
        let streamed = ask("Why is the sky blue?", true);
        assert_eq!(streamed.streamed(), alone);
        assert!(others.into_iter().all(|other| other.join().unwrap().status == 200));
    });
}
