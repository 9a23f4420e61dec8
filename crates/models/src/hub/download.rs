//! One file, fetched: resumed where it broke off, checked, then named.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use super::cache::Repository;
use super::client::{Answer, Ask, Client, Remote, TRIES_MAX, Trouble, fault, header};
use super::error::{AnswerFault, HubError};
use crate::Sha256;

/// Most requests for one file, however much each of them brings.
const REQUESTS_MAX: usize = 1000;

/// Whole downloads with another SHA-256 than the hub's before it is given up.
const DAMAGED_MAX: usize = 2;

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 18;

/// Where a file comes from, and where it goes.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) url: String,
    /// Where its bytes lie until all of them are there.
    pub(crate) part: PathBuf,
    pub(crate) whole: PathBuf,
}

/// Brings the bytes of `remote` into the cache; the caller holds their lock.
pub(crate) fn download(
    client: &Client<'_>,
    repository: &Repository,
    remote: &Remote,
    at: &mut dyn FnMut(u64),
) -> Result<(), HubError> {
    let way = Way {
        url: client.url_of(&remote.commit, &remote.path),
        part: repository.part(&remote.etag),
        whole: repository.blob(&remote.etag),
    };
    download_by(client, &way, remote, at)
}

/// Brings a file's bytes to where they belong.
///
/// They lie in the part until all of them are there, are as many as was said and, where the tag
/// is their SHA-256, have it; then the file is renamed. A download that broke off goes on where it
/// ended, in this run or a later one. `at` is told how many bytes are there.
pub(crate) fn download_by(
    client: &Client<'_>,
    way: &Way,
    remote: &Remote,
    at: &mut dyn FnMut(u64),
) -> Result<(), HubError> {
    let Way { url, part, whole } = way;
    let (mut tries, mut damaged) = (1, 0);
    for _ in 0..REQUESTS_MAX {
        let before = length(part);
        let attempt = Attempt { client, remote, url, part, tries };
        match attempt.run(at) {
            Ok(()) => match attempt.check() {
                Ok(()) => return fs::rename(part, whole).map_err(HubError::file("write", whole)),
                Err(error) => {
                    discard(part)?;
                    damaged += 1;
                    if damaged >= DAMAGED_MAX {
                        return Err(error);
                    }
                }
            },
            Err(Trouble::Final(error)) => return Err(error),
            Err(Trouble::Again { wait, error }) => {
                // Whoever brings bytes may be asked again; so a slow way is a way.
                tries = if length(part) > before { 1 } else { tries + 1 };
                if tries > TRIES_MAX {
                    return Err(error);
                }
                client.wait(tries - 1, wait);
            }
        }
    }
    Err(fault(url, REQUESTS_MAX, cut(part, remote)))
}

/// One request for what is missing.
struct Attempt<'a> {
    client: &'a Client<'a>,
    remote: &'a Remote,
    url: &'a str,
    part: &'a Path,
    tries: usize,
}

