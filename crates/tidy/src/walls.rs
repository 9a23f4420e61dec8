//! The tables: which room may name which, what it may not know, and what each dependency saves.

/// One room and its walls.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The folder's name below `crates`.
    pub name: &'static str,
    /// Rooms that its `[dependencies]` may name. Tests may name any but `cli`.
    pub arrows: &'static [&'static str],
    /// Words that its code may not contain, comments, strings and tests aside. A word that ends
    /// in a letter or digit does not match inside a longer one.
    pub banned: &'static [&'static str],
}

/// Every room there is, in the order in which a request meets them.
pub const ROOMS: &[Room] = &[
    Room {
        name: "request",
        arrows: &[],
        banned: &["loop", "while", "std::fs", "std::io", "std::net", "std::thread", "async"],
    },
    Room { name: "models", arrows: &[], banned: &["tensor", "Tensor", "std::net", "async"] },
    Room {
        name: "text",
        arrows: &["request", "weights"],
        banned: &["logits", "std::net", "Instant", "SystemTime", "async"],
    },
    Room {
        name: "scheduler",
        arrows: &["request"],
        banned: &["f32", "f64", "std::fs", "std::net", "std::time", "async", "thread"],
    },
    Room {
        name: "kv_cache",
        arrows: &["request", "kernels"],
        banned: &["llama", "qwen", "gemma", "waiting", "preempt", "std::fs", "std::net", "async"],
    },
    Room { name: "weights", arrows: &[], banned: &["attention", "rope", "std::net", "async"] },
    Room { name: "quantise", arrows: &["weights"], banned: &["std::net", "std::time", "async"] },
    Room {
        name: "kernels",
        arrows: &[],
        banned: &["std::fs", "std::net", "std::io", "std::time", "llama", "qwen", "gemma", "async"],
    },
    Room {
        name: "model",
        arrows: &["request", "weights", "kernels", "kv_cache"],
        banned: &["temperature", "tokenizer", "std::fs", "std::net", "std::time", "async"],
    },
    Room {
        name: "policy",
        arrows: &["request", "kernels"],
        banned: &["std::fs", "std::net", "std::time", "std::thread", "async", "HashMap", "HashSet"],
    },
    Room {
        name: "constraint",
        arrows: &["request", "text", "policy"],
        banned: &[
            "std::fs",
            "std::net",
            "Instant",
            "SystemTime",
            "scheduler",
            "weights",
            "kernels",
            "async",
        ],
    },
    Room {
        name: "engine",
        arrows: &["request", "scheduler", "kv_cache", "model", "policy"],
        banned: &[
            "std::fs",
            "std::net",
            "Instant",
            "SystemTime",
            "tokenizer",
            "detokenize",
            "async",
        ],
    },
    Room { name: "ledger", arrows: &["request", "policy"], banned: &["std::net", "async"] },
    Room {
        name: "session",
        arrows: &[
            "request",
            "models",
            "text",
            "weights",
            "kernels",
            "kv_cache",
            "model",
            "policy",
            "constraint",
            "ledger",
        ],
        banned: &["std::net", "Instant", "SystemTime", "async"],
    },
    Room {
        name: "server",
        arrows: &["request", "text", "kv_cache", "model", "policy", "engine", "ledger", "session"],
        banned: &["kernels", "scheduler", "std::fs"],
    },
    Room {
        name: "load",
        arrows: &[],
        banned: &["engine", "kernels", "logits", "tokenizer", "std::time::Instant"],
    },
    Room {
        name: "cli",
        arrows: &[
            "request",
            "models",
            "text",
            "scheduler",
            "kv_cache",
            "weights",
            "quantise",
            "kernels",
            "model",
            "policy",
            "constraint",
            "engine",
            "ledger",
            "session",
            "server",
            "load",
        ],
        banned: &["std::net", "async"],
    },
    Room { name: "tidy", arrows: &[], banned: &["std::net", "async"] },
];

/// The only files that may contain `unsafe`.
pub const UNSAFE_FILES: &[&str] = &[
    "crates/kernels/src/avx2.rs",
    "crates/kernels/src/avxvnni.rs",
    "crates/kernels/src/avx512.rs",
    "crates/kernels/src/avx512vnni.rs",
    "crates/kernels/src/parallel.rs",
    "crates/kernels/src/dispatch.rs",
    "crates/kernels/src/memory.rs",
    "crates/weights/src/mapping.rs",
];

