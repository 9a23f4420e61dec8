//! Requests to the hub: redirects followed by hand, the token shown to the hub only, retries.

use std::io::Read as _;
use std::time::Duration;

use serde::Deserialize;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{RootCerts, TlsConfig};

use super::error::{AnswerFault, HubError};
use super::name::is_inside;
use super::{Hub, HubName};

/// Redirects of one request: a renamed repository takes one, a file's store another.
const REDIRECTS_MAX: usize = 8;

/// Tries of one request in a row that bring nothing.
pub(crate) const TRIES_MAX: usize = 5;

/// Longest wait that a server may ask for.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Longest list of files that is read; the largest repositories have some 10 MB.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// How one try failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Another try may work, not before the wait where one is asked for.
    Again { wait: Option<Duration>, error: HubError },
    /// No other try will.
    Final(HubError),
}

/// A client of one hub, for one name, or for addresses that are no hub's.
#[derive(Debug)]
pub(crate) struct Client<'h> {
    pub(crate) hub: &'h Hub,
    name: Option<&'h HubName>,
    agent: ureq::Agent,
}

/// A file as the hub describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    /// Path inside the repository.
    pub(crate) path: String,
    /// The name of its bytes: a SHA-256 for large files, and otherwise git's own.
    pub(crate) etag: String,
    pub(crate) bytes: u64,
    pub(crate) commit: String,
}

/// What a request asks for beside its address.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) head: bool,
    /// The first byte wanted, where some are there already.
    pub(crate) from: Option<u64>,
    /// What the first byte counts for.
    pub(crate) etag: Option<&'a str>,
}

/// An answer, and what the hub itself said on the way to it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<ureq::Body>,
    pub(crate) said: Said,
}

/// What the hub's headers say of a file; a store that it redirects to has words of its own.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) commit: Option<String>,
    pub(crate) etag: Option<String>,
    pub(crate) bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Listing {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
}

impl<'h> Client<'h> {
    pub(crate) fn new(hub: &'h Hub, name: &'h HubName) -> Self {
        Self::with(hub, Some(name))
    }

    /// A client for an address without a hub: nobody is shown a token.
    pub(crate) fn nameless(hub: &'h Hub) -> Self {
        Self::with(hub, None)
    }

