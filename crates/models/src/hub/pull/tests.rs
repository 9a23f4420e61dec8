//! Cases of fetching from a hub, with a small server on this machine in the hub's place.

pub(crate) mod stand_in;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use self::stand_in::{COMMIT, Fault, StandIn, etag_of};
use super::{plan, there};
use crate::Progress;
use crate::hub::{Hub, HubError, HubName, Token, cached};

/// What the progress was told last.
#[derive(Debug, Default)]
struct Heard {
    at: (u64, u64),
}

impl Progress for Heard {
    fn waiting(&mut self) {}

    fn at(&mut self, bytes: u64, bytes_total: u64) {
        self.at = (bytes, bytes_total);
    }
}

/// A cache, and the server that fills it.
struct World {
    folder: TempDir,
    server: StandIn,
}

/// The one file of most cases; longer than a piece, so that a cut falls inside.
fn model() -> Vec<u8> {
    (0..300_000_u32).map(|i| u8::try_from((i ^ i >> 7) % 251).unwrap()).collect()
}

impl World {
    fn new(files: &[(&str, Vec<u8>)], faults: &[Fault]) -> Self {
        let server = StandIn::start(files, faults);
        Self { folder: tempfile::tempdir().unwrap(), server }
    }

    /// A world of one model, and its faults.
    fn with_faults(faults: &[Fault]) -> Self {
        Self::new(&[("m-Q4_K_M.gguf", model())], faults)
    }

    fn hub(&self) -> Hub {
        Hub {
            endpoint: self.server.url(),
            cache: self.folder.path().join("hub"),
            token: None,
            offline: false,
            pause: Duration::from_millis(1),
            stall: Duration::from_millis(400),
        }
    }

    fn root(&self) -> PathBuf {
        self.hub().cache.join("models--o--r")
    }

    fn part(&self) -> PathBuf {
        self.root().join(format!("blobs/{}.incomplete", etag_of(&model())))
    }

    fn pull(&self, name: &str) -> Result<PathBuf, HubError> {
        let (hub, name) = (self.hub(), HubName::parse(name).unwrap());
        let plan = plan(&hub, &name)?;
        let mut heard = Heard::default();
        let path = plan.fetch(&mut heard)?;
        assert_eq!(heard.at, (plan.bytes_total, plan.bytes_total));
        Ok(path)
    }

    fn cached(&self, name: &str) -> Option<PathBuf> {
        cached(&self.hub(), &HubName::parse(name).unwrap())
    }

