//! `simstore dedup` with several stores.

use serde_json::json;

use crate::TestFolder;

/// Creates two stores of fingerprints, and a file of new ones: `a` is near both stores, `b` only near the second one,
/// `c` and `d` are near each other, and `e` is near none.
fn folder() -> TestFolder {
    let folder = TestFolder::new();
    folder.write("yesterday.tsv", "0000000000000003\told\n00ff000000000000\tolder\n");
    folder.write("tests.tsv", "0000000000000001\tquestion\nff00000000000000\tanswer\n");
    for name in ["yesterday", "tests"] {
        folder.run(&["build", name, &format!("{name}.tsv")]).ok();
    }
    folder.write(
        "new.tsv",
        "0000000000000000\ta\nff00000000000001\tb\n000ffff000000000\tc\n000ffff000000001\td\n000000fff0000000\te\n",
    );
    folder
}

#[test]
fn tables_name_the_store_of_a_stored_document() {
    let folder = folder();
    let args = ["dedup", "new.tsv", "-q", "--against", "yesterday", "--against", "tests"];
    let run = |more: &[&str]| folder.run(&[&args, more].concat());
    assert_eq!(
        run(&["--clusters", "-"]).ok(),
        "a\t1\tquestion\t1\ttrue\ttests\nb\t2\tanswer\t1\ttrue\ttests\nc\t3\tc\t0\tfalse\t\nd\t3\tc\t1\tfalse\t\n"
    );
    assert_eq!(
        run(&["--pairs", "-"]).ok(),
        "c\td\t1\tfalse\t\na\tquestion\t1\ttrue\ttests\na\told\t2\ttrue\tyesterday\nb\tanswer\t1\ttrue\ttests\n"
    );
    assert_eq!(run(&["--keep-list", "-"]).ok(), "c\ne\n");
    let objects = run(&["--json"]).json();
    assert_eq!((&objects[0]["stored"], &objects[0]["store"]), (&json!(true), &json!("tests")));
    assert!(objects[2].get("store").is_none(), "{}", objects[2]);
    assert_eq!(objects[3]["stored"], 2);
    assert!(run(&[]).ok().starts_with("cluster 1: 1 document, already stored in tests\n"));
    // With one store, the tables have no column for the store.
    let one = folder.run(&["dedup", "new.tsv", "-q", "--against", "tests", "--clusters", "-"]).ok();
    assert!(one.starts_with("a\t1\tquestion\t1\ttrue\nb\t"), "{one}");
}

#[test]
fn reasons_name_the_duplicate_of_each_removed_document() {
    let folder = folder();
    let args = ["dedup", "new.tsv", "-q", "--reasons", "--remove-list"];
    let run = |more: &[&str]| folder.run(&[&args, more].concat());
    assert_eq!(run(&["-"]).ok(), "d\tc\t1\n");
    assert_eq!(
        run(&["-", "--against", "tests"]).ok(),
        "a\tquestion\t1\ttrue\nb\tanswer\t1\ttrue\nd\tc\t1\tfalse\n"
    );
    run(&["list.csv", "--against", "tests", "--against", "yesterday", "--keep", "none"]).ok();
    assert_eq!(
        folder.read("list.csv"),
        "id,duplicate_of,distance,stored,store\na,question,1,true,tests\nb,answer,1,true,tests\nc,d,1,false,\nd,c,1,false,\n"
    );
    let objects = run(&["-", "--json", "--against", "tests"]).json();
    assert_eq!(objects[0], json!({"id": "a", "duplicate_of": "question", "distance": 1, "stored": true}));
    // If ids repeat, the list has the places of both documents too.
    folder.write("same.tsv", "0000000000000000\tx\n0000000000000001\tx\n");
    assert_eq!(
        folder.run(&["dedup", "same.tsv", "-q", "--reasons", "--remove-list", "-"]).ok(),
        "x\tx\t1\tsame.tsv:2\tsame.tsv:1\n"
    );
    folder.run(&["dedup", "new.tsv", "--reasons"]).fails(2, "--remove-list");
}