    fn with(hub: &'h Hub, name: Option<&'h HubName>) -> Self {
        // The system's certificates, so that a company's proxy is trusted where the system does.
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let config = ureq::Agent::config_builder()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .tls_config(tls)
            .timeout_connect(Some(hub.stall))
            .timeout_recv_response(Some(hub.stall * 2))
            .timeout_per_read(Some(hub.stall))
            .user_agent(concat!("causeway/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { hub, name, agent: config.into() }
    }

    /// The commit that the revision stands for, and the paths of its files.
    pub(crate) fn list(&self) -> Result<(String, Vec<String>), HubError> {
        let (hub, name) = (&self.hub.endpoint, self.name().repository());
        let revision = escaped(self.name().revision_or_main());
        let url = format!("{hub}/api/models/{name}/revision/{revision}");
        let listing = self.retried(|tries| {
            let answer = self.send(&url, Ask::default(), tries)?;
            self.check_status(&url, &answer.response, &self.of_repository(), tries)?;
            let mut text = Vec::new();
            let body = answer.response.into_body().into_reader();
            body.take(LIST_BYTES_MAX)
                .read_to_end(&mut text)
                .map_err(|source| self.unreachable(&url, tries, source.into()))?;
            let listing: Result<Listing, _> = serde_json::from_slice(&text);
            listing.map_err(|_| Trouble::Final(fault(&url, tries, AnswerFault::NoList)))
        })?;
        let Listing { sha, siblings } = listing;
        if !is_commit(&sha) {
            return Err(fault(&url, 1, AnswerFault::Lacks("commit")));
        }
        let paths = siblings.into_iter().map(|file| file.rfilename);
        Ok((sha, paths.filter(|path| is_inside(path)).collect()))
    }

    /// What the hub says of one file; `revision` may be a commit.
    pub(crate) fn remote(&self, revision: &str, path: &str) -> Result<Remote, HubError> {
        let url = self.url_of(revision, path);
        let what = format!("{}/{path}", self.of_repository());
        let said = self.retried(|tries| {
            let answer = self.send(&url, Ask { head: true, ..Ask::default() }, tries)?;
            if !answer.response.status().is_redirection() {
                self.check_status(&url, &answer.response, &what, tries)?;
            }
            Ok(answer.said)
        })?;
        let Said { commit, etag, bytes } = said;
        let lacks = |what| fault(&url, 1, AnswerFault::Lacks(what));
        let commit = commit.or_else(|| is_commit(revision).then(|| revision.to_owned()));
        let commit = commit.filter(|commit| is_commit(commit));
        Ok(Remote {
            path: path.to_owned(),
            etag: etag.filter(|etag| is_etag(etag)).ok_or_else(|| lacks("etag"))?,
            bytes: bytes.ok_or_else(|| lacks("size"))?,
            commit: commit.ok_or_else(|| lacks("commit"))?,
        })
    }

    /// Where a file is fetched.
    pub(crate) fn url_of(&self, revision: &str, path: &str) -> String {
        let (endpoint, name) = (&self.hub.endpoint, self.name().repository());
        let parts: Vec<String> = path.split('/').map(escaped).collect();
        format!("{endpoint}/{name}/resolve/{}/{}", escaped(revision), parts.join("/"))
    }

    /// Sends one request and follows where it leads.
    ///
    /// A question for the head of a file ends at the redirect to a store on another host, whose
    /// headers are not the hub's.
    pub(crate) fn send(&self, url: &str, ask: Ask<'_>, tries: usize) -> Result<Answer, Trouble> {
        let mut said = Said::default();
        let (mut at, mut is_hub) = (url.to_owned(), true);
        for _ in 0..=REDIRECTS_MAX {
            // Once away from the hub, nobody is shown the token again.
            is_hub &= origin(&at) == origin(&self.hub.endpoint);
            let response =
                self.call(&at, ask, is_hub).map_err(|e| self.unreachable(&at, tries, e))?;
            if is_hub {
                said.read(&response, ask.head);
            }
            let next = response.headers().get("location").and_then(|next| next.to_str().ok());
            let Some(next) = next.filter(|_| response.status().is_redirection()) else {
                return Ok(Answer { response, said });
            };
            let next = joined(&at, next);
            let leaves = is_hub && origin(&next) != origin(&self.hub.endpoint);
            if ask.head && leaves && said.etag.is_some() {
                return Ok(Answer { response, said });
            }
            if at.starts_with("https:") && !next.starts_with("https:") {
                break;
            }
            at = next;
        }
        Err(Trouble::Final(fault(url, tries, AnswerFault::Redirects(REDIRECTS_MAX))))
    }

    fn call(
        &self,
        url: &str,
        ask: Ask<'_>,
        is_hub: bool,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let mut call = if ask.head { self.agent.head(url) } else { self.agent.get(url) };
        // A compressed answer would have another length than the file.
        call = call.header("Accept-Encoding", "identity");
        if let Some(from) = ask.from {
            call = call.header("Range", format!("bytes={from}-"));
            // A store's name for the same bytes is another, so only the hub is asked by name.
            if let Some(etag) = ask.etag.filter(|_| is_hub) {
                call = call.header("If-Range", format!("\"{etag}\""));
            }
        }
        if let Some(token) = self.hub.token.as_ref().filter(|_| is_hub) {
            call = call.header("Authorization", token.bearer());
        }
        call.call()
    }

    /// Sorts a status by who can mend it; `what` is what was asked for.
    pub(crate) fn check_status(
        &self,
        url: &str,
        response: &Response<ureq::Body>,
        what: &str,
        tries: usize,
    ) -> Result<(), Trouble> {
        let status = response.status().as_u16();
        let code = header(response.headers(), "x-error-code").unwrap_or_default();
        let has_token = self.hub.token.is_some();
        let missing = || HubError::Missing { what: what.to_owned(), status, has_token };
        match (status, self.name) {
            (200..=299, _) => Ok(()),
            (401 | 404, Some(_)) if code == "RepoNotFound" => Err(Trouble::Final(missing())),
            (404 | 410, Some(_)) => Err(Trouble::Final(missing())),
            (401 | 403, Some(name)) => Err(Trouble::Final(HubError::Gated {
                name: name.to_string(),
                page: format!("{}/{}", self.hub.endpoint, name.repository()),
                status,
                has_token,
            })),
            (408 | 425 | 429 | 500..=599, _) => {
                let wait = header(response.headers(), "retry-after");
                let wait = wait.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                let error = fault(url, tries, AnswerFault::Status(status));
                Err(Trouble::Again { wait, error })
            }
            _ => Err(Trouble::Final(fault(url, tries, AnswerFault::Status(status)))),
        }
    }

    fn name(&self) -> &HubName {
        self.name.expect("only what a hub's name leads to is listed")
    }

    /// `owner/repo`, with the revision where one was named.
    fn of_repository(&self) -> String {
        let revision = self.name().revision.as_ref().map(|revision| format!("@{revision}"));
        format!("{}{}", self.name().repository(), revision.unwrap_or_default())
    }

    pub(crate) fn unreachable(&self, url: &str, tries: usize, source: ureq::Error) -> Trouble {
        // What follows `?` in a store's address is a signature, which no message needs.
        let url = url.split('?').next().unwrap_or(url).to_owned();
        Trouble::Again {
            wait: None,
            error: HubError::Network { url, tries, source: source.into() },
        }
    }

    /// Tries until it works, until no other try will, or until [`TRIES_MAX`].
    pub(crate) fn retried<T>(
        &self,
        mut each: impl FnMut(usize) -> Result<T, Trouble>,
    ) -> Result<T, HubError> {
        let mut tries = 1;
        loop {
            match each(tries) {
                Ok(done) => return Ok(done),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Again { error, .. }) if tries >= TRIES_MAX => return Err(error),
                Err(Trouble::Again { wait, .. }) => self.wait(tries, wait),
            }
            tries += 1;
        }
    }

    /// Waits as long as the server asks, or twice as long as the last time.
    pub(crate) fn wait(&self, tries: usize, asked: Option<Duration>) {
        let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
        let own = self.hub.pause.saturating_mul(1 << doublings);
        std::thread::sleep(asked.unwrap_or(own).min(WAIT_MAX));
    }
}

impl Said {
    /// Keeps what the first of the hub's answers says that says anything.
    fn read(&mut self, response: &Response<ureq::Body>, is_head: bool) {
        let headers = response.headers();
        let is_file = response.status().is_success();
        let commit = header(headers, "x-repo-commit");
        self.commit = self.commit.take().or_else(|| commit.map(str::to_owned));
        let linked = header(headers, "x-linked-etag");
        let etag = linked.or_else(|| header(headers, "etag").filter(|_| is_file));
        self.etag = self.etag.take().or_else(|| etag.map(bare_etag));
        let length = header(headers, "content-length").filter(|_| is_file && is_head);
        let bytes = header(headers, "x-linked-size").or(length);
        self.bytes = self.bytes.or_else(|| bytes.and_then(|text| text.trim().parse().ok()));
    }
}

/// A fault of the answer from `url`.
pub(crate) fn fault(url: &str, tries: usize, fault: AnswerFault) -> HubError {
    let url = url.split('?').next().unwrap_or(url).to_owned();
    HubError::Answer { url, tries, fault }
}

pub(crate) fn header<'r>(headers: &'r HeaderMap, name: &str) -> Option<&'r str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// An entity tag without its quotes and its mark of weakness.
fn bare_etag(text: &str) -> String {
    text.trim().trim_start_matches("W/").trim_matches('"').to_owned()
}

/// Whether a tag can name a file of the cache.
fn is_etag(etag: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=128).contains(&etag.len()) && etag.bytes().all(is_known)
}

/// Whether a text is a commit's hash.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Scheme, host and port of an address, in small letters.
fn origin(url: &str) -> String {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end);
    url[..end].to_ascii_lowercase()
}

/// Where a redirect from `at` leads.
fn joined(at: &str, location: &str) -> String {
    let scheme = at.split(':').next().unwrap_or("https");
    if location.contains("://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{}{location}", origin(at))
    } else {
        let path = at.split(['?', '#']).next().unwrap_or(at);
        let folder = path.rfind('/').filter(|&end| end >= origin(at).len());
        format!("{}/{location}", folder.map_or(path, |end| &path[..end]))
    }
}

/// A part of a path with everything escaped that has a meaning there.
fn escaped(part: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    part.bytes()
        .map(
            |byte| {
                if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests;
