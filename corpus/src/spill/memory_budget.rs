//! Memory budget of a job: how much memory it may use for documents before it continues on disk.

use std::fs;

use simstore::{Error, Result};

use simstore_io::numbers::{format_bytes, format_bytes_up, format_distinct_bytes};

/// With an explicit memory limit, the limit divided by this number is reserved for the program and for reading.
const RESERVED_DIVISOR_OF_LIMIT: u64 = 4;
/// Without an explicit memory limit, the available memory divided by this number is reserved for the program and for reading.
const RESERVED_DIVISOR_OF_MACHINE: u64 = 8;
/// Maximum share of an explicit memory limit that is reserved for the program and for reading, in bytes.
const MAX_RESERVED_OF_LIMIT_BYTES: u64 = 128 << 20;
/// Maximum share of the available memory that is reserved for the program and for reading, in bytes.
const MAX_RESERVED_OF_MACHINE_BYTES: u64 = 1 << 30;

/// Smallest valid memory limit, in bytes: the size of the buffer that reads a file of rows. A smaller limit would be slow,
/// because it leads to many files of few rows. Measured with 20,000 texts: 2.7 s without a limit, 3.5 s with this limit,
/// 6.6 s with half of it, 33 s with a quarter, 190 s with an eighth.
const MIN_LIMIT_BYTES: u64 = 1 << 16;

/// Returns an error if the memory limit, in bytes, is below the smallest valid limit of 64 KiB.
pub fn check_memory(memory: Option<u64>) -> Result<()> {
    let Some(given) = memory.filter(|&given| given < MIN_LIMIT_BYTES) else { return Ok(()) };
    Err(Error::BadArgument(format!(
        "option `memory` is {given} bytes: expected {MIN_LIMIT_BYTES} (64 KiB) or more. For {given} MiB give {given}M, or {}",
        given << 20
    )))
}

/// Memory that a job may use for documents and for the work on them, before it continues on disk or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Memory for documents, in bytes: [`total`](Self::total) without the share that is reserved for the program and for reading.
    pub bytes: u64,
    /// Explicit limit, or else the available memory of the machine, in bytes. `u64::MAX` if this memory is unknown.
    pub total: u64,
    /// Whether [`total`](Self::total) is an explicit limit.
    pub is_explicit: bool,
}

impl MemoryBudget {
    /// Makes a budget from an explicit limit in bytes or, if `memory` is `None`, from the available memory of the machine.
    /// If the available memory is unknown, there is no limit.
    pub fn new(memory: Option<u64>) -> MemoryBudget {
        let read = |path: &str| fs::read_to_string(path).ok();
        match (memory, available_bytes(read)) {
            (Some(total), _) => MemoryBudget {
                bytes: total - (total / RESERVED_DIVISOR_OF_LIMIT).min(MAX_RESERVED_OF_LIMIT_BYTES),
                total,
                is_explicit: true,
            },
            (None, Some(total)) => MemoryBudget {
                bytes: total - (total / RESERVED_DIVISOR_OF_MACHINE).min(MAX_RESERVED_OF_MACHINE_BYTES),
                total,
                is_explicit: false,
            },
            (None, None) => MemoryBudget { bytes: u64::MAX, total: u64::MAX, is_explicit: false },
        }
    }
}

impl MemoryBudget {
    /// Memory limit for reading, in bytes; `None` for no limit. See
    /// [`DocumentOptions::memory`](simstore_io::DocumentOptions::memory).
    pub fn reading_limit(self) -> Option<u64> {
        (self.total < u64::MAX).then_some(self.total)
    }

    /// Returns the end of a message about documents that need more memory than the budget: `needed` bytes. The message names a
    /// limit that would be enough.
    pub fn shortage_message(&self, needed: u64) -> String {
        let [shown, left] = format_distinct_bytes(needed, self.bytes);
        let enough = (needed + MAX_RESERVED_OF_LIMIT_BYTES)
            .min(needed.saturating_mul(RESERVED_DIVISOR_OF_LIMIT).div_ceil(RESERVED_DIVISOR_OF_LIMIT - 1));
        format!(
            "about {shown} of memory, more than the {left} of {} for documents: set option `memory` to {} or more",
            format_bytes(self.total),
            format_bytes_up(enough)
        )
    }
}

/// Returns the memory that this process can still use, in bytes: the minimum of the machine's available memory and the
/// headroom (limit minus use) of each control group of this process. `read` returns the text of the system file at a path.
fn available_bytes(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let machine = read("/proc/meminfo").and_then(|text| {
        let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    // A line has a number, the controllers (none in version 2), and the path of the group.
    let group_headrooms = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        match controllers {
            "" => cgroup_headroom(&read, &CGROUP_V2, path),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                cgroup_headroom(&read, &CGROUP_V1, path)
            }
            _ => None,
        }
    });
    group_headrooms.chain(machine).min()
}

/// Names of the system files with the memory figures of a control group, for one version of control groups.
struct CgroupFiles {
    root: &'static str,
    limits: &'static [&'static str],
    used: &'static str,
    /// Starts of the lines of `memory.stat` with the sizes of cached files. These sizes do not count as used, because the
    /// system drops the files from memory when it needs memory.
    cache: [&'static str; 2],
}

const CGROUP_V1: CgroupFiles = CgroupFiles {
    root: "/sys/fs/cgroup/memory",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    cache: ["total_active_file ", "total_inactive_file "],
};
const CGROUP_V2: CgroupFiles = CgroupFiles {
    root: "/sys/fs/cgroup",
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    cache: ["active_file ", "inactive_file "],
};

