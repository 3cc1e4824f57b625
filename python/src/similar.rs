//! Stores of similar documents, as calls for fingerprints meet them: what they hold is sketches.

use std::path::Path;

use simstore::any::AnySnapshot;
use simstore::{Error, Result};
use simstore_text::SIMILAR_MARK;

/// Whether a store is of similar documents.
pub(crate) fn is_similar(snapshot: &AnySnapshot) -> Result<bool> {
    Ok(snapshot.mark(SIMILAR_MARK)?.is_some())
}

/// Why a call that reads or writes fingerprints is not for such a store.
pub(crate) fn refused(path: &Path, what: &str) -> Error {
    Error::Refused(format!(
        "{}: this is a store of similar documents, whose entries are sketches of texts, and no fingerprints: {what}",
        path.display()
    ))
}

/// What to do instead of looking a fingerprint up.
pub(crate) const LOOK_UP: &str =
    "ask it with `simstore.dedup(texts, against=...)`, or with `simstore query --text` on the command line";
/// What to do instead of a write.
pub(crate) const WRITE: &str = "change it with `simstore add` and `simstore delete` on the command line";

/// Refuses to look fingerprints up in a store of similar documents.
pub(crate) fn check_look_up(snapshot: &AnySnapshot) -> Result<()> {
    if is_similar(snapshot)? { Err(refused(snapshot.path(), LOOK_UP)) } else { Ok(()) }
}
