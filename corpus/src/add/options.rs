//! Options and results of adding documents.

use super::same_id::SameIdPolicy;
use crate::InputCounts;
use simstore::Durability;

/// Options for adding documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Add only new documents: no stored fingerprint is within the distance or, in a store of similar documents, no
    /// stored document is similar. Requires [`SameIdPolicy::KeepBoth`].
    pub if_new: bool,
    /// How to treat a document whose id is stored with another fingerprint.
    pub same_id: SameIdPolicy,
    /// When an added document counts as stored.
    pub durability: Durability,
    /// Read files from the beginning, even if they have been read before.
    pub reread: bool,
    /// Treat every id as a name, even a number.
    pub names: bool,
    /// In a store of similar documents, add a text whose name belongs to another text. By default it is refused.
    pub shared_names: bool,
}

/// Result of adding documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddResult {
    /// Counts of all documents in the inputs, including those read by earlier calls.
    pub counts: InputCounts,
    /// Documents that were stored.
    pub added: u64,
    /// Documents not stored because a similar one is stored, with [`AddOptions::if_new`].
    pub duplicates: u64,
    /// Documents that replaced others with the same id, with [`SameIdPolicy::Replace`].
    pub replaced: u64,
    /// Documents already stored with the same id and fingerprint.
    pub already_stored: u64,
    /// Documents read by an earlier call, and not read again.
    pub previously_read: u64,
    /// Files whose documents have changed since the last call.
    pub changed_files: u64,
}
