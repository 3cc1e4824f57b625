//! How much memory a run may take.

use std::fs;

use simstore::{Error, Result};

use simstore_io::numbers::{bytes, bytes_apart, enough_bytes};

/// One of so many shares of the given limit, or of the machine's memory, is left to the program itself and for reading, up to a maximum.
const LEFT_OF_GIVEN: u64 = 4;
const LEFT_OF_MACHINE: u64 = 8;
const MOST_LEFT_OF_GIVEN: u64 = 128 << 20;
const MOST_LEFT_OF_MACHINE: u64 = 1 << 30;

/// Least budget, in bytes: the size of the buffer that reads a file of rows. With less, time goes to files of a few rows. Measured with
/// 20,000 texts: 2.7 s without a limit, 3.5 s with this budget, 6.6 s with half of it, 33 s with a quarter, 190 s with an eighth.
const LEAST: u64 = 1 << 16;

/// Refuses a budget below the least one.
pub fn check_memory(memory: Option<u64>) -> Result<()> {
    let Some(given) = memory.filter(|&given| given < LEAST) else { return Ok(()) };
    Err(Error::BadArgument(format!(
        "option `memory` is {given} bytes: expected {LEAST} (64 KiB) or more. For {given} MiB give {given}M, or {}",
        given << 20
    )))
}

/// Memory limit for the documents and the work on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In bytes.
    pub bytes: u64,
    /// The given limit, or the memory of the machine.
    pub of: u64,
    /// Whether it was asked for.
    pub is_given: bool,
}

impl Budget {
    /// From the given limit, or else from the memory of the machine. If that is unknown, there is no limit.
    pub fn new(memory: Option<u64>) -> Budget {
        let read = |path: &str| fs::read_to_string(path).ok();
        match (memory, available(read)) {
            (Some(of), _) => {
                Budget { bytes: of - (of / LEFT_OF_GIVEN).min(MOST_LEFT_OF_GIVEN), of, is_given: true }
            }
            (None, Some(of)) => {
                Budget { bytes: of - (of / LEFT_OF_MACHINE).min(MOST_LEFT_OF_MACHINE), of, is_given: false }
            }
            (None, None) => Budget { bytes: u64::MAX, of: u64::MAX, is_given: false },
        }
    }
}

impl Budget {
    /// Limit for reading: see [`DocumentOptions::memory`](simstore_io::DocumentOptions::memory).
    pub fn of_reading(self) -> Option<u64> {
        (self.of < u64::MAX).then_some(self.of)
    }

    /// Message for documents that need too much, with the limit that would be enough.
    pub fn too_little_for(&self, needed: u64) -> String {
        let [shown, left] = bytes_apart(needed, self.bytes);
        let enough = (needed + MOST_LEFT_OF_GIVEN)
            .min(needed.saturating_mul(LEFT_OF_GIVEN).div_ceil(LEFT_OF_GIVEN - 1));
        format!(
            "about {shown} of memory, more than the {left} of {} for documents: set option `memory` to {} or more",
            bytes(self.of),
            enough_bytes(enough)
        )
    }
}

/// Memory for one more process, in bytes: the least of the machine's available memory and the rest of the limits of this process's
/// control groups. `read` gives the text of a file of the system.
fn available(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let of_machine = read("/proc/meminfo").and_then(|text| {
        let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    // A line has a number, the controllers (none in version 2), and the path of the group.
    let of_groups = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        match controllers {
            "" => left_of(&read, &VERSION_2, path),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                left_of(&read, &VERSION_1, path)
            }
            _ => None,
        }
    });
    of_groups.chain(of_machine).min()
}

/// Where a version of control groups tells of memory.
struct Files {
    root: &'static str,
    limits: &'static [&'static str],
    used: &'static str,
    /// Lines of `memory.stat` for cached files, which are dropped when memory is needed.
    cache: [&'static str; 2],
}

const VERSION_1: Files = Files {
    root: "/sys/fs/cgroup/memory",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    cache: ["total_active_file ", "total_inactive_file "],
};
const VERSION_2: Files = Files {
    root: "/sys/fs/cgroup",
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    cache: ["active_file ", "inactive_file "],
};

/// Rest of the limits of a group and its parents. In a container, the path may be one of the machine, while the root is the
/// container's.
fn left_of(read: &impl Fn(&str) -> Option<String>, files: &Files, path: &str) -> Option<u64> {
    let mut folders: Vec<&str> = vec![""];
    folders.extend(path.match_indices('/').map(|(at, _)| &path[..at]).filter(|folder| !folder.is_empty()));
    folders.extend(Some(path).filter(|path| path.len() > 1));
    let left = |folder: &&str| {
        let number = |name: &str| read(&format!("{}{folder}/{name}", files.root))?.trim().parse::<u64>().ok();
        // No limit is the word `max`, or a number larger than any memory.
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
    folders.iter().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_too_little_is_told_apart_from_what_is_needed_and_what_is_enough_is() {
        let mut state = 1;
        for i in 0..2000 {
            let of = crate::random::random(&mut state) >> (20 + i % 40);
            let budget = Budget::new(Some(of.max(100)));
            let needed = budget.bytes + 1 + (crate::random::random(&mut state) >> (24 + i % 40));
            let said = budget.too_little_for(needed);
            let words: Vec<&str> = said.split(' ').collect();
            let number = |at: usize| words[at].replace(',', "").parse::<f64>().unwrap();
            // "about N UNIT of memory, more than the N UNIT of N UNIT that documents may take: set option `memory` to N or more"
            assert!(number(1) > number(8) && words[2] == words[9], "{said}");
            let (_, enough) = said.rsplit_once(" to ").unwrap();
            let enough = simstore_io::numbers::parse_bytes(enough.strip_suffix(" or more").unwrap());
            assert!(Budget::new(enough).bytes >= needed, "{said}");
        }
    }

    #[test]
    fn a_budget_below_the_least_is_refused() {
        let said = check_memory(Some(64)).unwrap_err().to_string();
        assert!(said.contains("is 64 bytes: expected 65536 (64 KiB) or more"), "{said}");
        assert!(said.ends_with("For 64 MiB give 64M, or 67108864"), "{said}");
        assert!(check_memory(Some(LEAST - 1)).is_err() && check_memory(Some(0)).is_err());
        assert!(check_memory(Some(LEAST)).is_ok() && check_memory(None).is_ok());
    }

    const MEMINFO: (&str, &str) =
        ("/proc/meminfo", "MemTotal:       32000 kB\nMemFree: 10 kB\nMemAvailable:   16000 kB\n");

    fn available_of(files: &[(&str, &str)]) -> Option<u64> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        available(|path| files.get(path).map(|text| (*text).to_owned()))
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
        let given = |memory| Budget::new(Some(memory)).bytes;
        assert_eq!((given(4 << 20), given(4 << 30)), (3 << 20, (4 << 30) - (128 << 20)));
        let machine = Budget::new(None);
        assert!(!machine.is_given && machine.bytes <= machine.of);
    }
}
