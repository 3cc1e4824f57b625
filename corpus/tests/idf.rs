//! In how many documents each feature comes.

use std::ops::ControlFlow;

use simstore::Error;
use simstore_corpus::idf::document_frequencies;
use simstore_corpus::{Counts, DocumentOptions, Inputs, Progress, Watch};
use simstore_text::Profile;

use crate::Folder;

struct Never;

impl Watch for Never {
    fn progress(&self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn features_are_counted_once_a_document() {
    let folder = Folder::new();
    let lines = "{\"text\": \"be be be\"}\n[\n{\"text\": \"to be \u{fffd}\"}\n";
    let inputs = |name: &str, text: &str| {
        Inputs::new(&[folder.file(name, text)], DocumentOptions::default()).unwrap().skip_bad(true)
    };
    let profile: Profile = "words-1".parse().unwrap();
    let documents = inputs("a.jsonl", lines);
    let (frequencies, counts) = document_frequencies(&documents, &profile, &()).unwrap();
    assert_eq!(counts, Counts { read: 2, bad: 1, ..Counts::default() });
    let rows: Vec<_> =
        frequencies.rows(1).into_iter().map(|row| (row.feature.to_owned(), row.documents)).collect();
    assert_eq!(rows, [("be".to_owned(), 2), ("to".to_owned(), 1)]);
    assert!(matches!(document_frequencies(&documents, &profile, &Never), Err(Error::Cancelled)));
    let fingerprints = inputs("a.hex", "0000000000000001\n");
    assert!(matches!(document_frequencies(&fingerprints, &profile, &()), Err(Error::BadArgument(_))));
}
