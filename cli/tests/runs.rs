//! Long runs of `simstore dedup`: interrupted, resumed, sharded, estimated by a dry run, and with a memory limit.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::{Random, TestFolder, sample};

/// Writes a folder `corpus` of 8 files. One is empty, and some documents are in several files.
fn write_corpus(folder: &TestFolder) {
    std::fs::create_dir(folder.path("corpus")).unwrap();
    for name in ["en.jsonl", "zh.jsonl"] {
        let lines = std::fs::read_to_string(sample(name)).unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        for (i, part) in lines.chunks(30).enumerate() {
            // A padding of 1 MiB makes the file large enough for a part of its own.
            folder.write(&format!("corpus/{i}-{name}"), part.join("\n") + &" ".repeat(1 << 20));
        }
    }
    folder.write("corpus/empty.jsonl", "");
    folder.write("corpus/page.md", "a page by itself");
}

/// Returns the names of the part files in a `--resume` folder. A part file has the result of one part of the input.
fn part_files(folder: &TestFolder, name: &str) -> Vec<String> {
    let entries = folder.path(name).read_dir().unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".part.zst")).collect()
}

#[test]
fn finished_parts_are_reused() {
    let folder = TestFolder::new();
    write_corpus(&folder);
    let args = ["dedup", "corpus", "-d", "8", "--keep", "newest:id", "--clusters", "-"];
    let plain = folder.run(&args).ok();
    assert!(plain.lines().count() > 20);
    let run = |more: &[&str]| folder.run(&[&args[..], &["--resume", "work"], more].concat());
    let first = run(&[]);
    assert!(first.stderr.contains("7 parts processed, 0 reused"), "{}", first.stderr);
    assert_eq!(first.ok(), plain);
    assert_eq!(part_files(&folder, "work").len(), 7);
    let again = run(&[]);
    assert!(again.stderr.contains("0 parts processed, 7 reused"), "{}", again.stderr);
    assert_eq!(again.ok(), plain);
    // Removing parts simulates an interrupted run.
    for part in part_files(&folder, "work").iter().take(3) {
        std::fs::remove_file(folder.path("work").join(part)).unwrap();
    }
    let rest = run(&[]);
    assert!(rest.stderr.contains("3 parts processed, 4 reused"), "{}", rest.stderr);
    assert_eq!(rest.ok(), plain);
    // Another profile needs other parts.
    let other = run(&["--profile", "chars-5"]);
    assert!(other.stderr.contains("7 parts processed, 0 reused"), "{}", other.stderr);
    // A changed file needs a new part.
    folder.write("corpus/page.md", "another page");
    assert!(run(&[]).stderr.contains("1 part processed, 6 reused"));
    folder.run_with_input(&["dedup", "-", "--resume", "work"], "{}").fails(2, "needs files as inputs");
}

#[test]
fn a_damaged_part_is_reported_and_replaced() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", "{\"id\": 1, \"text\": \"a b c\"}\n{\"id\": 2, \"text\": \"a b c\"}\n");
    let run = || folder.run(&["dedup", "a.jsonl", "--resume", "work", "--pairs", "-"]);
    run().ok();
    let path = folder.path("work").join(&part_files(&folder, "work")[0]);
    let whole = std::fs::read(&path).unwrap();
    let damaged = |bytes: &[u8], damage: &str| {
        std::fs::write(&path, bytes).unwrap();
        let run = run();
        assert!(run.stderr.contains("processing the file again"), "{damage}: {}", run.stderr);
        assert_eq!(run.ok(), "1\t2\t1\n", "{damage}");
        assert!(std::fs::read(&path).unwrap() == whole, "{damage}");
    };
    for length in (0..whole.len()).step_by(7) {
        damaged(&whole[..length], &format!("{length} bytes"));
    }
    for bit in (0..whole.len() * 8).step_by(13).chain((whole.len() - 16) * 8..whole.len() * 8) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damaged(&bytes, &format!("bit {bit}"));
    }
}

