//! `simstore salvage` on stores with damaged or missing files.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Random, TestFolder, fields};

/// Returns a line of HEX<TAB>NAME for each fingerprint. The names count up from `page {first}`.
fn lines(fingerprints: &[u64], first: usize) -> String {
    let lines = fingerprints.iter().zip(first..);
    lines.map(|(fingerprint, name)| format!("{fingerprint:016x}\tpage {name}\n")).collect()
}

/// Creates a store with several segments, tombstones in one of them, names, and a log with inserts and deletes.
fn live_store() -> TestFolder {
    let folder = TestFolder::new();
    let fingerprints = Random(21).clustered(12_000);
    let write = |name: &str, range: std::ops::Range<usize>| {
        folder.write(name, lines(&fingerprints[range.clone()], range.start));
    };
    write("a.tsv", 0..8000);
    write("gone.tsv", 0..200);
    write("b.tsv", 8000..11_072);
    write("c.tsv", 11_072..12_000);
    write("gone-too.tsv", 8000..8010);
    folder.run(&["build", "--plan", "paper-4", "--block-size", "1024", "store", "a.tsv"]).ok();
    folder.run(&["delete", "store", "gone.tsv"]).ok();
    // The memtable is so small that each batch becomes a segment.
    folder.run(&["add", "--memtable", "1K", "store", "b.tsv"]).ok();
    folder.run(&["add", "store", "c.tsv"]).ok();
    folder.run(&["delete", "store", "gone-too.tsv"]).ok();
    let store = &folder.run(&["inspect", "store", "--json"]).json()[0];
    assert!(store["segments"].as_u64() > Some(1) && store["tombstones"].as_u64() >= Some(200), "{store}");
    folder
}

/// Returns the distinct lines that `simstore dump` prints for a store.
fn dump(folder: &TestFolder, store: &str) -> BTreeSet<String> {
    folder.run(&["dump", store]).ok().lines().map(String::from).collect()
}

