//! Which server is asked, and what each request says.

use std::str::FromStr;

use hyper::Uri;
use hyper::header::HeaderValue;
use serde_json::{Map, Value, json};

use crate::error::SettingError;
use crate::plan::Planned;

/// A server's address: `http://HOST:PORT`, perhaps with a path below which its API lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Without the slash at its end and without `/v1`.
    path: String,
}

impl Server {
    pub(crate) fn path_of(&self, api: &str) -> String {
        format!("{}{api}", self.path)
    }

    /// The address as a header says it; a name with colons is an IPv6 address.
    pub(crate) fn authority(&self) -> String {
        let Self { host, port, path: _ } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// The address as users type it.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.authority(), self.path)
    }
}

impl FromStr for Server {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let refusal = || SettingError::Url { url: text.to_owned() };
        let uri = text.parse::<Uri>().map_err(|_| refusal())?;
        let is_plain = uri.scheme_str() == Some("http") && uri.query().is_none();
        let host = uri.host().filter(|host| !host.is_empty() && is_plain).ok_or_else(refusal)?;
        // What is left of the authority is a port, or a user, which is refused.
        let rest = uri.authority().and_then(|name| name.as_str().strip_prefix(host));
        let port = match rest.ok_or_else(refusal)? {
            "" => 80,
            rest => rest[1..].parse().ok().filter(|&port| port > 0).ok_or_else(refusal)?,
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
        Ok(Self { host, port, path })
    }
}

/// Which interface of the API is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `/v1/chat/completions`: the prompt is a user's message.
    Chat,
    /// `/v1/completions`: the prompt is text to go on from.
    Completions,
}

impl Endpoint {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }
}

/// What all requests have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub endpoint: Endpoint,
    /// Which model is asked for; where there is none, the first that the server lists.
    pub model: Option<String>,
    /// Ask for answers of exactly the length planned.
    pub ignore_eos: bool,
    /// Give each request its seed.
    pub seeds: bool,
    /// Fields that are merged into each request; `null` takes a field away.
    pub body: Map<String, Value>,
}

impl Shape {
    /// The body of a request.
    pub(crate) fn body_of(&self, planned: &Planned, prompt: String) -> String {
        let mut body = json!({
            "max_tokens": planned.output_tokens,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        match self.endpoint {
            Endpoint::Chat => {
                body["messages"] = json!([{ "role": "user", "content": prompt }]);
            }
            Endpoint::Completions => body["prompt"] = Value::String(prompt),
        }
        if let Some(model) = &self.model {
            body["model"] = Value::String(model.clone());
        }
        if self.ignore_eos {
            body["ignore_eos"] = Value::Bool(true);
        }
        if self.seeds {
            body["seed"] = Value::from(planned.seed);
        }
        merge(&mut body, &self.body);
        body.to_string()
    }
}

/// Reads the fields that go into each request.
///
/// # Errors
/// If the text is no JSON object.
pub fn read_body(text: &str) -> Result<Map<String, Value>, SettingError> {
    serde_json::from_str(text).map_err(|_| SettingError::Body)
}

/// Merges as RFC 7386 says: objects field by field, `null` removes, all else replaces.
fn merge(into: &mut Value, patch: &Map<String, Value>) {
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Some(fields) = into.as_object_mut() else {
        return;
    };
    for (name, value) in patch {
        match value {
            Value::Null => {
                fields.remove(name);
            }
            Value::Object(inner) => {
                merge(fields.entry(name.clone()).or_insert(Value::Null), inner);
            }
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

/// The header that carries an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(pub(crate) HeaderValue);

impl FromStr for Key {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let value = HeaderValue::from_str(&format!("Bearer {text}"));
        let mut value = value.map_err(|_| SettingError::Key)?;
        // Kept out of what is printed of headers.
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests;
