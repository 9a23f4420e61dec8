//! The policy of one request: the server's own, and what the request adds to it.

use causeway_policy::{Form, PolicyFile, THOUGHT_BUDGET};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::Edit;

/// Fields of a policy file that a request may fill where the file leaves them out: how much is
/// asked for, of thought too, and what ends it; beside them the form that its reader needs.
/// Everything else decides which token comes.
const OPEN: &[&str] =
    &["stop.tokens_max", "stop.strings", "stop.tokens", "choose.seed", THOUGHT_BUDGET];

/// The field that names a thought's budget as the policy does.
const BUDGET_FIELD: &str = "reasoning_tokens_max";

/// The policy that the server was started with.
#[derive(Debug)]
pub(crate) struct Base {
    /// As canonical JSON: defaults left out.
    tree: Value,
    /// With every default filled in; `None` where there is no policy file.
    fixed: Option<Value>,
    seed: Option<u64>,
}

impl Base {
    /// The rules of a server with this policy file, or with none.
    #[must_use]
    pub(crate) fn new(policy: Option<&PolicyFile>) -> Self {
        let canonical = policy.map(PolicyFile::to_canonical_json);
        let tree = canonical.and_then(|text| serde_json::from_str(&text).ok());
        Self {
            tree: tree.unwrap_or_else(|| json!({})),
            fixed: policy.map(PolicyFile::to_json),
            seed: policy.and_then(|policy| policy.choose.seed),
        }
    }

    /// The policy with a request's fields in it.
    ///
    /// # Errors
    /// A field at odds with the server's policy, or with the others of the request.
    pub(crate) fn with(&self, edits: &[Edit]) -> Result<PolicyFile, ApiError> {
        let mut tree = self.tree.clone();
        for edit in edits {
            if let Some(fixed) = &self.fixed {
                refuse_other(edit, fixed)?;
            }
            put(&mut tree, edit.path, edit.value.clone());
        }
        PolicyFile::from_json(&tree)
            .map_err(|problems| in_words_of(edits, ApiError::bad_request(problems.to_string())))
    }

    /// Whether the policy says how many tokens an answer may have.
    #[must_use]
    pub(crate) fn limits_tokens(&self) -> bool {
        self.tree.pointer("/stop/tokens_max").is_some()
    }

    /// What the policy file has at a path, as in `shape.temperature`; `None` where it leaves the
    /// field out, or where there is no file.
    #[must_use]
    pub(crate) fn own(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(&self.tree, |tree, key| tree.get(key))
    }

    /// Refuses a request's seed where the policy fixes another one.
    ///
    /// # Errors
    /// Two seeds.
    pub(crate) fn check_seed(&self, seed: Option<u64>) -> Result<(), ApiError> {
        match (self.seed, seed) {
            (Some(fixed), Some(asked)) if fixed != asked => {
                Err(at_odds("seed", &json!(asked), &json!(fixed)))
            }
            _ => Ok(()),
        }
    }
}

fn refuse_other(edit: &Edit, fixed: &Value) -> Result<(), ApiError> {
    let own = edit.path.split('.').try_fold(fixed, |tree, key| tree.get(key));
    let own = own.unwrap_or(&Value::Null);
    let is_left_out =
        own.is_null() || *own == json!(false) || own.as_array().is_some_and(Vec::is_empty);
    if same(own, &edit.value) || (is_left_out && is_open(edit.path)) {
        return Ok(());
    }
    // Some APIs ask for a budget in words that are no number.
    if edit.path == THOUGHT_BUDGET && edit.field != BUDGET_FIELD {
        let (field, asked) = (edit.field, &edit.value);
        let text = format!(
            "`{field}` asks for at most {asked} tokens of thought, the server's policy for {own}"
        );
        return Err(ApiError::field(field, text).with_code("fixed_by_policy"));
    }
    Err(at_odds(edit.field, &edit.value, own))
}

fn is_open(path: &str) -> bool {
    OPEN.contains(&path) || Form::FIELDS.contains(&path)
}

fn at_odds(field: &str, asked: &Value, own: &Value) -> ApiError {
    let own = if own.is_null() { "not set".to_owned() } else { own.to_string() };
    let asked = asked.to_string();
    let text = format!("`{field}` is {asked}, but the server's policy has it as {own}");
    ApiError::field(field, text).with_code("fixed_by_policy")
}

/// Equal as JSON, where 1 and 1.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    let same_number = |a: &Value, b: &Value| a.as_f64().is_some_and(|a| b.as_f64() == Some(a));
    a == b || same_number(a, b)
}

fn put(tree: &mut Value, path: &str, value: Value) {
    let mut at = tree;
    for key in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[key];
    }
    *at = value;
}

/// An error about the policy, in the words of the request that made it.
pub(crate) fn in_words_of(edits: &[Edit], error: ApiError) -> ApiError {
    let mut told = error;
    let mut param = None;
    let whole = edits.iter().map(|edit| (edit.path, edit.field));
    for (path, field) in whole {
        let (named, given) = (format!("`{path}`"), format!("`{field}`"));
        if told.message.contains(&named) {
            told.message = told.message.replace(&named, &given);
            param.get_or_insert(field);
        }
    }
    // Some rules are told by their short name.
    let short = |edit: &Edit| edit.path.rsplit('.').next().unwrap_or(edit.path);
    let has = |edit: &&Edit| told.message.contains(&format!("`{}`", short(edit)));
    if let (None, Some(edit)) = (param, edits.iter().find(has)) {
        let (named, given) = (format!("`{}`", short(edit)), format!("`{}`", edit.field));
        told.message = told.message.replace(&named, &given);
        param = Some(edit.field);
    }
    ApiError { param: param.map(str::to_owned).or(told.param.take()), ..told }
}

#[cfg(test)]
mod tests;
