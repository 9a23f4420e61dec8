//! Cases of removing models from the cache.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{kept, removal};
use crate::hub::{Hub, HubName};

const OLD: &str = "0000000000000000000000000000000000000000";
const NEW: &str = "1111111111111111111111111111111111111111";

/// A cache with two snapshots that share the bytes of one file.
fn hub(cache: &Path) -> Hub {
    let root = cache.join("models--o--r");
    for folder in ["blobs", "refs", &format!("snapshots/{OLD}"), &format!("snapshots/{NEW}")] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("refs/main"), NEW).unwrap();
    for (blob, bytes) in [("a", 10), ("b", 20), ("c.incomplete", 5)] {
        fs::write(root.join("blobs").join(blob), vec![0; bytes]).unwrap();
    }
    for (commit, file, blob) in
        [(OLD, "m-Q8_0.gguf", "a"), (NEW, "m-Q8_0.gguf", "a"), (NEW, "m-F16.gguf", "b")]
    {
        let link = root.join("snapshots").join(commit).join(file);
        symlink(format!("../../blobs/{blob}"), link).unwrap();
    }
    Hub::from_variables(&|name| (name == "HF_HUB_CACHE").then(|| cache.into())).unwrap()
}

fn check(name: &str, want_bytes: u64, want_blobs: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path());
    let outside = folder.path().join("outside");
    fs::write(&outside, "kept").unwrap();
    symlink(&outside, folder.path().join(format!("models--o--r/snapshots/{NEW}/x.gguf"))).unwrap();
    let found = removal(&hub, &HubName::parse(name).unwrap()).unwrap();
    assert_eq!(found.bytes, want_bytes, "{name}");
    found.run().unwrap();
    let blobs = fs::read_dir(folder.path().join("models--o--r/blobs")).into_iter().flatten();
    let mut blobs: Vec<_> = blobs.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    blobs.sort();
    assert_eq!(blobs, want_blobs, "{name}");
    assert!(outside.exists(), "nothing outside the cache is removed");
}

#[test]
fn bytes_go_when_no_snapshot_needs_them() {
    check("hf:o/r:f16", 20, &["a", "c.incomplete"]);
    check("hf:o/r:q8_0", 0, &["a", "b", "c.incomplete"]);
    check("hf:o/r/x.gguf", 0, &["a", "b", "c.incomplete"]);
    check(&format!("hf:o/r@{OLD}"), 0, &["a", "b", "c.incomplete"]);
    check("hf:o/r", 35, &[]);
}

#[test]
fn what_is_not_there_or_a_link_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path());
    symlink(folder.path(), folder.path().join("models--o--link")).unwrap();
    for name in ["hf:o/none", "hf:o/link", "hf:o/r@v1"] {
        let error = removal(&hub, &HubName::parse(name).unwrap()).unwrap_err();
        assert!(error.to_string().contains("is not fetched yet"), "{error}");
    }
}

#[test]
fn the_list_has_whole_and_partial_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(folder.path());
    let all = kept(&hub);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].repository.as_str(), all[0].bytes, all[0].bytes_partial), ("o/r", 30, 5));
    assert_eq!(all[0].files, ["m-F16.gguf", "m-Q8_0.gguf"]);
}