    /// Names below `folder` of the repository's folder.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root().join(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Faults that a pull gets over by itself, with so many requests for the file.
fn check_mended(faults: &[Fault], want_requests: usize) {
    let world = World::with_faults(faults);
    let path = world.pull("hf:o/r:q4_k_m").unwrap_or_else(|e| panic!("{faults:?}: {e}"));
    assert!(fs::read(&path).unwrap() == model(), "{faults:?}");
    assert_eq!(world.server.count("GET /o/r/resolve"), want_requests, "{faults:?}");
    assert_eq!(world.names("blobs"), [etag_of(&model())], "{faults:?}");
}

/// Faults that no try gets over: one sentence, and nothing under the model's name.
fn check_given_up(faults: &[Fault], want: &str) {
    let world = World::with_faults(faults);
    let error = world.pull("hf:o/r").unwrap_err();
    let said = error.to_string();
    assert!(said.contains(want), "{faults:?}: {said}");
    assert_eq!(world.cached("hf:o/r"), None, "{faults:?}");
    assert!(world.names("snapshots").is_empty() && world.names("refs").is_empty(), "{faults:?}");
    assert!(world.names("blobs").iter().all(|name| name.ends_with(".incomplete")), "{faults:?}");
}

#[test]
fn a_file_lies_where_the_hubs_own_client_looks_for_it() {
    let world = World::with_faults(&[]);
    let path = world.pull("hf:o/r").unwrap();
    let root = world.root();
    assert_eq!(path, root.join("snapshots").join(COMMIT).join("m-Q4_K_M.gguf"));
    let link = PathBuf::from(format!("../../blobs/{}", etag_of(&model())));
    assert_eq!(fs::read_link(&path).unwrap(), link);
    assert_eq!(fs::read_to_string(root.join("refs/main")).unwrap(), COMMIT);
    assert_eq!(world.cached("hf:o/r"), Some(path.clone()));
    assert_eq!(world.cached("hf:o/r:Q4_K_M"), Some(path.clone()));
    assert_eq!(world.cached("hf:o/r/m-Q4_K_M.gguf"), Some(path.clone()));
    assert_eq!(world.cached(&format!("hf:o/r@{COMMIT}")), Some(path));
    assert_eq!(world.cached("hf:o/r:Q8_0"), None);
    world.pull("hf:o/r").unwrap();
    assert_eq!(world.server.count("GET /o/r/resolve"), 1, "what is there is not fetched again");
}

#[test]
fn what_breaks_off_goes_on_where_it_ended() {
    check_mended(&[], 1);
    check_mended(&[Fault::Cut(100_000)], 2);
    check_mended(&[Fault::Cut(0), Fault::Cut(0), Fault::Cut(0)], 4);
    check_mended(&[Fault::Cut(1), Fault::Status(503), Fault::Cut(270_000)], 4);
    check_mended(&[Fault::Stall(50_000)], 2);
    check_mended(&[Fault::Slow], 1);
    let world = World::with_faults(&[Fault::Cut(100_000)]);
    world.pull("hf:o/r").unwrap();
    assert_eq!(world.server.count("range: bytes=100000-"), 1);
}

#[test]
fn a_later_run_goes_on_too_and_a_broken_one_is_not_there() {
    let world = World::with_faults(&[Fault::Cut(100_000), Fault::Status(418)]);
    let error = world.pull("hf:o/r").unwrap_err();
    assert!(error.to_string().contains("status 418"), "{error}");
    assert_eq!(fs::metadata(world.part()).unwrap().len(), 100_000);
    assert_eq!(world.cached("hf:o/r"), None);
    let name = HubName::parse("hf:o/r").unwrap();
    let hub = world.hub();
    let rest = plan(&hub, &name).unwrap();
    assert_eq!((rest.bytes_total, rest.bytes_missing), (300_000, 200_000));
    let path = world.pull("hf:o/r").unwrap();
    assert!(fs::read(path).unwrap() == model());
    assert_eq!(world.server.count("range: bytes=100000-"), 2);
}

#[test]
fn a_server_without_ranges_sends_all_of_it_again() {
    check_mended(&[Fault::Cut(100_000), Fault::WholeForPart], 2);
    check_mended(&[Fault::Cut(100_000), Fault::OtherPart, Fault::None], 3);
    check_mended(&[Fault::Cut(100_000), Fault::Status(416), Fault::None], 3);
    let world = World::with_faults(&[]);
    fs::create_dir_all(world.part().parent().unwrap()).unwrap();
    fs::write(world.part(), vec![0; 400_000]).unwrap();
    let path = world.pull("hf:o/r").unwrap();
    assert!(fs::read(path).unwrap() == model(), "a part longer than the file is none of it");
}

#[test]
fn a_busy_server_is_asked_again_and_not_for_ever() {
    check_mended(&[Fault::Status(503), Fault::Status(500), Fault::Status(429)], 4);
    check_given_up(&[Fault::Status(503); 5], "(5 tries): the server answers with status 503");
    check_given_up(&[Fault::Cut(0); 5], "cannot be");
    check_given_up(&[Fault::Status(400)], "(1 tries): the server answers with status 400");
}

#[test]
fn a_server_says_how_long_to_wait() {
    let world = World::with_faults(&[Fault::Busy("1"), Fault::Busy("0"), Fault::Busy("soon")]);
    let path = world.pull("hf:o/r").unwrap();
    assert!(fs::read(path).unwrap() == model());
    assert_eq!(world.server.waited_ms() / 1000, 1, "a second passed, and not a minute");
}

#[test]
fn damaged_bytes_are_found_and_fetched_once_more() {
    check_mended(&[Fault::Damaged], 2);
    check_given_up(&[Fault::Damaged, Fault::Damaged], "was expected: nothing was kept");
    let world = World::with_faults(&[]);
    fs::create_dir_all(world.part().parent().unwrap()).unwrap();
    fs::write(world.part(), vec![7; 1000]).unwrap();
    let path = world.pull("hf:o/r").unwrap();
    assert!(fs::read(path).unwrap() == model(), "a part of something else is found out");
}

#[test]
fn a_wrong_length_is_never_a_model() {
    check_mended(&[Fault::Announces(299_999)], 2);
    check_given_up(&[Fault::Announces(299_999); 5], "announces 299999 bytes, 300000 were expected");
    check_given_up(&[Fault::TooLong; 5], "sends more than the 300000 bytes");
    check_given_up(&[Fault::OtherTag], "the file changes while it is fetched");
}

#[test]
fn a_redirect_is_followed_and_the_token_stays_with_the_hub() {
    let store = StandIn::start(&[("m-Q4_K_M.gguf", model())], &[Fault::Cut(100_000)]);
    let world = World::with_faults(&[]);
    world.server.send_files_to(&store.url());
    let hub = Hub { token: Token::new("hf_secret"), ..world.hub() };
    let name = HubName::parse("hf:o/r").unwrap();
    let path = plan(&hub, &name).unwrap().fetch(&mut Heard::default()).unwrap();
    assert!(fs::read(path).unwrap() == model());
    assert_eq!(store.count("GET /o/r/resolve"), 2);
    assert_eq!(store.count("hf_secret"), 0, "another host is shown no token");
    assert_eq!(store.count("range: bytes=100000-"), 1);
    assert_eq!(store.count("if-range"), 0, "a store has tags of its own");
    assert_eq!(world.server.count("authorization: Bearer hf_secret"), 4);
    let world = World::with_faults(&[Fault::Loop; 20]);
    let error = world.pull("hf:o/r").unwrap_err();
    assert!(error.to_string().contains("redirected more than 8 times"), "{error}");
}

fn check_refused(status: u16, code: &'static str, token: Option<Token>, want: &str) {
    let world = World::with_faults(&[]);
    world.server.refuse(status, code);
    let hub = Hub { token, ..world.hub() };
    let name = HubName::parse("hf:o/r").unwrap();
    let error = plan(&hub, &name).unwrap_err();
    assert!(error.is_callers_mistake());
    let said = error.to_string().replace(&world.server.url(), "HUB");
    assert_eq!(said, want);
    assert!(!said.contains("hf_secret"));
}

#[test]
fn what_is_gated_or_missing_is_one_sentence_that_says_what_to_do() {
    let token = || Token::new("hf_secret");
    let gated = "`hf:o/r` is gated or private and the hub says 401: ask for access at HUB/o/r, \
                 then set HF_TOKEN to a token of that account";
    check_refused(401, "GatedRepo", None, gated);
    let refused = "`hf:o/r` is gated or private and the hub says 403: the token in use has no \
                   access: ask for it at HUB/o/r, or use another token";
    check_refused(403, "GatedRepo", token(), refused);
    let missing = "the hub has no `o/r` (status 404): check the name; if it is private, set \
                   HF_TOKEN to a token that may read it";
    check_refused(404, "", None, missing);
    let hidden = "the hub has no `o/r` (status 401): check the name; if it is private, the token \
                  in use has no access to it";
    check_refused(401, "RepoNotFound", token(), hidden);
}

#[test]
fn offline_only_the_cache_is_asked() {
    let world = World::with_faults(&[]);
    let hub = Hub { offline: true, ..world.hub() };
    let name = HubName::parse("hf:o/r").unwrap();
    let said = plan(&hub, &name).unwrap_err().to_string();
    assert!(said.starts_with("model `hf:o/r` is not in the cache `"), "{said}");
    assert!(said.contains("HF_HUB_OFFLINE"), "{said}");
    assert_eq!(said, there(&hub, &name).unwrap_err().to_string());
    assert_eq!(world.server.count(""), 0);
    let absent = there(&world.hub(), &name).unwrap_err().to_string();
    assert_eq!(absent, "model `hf:o/r` is not fetched yet: run `causeway pull hf:o/r`");
    let path = world.pull("hf:o/r").unwrap();
    assert_eq!(there(&hub, &name).unwrap(), path);
}

#[test]
fn a_hub_that_is_not_there_is_named() {
    let world = World::with_faults(&[]);
    let hub = Hub { endpoint: "http://127.0.0.1:1".to_owned(), ..world.hub() };
    let error = plan(&hub, &HubName::parse("hf:o/r").unwrap()).unwrap_err();
    let want = "`http://127.0.0.1:1/api/models/o/r/revision/main` cannot be reached (5 tries)";
    assert!(error.to_string().starts_with(want), "{error}");
    assert!(!error.is_callers_mistake());
}

#[test]
fn split_files_and_folders_are_fetched_whole() {
    let split = ["q/m-Q8_0-00001-of-00002.gguf", "q/m-Q8_0-00002-of-00002.gguf"];
    let world = World::new(&[(split[0], vec![1; 10]), (split[1], vec![2; 20])], &[]);
    let path = world.pull("hf:o/r").unwrap();
    assert!(path.ends_with(split[0]), "{path:?}");
    assert_eq!(fs::read(path.with_file_name("m-Q8_0-00002-of-00002.gguf")).unwrap(), [2; 20]);
    let index = br#"{"weight_map": {"a": "model-00001-of-00002.safetensors",
        "b": "model-00002-of-00002.safetensors"}}"#;
    let files = [
        ("config.json", b"{}".to_vec()),
        ("tokenizer.json", b"{}".to_vec()),
        ("model.safetensors.index.json", index.to_vec()),
        ("model-00001-of-00002.safetensors", vec![3; 30]),
        ("model-00002-of-00002.safetensors", vec![4; 40]),
        ("README.md", b"#".to_vec()),
    ];
    let world = World::new(&files, &[]);
    let path = world.pull("hf:o/r").unwrap();
    assert_eq!(path, world.root().join("snapshots").join(COMMIT).join(""));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 5, "what is no part of the model stays away");
    assert_eq!(world.cached("hf:o/r").as_deref(), Some(Path::new(path.as_path())));
    fs::remove_file(path.join("model-00002-of-00002.safetensors")).unwrap();
    assert_eq!(world.cached("hf:o/r"), None, "a folder without a shard is no model");
}

#[test]
fn an_unknown_quantisation_lists_what_there_is() {
    let files = [("m-Q8_0.gguf", vec![1]), ("m-F16.gguf", vec![2])];
    let world = World::new(&files, &[]);
    let said = |name| world.pull(name).unwrap_err().to_string();
    let want = "`hf:o/r:Q2_K`: no file has the quantisation `Q2_K`: there are `F16` and `Q8_0`";
    assert_eq!(said("hf:o/r:Q2_K"), want);
    assert!(said("hf:o/r").contains("which file is meant? There are `F16` and `Q8_0`"));
    assert_eq!(said("hf:o/r/x.gguf"), "`hf:o/r/x.gguf`: the repository has no file `x.gguf`");
}
