//! Cases of fetching from an address, with the hub's stand-in as a server of plain files.

use std::fs;
use std::time::Duration;

use super::{fetch_by, nowhere};
use crate::hub::Hub;
use crate::hub::pull::tests::stand_in::{Fault, StandIn};
use crate::{Carrier, Entry, ModelsError, Progress, Sha256};

const MODEL: &[u8] = b"one stone at a time, and none is moved once it lies";

struct Deaf;

impl Progress for Deaf {
    fn waiting(&mut self) {}
    fn at(&mut self, _: u64, _: u64) {}
}

/// What becomes of one pull that meets `faults`; `bytes` is the catalogue's word.
fn pulled(path: &str, faults: &[Fault], bytes: Option<u64>) -> (StandIn, Result<Vec<u8>, String>) {
    let server = StandIn::start(&[("m.gguf", MODEL.to_vec())], faults);
    let folder = tempfile::tempdir().unwrap();
    let sha256 = Sha256::of(&mut { MODEL }).unwrap();
    let url = format!("{}/o/r/resolve/main/{path}", server.url());
    let carrier = Carrier::Url(url.clone());
    let file_name = "stones.gguf".to_owned();
    let entry = Entry { name: "stones:1b".to_owned(), file_name, bytes, sha256, carrier };
    let hub =
        Hub { pause: Duration::from_millis(1), stall: Duration::from_millis(400), ..nowhere() };
    let fetched = fetch_by(&hub, &url, &entry, folder.path(), &mut Deaf);
    let said = |error: ModelsError| {
        assert!(!error.is_callers_mistake(), "{error}");
        error.to_string()
    };
    (server, fetched.map(|path| fs::read(path).unwrap()).map_err(said))
}

#[test]
fn what_breaks_off_goes_on_and_what_is_right_is_kept() {
    let length = Some(MODEL.len() as u64);
    for (faults, bytes, requests) in [
        (&[][..], length, 1),
        (&[Fault::None, Fault::None], None, 2),
        (&[Fault::Cut(7)], length, 2),
        (&[Fault::Status(503)], length, 2),
        (&[Fault::Damaged], length, 2),
    ] {
        let (server, found) = pulled("m.gguf", faults, bytes);
        assert_eq!(found.as_deref(), Ok(MODEL), "{faults:?}");
        assert_eq!(server.count("GET /o/r/"), requests, "{faults:?}");
        assert_eq!(server.count("authorization"), 0, "{faults:?}");
    }
    let (server, _) = pulled("m.gguf", &[Fault::Cut(7)], length);
    assert_eq!(server.count("range: bytes=7-"), 1);
}

#[test]
fn what_is_wrong_is_one_sentence_and_nothing_is_kept() {
    let length = Some(MODEL.len() as u64);
    for (path, faults, bytes, want) in [
        ("no.gguf", &[][..], length, "no.gguf` cannot be downloaded (1 tries): the server answers"),
        ("m.gguf", &[Fault::Damaged, Fault::Damaged], length, "`stones:1b` has sha256 "),
        ("m.gguf", &[Fault::Status(401)], length, "the server answers with status 401"),
        ("m.gguf", &[], Some(7), "the server announces 51 bytes, 7 were expected"),
        ("m.gguf", &[Fault::TooLong], None, "say `bytes` in the catalogue"),
    ] {
        let (_, found) = pulled(path, faults, bytes);
        let found = found.expect_err("it is refused");
        assert!(found.contains(want), "{found}");
    }
}
