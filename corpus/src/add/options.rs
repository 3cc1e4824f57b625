//! Options and results of adding documents.

use super::same_id::SameId;
use crate::Counts;
use simstore::Durability;

/// Options for adding documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Add only new documents: no stored fingerprint is within the distance or, in a store of similar documents, no
    /// stored document is similar. Requires [`SameId::Both`].
    pub if_new: bool,
    /// How to treat a document whose id is stored with another fingerprint.
    pub same_id: SameId,
    /// When an added document counts as stored.
    pub durability: Durability,
    /// Read files from the beginning, even if they have been read before.
    pub again: bool,
    /// Treat every id as a name, even a number.
    pub names: bool,
    /// In a store of similar documents, add a text whose name belongs to another text. By default it is refused.
    pub shared_names: bool,
}

/// Result of adding documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Counts of the documents read, including those read by earlier calls.
    pub counts: Counts,
    /// Documents that were stored.
    pub added: u64,
    /// Documents not stored because of a near one, with [`AddOptions::if_new`].
    pub duplicates: u64,
    /// Documents that replaced others, with [`SameId::Replace`].
    pub replaced: u64,
    /// Documents already stored with the same id and fingerprint.
    pub known: u64,
    /// Documents already read by an earlier call.
    pub carried_on: u64,
    /// Files whose documents have changed since they were last read.
    pub changed: u64,
}