/// Most lines of a source file that is no test; `kernels` spells registers out.
pub const FILE_LINES_MAX: usize = 400;
/// The same, for the room `kernels`.
pub const KERNELS_FILE_LINES_MAX: usize = 600;

/// Names that say nothing, as files or as words of an identifier; a first word `do` is one too.
pub const EMPTY_NAMES: &[&str] = &[
    "manager", "handler", "helper", "helpers", "util", "utils", "common", "misc", "data", "info",
    "process", "my", "new2", "v2",
];

/// Code that does not merge.
pub const FORBIDDEN: &[&str] =
    &["#[ignore", "#[should_panic", "todo!", "unimplemented!", "dbg!", "#[allow(", "#![allow("];

/// Most third-party packages that all rooms together name directly.
pub const DEPENDENCIES_MAX: usize = 40;

/// Every third-party package that a room names, and what it saves.
pub const DEPENDENCIES: &[(&str, &str)] = &[
    ("anyhow", "context on errors where the command line prints them"),
    ("axum", "routes, path parameters and middleware over hyper"),
    ("bytemuck", "casts between slices of plain numbers, with length and alignment checked"),
    ("clap", "arguments, their help and their refusals"),
    ("clap_complete", "completion scripts for five shells"),
    ("futures-core", "the trait of streams, which a response of events is"),
    ("getrandom", "random bytes of the system, which nobody guesses"),
    ("half", "f16 and bf16 with their subnormals and rounding"),
    ("hyper", "HTTP/1.1 on a connection, with its framing and its limits"),
    ("hyper-util", "what joins hyper to the sockets of tokio"),
    ("libc", "two calls of the system, with their constants, on memory that is merged"),
    ("libm", "exp, ln and pow with the same bits on every system"),
    ("llguidance", "grammars, schemas and regular expressions to masks over a vocabulary"),
    ("memmap2", "the platform calls behind file mappings and memory in huge pages"),
    ("minijinja", "a Jinja parser and interpreter, with fuel against hostile templates"),
    ("minijinja-contrib", "Python's string, list and dict methods in templates"),
    ("opentelemetry", "the words of OpenTelemetry: spans, instruments, contexts"),
    ("opentelemetry-http", "the trait by which its exporters send, so that hyper can"),
    ("opentelemetry-otlp", "OTLP in protobuf, and the usual environment variables"),
    ("opentelemetry_sdk", "batches, periods, resources and samplers of OpenTelemetry"),
    ("prometheus-client", "Prometheus's text format: escapes, buckets, families of labels"),
    ("proptest", "generated cases that shrink, in tests"),
    ("regex", "pre-tokenizer expressions in linear time"),
    ("rusqlite", "SQLite, built in: transactions, crash recovery, queries"),
    ("serde", "structs to and from JSON and TOML"),
    ("serde_json", "JSON, with numbers read exactly"),
    ("sha2", "SHA-256 with the CPU's own instructions"),
    ("signal-hook", "Ctrl-C as a flag, without unsafe code of our own"),
    ("subtle", "comparing keys in a time that tells nothing of them"),
    ("tempfile", "folders for tests that delete themselves"),
    ("thiserror", "typed errors without their boilerplate"),
    ("tokenizers", "tokenizer.json: normalisers, pre-tokenizers, models, post-processors"),
    ("tokio", "an async runtime: sockets, timers and tasks without a thread for each"),
    ("toktrie", "the trie of a vocabulary that llguidance walks, and its words for a tokenizer"),
    ("toml", "policy files and catalogues, with line numbers in errors"),
    ("tracing", "events with typed fields, at no cost where nobody listens"),
    ("tracing-subscriber", "events as text or JSON, one line each"),
    ("ureq", "HTTP/1.1 over TLS without an async runtime: framing, proxies, certificates"),
    ("xxhash-rust", "XXH3-128 for the digest of a step"),
    ("zip", "wheels, with each member's checksum"),
];

/// Longest a document may be, in lines.
pub const DOCUMENT_LINES_MAX: &[(&str, usize)] =
    &[("ARCHITECTURE.md", 200), ("STYLE.md", 200), ("docs/design/", 120)];

/// Beginnings of paths that exist on one machine only; each in two pieces, so that this file does
/// not contain it.
pub const MACHINE_PATHS: &[(&str, &str)] =
    &[("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/"), ("/Us", "ers/"), ("/tm", "p/")];

/// Old breaches of a rule, by rule and path; the list may only grow shorter.
pub const RATCHET: &[(&str, &str)] = &[];
