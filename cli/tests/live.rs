//! `simstore add`, `delete` and `compact`, and the commands that read the resulting stores.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Random, TestFolder, fields, hex_lines};

/// Returns one JSON line for each document. Documents with different seeds are dissimilar.
fn documents(seeds: std::ops::Range<u64>, id: impl Fn(u64) -> Value) -> String {
    let text = |seed: u64| {
        let mut random = Random(seed * 1000);
        (0..60).map(|_| format!("word{}", random.next() % 5000)).collect::<Vec<_>>().join(" ")
    };
    seeds.map(|seed| format!("{}\n", json!({"id": id(seed), "text": text(seed)}))).collect()
}

/// Returns a line of HEX<TAB>ID for each fingerprint. The ids count up from `first_id`.
fn pairs(fingerprints: &[u64], first_id: usize) -> String {
    let lines = fingerprints.iter().zip(first_id..);
    lines.map(|(fingerprint, id)| format!("{fingerprint:016x}\t{id}\n")).collect()
}

/// Runs a command with `--json` and returns the last object that it prints.
fn summary(folder: &TestFolder, args: &[&str]) -> Value {
    folder.run(&[args, &["--json"]].concat()).json().pop().unwrap()
}

#[test]
fn documents_with_numbers_or_names() {
    let folder = TestFolder::new();
    folder.write("numbers.jsonl", documents(0..10, |seed| json!(seed + 100)));
    folder.write("names.jsonl", documents(0..10, |seed| json!(format!("page-{seed}"))));
    for (input, expected) in [("numbers.jsonl", "100"), ("names.jsonl", "page-0")] {
        let added = summary(&folder, &["add", input.split('.').next().unwrap(), input]);
        assert_eq!((&added["added"], &added["documents"]), (&json!(10), &json!(10)));
        let names = "added bad carried_on changed documents duplicates empty known other_names replaced seconds short \
             skipped_files store";
        assert_eq!(fields(&added).join(" "), names);
        let ids = folder.ids(input.split('.').next().unwrap());
        assert_eq!((ids.len(), ids.first().unwrap().as_str()), (10, expected));
    }
    // A store with numeric ids accepts no names.
    folder.run(&["add", "numbers", "names.jsonl"]).fails(1, "names.jsonl");
    // In a store with names, a numeric id becomes a name.
    folder.run(&["add", "names", "numbers.jsonl"]).ok();
    assert!(folder.ids("names").iter().any(|id| id == "105"));
}

/// A store without ids has no names: `add` and `dedup --add` store the fingerprints of named documents, and `--names` is refused.
#[test]
fn named_documents_in_a_store_without_ids() {
    let folder = TestFolder::new();
    folder.write("a.tsv", "00000000000000aa\t1\n");
    folder.write("named.tsv", "000000000000ffbb\tb\n0000000000ff00cc\tc\n");
    folder.write("more.tsv", "00000000ff0000dd\td\n");
    folder.run(&["build", "store", "a.tsv", "--no-ids"]).ok();
    assert_eq!(summary(&folder, &["add", "store", "named.tsv"])["added"], 2);
    folder.run(&["dedup", "more.tsv", "--distance", "3", "--against", "store", "--add"]).ok();
    folder.run(&["add", "store", "more.tsv", "--names"]).fails(1, "keeps no ids, and so no names");
    folder.run(&["verify", "store"]).ok();
    let store = &folder.run(&["inspect", "store", "--json"]).json()[0];
    assert_eq!((&store["fingerprints"], &store["names"]), (&json!(4), &json!(0)));
}

