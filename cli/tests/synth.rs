//! `simstore synth`.

use crate::Folder;

#[test]
fn a_store_like_any_other() {
    let folder = Folder::new();
    for codec in ["first-difference", "gap", "elias-fano", "all-differences"] {
        let args = ["synth", "store", "--count", "100k", "--codec", codec, "--force", "--json"];
        let summary = folder.run(&args).json();
        assert_eq!(summary[0]["fingerprints"], 100_000);
        assert_eq!(summary[0]["plan"], "probe-1");
        folder.run(&["verify", "store"]).ok();
        folder.run(&["inspect", "store"]).ok();
        let dump = folder.run(&["dump", "store"]).ok();
        assert_eq!(dump.lines().count(), 100_000);
        let found = folder.run(&["query", "store", dump.lines().nth(777).unwrap()]).ok();
        assert!(found.starts_with("0\t"), "{found}");
        folder
            .run(&["synth", "again", "--count", "100000", "--codec", codec, "--plan", "probe-2", "--force"])
            .ok();
        assert!(folder.run(&["dump", "again"]).ok() == dump);
        folder.run(&["verify", "again"]).ok();
        folder.run(&["synth", "again", "--count", "100000", "--seed", "2", "--force"]).ok();
        assert!(folder.run(&["dump", "again"]).ok() != dump);
    }
    folder.run(&["synth", "store", "--count", "1"]).fails(1, "use --force");
    folder.run(&["synth", "one", "--count", "1"]).ok();
    assert_eq!(folder.run(&["dump", "one"]).ok().lines().count(), 1);
    folder.run(&["synth", "other", "--count", "0"]).fails(2, "no count");
    folder.run(&["synth", "other", "--count", "5", "--plan", "nope"]).fails(2, "no plan");
    folder.run(&["synth", "other", "--count", "5", "--distance", "17"]).fails(2, "too large");
}

#[test]
fn documents_with_copies_of_known_similarity() {
    let folder = Folder::new();
    let args =
        ["synth", "a.jsonl", "--documents", "2k", "--copies", "0.5", "--similarity", "0.8..1", "--json"];
    let summary = folder.run(&args).json();
    let documents =
        folder.run(&["synth", "-", "--documents", "2000", "--copies", "0.5", "--similarity", "0.8..1"]);
    let lines = documents.ok();
    assert_eq!(std::fs::read_to_string(folder.path("a.jsonl")).unwrap(), lines);
    let documents: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents.len(), 2000);
    let copies = documents.iter().filter(|document| document.get("of").is_some());
    let copies: Vec<_> = copies.map(|copy| copy["similarity"].as_f64().unwrap()).collect();
    assert_eq!(summary[0]["copies"], copies.len());
    assert!((900..1100).contains(&copies.len()), "{}", copies.len());
    assert!(copies.iter().all(|similarity| (0.78..=1.0).contains(similarity)));
    folder.run(&["dedup", "a.jsonl"]).ok();
    folder.run(&["synth", "b.jsonl.gz", "--documents", "2k", "--seed", "2"]).ok();
    assert_eq!(folder.run(&["fingerprint", "b.jsonl.gz"]).ok().lines().count(), 2000);
    for (args, message) in [
        (&["--documents", "0"][..], "no count"),
        (&["--documents", "5", "--count", "5"], "cannot be used with"),
        (&["--count", "5", "--words", "9"], "cannot be used with"),
        (&["--documents", "5", "--words", "7"], "give --words from 8"),
        (&["--documents", "5", "--copies", "1"], "give --copies from 0 to below 1"),
        (&["--documents", "5", "--similarity", "0.9..0.8"], "give --similarity from 0 to 1"),
        (&["--documents", "5", "--similarity", "alike"], "is no range"),
    ] {
        folder.run(&[&["synth", "c.jsonl"], args].concat()).fails(2, message);
        assert!(!folder.path("c.jsonl").exists());
    }
    folder.run(&["synth", "-", "--documents", "5", "--json"]).fails(2, "among the documents");
}
