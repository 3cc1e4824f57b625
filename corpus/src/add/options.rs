//! Options and results of adding documents.

use super::same_id::SameIdPolicy;
use crate::InputCounts;
use simstore::Durability;

/// Options for adding documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Add a document only if no stored fingerprint is within the store's distance. In a
    /// [store of similar documents](simstore_text::open_similar_store), add it only if no stored document is similar. Requires
    /// [`SameIdPolicy::KeepBoth`].
    pub if_new: bool,
    /// How to treat a document whose id is stored with another fingerprint.
    pub same_id: SameIdPolicy,
    /// When an added document counts as stored: as soon as the operating system has it, or only once it is on disk.
    pub durability: Durability,
    /// Read files from the beginning, even if they have been read before.
    pub reread: bool,
    /// Treat every id as a name, even a number.
    pub names: bool,
    /// In a [store of similar documents](simstore_text::open_similar_store), add a document even if its name is stored with
    /// another text. By default such a document is refused.
    pub shared_names: bool,
}

/// Result of adding documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddResult {
    /// Counts of all documents in the inputs, including those that earlier calls of [`add`](crate::add::add) have read.
    pub counts: InputCounts,
    /// Number of documents that this call stored.
    pub added: u64,
    /// Number of documents not stored because a near-duplicate is already stored. 0 without [`AddOptions::if_new`].
    pub duplicates: u64,
    /// Number of documents that replaced other fingerprints with the same id. 0 without [`SameIdPolicy::Replace`].
    pub replaced: u64,
    /// Number of documents not stored because they are already stored with the same id and fingerprint.
    pub already_stored: u64,
    /// Number of documents that an earlier call has read, and that were therefore not added again.
    pub previously_read: u64,
    /// Number of files in which documents have changed since an earlier call read them.
    pub changed_files: u64,
}