/// If a pipe has the path of a file that a run keeps in the `--resume` folder (the result of a part of the input, or of
/// a stage of the run), the run does not block on the pipe, but reports it and replaces it by a file.
#[cfg(unix)]
#[test]
fn a_pipe_at_the_path_of_a_part_or_stage_is_replaced() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", "{\"id\": 1, \"text\": \"a b c\"}\n{\"id\": 2, \"text\": \"a b c\"}\n".repeat(2));
    for options in [["--similar", "0.8"], ["--distance", "3"]] {
        let run = || {
            folder.run(
                &[&["dedup", "a.jsonl", "--resume", &options[0][2..], "--pairs", "-"][..], &options].concat(),
            )
        };
        let expected = run().ok();
        let names: Vec<_> = std::fs::read_dir(folder.path(&options[0][2..]))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(names.iter().any(|path| path.to_string_lossy().ends_with(".stage.zst")), "{names:?}");
        for path in &names {
            std::fs::remove_file(path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        let run = run();
        for path in &names {
            let name = path.file_name().unwrap().to_string_lossy();
            let is_reported =
                |line: &str| line.contains(&*name) && line.contains("a pipe") && line.ends_with(" again");
            assert!(run.stderr.lines().any(is_reported), "{name}: {}", run.stderr);
            assert!(std::fs::symlink_metadata(path).unwrap().is_file(), "{name}");
        }
        assert_eq!(run.ok(), expected);
    }
}

/// Returns the bytes of a part file of a `--resume` folder, with this text and a valid checksum.
fn part_with_checksum(text: impl std::io::Read) -> Vec<u8> {
    let mut part = zstd::encode_all(text, 1).unwrap();
    let checksum = xxhash_rust::xxh3::xxh3_64(&part);
    part.extend([0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0]);
    part.extend(checksum.to_le_bytes());
    part
}

#[test]
fn a_part_with_wrong_content_is_refused() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", "{\"id\": 1, \"text\": \"a b c\"}\n{\"id\": 2, \"text\": \"a b c\"}\n");
    folder.run(&["dedup", "a.jsonl", "--resume", "work"]).ok();
    let path = folder.path("work").join(&part_files(&folder, "work")[0]);
    let whole = std::fs::read(&path).unwrap();
    let text = String::from_utf8(zstd::decode_all(&whole[..]).unwrap()).unwrap();
    assert!(text.ends_with("{\"end\":2}\n"), "{text}");
    assert!(part_with_checksum(text.as_bytes()) == whole);
    let lines: Vec<&str> = text.lines().collect();
    let bad = [
        lines[..3].join("\n"),
        [lines[0], lines[1], lines[2], "{\"end\":2}"].join("\n") + "\n",
        [lines[0], lines[1], "7", lines[3], lines[4]].join("\n") + "\n",
        [lines[0], lines[1], &lines[2].replace("\"file\":0", "\"file\":1"), lines[3], lines[4]].join("\n")
            + "\n",
        [
            lines[0],
            lines[1],
            &lines[2].replace("\"fingerprint\":\"", "\"fingerprint\":\"0"),
            lines[3],
            lines[4],
        ]
        .join("\n")
            + "\n",
        lines[..4].join("\n"),
    ];
    for part in bad {
        std::fs::write(&path, part_with_checksum(part.as_bytes())).unwrap();
        folder.run(&["dedup", "a.jsonl", "--resume", "work"]).fails(1, "remove this file and run again");
    }
    let other = text.replace("\"bits\":64", "\"bits\":128");
    std::fs::write(&path, part_with_checksum(other.as_bytes())).unwrap();
    folder.run(&["dedup", "a.jsonl", "--resume", "work"]).fails(0, "its header does not match its name");
    // An endless line does not exhaust memory.
    let start = format!("{}\n{}\n", lines[0], lines[1]);
    let long = std::io::Read::chain(start.as_bytes(), std::io::Read::take(std::io::repeat(b'0'), 1 << 28));
    std::fs::write(&path, part_with_checksum(long)).unwrap();
    folder.run(&["dedup", "a.jsonl", "--resume", "work"]).fails(1, "a line is longer than 67108864 bytes");
}

/// A run with `--resume` keeps the result of each part of the input for later runs, but does not reuse the result if an
/// input file of the part has changed. If the change is in the middle of the file, the run notices it by the file's
/// modification time.
#[test]
fn a_part_of_a_changed_file_is_replaced() {
    let folder = TestFolder::new();
    let line = |id: usize, text: &str| format!("{{\"id\": {id}, \"text\": \"{text}\"}}\n");
    let filler =
        |from: usize| (from..from + 2000).map(|id| line(id, &format!("{id:0>50}"))).collect::<String>();
    let content = |text: &str| filler(10) + &line(1, "the very same words") + &line(2, text) + &filler(5000);
    let run = || folder.run(&["dedup", "a.jsonl", "-d", "0", "--resume", "work", "--clusters", "-"]);
    folder.write("a.jsonl", content("the very same words"));
    assert_eq!(run().ok(), "1\t1\t1\t0\n2\t1\t1\t0\n");
    // If only the modification time differs, the file is compared with its part by content.
    folder.write("a.jsonl", content("the very same words"));
    let same = run();
    assert!(same.stderr.contains("0 parts processed, 1 reused"), "{}", same.stderr);
    assert_eq!(same.ok(), "1\t1\t1\t0\n2\t1\t1\t0\n");
    folder.write("a.jsonl", content("some different word"));
    let changed = run();
    assert!(
        changed.stderr.contains("its files have changed; processing the file again"),
        "{}",
        changed.stderr
    );
    assert_eq!(changed.ok(), "");
}

