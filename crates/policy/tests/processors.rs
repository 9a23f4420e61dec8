//! Every filter and penalty against the logits processors of transformers.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its rows has failed")]

use causeway_policy::{Literal, Policy, PolicyFile, Scratch, StepContext};
use causeway_request::TokenId;
use serde_json::{Map, Value, json};

const ROWS: &str = include_str!("../../../testdata/sampling/processors.jsonl");

/// The row's parameters as a policy tree that runs exactly the row's steps in the row's order.
fn tree(row: &Value, like: Option<&str>) -> Value {
    let params = &row["params"];
    let mut tree = Map::new();
    let mut order = Vec::new();
    for step in row["order"].as_array().unwrap() {
        let mut take = |stage: &str, value: &Value| {
            order.push(json!(stage));
            tree.insert(stage.to_owned(), value.clone());
        };
        match step.as_str().unwrap() {
            "frequency_presence" => {
                take("frequency_penalty", &params["frequency_penalty"]);
                take("presence_penalty", &params["presence_penalty"]);
            }
            "suppress_tokens" => take("forbidden_tokens", &params["suppress_tokens"]),
            "min_new_tokens" => take("min_tokens", &params["min_new_tokens"]),
            same => take(same, &params[same]),
        }
    }
    tree.insert("order".to_owned(), Value::Array(order));
    if let Some(like) = like {
        tree.insert("like".to_owned(), json!(like));
    }
    Value::Object(tree)
}

fn number(value: &Value) -> f64 {
    if value == "-inf" { f64::NEG_INFINITY } else { value.as_f64().unwrap() }
}

fn tokens(value: &Value) -> Vec<TokenId> {
    let id = |id: &Value| TokenId(u32::try_from(id.as_u64().unwrap()).unwrap());
    value.as_array().map_or_else(Vec::new, |ids| ids.iter().map(id).collect())
}

/// What the policy keeps, ascending by id, with probabilities.
fn run(row: &Value, like: Option<&str>) -> Vec<(TokenId, f64)> {
    let file = PolicyFile::from_json(&tree(row, like)).unwrap();
    let logits: Vec<f64> = row["logits"].as_array().unwrap().iter().map(number).collect();
    let policy =
        Policy::from_file(&file, logits.len(), &tokens(&row["params"]["eos_token_ids"])).unwrap();
    let context = tokens(&row["ctx"]);
    let prompt_tokens = usize::try_from(row["prompt_len"].as_u64().unwrap()).unwrap();
    let step = StepContext { tokens: &context, prompt_tokens, seed: 1, choice: 0, step: 0 };
    let scratch = &mut Scratch::default();
    let (_, survivors) =
        policy.choose_literal(Literal::Logits(&logits), None, &step, scratch).unwrap();
    let mut kept: Vec<_> = survivors.iter().map(|s| (s.token, s.probability)).collect();
    kept.sort_by_key(|&(token, _)| token);
    kept
}

/// An empty line where the row is met, else what differs.
fn difference(row: &Value, kept: &[(TokenId, f64)]) -> String {
    let ids: Vec<TokenId> = kept.iter().map(|&(token, _)| token).collect();
    if ids == tokens(&row["kept_alternative"]) {
        return String::new();
    }
    let mut want: Vec<_> = tokens(&row["kept"])
        .into_iter()
        .zip(row["probs"].as_array().unwrap().iter().map(number))
        .collect();
    want.sort_by_key(|&(token, _)| token);
    if ids != want.iter().map(|&(token, _)| token).collect::<Vec<_>>() {
        return format!("row {}: kept {} tokens, not {}", row["id"], kept.len(), want.len());
    }
    let worst = kept.iter().zip(&want).map(|(a, b)| (a.1 - b.1).abs()).fold(0.0, f64::max);
    if worst > 1e-12 {
        return format!("row {}: probabilities differ by {worst:e}", row["id"]);
    }
    String::new()
}

fn rows() -> Vec<Value> {
    ROWS.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_row_agrees_under_the_rules_of_transformers() {
    let found: Vec<String> = rows()
        .iter()
        .map(|row| difference(row, &run(row, Some("transformers"))))
        .filter(|line| !line.is_empty())
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_projects_own_rules_differ_only_by_ties_at_the_top_k_cut() {
    for row in rows() {
        let line = difference(&row, &run(&row, None));
        let has_top_k = row["order"].as_array().unwrap().contains(&json!("top_k"));
        let ties = matches!(row["kind"].as_str(), Some("ties" | "constant" | "one_hot"));
        assert!(line.is_empty() || (has_top_k && ties), "{line}");
    }
}
