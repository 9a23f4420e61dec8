//! The policy that a model file makes of itself, and what a run takes from it.

use causeway_policy::PolicyFile;
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

/// What `effective` has of a model's own policy, in the words of the policy file and with its
/// sources; `None` where everything was replaced.
#[must_use]
pub fn taken(own: &PolicyFile, effective: &PolicyFile) -> Option<String> {
    let name = own.identity.name.as_deref()?;
    let (own, effective) = (own.to_json(), effective.to_json());
    let default = PolicyFile::default().to_json();
    let mut parts = Vec::new();
    let method = &own["choose"]["method"];
    if *method == effective["choose"]["method"] {
        parts.extend(method.as_str().map(str::to_owned));
    }
    for section in ["constraints", "shape", "stop"] {
        for (field, value) in own[section].as_object().into_iter().flatten() {
            let is_own = *value != default[section][field] && *value == effective[section][field];
            if is_own {
                parts.push(format!("{field} {}", shown(value)));
            }
        }
    }
    let marker = |name: &str| own["reasoning"][name].as_str();
    if let (Some(open), Some(close)) = (marker("open"), marker("close"))
        && own["reasoning"]["open"] == effective["reasoning"]["open"]
    {
        parts.push(format!("what stands between {open} and {close} is reasoning, not the answer"));
    }
    let sources = name.strip_prefix(NAME).unwrap_or(name);
    (!parts.is_empty()).then(|| format!("{} ({sources})", parts.join(", ")))
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