/// If the size, the modification time and some bytes at both ends of an input file are unchanged, its part file in
/// the `--resume` folder is reused. If the run later reads the input again and finds a changed document, it removes
/// the part file and fails. The next run processes the whole input file.
#[test]
fn a_part_of_a_file_with_an_undetected_change_is_removed() {
    let folder = TestFolder::new();
    let line = |id: usize, text: &str| format!("{{\"id\": {id}, \"text\": \"{text}\"}}\n");
    let filler = |from: usize| -> String {
        let text = |id: usize| format!("{:016x} {:016x}", Random::hash(id as u64), Random::hash(!id as u64));
        (from..from + 2000).map(|id| line(id, &text(id))).collect()
    };
    let content = |text: &str| filler(10) + &line(1, "the very same words") + &line(2, text) + &filler(5000);
    let (same, other) = (content("the very same words"), content("some different word"));
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let write = |content: &str| {
        folder.write("a.jsonl", content);
        let file = std::fs::File::options().write(true).open(folder.path("a.jsonl")).unwrap();
        file.set_modified(time).unwrap();
    };
    let without_second = same.replace(&line(2, "the very same words"), "");
    for (options, output) in [
        (&["-d", "0"][..], &["-o", "o"][..]),
        (&["-d", "0"], &["--annotated", "o"]),
        (&[], &["-o", "o"]),
        (&[], &["--against", "s", "--add", "--with-texts", "-o", "o"]),
    ] {
        let run = |resume: &[&str]| {
            if folder.path("s").exists() {
                std::fs::remove_dir_all(folder.path("s")).unwrap();
            }
            folder.run(&[&["dedup", "a.jsonl", "--force"], options, output, resume].concat())
        };
        let resume = ["--resume", "work"];
        write(&same);
        run(&resume).ok();
        let is_annotated = output[0] == "--annotated";
        assert!(is_annotated || folder.read("o") == without_second, "{output:?}");
        assert_eq!(part_files(&folder, "work").iter().filter(|name| name.ends_with(".part.zst")).count(), 1);
        write(&other);
        let failed = run(&resume);
        assert!(failed.stderr.contains("a.jsonl:2002: the file changed"), "{output:?}: {}", failed.stderr);
        failed.fails(1, "its 1 part in work was removed; nothing was written: run this again");
        run(&resume).ok();
        let resumed = folder.read("o");
        assert!(is_annotated || resumed == other, "{output:?}");
        run(&[]).ok();
        assert!(resumed == folder.read("o"), "{output:?}");
        std::fs::remove_dir_all(folder.path("work")).unwrap();
    }
}

#[test]
fn shards_are_joined() {
    let folder = TestFolder::new();
    write_corpus(&folder);
    let plain = folder.run(&["dedup", "corpus", "--pairs", "-"]).ok();
    let mut part_count = 0;
    for shard in ["1/3", "2/3", "3/3"] {
        let run =
            folder.run(&["dedup", "corpus", "--resume", shard.replace('/', "-").as_str(), "--shard", shard]);
        assert!(run.stderr.contains("to other shards. When all parts"), "{}", run.stderr);
        assert_eq!(run.ok(), "");
        part_count += part_files(&folder, &shard.replace('/', "-")).len();
    }
    assert_eq!(part_count, 7);
    std::fs::create_dir(folder.path("all")).unwrap();
    for shard in ["1-3", "2-3", "3-3"] {
        for part in part_files(&folder, shard) {
            std::fs::copy(folder.path(shard).join(&part), folder.path("all").join(&part)).unwrap();
        }
    }
    let joined = folder.run(&["dedup", "corpus", "--resume", "all", "--pairs", "-"]);
    assert!(joined.stderr.contains("0 parts processed, 7 reused"), "{}", joined.stderr);
    assert_eq!(joined.ok(), plain);
    for shard in ["0/3", "4/3", "1", "1/0", "a/b"] {
        folder.run(&["dedup", "corpus", "--resume", "all", "--shard", shard]).fails(2, "such as 1/4");
    }
    folder.run(&["dedup", "corpus", "--shard", "1/2"]).fails(2, "--resume");
    for output in [&["--output", "o"][..], &["--keep-list", "o"], &["--against", "s"], &["--json"]] {
        let args = [&["dedup", "corpus", "--resume", "all", "--shard", "1/2"], output].concat();
        folder.run(&args).fails(2, "cannot be used with");
    }
    folder.write("a.hex", "0000000000000000\n");
    folder.run(&["dedup", "a.hex", "--resume", "all"]).fails(2, "--resume needs documents");
}

