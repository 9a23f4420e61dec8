//! Every field that the APIs document, each with a value that somebody would send.
//!
//! The lists are those of the official clients' request types: `openai` 3.57.0 and `anthropic`
//! 2.14.0 for Python; `openai` 6.49.0 for JavaScript has the same. Sampling fields of messages
//! are those of earlier `anthropic` releases, and those of its beta types are there too. Fields
//! under "this engine" are in no client's types.

/// One field of one API.
pub(crate) struct Row {
    pub(crate) field: &'static str,
    /// A value as JSON.
    pub(crate) value: &'static str,
    /// Fields that must stand beside it, as JSON.
    pub(crate) beside: &'static str,
    /// Whether the value is taken; else it is refused by the field's name.
    pub(crate) is_taken: bool,
    /// Values of another type or out of range, as JSON.
    pub(crate) wrong: &'static [&'static str],
}

const fn taken(field: &'static str, value: &'static str, wrong: &'static [&'static str]) -> Row {
    Row { field, value, beside: "{}", is_taken: true, wrong }
}

const fn refused(field: &'static str, value: &'static str) -> Row {
    Row { field, value, beside: "{}", is_taken: false, wrong: &[] }
}

const fn beside(row: Row, beside: &'static str) -> Row {
    Row { beside, ..row }
}

/// Where an API is, the least that it asks for, and its rows.
pub(crate) struct Api {
    pub(crate) path: &'static str,
    pub(crate) least: &'static str,
    pub(crate) rows: &'static [&'static [Row]],
}

/// All APIs with documented fields.
pub(crate) const APIS: &[Api] = &[
    Api {
        path: "/v1/chat/completions",
        least: r#"{"messages": [{"role": "user", "content": "go"}]}"#,
        rows: &[CHAT, CHOICES, SAMPLING, SEED, STOP, OPENAI, STREAMING, FORMS, OWN, OWN_CHAT],
    },
    Api {
        path: "/v1/completions",
        least: r#"{"prompt": "go"}"#,
        rows: &[COMPLETIONS, CHOICES, SAMPLING, SEED, STOP, OPENAI, STREAMING, FORMS, OWN],
    },
    Api {
        path: "/v1/responses",
        least: r#"{"input": "go"}"#,
        rows: &[RESPONSES, SAMPLING, SEED, STOP, OPENAI, STREAMING, OWN, OWN_CHAT],
    },
    Api {
        path: "/v1/messages",
        least: r#"{"messages": [{"role": "user", "content": "go"}], "max_tokens": 8}"#,
        rows: &[MESSAGES_PROMPT, MESSAGES, SEED, STREAMING, OWN],
    },
    Api {
        path: "/v1/messages/count_tokens",
        least: r#"{"messages": [{"role": "user", "content": "go"}]}"#,
        rows: &[MESSAGES_PROMPT],
    },
];