/// Returns the fingerprints of lines of HEX<TAB>NAME.
fn fingerprints_of(lines: &BTreeSet<String>) -> BTreeSet<String> {
    lines.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// Salvages `store` into `new`, and checks the new store and the report. Returns the exit code and the JSON lines.
fn salvage(folder: &TestFolder, args: &[&str]) -> (i32, Vec<Value>) {
    let _ = std::fs::remove_dir_all(folder.path("new"));
    let before = folder.files("store");
    let run = folder.run(&[&["salvage", "store", "new", "--json"], args].concat());
    assert_eq!(folder.files("store"), before, "the damaged store is not written to");
    assert!(matches!(run.code, Some(0 | 1)) && !run.stderr.contains("panicked"), "{run:?}");
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = lines.last().unwrap_or_else(|| panic!("{}", run.stderr))["whole"].as_bool().unwrap();
    assert_eq!(whole, run.code == Some(0));
    assert_eq!(whole, !lines[..lines.len() - 1].iter().any(|line| line["lost"] == true));
    folder.run(&["verify", "new"]).ok();
    (run.code.unwrap(), lines)
}

#[test]
fn an_intact_store_comes_back_whole() {
    let folder = live_store();
    let (code, lines) = salvage(&folder, &[]);
    assert_eq!((code, lines.len()), (0, 1), "{lines:?}");
    let names =
        "fingerprints ids lost_fingerprints names new notes operations seconds store whole without_ids";
    assert_eq!(fields(&lines[0]).join(" "), names);
    assert_eq!(folder.run(&["dump", "new"]).ok(), folder.run(&["dump", "store"]).ok());
    // Positions in the inputs are salvaged too, so `add` reads nothing again.
    let added = folder.run(&["add", "new", "c.tsv", "--json"]).json();
    assert_eq!((&added[0]["added"], &added[0]["carried_on"]), (&json!(0), &json!(928)));
    let before = folder.files("store");
    for (target, code) in [("store", 1), ("new", 1), ("store/inside", 2)] {
        assert_eq!(folder.run(&["salvage", "store", target]).code, Some(code), "{target}");
    }
    assert_eq!(folder.files("store"), before);
    folder.run(&["salvage", "nothing", "other"]).fails(1, "nothing");
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.run(&["salvage", "empty", "other"]).fails(1, "not a simstore store");
}

/// Salvages a store whose file of ids is missing. The engine's tests/salvage.rs tests the loss of the other kinds of files.
#[test]
fn lost_ids_are_reported() {
    let folder = live_store();
    let intact = dump(&folder, "store");
    let name = folder.files("store").into_keys().find(|name| name.ends_with(".ids")).unwrap();
    std::fs::remove_file(folder.path("store").join(&name)).unwrap();
    let (code, lines) = salvage(&folder, &[]);
    let is_ids_line = |line: &&Value| line["file"].as_str().is_some_and(|file| file.ends_with(&name));
    assert!(code == 1 && lines.iter().filter(is_ids_line).any(|line| line["lost"] == true), "{lines:?}");
    assert!(dump(&folder, "new").is_subset(&intact));
    let (_, kept) = salvage(&folder, &["--keep-without-ids"]);
    let without = kept.last().unwrap()["without_ids"].as_u64().unwrap();
    assert!(
        without > 0 && fingerprints_of(&dump(&folder, "new")).is_superset(&fingerprints_of(&intact)),
        "{kept:?}"
    );
}

#[test]
fn all_tables_damaged_in_other_places() {
    let folder = TestFolder::new();
    folder.write("a.tsv", lines(&Random(22).clustered(20_000), 0));
    folder.run(&["build", "--plan", "paper-4", "--block-size", "1024", "store", "a.tsv"]).ok();
    let intact = dump(&folder, "store");
    for name in folder.files("store").into_keys().filter(|name| name.ends_with(".table")) {
        let path = folder.path("store").join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        (1..5).for_each(|part| bytes[part * 9000] ^= 1);
        std::fs::write(&path, bytes).unwrap();
    }
    let (_, lines) = salvage(&folder, &[]);
    let rescued = dump(&folder, "new");
    // A fingerprint is lost only if its block is damaged in every table. The ids of the fingerprints around
    // it are lost too.
    let lost = lines.last().unwrap()["lost_fingerprints"].as_u64().unwrap();
    assert!(lost < 100 && rescued.is_subset(&intact) && rescued.len() > 18_000, "{lost} {}", rescued.len());
}

#[test]
fn wide_fingerprints_without_ids() {
    let folder = TestFolder::new();
    let mut random = Random(23);
    let lines: String =
        (0..3000).map(|_| format!("{:016x}{:016x}\n", random.next(), random.next())).collect();
    folder.write("a.hex", lines);
    folder.run(&["build", "--no-ids", "--plan", "paper-4", "--bits", "128", "store", "a.hex"]).ok();
    std::fs::remove_file(folder.path("store").join("MANIFEST")).unwrap();
    std::fs::remove_file(folder.path("store").join("000001-00.table")).unwrap();
    let (code, lines) = salvage(&folder, &["--distance", "3"]);
    assert_eq!((code, &lines.last().unwrap()["fingerprints"]), (1, &json!(3000)));
}

#[test]
fn ids_and_names_of_a_log_alone() {
    let folder = TestFolder::new();
    folder.run_with_input(&["add", "numbers", "-"], "0123456789abcdef\t5\nfedcba9876543210\t77\n").ok();
    folder.run_with_input(&["add", "names", "-"], "0123456789abcdef\tone\nfedcba9876543210\ttwo\n").ok();
    for store in ["numbers", "names"] {
        let whole = folder.run(&["dump", store]).ok();
        std::fs::remove_file(folder.path(store).join("MANIFEST")).unwrap();
        let run = folder.run(&["salvage", store, "rescued"]);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert_eq!(folder.run(&["dump", "rescued"]).ok(), whole);
        std::fs::remove_dir_all(folder.path("rescued")).unwrap();
    }
}

/// Every command that writes refuses a store without a manifest and suggests `salvage`.
#[test]
fn a_store_without_its_manifest_is_not_written_to() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0123456789abcdef\t5\n");
    folder.write("a.jsonl", "{\"id\": 1, \"text\": \"one two three four five six\"}\n");
    folder.run(&["build", "prints", "a.hex"]).ok();
    folder.run(&["add", "--similar", "0.8", "pages", "a.jsonl"]).ok();
    let commands: [&[&str]; 9] = [
        &["add", "prints", "a.hex"],
        &["build", "prints", "a.hex"],
        &["build", "--force", "prints", "a.hex"],
        &["query", "prints", "0123456789abcdef"],
        &["compact", "prints"],
        &["delete", "prints", "--id", "5"],
        &["add", "--similar", "0.8", "pages", "a.jsonl"],
        &["dedup", "a.jsonl", "--against", "pages", "--add"],
        &["dedup", "a.jsonl", "--distance", "3", "--against", "prints", "--add"],
    ];
    for store in ["prints", "pages"] {
        std::fs::remove_file(folder.path(store).join("MANIFEST")).unwrap();
    }
    let files = |store: &str| (folder.files(store), folder.path(store).join("LOCK").exists());
    let before = (files("prints"), files("pages"));
    for command in commands {
        folder.run(command).fails(1, "salvage");
        assert_eq!((files("prints"), files("pages")), before, "{command:?}");
    }
}

