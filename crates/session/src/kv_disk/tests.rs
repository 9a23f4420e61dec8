//! Blocks in a folder: kept over a restart, within the limit, and lost where the disk fails.

use std::fs;
use std::path::{Path, PathBuf};

use causeway_kv_cache::{ChainHash, Shelf};
use tempfile::TempDir;

use super::{KvDisk, KvDiskCounts, KvDiskError};

/// Bytes of a block in these tests.
const BLOCK: u64 = 1_000;

fn untold(_: &KvDiskError) {}

fn open(path: &Path, blocks_max: u64) -> KvDisk {
    KvDisk::open(path, blocks_max * BLOCK, untold).unwrap()
}

fn name(number: u8) -> ChainHash {
    ChainHash([number; 32])
}

fn block(number: u8) -> Vec<u8> {
    vec![number; 1_000]
}

fn path_of(folder: &Path, number: u8) -> PathBuf {
    let digits = format!("{number:02x}");
    folder.join(&digits).join(format!("{}.kv", digits.repeat(32)))
}

/// Puts blocks one after the other and waits until they are on the disk.
fn keep(path: &Path, blocks_max: u64, numbers: impl IntoIterator<Item = u8>) -> KvDiskCounts {
    let disk = open(path, blocks_max);
    let mut shelf = disk.shelf();
    for number in numbers {
        if shelf.wants(&name(number), 1_000) {
            shelf.put(&name(number), block(number));
        }
    }
    disk.close();
    disk.counts()
}

/// Which of these blocks come back, as they were put.
fn found(shelf: &mut dyn Shelf, numbers: std::ops::Range<u8>) -> Vec<u8> {
    let is_there = |number: &u8| match shelf.get(&name(*number)) {
        Some(bytes) => {
            assert_eq!(bytes, block(*number));
            true
        }
        None => false,
    };
    numbers.filter(is_there).collect()
}

#[test]
fn a_block_can_be_had_at_once_and_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a/b");
    let disk = open(&path, 10);
    let mut shelf = disk.shelf();
    for number in 1..4 {
        assert!(shelf.wants(&name(number), 1_000) && !shelf.holds(&name(number)));
        shelf.put(&name(number), block(number));
        assert!(shelf.holds(&name(number)) && !shelf.wants(&name(number), 1_000));
    }
    assert_eq!(found(&mut *disk.shelf(), 0..5), [1, 2, 3], "another cache finds them too");
    drop(disk);
    assert_eq!(fs::read(path_of(&path, 2)).unwrap(), block(2));
    let disk = open(&path, 10);
    let want = KvDiskCounts {
        bytes: 3 * BLOCK,
        bytes_max: 10 * BLOCK,
        blocks: 3,
        ..KvDiskCounts::default()
    };
    assert_eq!(disk.counts(), want);
    assert_eq!(found(&mut *disk.shelf(), 0..5), [1, 2, 3]);
    assert_eq!(disk.counts(), KvDiskCounts { read: 3, ..want });
}

/// Bytes of all files whose names are a block's.
fn bytes_in(folder: &Path) -> u64 {
    let files = (0..=255).filter_map(|number| fs::metadata(path_of(folder, number)).ok());
    files.map(|file| file.len()).sum()
}

#[test]
fn the_longest_unused_leave_and_the_limit_holds() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let counts = keep(path, 4, 0..4);
    assert_eq!((counts.written, counts.evicted, bytes_in(path)), (4, 0, 4 * BLOCK));
    let disk = open(path, 4);
    let mut shelf = disk.shelf();
    // The first is read, and the second leaves memory again.
    assert_eq!(found(&mut *shelf, 0..1), [0]);
    assert!(!shelf.wants(&name(1), 1_000));
    shelf.put(&name(9), block(9));
    disk.close();
    assert_eq!((disk.counts().evicted, bytes_in(path)), (1, 4 * BLOCK));
    assert!(!path_of(path, 2).exists());
    drop(disk);
    let counts = keep(path, 4, 20..90);
    assert_eq!((counts.blocks, counts.evicted, counts.lost), (4, 70, 0));
    assert_eq!((counts.bytes, bytes_in(path)), (4 * BLOCK, 4 * BLOCK));
    // A lower limit holds from the start, and a block beyond it is never written.
    let disk = KvDisk::open(path, BLOCK - 1, untold).unwrap();
    assert_eq!((disk.counts().blocks, bytes_in(path)), (0, 0));
    assert!(!disk.shelf().wants(&name(1), 1_000));
    assert_eq!(disk.counts().lost, 1);
}

#[test]
fn the_order_of_use_outlives_a_restart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    keep(path, 4, 0..4);
    let age = |number: u8, seconds: i64| {
        let file = fs::File::options().write(true).open(path_of(path, number)).unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        file.set_modified(time - std::time::Duration::from_secs(seconds.unsigned_abs())).unwrap();
    };
    (0..4).for_each(|number| age(number, 100 - i64::from(number)));
    let disk = open(path, 4);
    assert_eq!(found(&mut *disk.shelf(), 0..1), [0], "the oldest is used");
    drop(disk);
    let counts = keep(path, 4, 8..10);
    assert_eq!(counts.evicted, 2);
    let left: Vec<u8> = (0..10).filter(|number| path_of(path, *number).exists()).collect();
    assert_eq!(left, [0, 3, 8, 9]);
}

