//! `simstore dedup` with several stores.

use serde_json::json;

use crate::Folder;

/// Two stores of fingerprints, and new ones: near both, near the second alone, near one another, near nothing.
fn folder() -> Folder {
    let folder = Folder::new();
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
fn tables_say_which_store_has_it() {
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
fn a_removed_document_is_told_with_what_it_is_a_duplicate_of() {
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
    // Where ids repeat, places too.
    folder.write("same.tsv", "0000000000000000\tx\n0000000000000001\tx\n");
    assert_eq!(
        folder.run(&["dedup", "same.tsv", "-q", "--reasons", "--remove-list", "-"]).ok(),
        "x\tx\t1\tsame.tsv:2\tsame.tsv:1\n"
    );
    folder.run(&["dedup", "new.tsv", "--reasons"]).fails(2, "--remove-list");
}

#[test]
fn nothing_is_kept_of_what_has_a_near_duplicate() {
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
    // By similarity too.
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
fn what_is_kept_is_added_to_the_first_of_them_once() {
    let folder = folder();
    let args = ["dedup", "new.tsv", "--against", "yesterday", "--against", "tests", "--add"];
    let run = |more: &[&str]| folder.run(&[&args, more].concat());
    let tests = folder.run(&["dump", "tests"]).ok();
    let said = run(&["--output", "left.tsv"]).stderr;
    assert!(said.contains("2 documents added to yesterday"), "{said}");
    assert_eq!(folder.run(&["dump", "yesterday"]).ok().lines().count(), 4);
    assert_eq!(folder.run(&["dump", "tests"]).ok(), tests);
    // The same run again does nothing; one that is compared with another store is another run.
    let said = run(&["--output", "left.tsv"]).stderr;
    assert!(said.contains("has already added 2 documents"), "{said}");
    let other = ["dedup", "new.tsv", "--against", "yesterday", "--add", "--output", "left.tsv"];
    let said = folder.run(&other).stderr;
    assert!(said.contains("1 document added to the store"), "{said}");
    folder
        .run(&["dedup", "new.tsv", "--against", "yesterday", "--against", "none"])
        .fails(1, "none: no such store");
    folder
        .run(&["dedup", "new.tsv", "--against", "tests", "--against", "./tests"])
        .fails(2, "./tests: given as two stores");
}

#[test]
fn similar_documents_are_those_of_the_most_similar_in_any_store() {
    let folder = Folder::new();
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
    let told = |row: &[&str]| (row[0].to_owned(), row[2].to_owned(), row[6].to_owned());
    let told: Vec<_> = rows.iter().map(|row| told(row)).collect();
    let expected = [("x", "near", "near"), ("y", "far", "far")];
    assert_eq!(told, expected.map(|(id, of, store)| (id.to_owned(), of.to_owned(), store.to_owned())));
    // The threshold must be one that all stores support.
    folder
        .run(&[&args[..], &["--similar", "0.75"]].concat())
        .fails(2, "created for a similarity of at least 0.8");
    folder.write("a.hex", "0000000000000001\n");
    folder.run(&["build", "plain", "a.hex"]).ok();
    folder
        .run(&["dedup", "new.jsonl", "--against", "plain", "--against", "near"])
        .fails(1, "near: is a store of similar documents, but plain is a store of fingerprints");
}
