//! Detects names that two documents have. In a store of similar documents, a name must belong to only one text.

use std::collections::HashSet;

use simstore::any::AnySnapshot;
use simstore::{Result, each_width};
use simstore_text::DocumentNameIndex;
use xxhash_rust::xxh3::xxh3_128;

/// Message for users: a name or an id cannot be added, because a stored document has it.
pub(crate) const IS_STORED: &str = "is stored with another text (`simstore delete` deletes it)";
/// Message for users: a name or an id cannot be added, because another added document has it.
pub(crate) const ADDED_TWICE: &str = "belongs to two different texts";

/// Names of the documents of a store, and of the documents that are added to it.
pub(crate) struct NamesInUse<'a> {
    /// Store that documents are added to; `None` if it does not exist yet.
    store: Option<&'a AnySnapshot>,
    /// Index of the names in the store; `None` until the first use, when the index is read.
    stored: Option<DocumentNameIndex>,
    /// Hashes of the names of added documents.
    entered: HashSet<u128>,
}

impl<'a> NamesInUse<'a> {
    pub(crate) fn new(store: Option<&'a AnySnapshot>) -> Self {
        NamesInUse { store, stored: None, entered: HashSet::new() }
    }

    /// Records the name of an added document. Returns `None` if no other document has this name, else the
    /// message [`IS_STORED`] or [`ADDED_TWICE`].
    pub(crate) fn enter(&mut self, name: &str) -> Result<Option<&'static str>> {
        if !self.entered.insert(xxh3_128(name.as_bytes())) {
            return Ok(Some(ADDED_TWICE));
        }
        let Some(store) = self.store else { return Ok(None) };
        let stored = match &mut self.stored {
            Some(stored) => stored,
            none => none.insert(each_width!(store, store => DocumentNameIndex::read(store))?),
        };
        for id in each_width!(store, store => stored.find(store, name))? {
            if store.note(id)?.is_some() {
                return Ok(Some(IS_STORED));
            }
        }
        Ok(None)
    }
}
