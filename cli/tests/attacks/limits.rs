//! Commands under limits of file sizes, open files, memory and disk space.

use std::fs;

use super::cases::{CASES, CommandCase};
use super::{disturb, repetitions};
use crate::{Random, TestFolder};

/// Runs each command under a random limit: `limit` returns a bash line with `ulimit`. `default` is the number of
/// repetitions for each command, unless `SIMSTORE_ATTACKS` sets another.
fn run_under_limit(default: u64, seed: u64, limit: impl Fn(&mut Random) -> String) {
    let mut random = Random(seed);
    for case in CASES {
        let (expected, _) = case.run_undisturbed();
        for _ in 0..repetitions(default) {
            let limit = limit(&mut random);
            disturb(case, &limit, &expected, |folder| {
                Some(folder.run_line(&format!("{limit}; exec {}", case.command)))
            });
        }
    }
}

#[test]
fn no_file_may_grow_large() {
    // `ulimit -f` counts blocks of 1 KiB.
    run_under_limit(2, 1, |random| format!("ulimit -f {}", 1 << random.below(9)));
}

/// A failed `build --force` leaves the old store unchanged. The old store has logs with inserts and deletes.
#[test]
fn a_failed_build_leaves_the_old_store() {
    let folder = TestFolder::new();
    folder.output_of(
        "set -e; seq 3000 | awk '{printf \"%016x\\t%d\\n\", $1 * 2654435761, $1}' >many.hex
         for i in 1 2 3; do printf '%016x\\t%d\\n' $i $i >$i.hex; $simstore add -q --durability sync s $i.hex; done
         $simstore delete -q s 2.hex",
    );
    let dump = || folder.output_of("$simstore verify -q s >&2; $simstore dump s");
    let before = dump();
    assert_eq!(before.lines().count(), 2, "{before}");
    let mut failed = 0;
    for kib in (0..10).map(|power| 1 << power) {
        let exit = folder.run_line(&format!("ulimit -f {kib}; exec $simstore build -q --force s many.hex"));
        exit.check("build --force");
        if exit.code == Some(0) {
            break;
        }
        assert_eq!(dump(), before, "at most {kib} KiB");
        failed += 1;
    }
    assert!(failed > 2 && dump().lines().count() == 3000);
}

#[test]
fn few_files_may_be_open() {
    run_under_limit(2, 2, |random| format!("ulimit -n {}", 4 + random.below(40)));
}

#[test]
fn little_memory() {
    // Limits are in KiB; memory-mapped files count too.
    let mut random = Random(3);
    for case in CASES {
        let (expected, _) = case.run_undisturbed();
        for _ in 0..repetitions(1) {
            let limit = format!("ulimit -v {}", 20_000 + random.below(600_000));
            disturb(case, &limit, &expected, |folder| {
                let exit = folder.run_line(&format!("{limit}; exec {}", case.command));
                // If the loader or an allocation lacks memory, the command cannot print an error, so only
                // success is checked.
                let is_done = exit.code == Some(0);
                is_done.then_some(exit)
            });
        }
    }
}

/// Runs a command on a disk of `size` KiB, and again after the disk has grown. Successful runs must leave the state
/// `expected`. Returns false if no disk can be mounted.
fn run_on_full_disk(case: &CommandCase, expected: &str, size: u64) -> bool {
    let folder = TestFolder::new();
    if !folder.mount_small_disk(size) {
        return false;
    }
    let inputs = TestFolder::new();
    case.prepare(&inputs);
    let copied = folder.run_line(&format!("cp -r {}/. disk/", inputs.0.path().display()));
    let context = format!("{}, a disk of {size} KiB", case.name);
    if copied.code == Some(0) {
        let exit = folder.run_line(&format!("cd disk && exec {}", case.command));
        exit.check(&context);
        if exit.code == Some(0) {
            assert!(
                case.state_in(&folder, "disk") == expected,
                "{context}: reports success, but the state differs: {}",
                exit.stderr
            );
        }
        // With enough space, the command succeeds.
        folder.output_of("mount -o remount,size=1g disk");
        let again = folder.run_line(&format!("cd disk && exec {}", case.command));
        assert_eq!(again.code, Some(0), "{context}, run again: {}", again.stderr);
        assert!(case.state_in(&folder, "disk") == expected, "{context}, run again");
    }
    folder.output_of("umount disk");
    true
}

#[test]
fn a_full_temporary_disk_reports_the_space_needed() {
    let folder = TestFolder::new();
    let mut random = Random(5);
    let values: Vec<u8> = (0..200_000).flat_map(|_| random.next().to_le_bytes()).collect();
    fs::write(folder.0.path().join("a.u64"), values).unwrap();
    let line = "$simstore -q dedup a.u64 --memory 1M --temporary disk -o o";
    // The fingerprints take 1.5 MiB, and the join another 3 MiB.
    for (size, message) in [(1024, ", and more is needed"), (2048, "of about 4.6 MiB needed")] {
        if !folder.mount_small_disk(size) {
            return;
        }
        let exit = folder.run_line(line);
        assert_eq!(exit.code, Some(1), "{}", exit.stderr);
        assert!(exit.stderr.contains(message), "{}", exit.stderr);
        assert!(
            exit.stderr.contains("free some space, or select another directory with --temporary"),
            "{}",
            exit.stderr
        );
        assert_eq!(folder.output_of("ls disk"), "");
        folder.output_of("mount -o remount,size=1g disk");
        assert_eq!(folder.run_line(line).code, Some(0));
        folder.output_of("umount disk");
    }
}

#[test]
fn full_disks() {
    let mut random = Random(4);
    for case in CASES {
        let (expected, _) = case.run_undisturbed();
        for _ in 0..repetitions(2) {
            // The inputs take about 1 MiB.
            if !run_on_full_disk(case, &expected, 1000 + random.below(1500)) {
                return;
            }
        }
    }
}

/// If `dedup --add` fails after it has committed the documents to the store, the documents stay there. The
/// message says that the documents were added and that the output files are complete.
#[test]
fn a_failure_after_the_commit_is_reported() {
    let folder = TestFolder::new();
    let mut random = Random(6);
    let mut ids = 0..;
    // Each run adds a small file, until a merge writes a file above the size limit.
    for run in 0..40 {
        let lines =
            (0..3000).map(|_| format!("{:016x}\t{}\n", random.next(), ids.next().unwrap_or_default()));
        fs::write(folder.0.path().join("new.tsv"), lines.collect::<String>()).unwrap();
        let line = "$simstore dedup -q -d 3 new.tsv --against s --add -o out.tsv";
        let exit = folder.run_line(&format!("ulimit -f 90; exec {line}"));
        if exit.code == Some(0) {
            continue;
        }
        assert_eq!(exit.code, Some(1), "{}", exit.stderr);
        assert!(exit.stderr.contains("documents were added to s nevertheless"), "{}", exit.stderr);
        assert!(exit.stderr.contains("all output files are complete"), "{}", exit.stderr);
        // The store has the documents, and repeating the run adds none.
        let added = folder.output_of("wc -l < out.tsv");
        let stored = folder.output_of("$simstore dump s | wc -l");
        assert!(
            stored.trim().parse::<u64>().unwrap() > 3000 * run,
            "{stored} after {run}, {added} of them new"
        );
        let again = folder.run_line(&line.replace("-q ", ""));
        assert!(
            again.code == Some(0) && again.stderr.contains("this run has already added"),
            "{}",
            again.stderr
        );
        assert_eq!(folder.output_of("$simstore dump s | wc -l"), stored);
        return;
    }
    panic!("no merge was too large");
}