/// A run with `--shard` gives no warning about empty input if all input documents belong to other shards.
#[test]
fn a_shard_without_parts_gives_no_warning() {
    let folder = TestFolder::new();
    let shard = |shard| {
        let input = sample("en.jsonl");
        folder.run(&["dedup", &input, "--resume", "work", "--shard", shard]).stderr
    };
    for stderr in [shard("1/2"), shard("2/2"), shard("2/2")] {
        assert!(stderr.contains("to other shards") && !stderr.contains("warning"), "{stderr}");
    }
}

#[test]
fn invalid_json_is_reported() {
    let folder = TestFolder::new();
    folder.write("bad.jsonl", "{\"id\": 1, \"text\": bad}\n");
    folder.run(&["dedup", "bad.jsonl"]).fails(1, "bad.jsonl:1: invalid JSON: expected value at column 19");
}

#[test]
fn malformed_documents_keep_their_places() {
    let folder = TestFolder::new();
    let lines = [
        "no JSON",
        "{\"id\": \"a\", \"text\": \"one two three\"}",
        "{\"id\": \"b\", \"text\": 7}",
        "{\"id\": \"c\", \"text\": \"one two three\"}",
        "[]",
    ];
    folder.write("a.jsonl", lines.join("\n"));
    folder.write("b.jsonl", lines[1].replace("\"a\"", "\"d\"") + "\n");
    let args = ["dedup", "a.jsonl", "b.jsonl", "--skip-bad", "--annotated", "-"];
    let plain = folder.run(&args).ok();
    assert_eq!(plain.lines().count(), 3);
    for _ in 0..2 {
        let run = folder.run(&[&args[..], &["--resume", "work"]].concat());
        assert!(run.stderr.contains("skipped 3 invalid documents or unreadable files"), "{}", run.stderr);
        assert_eq!(run.ok(), plain);
    }
}

#[test]
fn a_dry_run_estimates_memory_and_writes_nothing() {
    let folder = TestFolder::new();
    write_corpus(&folder);
    let output = folder.run(&["dedup", "corpus", "--dry-run", "--output", "kept.jsonl"]).ok();
    assert!(output.starts_with("8 files, "), "{output}");
    assert!(output.contains("memory: about") && output.contains("documents stay in memory"), "{output}");
    let object = &folder.run(&["dedup", &sample("en.jsonl"), "--dry-run", "--json"]).json()[0];
    assert_eq!(object["documents"], 77);
    assert_eq!(object["formats"]["jsonl"]["files"], 1);
    assert_eq!((&object["spills"], &object["disk_of_temporary"]), (&json!(false), &json!(0)));
    folder.write("many.u64", vec![7; 32 << 10]);
    let little = ["dedup", "many.u64", "--dry-run", "--memory", "64K"];
    let output = folder.run(&little).ok();
    assert!(output.contains("not enough: documents go to disk, about"), "{output}");
    folder.write("a.u64", vec![7; 16 << 10]);
    folder.write("a.tsv", "00000000000000ff\tname\n".repeat(100));
    let object =
        &folder.run(&["dedup", "a.u64", "a.tsv", "--dry-run", "--json", "--memory", "64K"]).json()[0];
    let number = |field: &str| object[field].as_u64().unwrap();
    assert_eq!((number("documents"), number("memory_of_documents")), (2048 + 100, 2148 * 28 + 100 * 16));
    assert_eq!((&object["spills"], number("disk_of_temporary")), (&json!(true), 2148 * 24 + 100 * 16));
    assert_eq!(folder.names(), ["a.tsv", "a.u64", "corpus", "many.u64"]);
}

