//! `simstore synth`.

use crate::Folder;

#[test]
fn a_store_like_any_other() {
    let folder = Folder::new();
    for codec in ["first-difference", "gap", "elias-fano"] {
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
