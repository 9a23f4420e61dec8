//! The policy that a model file makes of itself, and what a run takes from it.

use causeway_policy::{Method, PolicyFile};
use serde_json::Value;

use super::{Defaults, IN_TEMPLATE, sources};

/// What the name of a model's own policy begins with.
const NAME: &str = "the model's own: ";
/// Longest value that is told in the sentence about what was taken.
const VALUE_CHARS: usize = 40;

impl Defaults {
    /// The policy that the file makes of itself; `None` where nothing it says changes anything.
    ///
    /// Its name says what it was read from, and nothing of the model's name or place: models that
    /// say the same have the same policy.
    #[must_use]
    pub fn policy(&self) -> Option<PolicyFile> {
        self.name()?;
        PolicyFile::from_toml(&self.to_toml()).ok()
    }

    /// How the file says that a token is taken, where it does.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        let says = self.said.iter().any(|said| said.field == Some("choose.method"));
        self.policy().filter(|_| says).map(|own| own.choose.method)
    }

    /// What `effective` has of the file's own policy, in the words of the policy file and with
    /// its sources; `None` where it has nothing of it.
    #[must_use]
    pub(super) fn taken(&self, effective: &PolicyFile) -> Option<String> {
        let (own, effective) = (self.policy()?.to_json(), effective.to_json());
        let (mut parts, mut sources) = (Vec::new(), Vec::new());
        for said in self.said.iter().filter(|said| said.counts()) {
            let path = said.field.unwrap_or_default();
            let value = at(&own, path);
            if value != at(&effective, path) {
                continue;
            }
            if !sources.contains(&said.source) {
                sources.push(said.source);
            }
            let (_, field) = path.split_once('.').unwrap_or_default();
            parts.push(match path {
                "choose.method" => value.as_str().unwrap_or_default().to_owned(),
                "reasoning.open" => format!("a thought from {} on", unquoted(value)),
                "reasoning.close" => {
                    format!("to {}, which is no part of the answer", unquoted(value))
                }
                _ => format!("{field} {}", shown(value)),
            });
        }
        (!parts.is_empty()).then(|| format!("{} ({})", parts.join(", "), sources.join(", ")))
    }

    /// What is said of a policy that nobody asked for: what `effective` has of it, what the file
    /// says that no policy takes over, and the way out. `None` where there is neither.
    #[must_use]
    pub fn notice(&self, effective: &PolicyFile) -> Option<String> {
        let keys = self.unheeded.join(", ");
        match (self.taken(effective), keys.is_empty()) {
            (None, true) => None,
            (None, false) => Some(format!(
                "the model's file says {keys} of decoding, which no policy takes over"
            )),
            (Some(taken), is_all) => {
                let rest = if is_all { String::new() } else { format!(", but not its {keys}") };
                Some(format!(
                    "decoding as the model's file says: {taken}{rest}; `--policy none` leaves that \
                     out"
                ))
            }
        }
    }

    pub(super) fn name(&self) -> Option<String> {
        let sources: Vec<&str> = [sources::GENERATION, sources::SAMPLING, IN_TEMPLATE]
            .into_iter()
            .filter(|source| self.said.iter().any(|said| said.source == *source && said.counts()))
            .collect();
        (!sources.is_empty()).then(|| format!("{NAME}{}", sources.join(", ")))
    }
}

impl super::Said {
    /// Whether it is a field with a value that makes a difference.
    fn counts(&self) -> bool {
        let Some(field) = self.field else { return false };
        let line = format!("schema = 1\n{field} = {}\n", self.value);
        let is_default = || {
            PolicyFile::from_toml(&line).is_ok_and(|file| {
                file.to_canonical_json() == PolicyFile::default().to_canonical_json()
            })
        };
        // Where nothing is said of it, one command draws and another takes the best token.
        field == "choose.method" || !is_default()
    }
}

/// What a policy's tree has at a path such as `shape.top_p`.
fn at<'t>(tree: &'t Value, path: &str) -> &'t Value {
    path.split('.').fold(tree, |tree, key| &tree[key])
}

fn unquoted(value: &Value) -> String {
    value.as_str().unwrap_or_default().escape_debug().to_string()
}

/// A value in few words.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(list) if value.to_string().len() > VALUE_CHARS => {
            format!("with {} entries", list.len())
        }
        _ => value.to_string(),
    }
}