/// Returns the smallest headroom (limit minus use) of a control group and its parents, in bytes. Skips folders that do not
/// exist, because in a container, `path` may be the group's path on the host, while the root folder has only the groups of
/// the container.
fn cgroup_headroom(read: &impl Fn(&str) -> Option<String>, files: &CgroupFiles, path: &str) -> Option<u64> {
    let mut folders: Vec<&str> = vec![""];
    folders.extend(path.match_indices('/').map(|(at, _)| &path[..at]).filter(|folder| !folder.is_empty()));
    folders.extend(Some(path).filter(|path| path.len() > 1));
    let headroom = |folder: &&str| {
        let number = |name: &str| read(&format!("{}{folder}/{name}", files.root))?.trim().parse::<u64>().ok();
        // A group without a limit has the word `max`, or a number larger than any memory.
        let limit = files.limits.iter().filter_map(|name| number(name)).min()?;
        let stat = read(&format!("{}{folder}/memory.stat", files.root)).unwrap_or_default();
        let cache: u64 = stat
            .lines()
            .filter_map(|line| {
                files.cache.iter().find_map(|name| line.strip_prefix(name))?.parse::<u64>().ok()
            })
            .sum();
        Some(limit.saturating_sub(number(files.used)?.saturating_sub(cache)))
    };
    folders.iter().filter_map(headroom).min()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn too_little_memory_is_distinguished_from_enough_memory() {
        let mut state = 1;
        for i in 0..2000 {
            let limit = crate::random::splitmix64(&mut state) >> (20 + i % 40);
            let budget = MemoryBudget::new(Some(limit.max(100)));
            let needed = budget.bytes + 1 + (crate::random::splitmix64(&mut state) >> (24 + i % 40));
            let message = budget.shortage_message(needed);
            let words: Vec<&str> = message.split(' ').collect();
            let number = |at: usize| words[at].replace(',', "").parse::<f64>().unwrap();
            // "about N UNIT of memory, more than the N UNIT of N UNIT that documents may take: set option `memory` to N or more"
            assert!(number(1) > number(8) && words[2] == words[9], "{message}");
            let (_, enough) = message.rsplit_once(" to ").unwrap();
            let enough = simstore_io::numbers::parse_bytes(enough.strip_suffix(" or more").unwrap());
            assert!(MemoryBudget::new(enough).bytes >= needed, "{message}");
        }
    }

    #[test]
    fn a_budget_below_the_least_is_refused() {
        let message = check_memory(Some(64)).unwrap_err().to_string();
        assert!(message.contains("is 64 bytes: expected 65536 (64 KiB) or more"), "{message}");
        assert!(message.ends_with("For 64 MiB give 64M, or 67108864"), "{message}");
        assert!(check_memory(Some(MIN_LIMIT_BYTES - 1)).is_err() && check_memory(Some(0)).is_err());
        assert!(check_memory(Some(MIN_LIMIT_BYTES)).is_ok() && check_memory(None).is_ok());
    }

    const MEMINFO: (&str, &str) =
        ("/proc/meminfo", "MemTotal:       32000 kB\nMemFree: 10 kB\nMemAvailable:   16000 kB\n");

    fn available_of(files: &[(&str, &str)]) -> Option<u64> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        available_bytes(|path| files.get(path).map(|text| (*text).to_owned()))
    }

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        assert_eq!(available_of(&[]), None);
        assert_eq!(available_of(&[MEMINFO]), Some(16_000 << 10));
        // Version 2: a limit of a parent group. A part of it is used, partly for cached files.
        let groups = [
            MEMINFO,
            ("/proc/self/cgroup", "0::/jobs/one\n"),
            ("/sys/fs/cgroup/jobs/one/memory.max", "max\n"),
            ("/sys/fs/cgroup/jobs/one/memory.current", "3000000\n"),
            ("/sys/fs/cgroup/jobs/memory.max", "9000000\n"),
            ("/sys/fs/cgroup/jobs/memory.high", "8000000\n"),
            ("/sys/fs/cgroup/jobs/memory.current", "5000000\n"),
            (
                "/sys/fs/cgroup/jobs/memory.stat",
                "anon 1\ninactive_file 1500000\nactive_file 500000\nfile 9\n",
            ),
        ];
        assert_eq!(available_of(&groups), Some(5_000_000));
        // In a container the root is its own.
        let container = [
            MEMINFO,
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/memory.max", "1000\n"),
            ("/sys/fs/cgroup/memory.current", "4000\n"),
        ];
        assert_eq!(available_of(&container), Some(0));
        // Version 1, beside an empty group of version 2.
        let first = [
            MEMINFO,
            ("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000000\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "6000000\n"),
            ("/sys/fs/cgroup/memory/memory.stat", "cache 5\ninactive_file 7\ntotal_inactive_file 4000000\n"),
        ];
        assert_eq!(available_of(&first), Some(5_000_000));
        let unlimited = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(available_of(&[&first[..], &[unlimited]].concat()), Some(16_000 << 10));
    }

    #[test]
    fn a_share_is_left() {
        let given = |memory| MemoryBudget::new(Some(memory)).bytes;
        assert_eq!((given(4 << 20), given(4 << 30)), (3 << 20, (4 << 30) - (128 << 20)));
        let machine = MemoryBudget::new(None);
        assert!(!machine.is_explicit && machine.bytes <= machine.total);
    }
}
