//! `simstore add`, run repeatedly: if an earlier run has read an input, `add` recognises the input by its contents.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{Random, TestFolder};

/// Runs `simstore add` and returns its JSON summary.
fn add(folder: &TestFolder, args: &[&str]) -> Value {
    folder.run(&[&["add", "--json"], args].concat()).json().pop().unwrap()
}

fn text(seed: u64) -> String {
    let mut random = Random(seed * 1000);
    (0..60).map(|_| format!("word{}", random.next() % 5000)).collect::<Vec<_>>().join(" ")
}

fn lines(seeds: std::ops::Range<u64>) -> String {
    seeds.map(|seed| format!("{}\n", json!({"id": format!("page-{seed}"), "text": text(seed)}))).collect()
}

#[test]
fn another_file_under_the_same_name_is_read() {
    let folder = TestFolder::new();
    folder.write("batch.jsonl", lines(0..20));
    add(&folder, &["s", "batch.jsonl"]);
    // The new file is as long as the previous one, then shorter, then longer.
    for (seeds, stored) in [(20..40, 40), (40..50, 50), (50..90, 90)] {
        folder.write("batch.jsonl", lines(seeds.clone()));
        let summary = add(&folder, &["s", "batch.jsonl"]);
        let count = seeds.end - seeds.start;
        assert_eq!(
            (&summary["added"], &summary["carried_on"], &summary["changed"]),
            (&json!(count), &json!(0), &json!(1))
        );
        assert_eq!(folder.ids("s").len(), stored);
    }
    // If a line in the middle of a file has changed, the unchanged documents are not stored twice.
    folder.write("batch.jsonl", lines(50..90).replacen("page-60", "page-x", 1));
    let run = folder.run(&["add", "s", "batch.jsonl"]);
    let printed = run.stderr.clone();
    run.ok();
    assert!(
        printed.contains("1 document added, 39 documents already stored, 1 file changed since the last run"),
        "{printed}"
    );
    assert_eq!(folder.ids("s").len(), 91);
    assert_eq!(add(&folder, &["s", "batch.jsonl"])["carried_on"], 40);
}

#[test]
fn the_files_of_a_folder_are_tracked_separately() {
    let folder = TestFolder::new();
    fs::create_dir(folder.path("f")).unwrap();
    for name in ["b", "d", "f"] {
        folder.write(&format!("f/{name}.txt"), format!("page {name} words"));
    }
    add(&folder, &["s", "f"]);
    folder.write("f/a.txt", "new");
    assert_eq!(add(&folder, &["s", "f"])["added"], 1);
    assert_eq!(folder.ids("s"), ["f/a.txt", "f/b.txt", "f/d.txt", "f/f.txt"]);
    // A glob, a single file, and the same folder by another path.
    assert_eq!(add(&folder, &["s", "f/*.txt", "f/d.txt", "./f"])["added"], json!(0));
    folder.write("f/d.txt", "page d, others");
    let summary = add(&folder, &["s", "f"]);
    assert_eq!((&summary["added"], &summary["changed"]), (&json!(1), &json!(1)));
    fs::remove_file(folder.path("f/b.txt")).unwrap();
    assert_eq!(add(&folder, &["s", "f"])["added"], 0);
}

#[test]
fn a_glob_resumes_in_each_file() {
    let folder = TestFolder::new();
    let mut all = Vec::new();
    for (name, first) in [("a", 0), ("b", 3000), ("c", 6000)] {
        let fingerprints = Random(first + 1).clustered(3000);
        let rows: String =
            fingerprints.iter().zip(first..).map(|(value, id)| format!("{value:016x}\t{id}\n")).collect();
        all.extend(rows.lines().map(str::to_owned));
        folder.write(&format!("{name}.tsv"), rows);
    }
    // A run that fails in the middle of a file.
    let first_half: String =
        folder.read("b.tsv").lines().take(1500).map(|line| format!("{line}\n")).collect();
    let whole = folder.read("b.tsv");
    folder.write("b.tsv", first_half + "not a fingerprint\n");
    folder.run(&["add", "s", "*.tsv"]).fails(1, "b.tsv:1501");
    folder.write("b.tsv", whole);
    let summary = add(&folder, &["s", "*.tsv"]);
    assert_eq!(summary["documents"], 9000);
    all.sort();
    let mut dump: Vec<String> = folder.run(&["dump", "s"]).ok().lines().map(str::to_owned).collect();
    dump.sort();
    assert_eq!(dump, all);
    assert_eq!(add(&folder, &["s", "*.tsv"])["carried_on"], 9000);
}