#[test]
fn input_that_was_read_before_is_not_read_again() {
    let folder = TestFolder::new();
    folder.write("a.tsv", pairs(&Random(1).clustered(500), 0));
    assert_eq!(summary(&folder, &["add", "store", "a.tsv"])["added"], 500);
    let before = folder.run(&["dump", "store"]).ok();
    let again = summary(&folder, &["add", "store", "a.tsv"]);
    assert_eq!((&again["added"], &again["carried_on"]), (&json!(0), &json!(500)));
    assert_eq!(folder.run(&["dump", "store"]).ok(), before);
    // If a file has grown, only the new lines are added.
    folder.write("a.tsv", pairs(&Random(1).clustered(700), 0));
    let grown = summary(&folder, &["add", "store", "a.tsv"]);
    assert_eq!((&grown["added"], &grown["carried_on"]), (&json!(200), &json!(500)));
    let grown = folder.run(&["dump", "store"]).ok();
    assert_eq!(grown.lines().count(), 700);
    // After deletion, `--again` adds the same pairs again.
    assert_eq!(summary(&folder, &["delete", "store", "a.tsv"])["deleted"], 700);
    assert_eq!(folder.run(&["dump", "store"]).ok(), "");
    assert_eq!(summary(&folder, &["add", "--again", "store", "a.tsv"])["added"], 700);
    assert_eq!(folder.run(&["dump", "store"]).ok(), grown);
}

#[test]
fn standard_input_is_read_each_time() {
    let folder = TestFolder::new();
    for _ in 0..2 {
        folder.run_with_input(&["add", "store", "-"], "0000000000000001\t7\n00000000000000ff\t8\n").ok();
    }
    assert_eq!(folder.run(&["dump", "store"]).ok(), "0000000000000001\t7\n00000000000000ff\t8\n");
}

#[test]
fn only_new_documents() {
    let folder = TestFolder::new();
    folder.write("a.tsv", "0000000000000000\t1\n00000000000000ff\t2\n");
    assert_eq!(folder.run(&["add", "--if-new", "store", "a.tsv"]).ok(), "");
    let input = "0000000000000001\t3\n00000000000000fe\t4\nff00000000000000\t5\nff00000000000001\t6\n";
    let printed = folder.run_with_input(&["add", "--if-new", "store", "-"], input).ok();
    assert_eq!(printed, "3\t1\t1\n4\t2\t1\n6\t5\t1\n");
    let lines = folder.run_with_input(&["add", "--if-new", "--json", "store", "-"], input).json();
    let duplicate = |id: u64, original: u64, distance: u64| json!({"id": id, "duplicate_of": [{"id": original, "name": null, "distance": distance}]});
    assert_eq!(lines[..2], [duplicate(3, 1, 1), duplicate(4, 2, 1)]);
    assert_eq!((&lines[4]["added"], &lines[4]["duplicates"]), (&json!(0), &json!(4)));
    assert_eq!(folder.ids("store"), ["1", "2", "5"]);

    folder.write("names.jsonl", documents(0..3, |seed| json!(format!("a\t{seed}"))));
    folder.run(&["add", "--if-new", "-d", "3", "named", "names.jsonl"]).ok();
    folder.write("more.jsonl", documents(1..4, |seed| json!(format!("b{seed}"))));
    let printed = folder.run(&["add", "--if-new", "named", "more.jsonl"]).ok();
    assert_eq!(printed, "b1\ta\\t1\t0\nb2\ta\\t2\t0\n");
    assert_eq!(folder.ids("named").len(), 4);
}

#[test]
fn other_settings_are_refused() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", documents(0..5, |seed| json!(seed)));
    folder.write("b.hex", "0000000000000001\n");
    folder.write("c.hex", "00000000000000010000000000000002\n");
    folder.run(&["add", "store", "a.jsonl", "--profile", "chars-4"]).ok();
    let before = folder.run(&["dump", "store"]).ok();
    let add = |input: &str, args: &[&str]| folder.run(&[&["add", "store", input], args].concat());
    add("a.jsonl", &["--profile", "words-2"]).fails(1, "the store has profile chars-4, not words-2");
    add("b.hex", &["--distance", "4"]).fails(1, "the store has distance 3, not 4");
    add("b.hex", &["--distance", "17"]).fails(2, "distance 17 is too large");
    add("b.hex", &["--codec", "gap"]).fails(1, "the store has codec first-difference, not gap");
    add("b.hex", &["--plan", "scan"]).fails(1, "the store has plan auto, not scan");
    add("c.hex", &["--bits", "128"]).fails(1, "64-bit fingerprints, not 128-bit");
    add("a.jsonl", &["--memtable", "lots"]).fails(2, "is not a size");
    let delete = ["delete", "store", "a.jsonl", "--profile", "words-2"];
    folder.run(&delete).fails(1, "the store has profile chars-4, not words-2");
    folder.run(&["delete", "nothing", "b.hex"]).fails(1, "nothing");
    folder.run(&["add", "hex", "b.hex"]).ok();
    let add = ["add", "hex", "b.hex", "--profile", "words-2"];
    folder.run(&add).fails(1, "the store has profile none, not words-2");
    folder.run(&["add", "new", "b.hex", "--plan", "nope"]).fails(2, "nope");
    assert_eq!(folder.run(&["dump", "store"]).ok(), before);
}

