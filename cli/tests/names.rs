//! File names: links to the same file, names that are not Unicode, lists of names, and a low limit of open files.

use crate::inputs::{GOOD, gzip, ids, zip_archive};
use crate::{CommandOutput, TestFolder};

/// Writes a folder `d` with two text files, five links to them, dangling links and a pipe.
#[cfg(unix)]
fn write_links(folder: &TestFolder) {
    use std::os::unix::fs::symlink;

    std::fs::create_dir_all(folder.path("d/sub")).unwrap();
    folder.write("d/m-real.md", "a text that stands here once and is read once");
    folder.write("d/sub/other.md", "something else, of other words altogether");
    symlink("m-real.md", folder.path("d/a-link.md")).unwrap();
    symlink(folder.path("d/m-real.md"), folder.path("d/z-link.md")).unwrap();
    symlink("sub", folder.path("d/b-linked")).unwrap();
    symlink("../../d", folder.path("d/sub/back")).unwrap();
    std::fs::hard_link(folder.path("d/m-real.md"), folder.path("d/n-hard.md")).unwrap();
    symlink("nowhere", folder.path("d/gone.md")).unwrap();
    symlink("itself.md", folder.path("d/itself.md")).unwrap();
    std::process::Command::new("mkfifo").arg(folder.path("d/pipe.md")).status().unwrap();
}

