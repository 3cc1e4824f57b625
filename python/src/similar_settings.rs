//! Settings of stores that find documents by the similarity of texts (stores of similar documents), and the errors of
//! calls that expect a store of fingerprints.

use std::path::Path;

use simstore::any::AnySnapshot;
use simstore::store::is_store;
use simstore::{Error, Result, Snapshot};
use simstore_text::{DEFAULT_RECALL, DEFAULT_SIMILARITY, SIMILAR_STORE_KEY, SimilarSettings};

/// Whether the store finds documents by the similarity of texts, not by fingerprints.
pub(crate) fn is_similar_store(snapshot: &AnySnapshot) -> Result<bool> {
    Ok(snapshot.metadata(SIMILAR_STORE_KEY)?.is_some())
}

/// Returns the error for a call that reads or writes fingerprints in a store that has none, because it finds
/// documents by similarity. `what` is the advice to the user.
pub(crate) fn refusal(path: &Path, what: &str) -> Error {
    Error::Refused(format!(
        "{}: this is a store of similar documents, which has bands of MinHash signatures, not fingerprints: {what}",
        path.display()
    ))
}

/// Advice in the error for a look-up of fingerprints in a store that finds documents by similarity.
pub(crate) const QUERY_ADVICE: &str = "open it with `simstore.SimilarStore` and ask that with texts, or ask it with `simstore.dedup(texts, against=...)`";
/// Advice in the error for a write of fingerprints to a store that finds documents by similarity.
pub(crate) const WRITE_ADVICE: &str = "open it with `simstore.SimilarStore`, or change it with `simstore add` and `simstore delete` on the command line";

/// Returns an error if the store finds documents by similarity: calls cannot look up fingerprints in it.
pub(crate) fn check_has_fingerprints(snapshot: &AnySnapshot) -> Result<()> {
    if is_similar_store(snapshot)? { Err(refusal(snapshot.path(), QUERY_ADVICE)) } else { Ok(()) }
}

/// Returns the settings for a store, and the name of the store's profile. Missing arguments default to the
/// settings of an existing store.
pub(crate) fn resolve_settings(
    path: &Path,
    similar: Option<f64>,
    recall: Option<f64>,
    with_texts: Option<bool>,
) -> Result<(SimilarSettings, Option<String>)> {
    let (mut stored, mut profile) = (None, None);
    if is_store(path) {
        let snapshot = Snapshot::<u64>::open(path)?;
        stored = SimilarSettings::from_store(&snapshot)?;
        profile = stored.map(|_| snapshot.profile().to_owned());
    }
    let wanted = (
        similar.or(stored.map(|stored| stored.min_similarity())).unwrap_or(DEFAULT_SIMILARITY),
        recall.or(stored.map(|stored| stored.recall())).unwrap_or(DEFAULT_RECALL),
        with_texts.or(stored.map(|stored| stored.has_texts())).unwrap_or_default(),
    );
    if let Some(stored) =
        stored.filter(|stored| (stored.min_similarity(), stored.recall(), stored.has_texts()) == wanted)
    {
        return Ok((stored, profile));
    }
    let settings = SimilarSettings::new(wanted.0, wanted.1)?;
    Ok((if wanted.2 { settings.with_texts() } else { settings }, profile))
}
