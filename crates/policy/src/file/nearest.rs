//! Finds the field that an unknown name was probably meant for.

/// Names of the fields that are most often misspelled or known by another name elsewhere.
const FIELDS: &[&str] = &[
    "name",
    "version",
    "owner",
    "like",
    "order",
    "model",
    "prompt",
    "constraints",
    "shape",
    "choose",
    "stop",
    "reasoning",
    "account",
    "delivery",
    "slo",
    "fallback",
    "failure_modes",
    "template",
    "system",
    "prefill",
    "allowed_tokens",
    "forbidden_tokens",
    "bad_words",
    "logit_bias",
    "min_tokens",
    "repetition_penalty",
    "repetition_window",
    "presence_penalty",
    "frequency_penalty",
    "penalty_window",
    "no_repeat_ngram",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_window",
    "dry_breakers",
    "json_object",
    "regex",
    "grammar",
    "choice",
    "tools",
    "whitespace",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "epsilon_cutoff",
    "eta_cutoff",
    "method",
    "seed",
    "tokens_max",
    "strings",
    "tokens",
    "ignore_eos",
    "open",
    "close",
    "level",
    "on_disconnect",
    "ttft_ms",
    "itl_ms",
    "tpot_ms",
    "total_ms",
    "policy",
    "sha256",
    "tokenizer_sha256",
    "detector",
    "mitigation",
    "stop_condition",
    "schema",
];

/// What other engines call a field.
const ALIASES: &[(&str, &str)] = &[
    ("max_tokens", "tokens_max"),
    ("max_new_tokens", "tokens_max"),
    ("n_predict", "tokens_max"),
    ("num_predict", "tokens_max"),
    ("min_new_tokens", "min_tokens"),
    ("repeat_penalty", "repetition_penalty"),
    ("repeat_last_n", "repetition_window"),
    ("no_repeat_ngram_size", "no_repeat_ngram"),
    ("bad_words_ids", "bad_words"),
    ("suppress_tokens", "forbidden_tokens"),
    ("allowed_token_ids", "allowed_tokens"),
    ("stop_token_ids", "stop.tokens"),
    ("typical", "typical_p"),
    ("do_sample", "method"),
    ("samplers", "order"),
    ("json_schema", "schema"),
    ("guided_json", "schema"),
    ("guided_regex", "regex"),
    ("guided_grammar", "grammar"),
    ("guided_choice", "choice"),
];

/// The field spelled most like the last part of `path`, where one is near enough.
pub(super) fn nearest(path: &str) -> Option<&'static str> {
    let name = path.rsplit('.').next().unwrap_or(path);
    if let Some(&(_, field)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        return Some(field);
    }
    // A third of the letters may differ: below that, most suggestions are right.
    let allowed = (name.chars().count() / 3).min(3);
    FIELDS
        .iter()
        .map(|field| (distance(name, field), *field))
        .filter(|&(edits, _)| edits <= allowed && edits > 0)
        .min()
        .map(|(_, field)| field)
}

/// Edits (insert, delete, replace) between two names, Levenshtein 1966; capped for long names.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