/// A file with several names is one document. With each rule of `--keep`, results have the file's own name, not the
/// name of a link to it.
#[test]
#[cfg(unix)]
fn a_file_with_several_names_is_one_document() {
    let folder = TestFolder::new();
    write_links(&folder);
    let notes = "skipped 5 other names of the same files: each file is read once";
    for keep in ["first", "none", "longest"] {
        let args = ["dedup", "d", "--keep", keep, "--keep-list", "kept", "--remove-list", "gone"];
        let run = folder.run(&args);
        for message in [notes, "skipped 2 dangling links", "skipped 1 pipe or device"] {
            assert!(run.stderr.contains(message), "{}", run.stderr);
        }
        assert!(run.stderr.contains("\nskipped 5 other names of the same files\nskipped 3 files or links"));
        run.ok();
        assert_eq!(folder.read("kept"), "d/m-real.md\nd/sub/other.md\n", "{keep}");
        assert_eq!(folder.read("gone"), "", "{keep}");
    }
    let counts = |args: &[&str]| {
        let summary = folder.run(args).json().pop().unwrap();
        ["documents", "other_names", "skipped_files"].map(|field| summary[field].as_u64().unwrap())
    };
    assert_eq!(counts(&["dedup", "--json", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["dedup", "--json", "--resume", "parts", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["dedup", "--json", "--resume", "parts", "d"]), [2, 5, 3]);
    // Paths in another order, a glob, and a folder together with a file in it.
    let named = ["d/a-link.md", "d/gone.md", "d/m-real.md", "d/n-hard.md", "d/sub"];
    // A link in `sub` leads to the parent folder, so the parent is read too.
    assert_eq!(counts(&[&["dedup", "--json", "--skip-bad"][..], &named].concat())[..2], [2, 8]);
    assert_eq!(counts(&["dedup", "--json", "d/*.md"]), [1, 3, 3]);
    assert_eq!(counts(&["dedup", "--json", "d/sub", "d", "d/n-hard.md"]), [2, 7, 3]);
    assert_eq!(ids(folder.run(&["fingerprint", "d/a-link.md", "d/m-real.md"])), ["d/m-real.md"]);
    assert_eq!(ids(folder.run(&["fingerprint", "d/a-link.md"])), ["d/a-link.md"]);
    assert_eq!(counts(&["build", "--json", "built", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["add", "--json", "added", "d"]), [2, 5, 3]);
    assert_eq!(counts(&["add", "--json", "added", "d"]), [2, 5, 3]);
}

/// Writes 500 files with different words to a folder `many`. These are more documents than fit into 64 KiB of memory.
#[cfg(target_os = "linux")]
fn write_many(folder: &TestFolder) {
    std::fs::create_dir(folder.path("many")).unwrap();
    (0..500).for_each(|at| folder.write(&format!("many/{at}.txt"), format!("word{at}")));
}

/// File names that are not Unicode stay distinct in runs in memory, on disk and with `--resume`, and in stores.
#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_unicode_stay_distinct() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("d")).unwrap();
    for file in [&b"d/\xe8.txt"[..], b"d/\xe9.txt", b"d/a.txt"] {
        std::fs::write(folder.0.path().join(OsStr::from_bytes(file)), "one text in three files").unwrap();
    }
    write_many(&folder);
    let common =
        ["dedup", "-q", "--clusters", "clusters.csv", "--remove-list", "gone", "--keep-list", "kept"];
    for more in [
        &["d"][..],
        &["d/*"],
        &["d/**/*.txt"],
        &["d", "many", "--memory", "64K"],
        &["d", "--resume", "p"],
        &["d", "--resume", "p"],
    ] {
        folder.run(&[&common[..], more].concat()).ok();
        let kept = folder.read("kept");
        assert_eq!(
            kept.lines().filter(|line| !line.starts_with("many/")).collect::<Vec<_>>(),
            ["d/a.txt"],
            "{more:?}"
        );
        assert_eq!(folder.read("gone"), "d/\\\\xE8.txt\nd/\\\\xE9.txt\n", "{more:?}");
        let clusters = folder.read("clusters.csv");
        assert_eq!(clusters.lines().nth(1), Some("d/a.txt,1,d/a.txt,1"), "{more:?}");
        assert_eq!(clusters.lines().nth(2), Some("d/\\xE8.txt,1,d/a.txt,1"), "{more:?}");
    }
    let mut output = std::ffi::OsString::from("new");
    output.push(OsStr::from_bytes(b"\xe9.jsonl"));
    folder.write("a.jsonl", GOOD);
    for _ in 0..2 {
        let mut command =
            folder.command(&["dedup", "--distance", "3", "a.jsonl", "--against", "s", "--add", "-o"]);
        CommandOutput::new(command.arg(&output).output().unwrap()).ok();
        assert_eq!(std::fs::read_to_string(folder.0.path().join(&output)).unwrap(), GOOD);
    }
    folder.run(&["add", "texts", "d"]).ok();
    assert_eq!(folder.run(&["query", "texts", "--text", "one text in three files"]).ok().lines().count(), 3);
}

/// With `--null`, lists can hold any file name, both as input and as output.
#[test]
#[cfg(target_os = "linux")]
fn lists_terminated_by_zero_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("d")).unwrap();
    let names = [&b"d/a.txt"[..], b"d/b\nc.txt", b"d/\\x41.txt", b"d/\xe9.txt"];
    for name in names {
        std::fs::write(folder.0.path().join(OsStr::from_bytes(name)), "one text in four files").unwrap();
    }
    folder.write("d/other.txt", "something else altogether, of other words");
    let list =
        |names: &[&[u8]]| names.iter().flat_map(|name| [name, &b"\0"[..]].concat()).collect::<Vec<u8>>();
    folder.write("list", list(&names));
    write_many(&folder);
    let bytes = |name: &str| {
        let bytes = std::fs::read(folder.path(name)).unwrap();
        let names = bytes.split_inclusive(|&byte| byte == 0).filter(|name| !name.starts_with(b"many/"));
        names.flatten().copied().collect::<Vec<u8>>()
    };
    let (folder_duplicates, list_duplicates) = ([names[0], names[1], names[3]], &names[1..]);
    for (input, kept, gone) in [
        (&["d"][..], &[names[2], b"d/other.txt"][..], &folder_duplicates[..]),
        (&["d", "many", "--memory", "64K"], &[names[2], b"d/other.txt"], &folder_duplicates),
        (&["d", "--resume", "p"], &[names[2], b"d/other.txt"], &folder_duplicates),
        (&["d", "--resume", "p"], &[names[2], b"d/other.txt"], &folder_duplicates),
        (&["--files-from", "list"], &names[..1], list_duplicates),
        (&["--files-from", "list", "d/other.txt"], &[b"d/other.txt", names[0]], list_duplicates),
    ] {
        let args = ["dedup", "-q", "--null", "--keep-list", "kept", "--remove-list", "gone", "-o", "left"];
        folder.run(&[&args, input].concat()).ok();
        assert_eq!((bytes("kept"), bytes("left")), (list(kept), list(kept)), "{input:?}");
        assert_eq!(bytes("gone"), list(gone), "{input:?}");
    }
    // A list from a pipe.
    let run =
        folder.run_with_input(&["fingerprint", "--json", "--null", "--files-from", "-"], list(&names[..2]));
    assert_eq!(run.ok().lines().count(), 2);
    let lines = folder.run_with_input(&["fingerprint", "--files-from", "-"], "d/a.txt\r\n\nd/other.txt\n");
    assert_eq!(ids(lines), ["d/a.txt", "d/other.txt"]);
    let fails = |args: &[&str], code: i32, message: &str| folder.run(args).fails(code, message);
    fails(
        &["dedup", "d", "--null", "--keep-list", "x.csv"],
        2,
        "x.csv: --null works for plain lists, not for tables",
    );
    fails(&["dedup", "d", "--null", "--remove-list", "x", "--reasons"], 2, "not with --reasons");
    fails(&["dedup", "-", "--files-from", "-"], 2, "standard input (`-`) can be read only once");
    fails(&["dedup", "--files-from", "none"], 1, "none: cannot read");
    fails(&["dedup"], 2, "INPUT");
    // `delete` reads such a list too.
    folder.run(&["build", "-q", "store", "d"]).ok();
    folder.write("ids", "d/a.txt\0d/b\nc.txt\0");
    folder.run(&["delete", "store", "--null", "--ids", "ids"]).ok();
    assert!(!folder.run(&["dump", "store"]).ok().contains("a.txt"));
}

