//! Commands that may not open, write or start as much as they would.

use std::fs;

use super::jobs::{JOBS, Job};
use super::{disturb, times};
use crate::{Folder, Random};

/// Runs each command under limits of the shell.
fn limited(default: u64, seed: u64, limit: impl Fn(&mut Random) -> String) {
    let mut random = Random(seed);
    for job in JOBS {
        let (expected, _) = job.undisturbed();
        for _ in 0..times(default) {
            let limit = limit(&mut random);
            disturb(job, &limit, &expected, |folder| {
                Some(folder.attempt(&format!("{limit}; exec {}", job.line)))
            });
        }
    }
}

#[test]
fn no_file_may_grow_large() {
    // In blocks of 1 KiB.
    limited(2, 1, |random| format!("ulimit -f {}", 1 << random.below(9)));
}

/// The store has fingerprints in logs, and deletes. A failed `build --force` leaves its contents unchanged.
#[test]
fn a_build_that_fails_leaves_the_store_that_it_was_to_replace() {
    let folder = Folder::new();
    folder.print(
        "set -e; seq 3000 | awk '{printf \"%016x\\t%d\\n\", $1 * 2654435761, $1}' >many.hex
         for i in 1 2 3; do printf '%016x\\t%d\\n' $i $i >$i.hex; $simstore add -q --durability sync s $i.hex; done
         $simstore delete -q s 2.hex",
    );
    let dump = || folder.print("$simstore verify -q s >&2; $simstore dump s");
    let before = dump();
    assert_eq!(before.lines().count(), 2, "{before}");
    let mut failed = 0;
    for kib in (0..10).map(|power| 1 << power) {
        let ended = folder.attempt(&format!("ulimit -f {kib}; exec $simstore build -q --force s many.hex"));
        ended.check("build --force");
        if ended.code == Some(0) {
            break;
        }
        assert_eq!(dump(), before, "at most {kib} KiB");
        failed += 1;
    }
    assert!(failed > 2 && dump().lines().count() == 3000);
}

#[test]
fn few_files_may_be_open() {
    limited(2, 2, |random| format!("ulimit -n {}", 4 + random.below(40)));
}

#[test]
fn little_memory() {
    // Limits are in KiB; memory-mapped files count too.
    let mut random = Random(3);
    for job in JOBS {
        let (expected, _) = job.undisturbed();
        for _ in 0..times(1) {
            let limit = format!("ulimit -v {}", 20_000 + random.below(600_000));
            disturb(job, &limit, &expected, |folder| {
                let ended = folder.attempt(&format!("{limit}; exec {}", job.line));
                // Without memory for the loader or an allocation, a command cannot print an error.
                let is_done = ended.code == Some(0);
                is_done.then_some(ended)
            });
        }
    }
}

/// A disk of so many KiB; none where this user may not have one.
fn small_disk(folder: &Folder, size: u64) -> bool {
    let disk = folder.0.path().join("disk");
    fs::create_dir_all(&disk).unwrap();
    folder.attempt(&format!("mount -t tmpfs -o size={size}k tmpfs disk")).code == Some(0)
}

/// A command on a disk that is full.
fn on_a_full_disk(job: &Job, expected: &str, size: u64) -> bool {
    let folder = Folder::new();
    if !small_disk(&folder, size) {
        return false;
    }
    let inputs = Folder::new();
    job.prepare(&inputs);
    let copied = folder.attempt(&format!("cp -r {}/. disk/", inputs.0.path().display()));
    let what = format!("{}, a disk of {size} KiB", job.name);
    if copied.code == Some(0) {
        let ended = folder.attempt(&format!("cd disk && exec {}", job.line));
        ended.check(&what);
        if ended.code == Some(0) {
            assert!(job.state_in(&folder, "disk") == expected, "{what}: said to be done: {}", ended.stderr);
        }
        // With more room it is done.
        folder.print("mount -o remount,size=1g disk");
        let again = folder.attempt(&format!("cd disk && exec {}", job.line));
        assert_eq!(again.code, Some(0), "{what}, run again: {}", again.stderr);
        assert!(job.state_in(&folder, "disk") == expected, "{what}, run again");
    }
    folder.print("umount disk");
    true
}

#[test]
fn a_full_disk_for_temporary_files_says_how_much_they_take() {
    let folder = Folder::new();
    let mut random = Random(5);
    let values: Vec<u8> = (0..200_000).flat_map(|_| random.next().to_le_bytes()).collect();
    fs::write(folder.0.path().join("a.u64"), values).unwrap();
    let line = "$simstore -q dedup a.u64 --memory 1M --temporary disk -o o";
    // The fingerprints take 1.5 MiB, the join twice that besides.
    for (size, said) in [(1024, ", and more is needed"), (2048, "of about 4.6 MiB needed")] {
        if !small_disk(&folder, size) {
            eprintln!("SKIPPED: no small disk can be mounted here (it takes the rights of root)");
            return;
        }
        let ended = folder.attempt(line);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("free some space, or select another directory with --temporary"),
            "{}",
            ended.stderr
        );
        assert_eq!(folder.print("ls disk"), "");
        folder.print("mount -o remount,size=1g disk");
        assert_eq!(folder.attempt(line).code, Some(0));
        folder.print("umount disk");
    }
}

#[test]
fn full_disks() {
    let mut random = Random(4);
    for job in JOBS {
        let (expected, _) = job.undisturbed();
        for _ in 0..times(2) {
            // The inputs take some 1 MiB.
            if !on_a_full_disk(job, &expected, 1000 + random.below(1500)) {
                eprintln!("SKIPPED: no small disk can be mounted here (it takes the rights of root)");
                return;
            }
        }
    }
}

/// A failure after the commit does not undo it. The message says that documents were added and output files are complete.
#[test]
fn what_fails_after_the_documents_are_added_says_so() {
    let folder = Folder::new();
    let mut random = Random(6);
    let mut ids = 0..;
    // Each run adds a small file, until a merge makes one that is too large.
    for run in 0..40 {
        let lines =
            (0..3000).map(|_| format!("{:016x}\t{}\n", random.next(), ids.next().unwrap_or_default()));
        fs::write(folder.0.path().join("new.tsv"), lines.collect::<String>()).unwrap();
        let line = "$simstore dedup -q -d 3 new.tsv --against s --add -o out.tsv";
        let ended = folder.attempt(&format!("ulimit -f 90; exec {line}"));
        if ended.code == Some(0) {
            continue;
        }
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("documents were added to s nevertheless"), "{}", ended.stderr);
        assert!(ended.stderr.contains("all output files are complete"), "{}", ended.stderr);
        // So it is, and the same run has nothing left to do.
        let added = folder.print("wc -l < out.tsv");
        let stored = folder.print("$simstore dump s | wc -l");
        assert!(
            stored.trim().parse::<u64>().unwrap() > 3000 * run,
            "{stored} after {run}, {added} of them new"
        );
        let again = folder.attempt(&line.replace("-q ", ""));
        assert!(
            again.code == Some(0) && again.stderr.contains("this run has already added"),
            "{}",
            again.stderr
        );
        assert_eq!(folder.print("$simstore dump s | wc -l"), stored);
        return;
    }
    panic!("no merge was too large");
}
