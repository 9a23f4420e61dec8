//! Where the hub is, where its files are kept, and who asks: the variables that its users know.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The hub that is asked where the environment names no other.
const ENDPOINT: &str = "https://huggingface.co";

/// Longest token that is read from a file.
const TOKEN_BYTES_MAX: usize = 4096;

/// The hub as this user set it up.
#[derive(Debug, Clone)]
pub struct Hub {
    /// Scheme and host, without a slash at the end.
    pub endpoint: String,
    /// The folder with `models--owner--repo`.
    pub cache: PathBuf,
    pub token: Option<Token>,
    /// Nothing is fetched.
    pub offline: bool,
    /// The wait before a first retry; each one after it doubles it.
    pub pause: Duration,
    /// Longest time without a byte before a connection counts as cut.
    pub stall: Duration,
}

/// A secret, which no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token in `text`, without white space around it; `None` where nothing is left, or what
    /// cannot stand in a header.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_whole.then(|| Self(text.to_owned()))
    }

    /// The header's value that shows the token.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Hub {
    /// Reads `HF_ENDPOINT`, `HF_HUB_CACHE`, `HF_HOME`, `HF_TOKEN`, `HF_TOKEN_PATH`,
    /// `HF_HUB_DISABLE_IMPLICIT_TOKEN` and `HF_HUB_OFFLINE`, with the meaning and the defaults
    /// that the hub's own client gives them; `None` where no variable says where a home is.
    #[must_use]
    pub fn from_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| given(name).and_then(|value| value.into_string().ok());
        let is_on = |name: &str| {
            let value = text(name).unwrap_or_default().to_ascii_uppercase();
            matches!(value.as_str(), "1" | "ON" | "YES" | "TRUE")
        };
        let user = || given("HOME").or_else(|| given("USERPROFILE")).map(PathBuf::from);
        let caches = || {
            let named = given("XDG_CACHE_HOME").map(PathBuf::from);
            named.or_else(|| user().map(|user| user.join(".cache")))
        };
        let home = given("HF_HOME").map(PathBuf::from);
        let home = home.or_else(|| caches().map(|caches| caches.join("huggingface")));
        let cache = given("HF_HUB_CACHE").or_else(|| given("HUGGINGFACE_HUB_CACHE"));
        let cache = cache.map(PathBuf::from);
        let cache = cache.or_else(|| home.as_ref().map(|home| home.join("hub")))?;
        let token_path = given("HF_TOKEN_PATH").map(PathBuf::from);
        let token_path = token_path.or_else(|| home.map(|home| home.join("token")));
        let named = text("HF_TOKEN").or_else(|| text("HUGGING_FACE_HUB_TOKEN"));
        let token = named.as_deref().and_then(Token::new);
        let is_implicit = !is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN");
        let stored = || token_path.filter(|_| is_implicit).and_then(|path| read_token(&path));
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        Some(Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            cache,
            token: token.or_else(stored),
            offline: is_on("HF_HUB_OFFLINE"),
            pause: Duration::from_secs(1),
            stall: Duration::from_secs(30),
        })
    }
}

fn read_token(path: &Path) -> Option<Token> {
    let bytes = std::fs::read(path).ok().filter(|bytes| bytes.len() <= TOKEN_BYTES_MAX)?;
    Token::new(std::str::from_utf8(&bytes).ok()?)
}

#[cfg(test)]
mod tests;