/// If a command may open only a few files, it either succeeds with complete results or reports too many open
/// files. It does not report an input as changed, damaged, malformed or missing.
#[test]
#[cfg(target_os = "linux")]
fn few_files_may_be_open() {
    let folder = TestFolder::new();
    std::fs::create_dir_all(folder.path("d/e/f")).unwrap();
    for (name, text) in [("d/a.md", "one text"), ("d/e/b.md", "one text"), ("d/e/f/c.md", "something else")] {
        folder.write(name, format!("{text}, of some words that are the same in all"));
    }
    folder.write("a.jsonl.gz", gzip(GOOD.as_bytes()));
    folder.write("a.zip", zip_archive("pages.jsonl", GOOD));
    folder.write("a.hex", "0000000000000001\n");
    folder.run(&["build", "-q", "--force", "seen", "a.hex"]).ok();
    folder.run(&["dedup", "-q", "-d", "3", "d", "--resume", "parts"]).ok();
    // The new modification time differs from the time in the part, so the run compares the file with its part.
    folder.write("d/a.md", "one text, of some words that are the same in all");
    let commands = [
        "dedup d --keep-list -",
        "dedup d --keep-list - --skip-bad",
        "dedup 'd/**/*.md' --keep-list -",
        "dedup d -o -",
        "dedup d -d 3 --keep-list - --resume parts",
        "dedup d -d 3 --keep-list - --against seen",
        "dedup a.jsonl.gz a.zip --skip-bad --keep-list -",
        "fingerprint d a.zip --skip-bad",
        "dedup a.hex --keep-list -",
    ];
    for line in commands {
        let limited = |files: u32| folder.bash(&format!("ulimit -n {files}; exec $simstore -q {line}"));
        let whole = limited(100);
        assert_eq!(whole.code, Some(0), "{line}: {whole:?}");
        let mut success_count = 0;
        for files in 4..16 {
            let run = limited(files);
            if run.code == Some(0) {
                success_count += 1;
                assert_eq!(run.stdout, whole.stdout, "{line}, {files}");
                continue;
            }
            // If the dynamic loader of the program fails, the exit code is 127.
            assert!(
                run.stderr.contains("Too many open files") || run.code == Some(127),
                "{line}, {files}: {run:?}"
            );
            let others = [
                "changed", "damaged", "invalid", "no such", "no file matches", "truncated", "run this again",
            ];
            assert!(!others.iter().any(|other| run.stderr.contains(other)), "{line}, {files}: {run:?}");
        }
        assert!(success_count > 0, "{line}");
    }
}

#[test]
#[cfg(unix)]
fn one_file_of_fingerprints_is_read_once() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0000000000000001\n00000000ffffffff\n");
    std::os::unix::fs::symlink("a.hex", folder.path("0.hex")).unwrap();
    for args in [&["0.hex", "a.hex", "a.hex"][..], &["*.hex", "a.hex"]] {
        let run = folder.run(&[&["dedup", "--json", "-q"], args].concat()).json();
        let [summary] = &run[..] else { panic!("clusters: {run:?}") };
        assert_eq!((&summary["documents"], &summary["other_names"]), (&2.into(), &2.into()));
        let built = folder.run(&[&["build", "--json", "--force", "store"], args].concat()).json();
        assert_eq!((&built[0]["ids"], &built[0]["other_names"]), (&2.into(), &2.into()));
        let added = folder.run(&[&["add", "--json", "--again", "live"], args].concat()).json();
        assert_eq!((&added[0]["documents"], &added[0]["other_names"]), (&2.into(), &2.into()));
    }
}