#[test]
fn a_last_line_that_grows_is_read_again() {
    let folder = TestFolder::new();
    folder.write("a.tsv", "0000000000000001\tone\n00000000000000ff\ttw");
    assert_eq!(add(&folder, &["s", "a.tsv"])["added"], 2);
    folder.write("a.tsv", "0000000000000001\tone\n00000000000000ff\ttwo\n0000000000ffffff\tthree\n");
    let summary = add(&folder, &["s", "a.tsv"]);
    assert_eq!((&summary["added"], &summary["carried_on"]), (&json!(2), &json!(1)));
    assert_eq!(folder.ids("s"), ["one", "three", "tw", "two"]);
    // An incomplete line is malformed. The line is read after it has been completed.
    folder.write("b.jsonl", format!("{}{{\"id\": \"x\", \"te", lines(0..3)));
    folder.run(&["add", "t", "b.jsonl"]).fails(1, "b.jsonl:4");
    folder.run(&["add", "t", "b.jsonl"]).fails(1, "b.jsonl:4");
    folder.write("b.jsonl", format!("{}{{\"id\": \"x\", \"text\": \"now whole\"}}\n", lines(0..3)));
    assert_eq!(add(&folder, &["t", "b.jsonl"])["added"], 1);
    assert_eq!(folder.ids("t"), ["page-0", "page-1", "page-2", "x"]);
}

#[test]
fn the_same_name_with_the_same_fingerprint_is_stored_once() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", lines(0..10));
    folder.write("b.jsonl", format!("{}{}", lines(5..15), lines(5..15)));
    add(&folder, &["s", "a.jsonl"]);
    let summary = add(&folder, &["s", "b.jsonl"]);
    assert_eq!((&summary["added"], &summary["known"]), (&json!(5), &json!(15)));
    assert_eq!(folder.ids("s").len(), 15);
    // The same name for another text is another document. Both fingerprints have this name.
    folder.write("c.jsonl", lines(20..21).replace("page-20", "page-3"));
    assert_eq!(add(&folder, &["s", "c.jsonl"])["added"], 1);
    assert_eq!(folder.ids("s").iter().filter(|id| *id == "page-3").count(), 2);
    let summary = add(&folder, &["--again", "--if-new", "s", "a.jsonl"]);
    assert_eq!((&summary["known"], &summary["duplicates"]), (&json!(10), &json!(0)));
}

#[test]
fn an_id_that_is_stored_is_kept_beside_replaced_or_refused() {
    let folder = TestFolder::new();
    let named_documents = |seeds: std::ops::Range<u64>, step: u64| -> String {
        seeds.map(|id| format!("{}\n", json!({"id": format!("p{id}"), "text": text(id * step)}))).collect()
    };
    let numbered_fingerprints = |seeds: std::ops::Range<u64>, step: u64| -> String {
        seeds.map(|id| format!("{:016x}\t{id}\n", Random(id * step).next())).collect()
    };
    folder.write("old.jsonl", named_documents(0..20, 1));
    folder.write(
        "new.jsonl",
        named_documents(10..30, 1).replacen("p10", "p25", 1) + &named_documents(5..7, 1000),
    );
    folder.write("old.tsv", numbered_fingerprints(0..20, 1));
    folder.write(
        "new.tsv",
        numbered_fingerprints(10..30, 1).replacen("\t10\n", "\t25\n", 1) + &numbered_fingerprints(5..7, 1000),
    );
    for (old, new) in [("old.jsonl", "new.jsonl"), ("old.tsv", "new.tsv")] {
        for store in ["both", "replace", "refuse"] {
            let _ = fs::remove_dir_all(folder.path(store));
            folder.run(&["build", store, old]).ok();
            let refused = folder.run(&["add", store, new, "--same-id", "refuse"]);
            refused.fails(1, &format!("{new}:16: the id `"));
        }
        let both = add(&folder, &["both", new]);
        assert_eq!((&both["replaced"], folder.ids("both").len()), (&json!(0), 33), "{new}");
        // In the file, the id 25 occurs twice, and the ids 5 and 6 have other content than in the store.
        let replaced = add(&folder, &["replace", new, "--same-id", "replace"]);
        assert_eq!(
            ["added", "known", "replaced"].map(|field| &replaced[field]),
            [&json!(13), &json!(9), &json!(3)],
            "{new}"
        );
        let mut expected = folder.ids("both");
        expected.dedup();
        assert_eq!(folder.ids("replace"), expected);
        let refused = add(&folder, &["refuse", new, "--same-id", "refuse", "--skip-bad"]);
        assert_eq!(
            ["documents", "added", "known", "bad"].map(|field| &refused[field]),
            [&json!(19), &json!(10), &json!(9), &json!(3)],
            "{new}"
        );
        assert_eq!(folder.ids("refuse"), expected);
        let again = add(&folder, &["--again", "replace", new, "--same-id", "replace"]);
        assert_eq!(folder.ids("replace"), expected, "{again}");
    }
    folder
        .run(&["add", "both", "new.tsv", "--same-id", "replace", "--if-new"])
        .fails(2, "cannot be used with");
}

