//! How many threads compute where nobody says: as many as CPUs that this program may keep busy.
//!
//! The standard library heeds affinity, and the quota of a control group where its hierarchy is
//! mounted in the usual place; what follows finds it wherever it is mounted, and says which of
//! the two was the smaller.

use std::path::{Path, PathBuf};

/// What a number of threads was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadsBy {
    /// The CPUs that this program may run on.
    Cpus,
    /// The CPU quota of a control group.
    Quota,
}

impl ThreadsBy {
    /// The word in the conditions of a figure.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpus => "cpus",
            Self::Quota => "quota",
        }
    }
}

/// As many threads as CPUs that this program may keep busy, and what bounds them: affinity, and
/// the smallest quota of its control groups, rounded down but to no less than one.
#[must_use]
pub fn threads_by_default() -> (usize, ThreadsBy) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let quota = quota(&|path| std::fs::read_to_string(path).ok());
    let (count, by) = match quota {
        Some(quota) if quota <= cpus => (quota, ThreadsBy::Quota),
        _ => (cpus, ThreadsBy::Cpus),
    };
    (count.min(causeway_kernels::Pool::THREADS_MAX), by)
}

/// Reads a file as text; `None` where there is none.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// Whole CPUs of the smallest quota along every path of groups, in both versions of them.
fn quota(read: Read<'_>) -> Option<usize> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    mounts.lines().filter_map(Mount::parse).filter_map(|mount| mount.quota(&groups, read)).min()
}

/// A mounted hierarchy of control groups that may hold CPU quotas.
struct Mount {
    /// The group that stands at `point`.
    root: PathBuf,
    point: PathBuf,
    is_unified: bool,
}

impl Mount {
    /// A line of `mountinfo`: `36 35 0:30 /root /point options … - type source options`.
    fn parse(line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let is_unified = match kind.next()? {
            "cgroup2" => true,
            "cgroup" if kind.nth(1)?.split(',').any(|word| word == "cpu") => false,
            _ => return None,
        };
        // Spaces and backslashes in paths are written as octal numbers.
        let path = |text: &str| PathBuf::from(text.replace("\\040", " ").replace("\\134", "\\"));
        Some(Self { root: path(root), point: path(point), is_unified })
    }

    /// The smallest quota from this program's group up to the mount's root.
    fn quota(&self, groups: &str, read: Read<'_>) -> Option<usize> {
        let group = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_ours = if self.is_unified {
                controllers.is_empty()
            } else {
                controllers.split(',').any(|name| name == "cpu")
            };
            is_ours.then_some(path)
        })?;
        // A group outside what is mounted here is seen through a namespace: as the mount's root.
        let below = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let mut folder = self.point.join(below);
        let mut least = None;
        while folder.starts_with(&self.point) {
            let here =
                if self.is_unified { unified(&folder, read) } else { separate(&folder, read) };
            least = here.into_iter().chain(least).min();
            if !folder.pop() {
                break;
            }
        }
        least
    }
}

/// Version 2: `cpu.max` is `150000 100000`, or `max 100000` where there is no quota.
fn unified(folder: &Path, read: Read<'_>) -> Option<usize> {
    let text = read(&folder.join("cpu.max"))?;
    let (limit, period) = text.trim().split_once(' ')?;
    cpus(limit, period)
}

/// Version 1: two files, the quota being -1 where there is none.
fn separate(folder: &Path, read: Read<'_>) -> Option<usize> {
    let limit = read(&folder.join("cpu.cfs_quota_us"))?;
    let period = read(&folder.join("cpu.cfs_period_us"))?;
    cpus(&limit, &period)
}

fn cpus(limit: &str, period: &str) -> Option<usize> {
    let (limit, period): (usize, usize) = (limit.trim().parse().ok()?, period.trim().parse().ok()?);
    Some(limit.checked_div(period)?.max(1))
}

#[cfg(test)]
mod tests;