/// All commands with `--memory` refuse a limit below the minimum before they create an output. The error
/// suggests MiB, because the unit is probably missing.
#[test]
fn a_memory_limit_below_the_minimum_is_refused() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", "{\"text\": \"some words\"}\n");
    folder.write("a.hex", "0000000000000007\n");
    folder.run(&["build", "store", "a.hex"]).ok();
    let names = folder.names();
    let rows_message = "--memory is 512 bytes: expected 65536 (64 KiB) or more. For 512 MiB give \
                   512M, or 536870912";
    let sorting_message = "--memory is 512 bytes: expected 16777216 (16 MiB) or more. For 512 MiB give \
                      512M, or 536870912";
    let cases: [(&[&str], &str); 6] = [
        (&["dedup", "a.jsonl", "-o", "kept"], rows_message),
        (&["dedup", "a.hex", "-o", "kept"], rows_message),
        (&["dedup", "a.jsonl", "--dry-run"], rows_message),
        (&["idf", "a.jsonl"], rows_message),
        (&["build", "new", "a.hex"], sorting_message),
        (&["salvage", "store", "new"], sorting_message),
    ];
    for (args, message) in cases {
        folder.run(&[args, &["--memory", "512"]].concat()).fails(2, message);
        assert_eq!(folder.names(), names, "{args:?}");
    }
    folder.run(&["dedup", "a.jsonl", "-o", "kept", "--memory", "64K"]).ok();
    // Adding to a store works with the smallest memory limit.
    folder.run(&["dedup", "a.hex", "--against", "store", "--add", "-o", "left", "--memory", "64K"]).ok();
}

/// Runs a command and returns its peak memory (`VmHWM`) in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(folder: &TestFolder, args: &[&str]) -> f64 {
    let mut child = folder.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        if let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
            peak = line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0;
        }
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn a_dry_run_predicts_the_memory() {
    let folder = TestFolder::new();
    let line = |i: u64| format!("{{\"id\": \"https://example.org/{i}\", \"text\": \"page {i} of many\"}}\n");
    folder.write("many.jsonl", (0..300_000).map(line).collect::<String>());
    for input in [sample("en.jsonl"), sample("zh.jsonl"), "many.jsonl".to_owned()] {
        let args = ["dedup", &input, "-d", "0", "--keep-list", "kept"];
        // Readers that wait for a busy core hold fewer documents, so the peak of a single run may be low.
        // Take the maximum of three.
        let measured = (0..3).map(|_| peak_memory(&folder, &args)).fold(0.0, f64::max);
        let object = &folder.run(&["dedup", &input, "--dry-run", "--json"]).json()[0];
        let predicted = object["memory"].as_f64().unwrap();
        assert!(
            measured > 1e6 && predicted < 1.5 * measured && measured < 1.5 * predicted,
            "{input}: {predicted} bytes predicted, {measured} bytes measured"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn peak_memory_stays_below_the_limit() {
    let folder = TestFolder::new();
    let mut random = Random(1);
    let bytes: Vec<u8> = (0..4_000_000).flat_map(|_| random.next().to_le_bytes()).collect();
    folder.write("a.u64", bytes);
    let peak = |memory| {
        let args = ["dedup", "a.u64", "--memory", memory, "--temporary", ".", "--keep-list", "kept"];
        let peak = peak_memory(&folder, &args);
        (peak / f64::from(1 << 20), folder.read("kept"))
    };
    let ((little, kept), (much, expected)) = (peak("64M"), peak("1G"));
    assert!(little < 64.0 && much > 90.0, "{little} MiB of 64, {much} of 1024");
    assert!(kept == expected);
    assert_eq!(folder.names(), ["a.u64", "kept"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_no_partial_output() {
    let folder = TestFolder::new();
    folder.write("kept", "as before");
    let mut child = folder
        .command(&["dedup", "-", "--output", "kept", "--pairs", "pairs.csv"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let line = "{\"text\": \"some words\"}\n";
    input.write_all(line.repeat(10_000).as_bytes()).unwrap();
    // The run creates two temporary outputs beside the old output once it has read some input.
    while folder.names().len() < 3 {
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.names(), ["kept"]);
    assert_eq!(folder.read("kept"), "as before");
    drop(input);
}

#[test]
fn documents_beyond_the_memory_limit_go_to_disk() {
    let folder = TestFolder::new();
    let lines: Vec<String> = (0..100_000).map(|i| format!("{i:016x}\tdocument {i}\n")).collect();
    folder.write("a.tsv", lines.concat());
    let args = ["dedup", "a.tsv", "-d", "0", "--output", "kept"];
    for (memory, is_too_much) in [("4M", true), ("64M", false)] {
        folder.write("kept", "as before");
        let run = folder.run(&[&args[..], &["--memory", memory, "--temporary", "."]].concat());
        let message = "documents needs more than the 4.0 MiB of --memory: continuing on disk, in";
        assert_eq!(run.stderr.contains(message), is_too_much, "{}", run.stderr);
        assert_eq!(run.stderr.contains(" of temporary files"), is_too_much, "{}", run.stderr);
        run.ok();
        assert_eq!(folder.read("kept"), lines.concat());
        assert_eq!(folder.names(), ["a.tsv", "kept"]);
    }
}
