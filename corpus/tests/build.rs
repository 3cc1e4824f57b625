//! Tests of building a store from inputs.

use simstore::{BuildOptions, Error};
use simstore_corpus::Inputs;
use simstore_corpus::build::build;
use simstore_io::DocumentOptions;
use simstore_text::Profile;

use crate::TempFolder;

#[test]
fn a_store_of_documents_says_how_they_were_fingerprinted() {
    let folder = TempFolder::new();
    let path = folder.0.path().join("store");
    let lines =
        "{\"id\": 7, \"text\": \"to be\"}\n{\"id\": 9, \"text\": \"\"}\n{\"id\": \"a\", \"text\": \"not\"}\n";
    let inputs = Inputs::new(&[folder.file("a.jsonl", lines)], DocumentOptions::default()).unwrap();
    let profile: Profile = "words-1".parse().unwrap();
    let build = |options: &BuildOptions, inputs: &Inputs, names| {
        build::<u64>(&path, options.clone(), inputs, &profile, names, &())
    };
    let options = BuildOptions::default();
    let refused = build(&options, &inputs, false).unwrap_err().to_string();
    assert!(refused.contains("a.jsonl:3: the id `a` is a name, but") && refused.contains("option `names`"));
    assert!(!path.exists());
    let (store, counts) = build(&options, &inputs, true).unwrap();
    assert_eq!((counts.read, counts.empty, store.len()), (3, 1, 2));
    assert_eq!(store.name(2).unwrap().as_deref(), Some("a"));
    assert_eq!(store.profile(), "words-1");

    // An existing store is not replaced by an empty one.
    let nothing = Inputs::new(&[folder.file("b.hex", "")], DocumentOptions::default()).unwrap();
    let options = BuildOptions { replace: true, ..options };
    assert!(matches!(build(&options, &nothing, false), Err(Error::Refused(_))));
    let numbers =
        Inputs::new(&[folder.file("c.hex", "0000000000000007\t9\n")], DocumentOptions::default()).unwrap();
    let (store, _) = build(&options, &numbers.skip_malformed(true), false).unwrap();
    assert_eq!((store.len(), store.profile(), store.highest_id()), (1, "", Some(9)));
}