#[test]
fn delete() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", documents(0..6, |seed| json!(format!("page-{seed}"))));
    folder.write("b.jsonl", documents(2..4, |seed| json!(format!("page-{seed}"))));
    folder.run(&["build", "named", "a.jsonl"]).ok();
    let deleted = summary(&folder, &["delete", "named", "b.jsonl"]);
    assert_eq!(fields(&deleted), ["deleted", "missing", "read", "seconds", "store"]);
    assert_eq!((&deleted["deleted"], &deleted["missing"]), (&json!(2), &json!(0)));
    assert_eq!(summary(&folder, &["delete", "named", "b.jsonl"])["missing"], 2);
    assert_eq!(folder.ids("named").len(), 4);
    folder.write("c.jsonl", documents(0..1, |_| json!("another name")));
    assert_eq!(summary(&folder, &["delete", "named", "c.jsonl"])["missing"], 1);

    let input = "0000000000000001\t1\n0000000000000001\t2\n0000000000000001\t3\n0000000000000002\t1\n";
    folder.run_with_input(&["add", "store", "-"], input).ok();
    folder.run_with_input(&["delete", "store", "-"], "0000000000000001\t2\n").ok();
    assert_eq!(folder.run(&["dump", "store"]).ok().lines().count(), 3);
    folder.run_with_input(&["delete", "--all-ids", "store", "-"], "0000000000000001\n").ok();
    assert_eq!(folder.run(&["dump", "store"]).ok(), "0000000000000002\t1\n");
}

