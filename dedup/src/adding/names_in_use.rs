//! Names of stored documents, and of documents that are being added. In a store of similar documents, a name belongs to one text.

use std::collections::HashSet;

use simstore::any::AnySnapshot;
use simstore::{Result, each_width};
use simstore_text::DocumentNames;
use xxhash_rust::xxh3::xxh3_128;

/// The document that already has a name.
pub(crate) enum InUse {
    /// A document of the store.
    Stored,
    /// A document that was added before in this run.
    Entered,
}

/// Names of the documents in a store, and of the documents that are added to it.
pub(crate) struct NamesInUse<'a> {
    /// `None` for a store that does not exist yet.
    store: Option<&'a AnySnapshot>,
    /// Names in the store; read when the first name is entered.
    stored: Option<DocumentNames>,
    /// Hashes of the names of added documents.
    entered: HashSet<u128>,
}

impl<'a> NamesInUse<'a> {
    pub(crate) fn new(store: Option<&'a AnySnapshot>) -> Self {
        NamesInUse { store, stored: None, entered: HashSet::new() }
    }

    /// Enters the name of an added document. Returns the document that already has this name, if any.
    pub(crate) fn enter(&mut self, name: &str) -> Result<Option<InUse>> {
        if !self.entered.insert(xxh3_128(name.as_bytes())) {
            return Ok(Some(InUse::Entered));
        }
        let Some(store) = self.store else { return Ok(None) };
        let stored = match &mut self.stored {
            Some(stored) => stored,
            none => none.insert(each_width!(store, store => DocumentNames::read(store))?),
        };
        for id in each_width!(store, store => stored.find(store, name))? {
            // A deleted document has an empty note.
            if store.note(id)?.is_some_and(|note| !note.is_empty()) {
                return Ok(Some(InUse::Stored));
            }
        }
        Ok(None)
    }
}
