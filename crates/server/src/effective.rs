//! The policy of one request: the server's own or the model's, and what the request adds to it.

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

/// The policy that requests to one model begin with.
#[derive(Debug)]
pub(crate) struct Base {
    file: PolicyFile,
    /// As canonical JSON: defaults left out.
    tree: Value,
    /// With every default filled in; `None` where no policy file fixes anything.
    fixed: Option<Value>,
}

impl Base {
    /// A policy file, whose fields are not a request's to change.
    #[must_use]
    pub(crate) fn fixed(policy: &PolicyFile) -> Self {
        Self { fixed: Some(policy.to_json()), ..Self::open(Some(policy)) }
    }

    /// The model's own policy, or none: a request's fields go over it.
    #[must_use]
    pub(crate) fn open(own: Option<&PolicyFile>) -> Self {
        let file = own.cloned().unwrap_or_default();
        let tree = serde_json::from_str(&file.to_canonical_json());
        let tree = tree.expect("invariant: the canonical form is JSON");
        Self { file, tree, fixed: None }
    }

    /// The policy of a request that asks for nothing.
    #[must_use]
    pub(crate) fn file(&self) -> &PolicyFile {
        &self.file
    }

    /// The policy with a request's fields in it.
    ///
    /// # Errors
    /// A field at odds with the server's policy, or with the others of the request.
    pub(crate) fn with(&self, edits: &[Edit]) -> Result<PolicyFile, ApiError> {
        let mut tree = self.tree.clone();
        // A model that takes the best token by its own word draws where a request shapes a draw.
        let is_drawn = edits.iter().any(|edit| edit.path.starts_with("shape."));
        if self.fixed.is_none() && is_drawn {
            put(&mut tree, "choose.method", json!("sample"));
        }
        for edit in edits {
            if let Some(fixed) = &self.fixed {
                refuse_other(edit, fixed)?;
            }
            put(&mut tree, edit.path, edit.value.clone());
        }
        PolicyFile::from_json(&tree)
            .map_err(|problems| in_words_of(edits, ApiError::bad_request(problems.to_string())))
    }

    /// Whether the budget of a request with these fields is its model's own word, which no
    /// request has to leave room for: such an answer may end with the context.
    #[must_use]
    pub(crate) fn budgets(&self, edits: &[Edit]) -> bool {
        let is_asked = edits.iter().any(|edit| edit.path == "stop.tokens_max");
        self.fixed.is_none() && !is_asked && self.limits_tokens()
    }

    /// What `/v1/models` says of it; the fields of a policy file are its owner's to tell.
    #[must_use]
    pub(crate) fn told(&self) -> Value {
        let mut told = json!({
            "name": self.file.identity.name,
            "sha256": self.file.hash_hex(),
            "fixed": self.fixed.is_some(),
        });
        if self.fixed.is_none() {
            let own = self.tree.as_object().into_iter().flatten();
            let own =
                own.filter(|(name, _)| !["schema", "name", "prompt"].contains(&name.as_str()));
            told["fields"] = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        told
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
        match (self.file.choose.seed, seed) {
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
