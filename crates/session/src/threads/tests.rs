//! The smallest quota along the path counts, wherever its hierarchy is mounted.

use std::path::Path;

use super::{ThreadsBy, quota, threads_by_default};

const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";
const BY_CONTROLLER: &str =
    "33 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";
const HYBRID: &str = "31 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

/// Files by path, the first two being where this program stands and what is mounted.
fn check(group: &str, mounts: &str, files: &[(&str, &str)], want: Option<usize>) {
    let read = |path: &Path| match path.to_str()? {
        "/proc/self/cgroup" => Some(group.to_owned()),
        "/proc/self/mountinfo" => Some(mounts.to_owned()),
        path => files.iter().find(|file| file.0 == path).map(|file| file.1.to_owned()),
    };
    assert_eq!(quota(&read), want, "{group} {files:?}");
}

#[test]
fn the_smallest_group_along_the_path_counts() {
    let unified = |files: &[(&str, &str)], want| check("0::/a/b\n", UNIFIED, files, want);
    unified(&[], None);
    unified(&[("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n")], None);
    unified(&[("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n")], Some(4));
    unified(&[("/sys/fs/cgroup/a/b/cpu.max", "350000 100000\n")], Some(3));
    unified(&[("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n")], Some(1));
    unified(&[("/sys/fs/cgroup/a/b/cpu.max", "10 0\n")], None);
    unified(&[("/sys/fs/cgroup/a/b/cpu.max", "nonsense\n")], None);
    let inner = ("/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
    unified(&[inner, ("/sys/fs/cgroup/a/cpu.max", "200000 100000\n")], Some(2));
    unified(&[inner, ("/sys/fs/cgroup/cpu.max", "100000 50000\n")], Some(2));
    unified(&[inner, ("/sys/fs/cpu.max", "100000 100000\n")], Some(8));
}

#[test]
fn the_older_version_is_read_from_its_two_files() {
    let group = "4:memory:/m\n2:cpu,cpuacct:/a/b\n0::/\n";
    let at = |folder: &'static str, limit: &'static str| {
        let quota = format!("/sys/fs/cgroup/cpu,cpuacct{folder}/cpu.cfs_quota_us");
        let period = format!("/sys/fs/cgroup/cpu,cpuacct{folder}/cpu.cfs_period_us");
        [(quota, limit), (period, "100000\n")]
    };
    let by_controller = |limits: &[(&'static str, &'static str)], want| {
        let files: Vec<_> = limits.iter().flat_map(|&(folder, limit)| at(folder, limit)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|file| (file.0.as_str(), file.1)).collect();
        check(group, BY_CONTROLLER, &files, want);
    };
    by_controller(&[("/a/b", "-1\n"), ("/a", "-1\n")], None);
    by_controller(&[("/a/b", "600000\n"), ("/a", "-1\n")], Some(6));
    by_controller(&[("/a/b", "600000\n"), ("/a", "300000\n")], Some(3));
    by_controller(&[("/a/b", "-1\n"), ("", "250000\n")], Some(2));
}

#[test]
fn hierarchies_are_found_where_they_are_mounted() {
    let limit = "200000 100000\n";
    check("1:cpu:/\n0::/a\n", HYBRID, &[("/sys/fs/cgroup/unified/a/cpu.max", limit)], Some(2));
    // A container that sees its own group as the root of the mount.
    let inside = "30 23 0:26 /docker/c1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw";
    check("0::/docker/c1/d\n", inside, &[("/sys/fs/cgroup/d/cpu.max", limit)], Some(2));
    check("0::/elsewhere\n", inside, &[("/sys/fs/cgroup/cpu.max", limit)], Some(2));
    let spaced = "30 23 0:26 / /mnt/a\\040b rw - cgroup2 cgroup2 rw";
    check("0::/\n", spaced, &[("/mnt/a b/cpu.max", limit)], Some(2));
    let others = "22 1 8:1 / / rw - ext4 /dev/sda rw\n35 24 0:31 / /m rw - cgroup cgroup rw,memory";
    check("0::/\n", others, &[("/cpu.max", limit), ("/m/cpu.max", limit)], None);
    let both = format!("{BY_CONTROLLER}\n{HYBRID}");
    let files = [
        ("/sys/fs/cgroup/unified/cpu.max", "500000 100000"),
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000"),
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"),
    ];
    check("1:cpu:/\n0::/\n", &both, &files, Some(3));
}

#[test]
fn there_is_always_a_thread_and_never_more_than_the_library_says() {
    let (count, by) = threads_by_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    assert!((1..=cpus).contains(&count), "{count} of {cpus}, by {by:?}");
    assert_eq!([ThreadsBy::Cpus, ThreadsBy::Quota].map(ThreadsBy::name), ["cpus", "quota"]);
}