#[test]
fn fingerprints_without_ids_get_the_next_numbers() {
    let folder = TestFolder::new();
    for (name, values) in [("a.u64", [1_u64, 0xff]), ("b.u64", [0xffff, 0xff_ffff])] {
        folder.write(name, values.map(u64::to_le_bytes).concat());
    }
    add(&folder, &["s", "a.u64"]);
    add(&folder, &["s", "b.u64"]);
    folder.run_with_input(&["add", "s", "-"], "00000000ffffffff\n").ok();
    assert_eq!(folder.ids("s"), ["0", "1", "2", "3", "4"]);
}

#[test]
fn no_id_comes_after_the_greatest() {
    let folder = TestFolder::new();
    folder.write("m.hex", "c0ffee0123456789\t18446744073709551615\n");
    folder.write("n.hex", "00ffee0123456789\tname\n");
    folder.run(&["build", "s", "m.hex"]).ok();
    let expected = "c0ffee0123456789\t18446744073709551615\n";
    folder
        .run(&["add", "s", "n.hex", "--names"])
        .fails(1, "is in use, so a document without an id cannot be numbered");
    folder
        .run_with_input(&["add", "s", "-"], "00ffee0123456789\n")
        .fails(1, "is in use, so a document without an id cannot be numbered");
    assert_eq!(folder.run(&["dump", "s"]).ok(), expected);
    folder.run(&["add", "t", "m.hex"]).ok();
    assert_eq!(folder.run(&["dump", "t"]).ok(), expected);
}

/// Returns `count` lines of HEX<TAB>ID. Each group of eight successive lines has near fingerprints.
fn near_duplicates(count: u64) -> String {
    (0..count).map(|i| format!("{:016x}\td{i}\n", Random(i / 8 + 1).next() ^ (1 << (i % 8)))).collect()
}

#[test]
fn a_closed_output_does_not_stop_writing_the_store() {
    let folder = TestFolder::new();
    folder.write("a.tsv", near_duplicates(20_000));
    let mut child = folder.command(&["add", "--if-new", "s", "a.tsv"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.ends_with("\td0\t2\n"), "{first}");
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(child.wait().unwrap().success(), "{stderr}");
    assert!(stderr.contains("2,500 documents added, 17,500 duplicates not"), "{stderr}");
    assert_eq!(folder.ids("s").len(), 2500);
}

#[test]
fn killed_and_repeated_runs_report_all_duplicates() {
    let folder = TestFolder::new();
    folder.write("a.tsv", near_duplicates(40_000));
    let expected = folder.run(&["add", "--if-new", "whole", "a.tsv"]).ok();
    let mut printed = String::new();
    let mut random = Random(7);
    for _ in 0..12 {
        let mut child =
            folder.command(&["add", "--if-new", "s", "a.tsv"]).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..random.next() % 6000 {
            output.read_line(&mut printed).unwrap();
        }
        child.kill().unwrap();
        output.read_to_string(&mut printed).unwrap();
        child.wait().unwrap();
    }
    printed += &folder.run(&["add", "--if-new", "s", "a.tsv"]).ok();
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines.dedup();
        lines
    };
    assert_eq!(lines(&printed), lines(&expected));
    assert_eq!(folder.run(&["dump", "s"]).ok(), folder.run(&["dump", "whole"]).ok());
}
