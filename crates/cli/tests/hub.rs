//! Names on the hub as a user types them, with a small server on this machine in the hub's place.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use support::{Ran, command, ran};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// Git's name for a small file stands in its tag; no model, since only the way to it is tested.
const ETAG: &str = "89abcdef0123456789abcdef0123456789abcdef";
const CONTENT: &[u8] = b"no model at all";

/// Starts the server and returns its address; it ends with the program.
fn hub() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(|stream| answer(&stream.unwrap())));
    url
}

fn answer(mut stream: &TcpStream) {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let asked = head.first().map_or("", String::as_str);
    let list = format!(r#"{{"sha": "{COMMIT}", "siblings": [{{"rfilename": "m-Q8_0.gguf"}}]}}"#);
    let (status, body) = if asked.starts_with("GET /api/models/o/r/") {
        ("200 OK", list.as_bytes())
    } else if asked.contains(" /o/r/resolve/") {
        ("200 OK", CONTENT)
    } else {
        ("404 Not Found", &b""[..])
    };
    let length = body.len();
    let headers = format!(
        "HTTP/1.1 {status}\r\nX-Repo-Commit: {COMMIT}\r\nETag: \"{ETAG}\"\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let body = if asked.starts_with("HEAD") { &b""[..] } else { body };
    stream.write_all(headers.as_bytes()).and_then(|()| stream.write_all(body)).ok();
}

fn run(home: &Path, endpoint: &str, args: &[&str], more: &[(&str, &str)]) -> Ran {
    let mut command = command(args);
    command.env("HF_HOME", home).env("HF_ENDPOINT", endpoint).env_remove("HF_HUB_CACHE");
    command.env_remove("HF_TOKEN").env_remove("HF_HUB_OFFLINE").envs(more.iter().copied());
    ran(command, "")
}

#[test]
fn a_name_on_the_hub_is_pulled_once_and_then_works_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let (home, endpoint) = (folder.path(), hub());
    let run = |args: &[&str], more: &[(&str, &str)]| run(home, &endpoint, args, more);
    let absent = run(&["inspect", "hf:o/r"], &[]);
    let want = "causeway: model `hf:o/r` is not fetched yet: run `causeway pull hf:o/r`\n";
    assert_eq!((absent.code, absent.stderr.as_str()), (2, want));
    let offline = run(&["run", "-m", "hf:o/r", "Hi"], &[("HF_HUB_OFFLINE", "1")]);
    assert_eq!(offline.code, 2);
    assert!(offline.stderr.contains("HF_HUB_OFFLINE forbids to fetch it"), "{}", offline.stderr);
    let pulled = run(&["pull", "hf:o/r:q8_0"], &[]);
    let path = home.join("hub/models--o--r/snapshots").join(COMMIT).join("m-Q8_0.gguf");
    let want = format!("hf:o/r:q8_0  {}\n", path.display());
    assert_eq!((pulled.code, pulled.stdout), (0, want), "{}", pulled.stderr);
    assert!(pulled.stderr.starts_with("fetching hf:o/r:q8_0 (1 MB) into "), "{}", pulled.stderr);
    assert_eq!(std::fs::read(&path).unwrap(), CONTENT);
    // What was pulled is found without a hub, and is what it is.
    let found = run(&["inspect", "hf:o/r"], &[("HF_HUB_OFFLINE", "1")]);
    assert_eq!(found.code, 1);
    assert!(found.stderr.contains("m-Q8_0.gguf"), "{}", found.stderr);
    let listed = run(&["models"], &[]).stdout;
    let row =
        "hf:o/r:Q8_0              1 MB  fetched      -          -              -  hub       m-Q8_0";
    assert!(listed.contains(row), "{listed}");
    let json = support::lines(&run(&["models", "--json"], &[]).stdout);
    let line = json.iter().find(|line| line["name"] == "hf:o/r:Q8_0").unwrap();
    assert_eq!(line["path"], path.display().to_string());
    assert_eq!((&line["source"], &line["bytes"]), (&"hub".into(), &CONTENT.len().into()));
    let asked = run(&["rm", "hf:o/r"], &[]);
    assert_eq!((asked.code, path.exists()), (2, true), "{}", asked.stderr);
    let removed = run(&["rm", "--yes", "hf:o/r:q8_0"], &[]);
    assert_eq!((removed.code, path.exists()), (0, false), "{}", removed.stderr);
    let own = run(&["rm", "--yes", "./Cargo.toml"], &[]);
    assert_eq!((own.code, Path::new("Cargo.toml").exists()), (2, true), "{}", own.stderr);
}

/// SHA-256 of `CONTENT`.
const SHA256: &str = "0607158367535b832fac2b6740808c7958525279d81bb2c4483754ad2d610a44";

#[test]
fn an_address_of_a_users_catalogue_is_pulled_once_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (home, endpoint) = (folder.path(), hub());
    let catalogue = format!(
        "schema = 1\n[[model]]\nname = \"own:1b\"\nurl = \"{endpoint}/o/r/resolve/main/x\"\n\
         sha256 = \"{SHA256}\"\n[[model]]\nname = \"other\"\n\
         url = \"{endpoint}/o/r/resolve/main/x\"\nsha256 = \"{}\"\n\
         [[model]]\nname = \"kept\"\nhf = \"hf:o/r:Q8_0\"\n[alias]\nmine = \"own:1b\"\n",
        SHA256.replace('0', "1")
    );
    std::fs::write(home.join("catalogue.toml"), catalogue).unwrap();
    let home_text = home.to_str().unwrap();
    let run = |args: &[&str]| run(home, &endpoint, args, &[("CAUSEWAY_HOME", home_text)]);
    let path = home.join("models/own-1b.gguf");
    let pulled = run(&["pull", "mine", "kept"]);
    let want = format!("mine  {}\nkept  ", path.display());
    assert!(pulled.code == 0 && pulled.stdout.starts_with(&want), "{pulled:?}");
    assert_eq!(std::fs::read(&path).unwrap(), CONTENT);
    let listed = support::lines(&run(&["models", "--json"]).stdout);
    let source = |name: &str| {
        let line = listed.iter().find(|line| line["name"] == name);
        line.map(|line| (line["source"].clone(), line["catalogue"].clone()))
    };
    assert_eq!(source("own:1b"), Some(("url".into(), "user".into())));
    assert_eq!(source("kept"), Some(("hub".into(), "user".into())));
    assert_eq!(source("other"), None);
    let wrong = run(&["pull", "other"]);
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.stderr.contains("`other` has sha256 ") && !home.join("models/other.gguf").exists()
    );
    let asked = run(&["rm", "mine"]);
    assert_eq!((asked.code, path.exists()), (2, true), "{asked:?}");
    let removed = run(&["rm", "-y", "mine"]);
    let want = "removed `mine` (own:1b): 1 MB are free again\n";
    assert_eq!((removed.stderr.as_str(), path.exists()), (want, false));
    let removed = run(&["rm", "-y", "kept"]);
    assert!(removed.stderr.starts_with("removed `kept` (hf:o/r:Q8_0): "), "{removed:?}");
}

#[test]
fn what_the_hub_does_not_have_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = hub();
    for (args, want) in [
        (["pull", "hf:o/none"], "causeway: the hub has no `o/none` (status 404): check the name"),
        (["pull", "hf:o/r:Q2_K"], "causeway: `hf:o/r:Q2_K`: no file has the quantisation `Q2_K`"),
        (["pull", "hf:none"], "causeway: `hf:none` is no model on the hub: it has no owner and"),
        (["doctor", "hf:o/r@..:x"], "causeway: `hf:o/r@..:x` is no model on the hub: `..` is no"),
    ] {
        let ran = run(folder.path(), &endpoint, &args, &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ran.stderr.starts_with(want) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
}