/// Creates a store of similar documents, which keeps their texts. Its compression dictionary is built from the first
/// 1000 documents, and the last 100 are in a log. Also returns the texts in order of id: 0, 1, and so on.
fn similar_store() -> (TestFolder, Vec<String>) {
    let folder = TestFolder::new();
    let mut random = Random(77);
    let text = |random: &mut Random| {
        let words: Vec<String> = (0..40).map(|_| format!("word{}", random.next() % 900)).collect();
        format!("All pages of this place begin with the same few words. {}", words.join(" "))
    };
    let texts: Vec<String> = (0..2300).map(|_| text(&mut random)).collect();
    let lines = |range: std::ops::Range<usize>| -> String {
        range.map(|id| format!("{}\n", json!({"id": id, "text": texts[id]}))).collect()
    };
    folder.write("a.jsonl", lines(0..2200));
    folder.write("b.jsonl", lines(2200..2300));
    folder.run(&["build", "--similar", "0.8", "--with-texts", "store", "a.jsonl"]).ok();
    folder.run(&["add", "store", "b.jsonl"]).ok();
    (folder, texts)
}

#[test]
fn a_store_of_similar_documents_keeps_its_kind() {
    let (folder, texts) = similar_store();
    let profile =
        folder.run(&["inspect", "store", "--json"]).json()[0]["profile"].as_str().unwrap().to_owned();
    let query_text = |id: usize| folder.run(&["query", "new", "--text", &texts[id]]);
    // Even if the stored text is lost, the estimated similarity is 1, because the signatures are equal.
    let is_found = |id: usize| query_text(id).ok().starts_with(&format!("1\t0\t{id}\n"));
    // Counts the documents that a query by text finds, among a sample of 10.
    let count = || (0..2300).step_by(230).filter(|&id| is_found(id)).count();

    let (code, _) = salvage(&folder, &[]);
    assert_eq!((code, count()), (0, 10));
    assert_eq!(folder.run(&["dump", "new"]).ok(), folder.run(&["dump", "store"]).ok());
    folder.run(&["salvage", "store", "other", "-d", "3"]).fails(2, "needs a distance of 8 or more, not 3");
    folder
        .run(&["salvage", "store", "other", "--keep-without-ids"])
        .fails(2, "a fingerprint without an id is useless");
    folder.run(&["salvage", "store", "other", "--similar", "0.9"]).fails(1, "settings");

    let sound = folder.files("store");
    let profile = ["--profile", &profile];
    let with_settings = [&profile[..], &["--similar", "0.8"]].concat();
    let (mut lost_settings, mut lost_dictionaries) = (0, 0);
    for (name, bytes) in &sound {
        let path = folder.path("store").join(name);
        let offsets = (0..6).map(|part| Some(bytes.len() * (2 * part + 1) / 12)).chain([None]);
        for offset in offsets {
            match offset {
                Some(at) => {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= 0x10;
                    std::fs::write(&path, damaged).unwrap();
                }
                None => std::fs::remove_file(&path).unwrap(),
            }
            let place = format!("{name} at {offset:?}");
            let (_, mut lines) = salvage(&folder, &profile);
            let says = |lines: &[Value], part: &str| {
                lines.iter().any(|line| line["what"].as_str().is_some_and(|message| message.contains(part)))
            };
            if says(&lines, "the settings of the store of similar documents") {
                lost_settings += 1;
                lines = salvage(&folder, &with_settings).1;
                assert!(
                    !says(&lines, "the settings of the store of similar documents"),
                    "{place}: {lines:?}"
                );
            }
            lost_dictionaries += usize::from(says(&lines, "the dictionary of the texts"));
            // A damaged chunk of notes loses only some documents. Without the notes file, only the documents
            // in logs remain.
            let is_left_out = name.ends_with(".notes") && says(&lines, "left out");
            assert!(count() > 4 || is_left_out, "{place}: {lines:?}");
            let whole = lines.last().unwrap()["whole"].as_bool().unwrap();
            assert!(!whole || count() == 10, "{place}: {lines:?}");
            // The salvaged store accepts new documents.
            folder.run(&["add", "new", "b.jsonl"]).ok();
            assert!(is_found(2299), "{place}");
            std::fs::write(&path, bytes).unwrap();
        }
    }
    assert!(lost_settings > 0 && lost_dictionaries > 0, "{lost_settings} {lost_dictionaries}");
    // A store of fingerprints cannot be salvaged as a store of documents.
    folder.write("a.hex", crate::hex_lines(&[1, 2, 3]));
    folder.run(&["build", "plain", "a.hex"]).ok();
    folder.run(&["salvage", "plain", "rescued", "--similar", "0.8"]).fails(1, "some content is lost");
    assert_eq!(folder.run(&["dump", "rescued"]).ok(), folder.run(&["dump", "plain"]).ok());
    // An intact store keeps its own settings.
    assert_eq!(salvage(&folder, &with_settings).0, 0);
}