#[test]
fn delete_by_id() {
    let folder = TestFolder::new();
    folder.write(
        "a.jsonl",
        documents(0..6, |seed| if seed == 5 { json!(105) } else { json!(format!("page-{seed}")) }),
    );
    folder.run(&["build", "named", "a.jsonl"]).ok();
    folder.run(&["add", "named", "a.jsonl"]).ok();
    let run = folder.run(&["delete", "named", "--id", "page-1", "--id", "nothing", "--id", "1"]);
    assert_eq!(run.stdout, "nothing\n1\n");
    run.fails(1, "named: 2 ids not in the store");
    folder.write("ids", "page-2\r\n\n105\npage-2\n");
    let deleted = summary(&folder, &["delete", "named", "--ids", "ids"]);
    assert_eq!(
        (&deleted["read"], &deleted["deleted"], &deleted["missing"]),
        (&json!(2), &json!(2), &json!(0))
    );
    assert_eq!(folder.ids("named"), ["page-0", "page-3", "page-4"]);
    let run = folder.run(&["delete", "named", "--ids", "ids", "--json"]);
    assert_eq!(run.stdout.lines().next(), Some(r#"{"missing_id":"page-2"}"#));
    run.fails(1, "2 ids");
    folder
        .run_with_input(&["delete", "named", "--ids", "-", "--id", "-3"], "page-3\n")
        .fails(1, "1 id not in the store");
    folder.write("bad", b"one\n\xff\n");
    folder.run(&["delete", "named", "--ids", "bad"]).fails(1, "bad:2: not UTF-8");
    folder.run(&["delete", "named"]).fails(2, "required");
    folder.run(&["delete", "named", "--id", "1", "a.jsonl"]).fails(2, "cannot be used with");

    // Deleting an id deletes all its fingerprints, in segments and in logs.
    folder.write("b.tsv", "0000000000000001\t7\n00000000000000ff\t7\n00000000000000ff\t8\n");
    folder.run(&["build", "store", "b.tsv"]).ok();
    folder.run_with_input(&["add", "store", "-"], "000000000000000f\t7\n").ok();
    folder.run(&["delete", "store", "--id", "7"]).ok();
    assert_eq!(folder.run(&["dump", "store"]).ok(), "00000000000000ff\t8\n");
    folder.run(&["build", "plain", "b.tsv", "--no-ids"]).ok();
    folder.run(&["delete", "plain", "--id", "7"]).fails(2, "has no ids");
}

/// Deletes many documents with the same fingerprint. This must not take quadratic time.
#[test]
fn delete_many_of_one_fingerprint() {
    let folder = TestFolder::new();
    let count = 60_000;
    let lines = |ids: std::ops::Range<u64>| {
        ids.map(|id| format!("00000000c0ffee00\tpage {}\n", id)).collect::<String>()
    };
    folder.write("all.tsv", lines(0..count));
    folder.run(&["build", "store", "all.tsv"]).ok();
    folder.write("some.tsv", lines(100..count));
    let deleted = summary(&folder, &["delete", "store", "some.tsv"]);
    assert_eq!((&deleted["deleted"], &deleted["missing"]), (&json!(count - 100), &json!(0)));
    assert_eq!(folder.ids("store").len(), 100);
}

#[test]
fn compact() {
    let folder = TestFolder::new();
    let fingerprints = Random(5).clustered(3000);
    folder.write("a.tsv", pairs(&fingerprints[..2000], 0));
    folder.write("b.tsv", pairs(&fingerprints[2000..], 2000));
    folder.write("gone.tsv", pairs(&fingerprints[..500], 0));
    folder.run(&["build", "store", "a.tsv"]).ok();
    folder.run(&["delete", "store", "gone.tsv", "--quiet"]).ok();
    folder.run(&["add", "store", "b.tsv"]).ok();
    let before = folder.run(&["dump", "store"]).ok();
    assert_eq!(before.lines().count(), 2500);
    let store_bytes = || {
        let files = std::fs::read_dir(folder.path("store")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let size_before = store_bytes();
    let compacted = summary(&folder, &["compact", "store"]);
    // The sizes include the logs.
    assert_eq!((&compacted["before"], &compacted["bytes"]), (&json!(size_before), &json!(store_bytes())));
    let inspected = &folder.run(&["inspect", "store", "--json"]).json()[0];
    let logs = inspected["logs"].as_array().unwrap().iter().map(|log| log["bytes"].as_u64().unwrap());
    assert_eq!(inspected["bytes"].as_u64().unwrap() + logs.sum::<u64>(), store_bytes());
    assert_eq!((&compacted["segments"], &compacted["ids"]), (&json!(1), &json!(2500)));
    assert_eq!(folder.run(&["dump", "store"]).ok(), before);
    let query = format!("{:016x}", fingerprints[2500]);
    folder.run(&["query", "store", &query, "--distance", "5"]).fails(1, "simstore compact --distance 5");
    assert_eq!(summary(&folder, &["compact", "--distance", "5", "store"])["distance"], 5);
    folder.run(&["query", "store", &query, "--distance", "5"]).ok();
    folder.run(&["compact", "--distance", "4", "store"]).fails(2, "not lowered to 4");
    folder.run(&["compact", "--distance", "17", "store"]).fails(2, "distance 17 is too large");
    assert_eq!(folder.run(&["dump", "store"]).ok(), before);
    folder.run(&["verify", "store"]).ok();
}

#[test]
fn a_checkpoint_is_a_store_of_its_own() {
    let folder = TestFolder::new();
    let fingerprints = Random(9).clustered(1500);
    folder.write("a.tsv", pairs(&fingerprints[..1000], 0));
    folder.write("b.tsv", pairs(&fingerprints[1000..], 1000));
    folder.run(&["build", "store", "a.tsv"]).ok();
    folder.run(&["add", "store", "b.tsv"]).ok();
    let before = folder.run(&["dump", "store"]).ok();
    let copied = summary(&folder, &["checkpoint", "store", "copy"]);
    assert_eq!((&copied["store"], &copied["copy"]), (&json!("store"), &json!("copy")));
    let inspected = &folder.run(&["inspect", "copy", "--json"]).json()[0];
    assert_eq!((&copied["ids"], &copied["fingerprints"]), (&json!(1500), &inspected["fingerprints"]));
    assert_eq!((&copied["bytes"], &inspected["logs"]), (&inspected["bytes"], &json!([])));
    folder.run(&["delete", "store", "a.tsv", "--quiet"]).ok();
    folder.run(&["compact", "store"]).ok();
    assert_eq!(folder.run(&["dump", "copy"]).ok(), before);
    folder.run(&["verify", "copy"]).ok();
    folder.run(&["add", "copy", "a.tsv"]).ok();
    assert_eq!(folder.ids("store").len(), 500);
    // Nothing is replaced.
    let files = folder.files("copy");
    folder.run(&["checkpoint", "store", "copy"]).fails(1, "choose another path");
    folder.run(&["checkpoint", "store", "store/copy"]).fails(1, "inside the store");
    folder.run(&["checkpoint", "missing", "new"]).fails(1, "missing");
    assert_eq!(folder.files("copy"), files);
    assert_eq!(folder.names(), ["a.tsv", "b.tsv", "copy", "store"]);
}

/// `compact --distance` replaces the plan of the store by `auto` if the plan does not support the new distance.
#[test]
fn compact_to_a_distance_without_this_plan() {
    let folder = TestFolder::new();
    folder.write("a.tsv", pairs(&Random(7).clustered(300), 0));
    folder.run(&["build", "store", "a.tsv", "--plan", "cover-11"]).ok();
    let query = format!("{:016x}", Random(7).clustered(300)[0]);
    let compacted = folder.run(&["compact", "--distance", "4", "store", "--json"]);
    assert!(compacted.stderr.contains("plan cover-11 does not exist for distance 4"), "{compacted:?}");
    let compacted = compacted.json().pop().unwrap();
    assert_eq!((&compacted["distance"], &compacted["plan"]), (&json!(4), &json!("auto")));
    folder.run(&["query", "store", &query, "--distance", "4"]).ok();
    assert_eq!(folder.run(&["inspect", "store", "--json"]).json()[0]["plan"], "auto");
    folder.run(&["verify", "store"]).ok();
}

/// `verify` detects all flipped bits in the log of a completed command. The log of a killed command may have
/// a torn tail, which looks the same as damage. `verify` reports this case too.
#[test]
fn verify_notices_flipped_bits_of_a_log() {
    let folder = TestFolder::new();
    folder.write("a.tsv", pairs(&Random(6).clustered(100), 0));
    folder.run(&["add", "store", "a.tsv"]).ok();
    let log = folder.path("store/000001.log");
    let sound = std::fs::read(&log).unwrap();
    folder.run(&["verify", "store"]).ok();
    for bit in (0..sound.len() * 8).step_by(131) {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&log, bytes).unwrap();
        folder.run(&["verify", "store"]).fails(1, "store: 1 problem found");
    }

    // Simulates a command that was killed after it had written all data: its log lacks the last 32 bytes.
    let killed = &sound[..sound.len() - 32];
    std::fs::write(&log, killed).unwrap();
    folder.run(&["verify", "store"]).ok();
    let mut bytes = killed.to_vec();
    bytes[killed.len() / 2] ^= 16;
    std::fs::write(&log, bytes).unwrap();
    let run = folder.run(&["verify", "store"]);
    assert!(run.stdout.contains("torn tail") && run.stdout.contains("damage looks the same"), "{run:?}");
    run.fails(1, "1 problem");
    let shown = folder.run(&["inspect", "store"]).ok();
    assert!(shown.contains("or is damaged (it is not known which)"), "{shown}");
    // Commands that read the store warn that answers may be incomplete.
    folder.write("new.tsv", pairs(&[1], 1));
    for args in [
        &["dump", "store"][..],
        &["query", "store", "0000000000000001"],
        &["dedup", "new.tsv", "--against", "store"],
    ] {
        let run = folder.run(args);
        assert!(run.stderr.contains("warning: ") && run.stderr.contains("000001.log: torn tail"), "{run:?}");
        run.ok();
    }
    folder.write("b.tsv", pairs(&[1, 2, 3], 1000));
    let added = folder.run(&["add", "store", "b.tsv"]);
    assert!(added.stderr.contains("warning: ") && added.stderr.contains("torn tail"), "{added:?}");
    folder.run(&["verify", "store"]).ok();
    assert_eq!(folder.ids("store").len(), 3);
}

#[test]
fn inspect_and_verify_a_store_with_a_log() {
    let folder = TestFolder::new();
    let fingerprints = Random(6).clustered(1000);
    folder.write("a.tsv", pairs(&fingerprints[..800], 0));
    folder.write("b.tsv", pairs(&fingerprints[800..], 800));
    folder.write("gone.tsv", pairs(&fingerprints[..10], 0));
    folder.run(&["build", "store", "a.tsv"]).ok();
    folder.run(&["add", "store", "b.tsv"]).ok();
    folder.run(&["delete", "store", "gone.tsv"]).ok();
    let store = &folder.run(&["inspect", "store", "--json"]).json()[0];
    assert_eq!((&store["memtable_entries"], &store["segments"]), (&json!(200), &json!(1)));
    assert_eq!((&store["plan"], &store["keeps_ids"]), (&json!("auto"), &json!(true)));
    let names = "bytes fingerprints number pairs plan segment tables tombstones";
    assert_eq!(fields(&store["by_age"][0]).join(" "), names);
    assert_eq!((&store["by_age"][0]["pairs"], &store["by_age"][0]["tombstones"]), (&json!(800), &json!(0)));
    let logs = store["logs"].as_array().unwrap();
    assert_eq!(fields(&logs[0]).join(" "), "bytes ended number operations records torn_bytes");
    let operations: u64 = logs.iter().map(|log| log["operations"].as_u64().unwrap()).sum();
    // The logs have 200 inserts and 10 deletes, and further operations for positions in the input.
    assert!((210..=420).contains(&operations), "{operations}");
    for log in logs {
        let name = format!("{:06}.log", log["number"].as_u64().unwrap());
        assert_eq!(folder.path("store").join(name).metadata().unwrap().len(), log["bytes"]);
    }
    let shown = folder.run(&["inspect", "store"]).ok();
    assert!(shown.contains(" not in segments yet") && shown.contains("in memory: 200 pairs"), "{shown}");
    assert!(shown.lines().next().unwrap().contains(" 1,000 ids,"), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.contains(".log")).count(), 1, "{shown}");
    let verified = folder.run(&["verify", "store"]).ok();
    assert!(verified.starts_with("ok: ") && verified.contains(" 1,000 ids"), "{verified}");
    let summary = summary(&folder, &["verify", "store"]);
    assert_eq!((&summary["ids"], &summary["logs"]), (&json!(1000), &json!(logs.len())));

    // `verify` reports a torn tail as a note, not as a problem.
    let number = logs[0]["number"].as_u64().unwrap();
    let log = folder.path("store").join(format!("{number:06}.log"));
    let sound = std::fs::read(&log).unwrap();
    std::fs::write(&log, [&sound[..], b"half a record"].concat()).unwrap();
    let verified = folder.run(&["verify", "store"]).ok();
    assert!(verified.contains("note: 13 bytes from offset"), "{verified}");
    // Answers are complete despite the torn tail.
    let dumped = folder.run(&["dump", "store"]);
    assert_eq!((dumped.code, &*dumped.stderr), (Some(0), ""));
    let note = &folder.run(&["verify", "store", "--json"]).json()[0];
    assert_eq!((&note["offset"], fields(note)), (&json!(sound.len()), vec!["file", "note", "offset"]));
    assert!(folder.run(&["inspect", "store"]).ok().contains("the last 13 bytes: cut off"));

    // Damage to synced data is a problem. `verify` lists all damaged files.
    let mut damaged = sound;
    damaged[20] ^= 1;
    std::fs::write(&log, damaged).unwrap();
    std::fs::write(folder.path("store").join("000001-00.table"), "cut").unwrap();
    std::fs::remove_file(folder.path("store").join("000001.ids")).unwrap();
    let run = folder.run(&["verify", "store"]);
    for file in ["000001-00.table: damaged", "000001.ids: cannot open", &format!("{number:06}.log: damaged")]
    {
        assert!(run.stdout.contains(file), "{file}: {}", run.stdout);
    }
    run.fails(1, "3 problems found");
}

#[test]
fn one_writer_and_many_readers() {
    let folder = TestFolder::new();
    let mut writer = folder.command(&["add", "--if-new", "--json", "store", "-"]);
    let mut writer = writer.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    let fingerprint = "0123456789abcdef";
    // The input is larger than one read buffer, so the writer adds the first lines before the input ends.
    let mut random = Random(9);
    let mut lines = format!("{fingerprint}\t0\n");
    (1..20_000).for_each(|id| lines += &format!("{:016x}\t{id}\n", random.next()));
    input.write_all(lines.as_bytes()).unwrap();
    input.flush().unwrap();
    let start = Instant::now();
    loop {
        let run = folder.run(&["query", "store", fingerprint]);
        if run.stdout.lines().count() == 1 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{run:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    folder.write("a.hex", hex_lines(&[1]));
    for args in [&["add", "store", "a.hex"][..], &["delete", "store", "a.hex"], &["compact", "store"]] {
        folder.run(args).fails(1, "store: another process is writing to this store; wait until");
    }
    let inspected = &folder.run(&["inspect", "store", "--json"]).json()[0];
    assert!(inspected["memtable_entries"].as_u64() > Some(0), "{inspected}");
    folder.run(&["verify", "store"]).ok();
    drop(input);
    assert!(writer.wait_with_output().unwrap().status.success());
    folder.run(&["add", "store", "a.hex"]).ok();
}

/// If the store is moved during a write and another store is moved to its path, the other store stays intact
/// and the writer fails.
#[test]
fn a_writer_of_a_moved_store_does_not_change_another_store() {
    let folder = TestFolder::new();
    let mut random = Random(11);
    let lines: Vec<String> = (0..60_000).map(|_| format!("{:016x}\n", random.next())).collect();
    let (first, rest) = lines.split_at(20_000);
    folder.write("other.hex", hex_lines(&[1, 2, 3]));
    for args in [&["add", "store", "-", "--memtable", "16K"][..], &["build", "store", "-"]] {
        folder.run(&["build", "other", "other.hex"]).ok();
        let files = |store: &str| (folder.files(store), folder.path(store).join("LOCK").exists());
        let before = files("other");
        let mut writer = folder.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = writer.stdin.take().unwrap();
        input.write_all(first.concat().as_bytes()).unwrap();
        input.flush().unwrap();
        let start = Instant::now();
        let has_started =
            || ["MANIFEST", "BUILDING"].iter().any(|name| folder.path("store").join(name).exists());
        while !has_started() {
            assert!(start.elapsed() < Duration::from_secs(60), "{args:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::rename(folder.path("store"), folder.path("moved")).unwrap();
        std::fs::rename(folder.path("other"), folder.path("store")).unwrap();
        // The write fails if the writer has already exited.
        let _ = input.write_all(rest.concat().as_bytes());
        drop(input);
        let writer_output = crate::support::CommandOutput::new(writer.wait_with_output().unwrap());
        writer_output.fails(1, "the directory was moved");
        assert!(files("store") == before, "{args:?}");
        std::fs::remove_dir_all(folder.path("store")).unwrap();
        std::fs::remove_dir_all(folder.path("moved")).unwrap();
    }
}
