//! Stores of similar documents: their settings, and their refusal in calls for fingerprints, as they hold sketches.

use std::path::Path;

use simstore::any::AnySnapshot;
use simstore::store::is_store;
use simstore::{Error, Result, Snapshot};
use simstore_text::{DEFAULT_RECALL, DEFAULT_SIMILARITY, SIMILAR_STORE_KEY, SimilarSettings};

/// Whether a store is of similar documents.
pub(crate) fn is_similar(snapshot: &AnySnapshot) -> Result<bool> {
    Ok(snapshot.metadata(SIMILAR_STORE_KEY)?.is_some())
}

/// The error of a call that reads or writes fingerprints in a store of similar documents.
pub(crate) fn refused(path: &Path, what: &str) -> Error {
    Error::Refused(format!(
        "{}: this is a store of similar documents, which has bands of MinHash signatures, not fingerprints: {what}",
        path.display()
    ))
}

/// Advice in the error for a look-up of fingerprints.
pub(crate) const LOOK_UP: &str = "open it with `simstore.SimilarStore` and ask that with texts, or ask it with `simstore.dedup(texts, against=...)`";
/// Advice in the error for a write.
pub(crate) const WRITE: &str = "open it with `simstore.SimilarStore`, or change it with `simstore add` and `simstore delete` on the command line";

/// Refuses to look fingerprints up in a store of similar documents.
pub(crate) fn check_look_up(snapshot: &AnySnapshot) -> Result<()> {
    if is_similar(snapshot)? { Err(refused(snapshot.path(), LOOK_UP)) } else { Ok(()) }
}

/// Returns the settings of a call; the defaults come from an existing store. Also returns the profile of that store.
pub(crate) fn settings_of(
    path: &Path,
    similar: Option<f64>,
    recall: Option<f64>,
    with_texts: Option<bool>,
) -> Result<(SimilarSettings, Option<String>)> {
    let (mut there, mut profile) = (None, None);
    if is_store(path) {
        let snapshot = Snapshot::<u64>::open(path)?;
        there = SimilarSettings::from_store(&snapshot)?;
        profile = there.map(|_| snapshot.profile().to_owned());
    }
    let asked = (
        similar.or(there.map(|there| there.min_similarity())).unwrap_or(DEFAULT_SIMILARITY),
        recall.or(there.map(|there| there.recall())).unwrap_or(DEFAULT_RECALL),
        with_texts.or(there.map(|there| there.has_texts())).unwrap_or_default(),
    );
    if let Some(there) = there.filter(|there| (there.min_similarity(), there.recall(), there.has_texts()) == asked) {
        return Ok((there, profile));
    }
    let settings = SimilarSettings::new(asked.0, asked.1)?;
    Ok((if asked.2 { settings.with_texts() } else { settings }, profile))
}