#[test]
fn foreign_files_stay_and_halves_go() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    keep(path, 4, 0..2);
    let foreign = ["notes.txt", "00/notes.kv", "00/11.kv", "zz/a.part", "00/x.part"];
    // The right name in the wrong folder, or with capitals.
    let misplaced = [format!("01/{}.kv", "00".repeat(32)), format!("AB/{}.kv", "AB".repeat(32))];
    let misplaced = misplaced.iter().map(String::as_str);
    let foreign: Vec<PathBuf> =
        foreign.into_iter().chain(misplaced).map(|at| path.join(at)).collect();
    for file in &foreign {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, vec![7; 9_999]).unwrap();
    }
    fs::create_dir_all(path.join(format!("02/{}.kv", "02".repeat(32)))).unwrap();
    let half = path_of(path, 0).with_extension("part");
    fs::write(&half, [1; 10]).unwrap();
    let disk = open(path, 4);
    assert_eq!((disk.counts().blocks, disk.counts().bytes), (2, 2 * BLOCK));
    assert!(!half.exists());
    assert!(foreign.iter().all(|file| file.exists()), "{foreign:?}");
}

#[test]
fn damage_is_removed_and_a_longer_file_is_seen_to_be_longer() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    keep(path, 4, 0..2);
    let disk = open(path, 4);
    let mut shelf = disk.shelf();
    fs::write(path_of(path, 0), vec![0; 5_000]).unwrap();
    assert_eq!(shelf.get(&name(0)).unwrap().len(), 1_001);
    fs::write(path_of(path, 1), vec![9; 10]).unwrap();
    assert_eq!(shelf.get(&name(1)).unwrap().len(), 10);
    for number in 0..2 {
        shelf.discard(&name(number));
        assert!(!shelf.holds(&name(number)));
    }
    disk.close();
    let counts = disk.counts();
    assert_eq!((counts.damaged, counts.blocks, counts.bytes), (2, 0, 0));
    assert!(!path_of(path, 0).exists() && !path_of(path, 1).exists());
}

#[test]
fn what_the_disk_refuses_is_lost_and_counted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    keep(path, 9, 0..1);
    // A file where a folder should be cannot be written into; a folder cannot be read.
    fs::write(path.join("05"), "").unwrap();
    let disk = open(path, 9);
    fs::remove_file(path_of(path, 0)).unwrap();
    let mut shelf = disk.shelf();
    assert_eq!(shelf.get(&name(0)), None, "somebody removed it");
    shelf.put(&name(5), block(5));
    shelf.put(&name(6), block(6));
    disk.close();
    let KvDiskCounts { lost, written, blocks, bytes, .. } = disk.counts();
    assert_eq!((lost, written, blocks, bytes), (2, 1, 1, BLOCK));
    assert!(!shelf.wants(&name(7), 1_000), "it is closed");
    shelf.put(&name(7), block(7));
    shelf.wait_for_room();
    assert!(!shelf.holds(&name(7)));
    assert_eq!(found(&mut *shelf, 5..8), [6]);
}

#[test]
fn a_queue_that_is_full_takes_nothing_and_can_be_waited_for() {
    let folder = TempDir::new().unwrap();
    let disk = KvDisk::open(folder.path(), 1 << 30, untold).unwrap();
    let mut shelf = disk.shelf();
    let large = 40 << 20;
    // Two of them are more than may wait at once.
    for number in 0..4 {
        shelf.wait_for_room();
        assert!(shelf.wants(&name(number), large / 4), "{number}");
        shelf.put(&name(number), vec![number; large / 4]);
    }
    let taken = (10..20).filter(|number| {
        let is_wanted = shelf.wants(&name(*number), large);
        if is_wanted {
            shelf.put(&name(*number), vec![*number; large]);
        }
        is_wanted
    });
    let taken = taken.count() as u64;
    disk.close();
    let counts = disk.counts();
    assert_eq!((counts.written, counts.lost), (4 + taken, 10 - taken));
}

fn check_refused(path: &Path, bytes_max: u64, want: &str, is_callers_mistake: bool) {
    let error = KvDisk::open(path, bytes_max, untold).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(want) && text.contains(&path.display().to_string()), "{text}");
    assert_eq!(error.is_callers_mistake(), is_callers_mistake, "{text}");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_by_its_path() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    check_refused(&file, BLOCK, "cannot make the KV folder", false);
    check_refused(&file.join("below"), BLOCK, "cannot make the KV folder", false);
    let taken = folder.path().join("taken");
    fs::create_dir_all(taken.join("lock")).unwrap();
    check_refused(&taken, BLOCK, "cannot write in the KV folder", false);
    let good = folder.path().join("good");
    check_refused(&good, 0, "is 0 bytes, the least is 1", true);
    let disk = open(&good, 1);
    check_refused(&good, BLOCK, "is in use by another process", false);
    drop(disk);
    open(&good, 1);
}