const CHAT: &[Row] = &[
    taken(
        "messages",
        r#"[{"role": "system", "content": "be kind"}, {"role": "user", "content": "go"}]"#,
        &["[]", "\"go\"", "5", "[5]"],
    ),
    taken("max_tokens", "4", &["0", "-1", "1.5", "\"4\"", "100000000"]),
    taken("max_completion_tokens", "4", &["0", "-5", "true", "100000000"]),
    taken("logprobs", "true", &["1", "\"yes\""]),
    beside(taken("top_logprobs", "5", &["-1", "21", "1.5"]), r#"{"logprobs": true}"#),
    taken(
        "response_format",
        r#"{"type": "json_schema", "json_schema": {"name": "one", "schema": {"const": 1}}}"#,
        &["\"text\"", r#"{"type": "xml"}"#, r#"{"type": "json_schema"}"#],
    ),
    taken("modalities", r#"["text"]"#, &["\"text\"", r#"["text", "audio"]"#]),
    taken("tools", "[]", &[r#"[{"type": "function", "function": {"name": "f"}}]"#, "5"]),
    taken("tool_choice", "\"none\"", &["\"required\"", "5"]),
    taken("parallel_tool_calls", "true", &["1"]),
    refused("functions", r#"[{"name": "f"}]"#),
    refused("function_call", "\"auto\""),
    refused("audio", r#"{"voice": "alloy", "format": "wav"}"#),
    refused("prediction", r#"{"type": "content", "content": "x"}"#),
    beside(
        taken("reasoning_effort", "\"none\"", &["\"low\"", "5"]),
        r#"{"reasoning_markers": ["<think>", "</think>"]}"#,
    ),
    refused("verbosity", "\"low\""),
    refused("web_search_options", "{}"),
    refused("moderation", r#"{"model": "m"}"#),
];

const COMPLETIONS: &[Row] = &[
    taken("prompt", "[8, 9, 10]", &["\"\"", "[]", "5", "true", "[-1]", "[\"a\", \"b\"]"]),
    taken("max_tokens", "4", &["0", "-1", "1.5", "\"4\"", "100000000"]),
    taken("echo", "true", &["1"]),
    taken("logprobs", "3", &["-1", "21", "true"]),
    taken("best_of", "1", &["2", "\"1\""]),
    refused("suffix", "\"x\""),
];

const RESPONSES: &[Row] = &[
    taken(
        "input",
        r#"[{"role": "user", "content": [{"type": "input_text", "text": "go"}]}]"#,
        &["\"\"", "[]", "5", "[5]"],
    ),
    taken("instructions", "\"be kind\"", &["5", "[]"]),
    taken("max_output_tokens", "4", &["0", "-1", "1.5", "\"4\"", "100000000"]),
    taken(
        "text",
        r#"{"format": {"type": "json_schema", "name": "one", "schema": {"const": 1}}}"#,
        &["\"text\"", r#"{"format": {"type": "xml"}}"#, r#"{"verbosity": "low"}"#],
    ),
    taken("include", r#"["message.output_text.logprobs"]"#, &["\"x\"", r#"["x"]"#, "[5]"]),
    beside(
        taken("top_logprobs", "5", &["-1", "21", "1.5"]),
        r#"{"include": ["message.output_text.logprobs"]}"#,
    ),
    taken("background", "false", &["true", "5"]),
    taken("truncation", "\"disabled\"", &["\"auto\"", "5"]),
    taken(
        "tools",
        "[]",
        &[r#"[{"type": "web_search"}]"#, r#"[{"type": "function", "name": "f"}]"#, "[5]", "5"],
    ),
    taken("tool_choice", "\"auto\"", &["\"required\"", r#"{"type": "mcp"}"#, "5"]),
    taken("parallel_tool_calls", "false", &["1"]),
    beside(
        taken("reasoning", r#"{"effort": "none"}"#, &[r#"{"effort": "low"}"#, "\"low\""]),
        r#"{"reasoning_markers": ["<think>", "</think>"]}"#,
    ),
    refused("background_options", "{}"),
    refused("previous_response_id", "\"resp_1\""),
    refused("conversation", "\"conv_1\""),
    refused("prompt", r#"{"id": "p"}"#),
    refused("context_management", "[]"),
    refused("max_tool_calls", "5"),
    refused("image", "{}"),
    refused("moderation", r#"{"model": "m"}"#),
    refused("access_programs", "{}"),
];

const MESSAGES_PROMPT: &[Row] = &[
    taken(
        "messages",
        r#"[{"role": "user", "content": [{"type": "text", "text": "go"}]}]"#,
        &["[]", "\"go\"", "[5]"],
    ),
    taken("model", "\"scripted\"", &["5", "\"nobody\""]),
    taken("system", "\"be kind\"", &["5", "[5]"]),
    taken(
        "tools",
        "[]",
        &[
            r#"[{"name": "f", "input_schema": {}}]"#,
            r#"[{"type": "computer_20250124"}]"#,
            "[5]",
            "5",
        ],
    ),
    taken("tool_choice", r#"{"type": "none"}"#, &[r#"{"type": "any"}"#, "{}", "\"none\""]),
    taken(
        "thinking",
        r#"{"type": "disabled"}"#,
        &[r#"{"type": "enabled", "budget_tokens": 1024}"#, "true"],
    ),
    taken(
        "cache_control",
        r#"{"type": "ephemeral"}"#,
        &[r#"{"type": "ephemeral", "ttl": "1h"}"#, "true"],
    ),
    taken("output_config", "{}", &[r#"{"effort": "low"}"#, "5"]),
    taken("speed", "\"standard\"", &["\"fast\"", "1"]),
    taken("chat_template_kwargs", r#"{"a": 1}"#, &["5", "[]"]),
    refused("context_management", "{}"),
    refused("mcp_servers", "[]"),
    refused("user_profile_id", "\"u\""),
    refused("workspace_id", "\"w\""),
];

const MESSAGES: &[Row] = &[
    taken("max_tokens", "4", &["0", "-1", "1.5", "\"4\"", "100000000"]),
    taken("stop_sequences", r#"["x", "y"]"#, &["\"x\"", "[5]", "[\"\"]"]),
    taken("metadata", r#"{"user_id": "u"}"#, &["5", "\"u\""]),
    taken("service_tier", "\"standard_only\"", &["\"priority\"", "5"]),
    // Of earlier releases.
    taken("temperature", "0.5", &["-0.1", "1.1", "\"hot\"", "true"]),
    taken("top_p", "0.9", &["0", "1.01", "\"x\""]),
    refused("container", "\"c\""),
    refused("diagnostics", "{}"),
    refused("inference_geo", "\"us\""),
    refused("compaction", "{}"),
    refused("billing_policy", "{}"),
    refused("fallbacks", "[]"),
    refused("fallback_credit_token", "\"t\""),
    refused("thread", "{}"),
    taken("presence_penalty", "0.5", &["-2.1", "2.1", "\"x\""]),
    taken("frequency_penalty", "0.5", &["-2.1", "2.1", "[]"]),
    taken("logit_bias", r#"{"9": -100}"#, &["[]", r#"{"9": 101}"#, r#"{"x": 1}"#]),
];

const CHOICES: &[Row] = &[taken("n", "2", &["0", "17", "1.5", "\"2\""])];

const SAMPLING: &[Row] = &[
    taken("temperature", "0.7", &["-0.1", "2.1", "\"hot\"", "true"]),
    taken("top_p", "0.9", &["0", "1.01", "\"x\""]),
    taken("presence_penalty", "0.5", &["-2.1", "2.1", "\"x\""]),
    taken("frequency_penalty", "0.5", &["-2.1", "2.1", "[]"]),
    taken("logit_bias", r#"{"9": -100}"#, &["[]", r#"{"9": 101}"#, r#"{"x": 1}"#]),
];

const SEED: &[Row] = &[taken("seed", "7", &["-1", "1.5", "\"7\""])];

const STOP: &[Row] = &[taken("stop", r#"["x", "y"]"#, &["5", "[5]", "\"\""])];

const OPENAI: &[Row] = &[
    taken("model", "\"scripted\"", &["5", "\"nobody\""]),
    beside(
        taken("stream_options", r#"{"include_obfuscation": false}"#, &["5", r#"{"x": true}"#]),
        r#"{"stream": true}"#,
    ),
    taken("user", "\"u\"", &["5"]),
    taken("metadata", r#"{"a": "b"}"#, &["5", "\"a\""]),
    taken("safety_identifier", "\"s\"", &["5"]),
    taken("prompt_cache_key", "\"k\"", &["5"]),
    taken("prompt_cache_retention", "\"in_memory\"", &["\"24h\"", "5"]),
    refused("prompt_cache_options", r#"{"mode": "explicit"}"#),
    taken("store", "false", &["true", "\"no\""]),
    taken("service_tier", "\"flex\"", &["\"scale\"", "5"]),
];

const STREAMING: &[Row] = &[taken("stream", "true", &["1", "\"yes\""])];

/// Answers of a set form, in the words of other engines' clients.
const FORMS: &[Row] = &[
    taken("guided_json", r#"{"const": 1}"#, &["7", "[]", r#""{""#]),
    taken("guided_regex", "\"[ab]\"", &["7", "\"(\""]),
    taken("guided_grammar", r#""start: \"a\"""#, &["7", r#""start: x""#]),
    taken("guided_choice", r#"["a", "b"]"#, &["\"a\"", "[]", "[7]"]),
    taken(
        "structured_outputs",
        r#"{"choice": ["a", "b"]}"#,
        &["\"a\"", r#"{"xml": true}"#, r#"{"json": 7}"#],
    ),
    beside(
        taken("json_whitespace", "\"flexible\"", &["\"pretty\"", "7"]),
        r#"{"guided_json": {"const": 1}}"#,
    ),
];

/// This engine.
const OWN: &[Row] = &[
    taken("top_k", "40", &["-1", "1.5", "\"x\""]),
    taken("min_p", "0.1", &["-0.1", "1.1", "\"x\""]),
    taken("typical_p", "0.9", &["0", "1.1"]),
    taken("top_n_sigma", "1.5", &["-1", "1001"]),
    taken("epsilon_cutoff", "0.001", &["-1", "1.1"]),
    taken("eta_cutoff", "0.001", &["-1", "1.1"]),
    taken("repetition_penalty", "1.1", &["0", "101"]),
    taken("no_repeat_ngram", "3", &["-1", "1025", "1.5"]),
    taken("dry_multiplier", "0.8", &["-1", "101"]),
    beside(taken("dry_base", "1.75", &["0.9", "101"]), r#"{"dry_multiplier": 0.8}"#),
    beside(taken("dry_allowed_length", "2", &["0", "1.5"]), r#"{"dry_multiplier": 0.8}"#),
    beside(
        taken("allowed_token_ids", "[1, 80, 81]", &["5", "[-1]", "[99999999]"]),
        r#"{"seed": 1}"#,
    ),
    taken("forbidden_token_ids", "[80]", &["5", "[-1]", "[99999999]"]),
    taken("like", "\"vllm\"", &["\"nobody\"", "5"]),
    taken("stop_token_ids", "[80]", &["5", "[1.5]", "[99999999]"]),
    taken("min_tokens", "2", &["-1", "1.5"]),
    taken("ignore_eos", "false", &["1"]),
    taken("timeout_ms", "60000", &["0", "86400001", "1.5"]),
    taken("on_disconnect", "\"finish\"", &["\"stay\"", "5"]),
    taken("priority", "\"batch\"", &["\"high\"", "1"]),
    taken("cache_salt", "\"a\"", &["5"]),
    taken("session", "\"a\"", &["5"]),
    taken("result_cache", "false", &["1"]),
    taken("return_progress", "true", &["1"]),
    taken("reasoning_markers", r#"["<think>", "</think>"]"#, &["5", r#"["a"]"#, "[5, 6]"]),
    beside(
        taken("reasoning_tokens_max", "16", &["-1", "1.5", "\"x\""]),
        r#"{"reasoning_markers": ["<think>", "</think>"]}"#,
    ),
    taken("include_reasoning", "false", &["1"]),
    taken("causeway", "false", &["1"]),
];

/// This engine, where there is a chat template.
const OWN_CHAT: &[Row] = &[
    taken("chat_template_kwargs", r#"{"a": 1}"#, &["5", "[]"]),
    taken("continue_final_message", "false", &["1", "true"]),
];