impl Attempt<'_> {
    fn run(&self, at: &mut dyn FnMut(u64)) -> Result<(), Trouble> {
        let bytes_wanted = self.remote.bytes;
        if length(self.part) > bytes_wanted {
            discard(self.part).map_err(Trouble::Final)?;
        }
        let from = length(self.part);
        if from == bytes_wanted && self.part.exists() {
            return Ok(());
        }
        let etag = Some(self.remote.etag.as_str());
        let ask = Ask { head: false, from: (from > 0).then_some(from), etag };
        let answer = self.client.send(self.url, ask, self.tries)?;
        let from = self.agreed_start(&answer, from)?;
        let body = answer.response.into_body().into_reader();
        self.append(body, from, at)
    }

    /// Where the answer's first byte belongs; the part is cut to there.
    fn agreed_start(&self, answer: &Answer, from: u64) -> Result<u64, Trouble> {
        let Answer { response, said } = answer;
        if said.etag.as_ref().is_some_and(|etag| *etag != self.remote.etag) {
            return Err(Trouble::Final(self.fault(AnswerFault::Changes)));
        }
        let status = response.status().as_u16();
        if status == 416 {
            // The part is no beginning of this file.
            discard(self.part).map_err(Trouble::Final)?;
            let error = self.fault(AnswerFault::Status(status));
            return Err(Trouble::Again { wait: None, error });
        }
        self.client.check_status(self.url, response, &self.remote.path, self.tries)?;
        let bytes_wanted = self.remote.bytes;
        let length = header(response.headers(), "content-length").and_then(|n| n.parse().ok());
        let (start, total) = if status == 206 {
            let range = header(response.headers(), "content-range").and_then(content_range);
            range.ok_or_else(|| self.restart(AnswerFault::OtherPart))?
        } else {
            (0, length)
        };
        if total.is_some_and(|bytes| bytes != bytes_wanted) {
            let bytes = total.unwrap_or_default();
            return Err(self.restart(AnswerFault::Length { bytes, bytes_wanted }));
        }
        if start != 0 && start != from {
            return Err(self.restart(AnswerFault::OtherPart));
        }
        Ok(start)
    }

    /// Another try from the first byte.
    fn restart(&self, fault: AnswerFault) -> Trouble {
        match discard(self.part) {
            Ok(()) => Trouble::Again { wait: None, error: self.fault(fault) },
            Err(error) => Trouble::Final(error),
        }
    }

    fn append(
        &self,
        mut body: impl Read,
        from: u64,
        at: &mut dyn FnMut(u64),
    ) -> Result<(), Trouble> {
        let failed = |source| Trouble::Final(self.write_failure(source));
        let mut file = open(self.part, from).map_err(failed)?;
        let (mut bytes, mut piece) = (from, vec![0; PIECE_BYTES]);
        while bytes <= self.remote.bytes {
            let count = match body.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(self.client.unreachable(self.url, self.tries, error.into()));
                }
            };
            file.write_all(&piece[..count]).map_err(failed)?;
            bytes += count as u64;
            at(bytes.min(self.remote.bytes));
        }
        let bytes_wanted = self.remote.bytes;
        if bytes > bytes_wanted {
            return Err(self.restart(AnswerFault::TooLong { bytes_wanted }));
        }
        if bytes < bytes_wanted {
            let error = self.fault(AnswerFault::Cut { bytes, bytes_wanted });
            return Err(Trouble::Again { wait: None, error });
        }
        // On the disk before it has a name.
        file.sync_all().map_err(failed)
    }

    /// Whether the bytes are those that the tag stands for, where it is their SHA-256.
    fn check(&self) -> Result<(), HubError> {
        let Some(wanted) = Sha256::from_hex(&self.remote.etag) else {
            return Ok(());
        };
        let hashed = File::open(self.part).and_then(|mut file| Sha256::of(&mut file));
        let found = hashed.map_err(HubError::file("read", self.part))?;
        if found == wanted {
            return Ok(());
        }
        Err(HubError::WrongHash { file: self.remote.path.clone(), found, wanted })
    }

    fn fault(&self, of: AnswerFault) -> HubError {
        fault(self.url, self.tries, of)
    }

    fn write_failure(&self, source: io::Error) -> HubError {
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            let path = self.part.parent().unwrap_or(self.part).to_owned();
            let bytes_needed = self.remote.bytes - length(self.part).min(self.remote.bytes);
            return HubError::Space { path, bytes_needed, bytes_free: 0 };
        }
        HubError::file("write", self.part)(source)
    }
}

/// The part, cut or left at `from` bytes, to be written on.
fn open(part: &Path, from: u64) -> io::Result<File> {
    if let Some(folder) = part.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().create(true).append(true).open(part)?;
    file.set_len(from)?;
    Ok(file)
}

/// First byte and whole length of `bytes 5-9/10`; the length may be unknown.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    let total = if total == "*" { None } else { Some(total.trim().parse().ok()?) };
    Some((first.trim().parse().ok()?, total))
}

fn discard(part: &Path) -> Result<(), HubError> {
    match fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(HubError::file("remove", part)(error))
        }
        _ => Ok(()),
    }
}

fn cut(part: &Path, remote: &Remote) -> AnswerFault {
    AnswerFault::Cut { bytes: length(part), bytes_wanted: remote.bytes }
}

/// Bytes of a file; 0 where it is not there.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}
