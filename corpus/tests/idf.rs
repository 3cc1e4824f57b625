//! Tests of counting, for each feature, the documents that have it.

use std::ops::ControlFlow;

use simstore::Error;
use simstore_corpus::idf::{FeatureFrequencies, IdfOptions, VisitedFeatures, document_frequencies};
use simstore_corpus::{InputCounts, Inputs, Observer, StageProgress};
use simstore_io::DocumentOptions;
use simstore_text::Profile;

use crate::{Random, TempFolder};

/// Cancels the job at its first progress report.
struct CancelAtOnce;

impl Observer for CancelAtOnce {
    fn progress(&self, _: &StageProgress) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Returns each feature that at least `least` documents have, with the number of documents that have it.
fn rows(frequencies: FeatureFrequencies, least: u64) -> (Vec<(String, u64)>, VisitedFeatures) {
    let mut rows = Vec::new();
    let visited = frequencies.visit(least, |row| {
        rows.push((row.feature.to_owned(), row.documents));
        Ok(())
    });
    (rows, visited.unwrap())
}

#[test]
fn more_features_than_the_memory_holds_are_counted_on_disk() {
    let folder = TempFolder::new();
    let mut random = Random(5);
    // The test is too small for a full batch of 8 MiB, and for a merge of 64 files: that would take longer.
    let text = |random: &mut Random| -> String {
        (0..100_000).map(|_| format!("w{} ", random.below(30_000))).collect()
    };
    let lines: String = (0..40).map(|_| format!("{{\"text\": \"{}\"}}\n", text(&mut random))).collect();
    let path = folder.file("a.jsonl", lines);
    let temporary = folder.0.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let profile: Profile = "words-1".parse().unwrap();
    let count = |memory| {
        let inputs = Inputs::new(std::slice::from_ref(&path), DocumentOptions::default()).unwrap();
        let options = IdfOptions { memory, temporary: Some(temporary.clone()), ..IdfOptions::default() };
        let (frequencies, _) = document_frequencies(&inputs, &profile, &options, &()).unwrap();
        assert_eq!(frequencies.documents(), 40);
        let is_on_disk = std::fs::read_dir(&temporary).unwrap().count() > 0;
        assert_eq!(is_on_disk, memory.is_some());
        rows(frequencies, 39)
    };
    let expected = count(None);
    assert!(expected.0.len() > 100 && expected.1.features > 20_000);
    assert_eq!(count(Some(1 << 20)), expected);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn features_are_counted_once_a_document() {
    let folder = TempFolder::new();
    let lines = "{\"text\": \"be be be\"}\n[\n{\"text\": \"to be \u{fffd}\"}\n";
    let inputs = |name: &str, text: &str| {
        Inputs::new(&[folder.file(name, text)], DocumentOptions::default()).unwrap().skip_malformed(true)
    };
    let profile: Profile = "words-1".parse().unwrap();
    let documents = inputs("a.jsonl", lines);
    let (frequencies, counts) =
        document_frequencies(&documents, &profile, &IdfOptions::default(), &()).unwrap();
    assert_eq!(counts, InputCounts { read: 2, malformed: 1, ..InputCounts::default() });
    let (rows, visited) = rows(frequencies, 1);
    assert_eq!(rows, [("be".to_owned(), 2), ("to".to_owned(), 1)]);
    assert_eq!(visited, VisitedFeatures { kept: 2, features: 2 });
    assert!(matches!(
        document_frequencies(&documents, &profile, &IdfOptions::default(), &CancelAtOnce),
        Err(Error::Cancelled)
    ));
    let fingerprints = inputs("a.hex", "0000000000000001\n");
    assert!(matches!(
        document_frequencies(&fingerprints, &profile, &IdfOptions::default(), &()),
        Err(Error::BadArgument(_))
    ));
}