#[test]
fn keep_none_removes_all_documents_with_near_duplicates() {
    let folder = folder();
    let run = |more: &[&str]| folder.run(&[&["dedup", "new.tsv", "-q", "--keep", "none"], more].concat());
    assert_eq!(run(&["--keep-list", "-"]).ok(), "a\nb\ne\n");
    assert_eq!(run(&["--output", "-"]).ok().lines().count(), 3);
    assert_eq!(run(&[]).ok(), "cluster 1: 2 documents, no document kept\n   0  c\n   1  d\n");
    let objects = run(&["--json"]).json();
    assert_eq!(
        (&objects[0]["size"], &objects[1]["kept"], &objects[1]["duplicates"]),
        (&json!(2), &json!(3), &json!(2))
    );
    assert_eq!(run(&["--keep-list", "-", "--against", "tests"]).ok(), "e\n");
    run(&["--cluster-by", "stars"]).fails(2, "leave out --cluster-by");
    // The same holds for comparison by similarity.
    let texts = ["one two three four five", "one two three four five", "quite another text"];
    folder.write("a.jsonl", texts.map(|text| json!({"text": text}).to_string()).join("\n"));
    let left = folder.run(&["dedup", "a.jsonl", "-q", "--keep", "none", "--keep-list", "-"]).ok();
    assert_eq!(left, "a.jsonl:3\n");
    folder.run(&["add", "-q", "--similar", "0.8", "pages", "a.jsonl"]).ok();
    folder
        .run(&["dedup", "a.jsonl", "--against", "pages", "--keep", "none"])
        .fails(2, "run with --keep none and --output first");
}

#[test]
fn kept_documents_are_added_once_to_the_first_store() {
    let folder = folder();
    let args = ["dedup", "new.tsv", "--against", "yesterday", "--against", "tests", "--add"];
    let run = |more: &[&str]| folder.run(&[&args, more].concat());
    let tests = folder.run(&["dump", "tests"]).ok();
    let stderr = run(&["--output", "left.tsv"]).stderr;
    assert!(stderr.contains("2 documents added to yesterday"), "{stderr}");
    assert_eq!(folder.run(&["dump", "yesterday"]).ok().lines().count(), 4);
    assert_eq!(folder.run(&["dump", "tests"]).ok(), tests);
    // Repeating the run adds nothing. A run against other stores is a different run.
    let stderr = run(&["--output", "left.tsv"]).stderr;
    assert!(stderr.contains("has already added 2 documents"), "{stderr}");
    let other = ["dedup", "new.tsv", "--against", "yesterday", "--add", "--output", "left.tsv"];
    let stderr = folder.run(&other).stderr;
    assert!(stderr.contains("1 document added to the store"), "{stderr}");
    folder
        .run(&["dedup", "new.tsv", "--against", "yesterday", "--against", "none"])
        .fails(1, "none: no such store");
    folder
        .run(&["dedup", "new.tsv", "--against", "tests", "--against", "./tests"])
        .fails(2, "./tests: given as two stores");
}

#[test]
fn the_most_similar_document_of_all_stores_is_reported() {
    let folder = TestFolder::new();
    let page = |id: &str, others: usize| {
        let word = |i: usize| if i < others { format!("other{i}") } else { format!("word{i}") };
        json!({"id": id, "text": (0..100).map(word).collect::<Vec<_>>().join(" ")}).to_string() + "\n"
    };
    folder.write("far.jsonl", page("far", 10));
    folder.write("near.jsonl", page("near", 1) + &page("else", 100));
    for (store, similar) in [("far", "0.7"), ("near", "0.8")] {
        folder.run(&["add", "-q", "--similar", similar, store, &format!("{store}.jsonl")]).ok();
    }
    folder.write("new.jsonl", page("x", 0) + &page("y", 11) + &page("z", 60));
    let args = ["dedup", "new.jsonl", "-q", "--against", "far", "--against", "near"];
    let table = folder.run(&[&args[..], &["--clusters", "-"]].concat()).ok();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    let columns = |row: &[&str]| (row[0].to_owned(), row[2].to_owned(), row[6].to_owned());
    let columns: Vec<_> = rows.iter().map(|row| columns(row)).collect();
    let expected = [("x", "near", "near"), ("y", "far", "far")];
    assert_eq!(
        columns,
        expected.map(|(id, representative, store)| (
            id.to_owned(),
            representative.to_owned(),
            store.to_owned()
        ))
    );
    // Every store must support the threshold.
    folder
        .run(&[&args[..], &["--similar", "0.75"]].concat())
        .fails(2, "created for a similarity of at least 0.8");
    folder.write("a.hex", "0000000000000001\n");
    folder.run(&["build", "plain", "a.hex"]).ok();
    folder
        .run(&["dedup", "new.jsonl", "--against", "plain", "--against", "near"])
        .fails(1, "near: is a store of similar documents, but plain is a store of fingerprints");
}
