//! Detects duplicates that are similar only because of boilerplate: text that nearly all documents share,
//! such as a template or the navigation of web pages.

use std::collections::HashMap;

use serde::Serialize;
use simstore::Result;

use crate::pipeline::unique_documents::UniqueDocuments;
use crate::pipeline::verify::Verifier;
use crate::rows::{AssignmentRow, SignatureRow};
use simstore_corpus::spill::Rows;

/// Maximum number of documents in the sample that determines the boilerplate (the features that most sampled documents
/// have). Also the maximum number of duplicates that are examined for boilerplate.
const SAMPLE_SIZE: usize = 64;
/// Least number of documents in the sample that determines the boilerplate (the features that most sampled documents
/// have). With fewer documents, boilerplate is not determined.
const MIN_DOCUMENTS: usize = 20;
/// Least number of duplicates in a run. With fewer, no duplicates are examined for boilerplate.
const MIN_DUPLICATES: usize = 5;
/// Maximum number of features of a document that is sampled or examined. Larger documents are skipped, to save
/// memory.
const MAX_FEATURES: u32 = 1 << 16;

/// Result of a check whether duplicates are similar to their representatives only because of boilerplate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Boilerplate {
    /// Number of examined duplicates, a sample spread evenly over all duplicates.
    #[serde(rename = "looked_at")]
    pub examined: usize,
    /// Number of examined duplicates that share mostly boilerplate with their representative: more than half of
    /// the shared features are boilerplate. A feature is boilerplate if at least nine of ten sampled documents
    /// have it.
    #[serde(rename = "mostly")]
    pub mostly_boilerplate: usize,
}

impl Boilerplate {
    /// Whether at least half of the examined duplicates share mostly boilerplate with their representatives.
    pub(crate) fn is_worth_reporting(self) -> bool {
        self.mostly_boilerplate > 0 && 2 * self.mostly_boilerplate >= self.examined
    }
}

/// Returns a sample of unique documents, spread evenly over all of them. Features that most documents of the sample
/// have are the boilerplate.
pub(crate) fn sample(uniques: &UniqueDocuments, signatures: &Rows<SignatureRow>) -> Result<Vec<u32>> {
    let mut sample = Vec::new();
    for unique in spread(uniques.len()) {
        let unique = unique as u32;
        if is_short(unique, uniques, signatures)? {
            sample.push(unique);
        }
    }
    Ok(sample)
}

fn is_short(unique: u32, uniques: &UniqueDocuments, signatures: &Rows<SignatureRow>) -> Result<bool> {
    Ok(signatures.get(uniques.best_document(unique)? as usize)?.features <= MAX_FEATURES)
}

/// Returns up to [`SAMPLE_SIZE`] numbers that are spread evenly from 0 to `count`, in ascending order.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let sampled = count.min(SAMPLE_SIZE);
    (0..sampled).map(move |at| at * count / sampled)
}

/// Examines how many duplicates in `assignments` are similar to their representatives only because of boilerplate.
/// A feature is boilerplate if at least nine of ten documents in `sample` have it. Returns `None` if `sample` or
/// `assignments` is too small, or without boilerplate.
pub(crate) fn boilerplate(
    sample: &[u32],
    assignments: &Rows<AssignmentRow>,
    verifier: &Verifier<'_>,
    signatures: &Rows<SignatureRow>,
) -> Result<Option<Boilerplate>> {
    if sample.len() < MIN_DOCUMENTS || assignments.len() < MIN_DUPLICATES {
        return Ok(None);
    }
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for &unique in sample {
        for feature in verifier.features(unique)? {
            *counts.entry(feature).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count * 10 >= sample.len() * 9);
    let mut found = Boilerplate { examined: 0, mostly_boilerplate: 0 };
    if counts.is_empty() {
        return Ok(None);
    }
    for at in spread(assignments.len()) {
        let (unique, representative, _) = assignments.get(at)?;
        if !is_short(unique, verifier.uniques, signatures)?
            || !is_short(representative, verifier.uniques, signatures)?
        {
            continue;
        }
        let representative_features = verifier.features(representative)?;
        let shared = verifier
            .features(unique)?
            .into_iter()
            .filter(|feature| representative_features.binary_search(feature).is_ok());
        let (common, own): (Vec<u64>, Vec<u64>) = shared.partition(|feature| counts.contains_key(feature));
        found.examined += 1;
        found.mostly_boilerplate += usize::from(common.len() > own.len());
    }
    Ok(Some(found))
}
