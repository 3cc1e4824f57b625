//! Names of documents that are stored, or are to be: in a store of similar documents a name belongs to one text.

use std::collections::HashSet;

use simstore::{Fingerprint, Result, Snapshot};
use simstore_text::DocumentNames;
use xxhash_rust::xxh3::xxh3_128;

/// Who else has a name.
pub(super) enum InUse {
    /// A document of the store.
    Stored,
    /// A document that was entered before.
    Entered,
}

/// The names of a store's documents, and of documents that are added to it.
pub(super) struct NamesInUse<'a, F: Fingerprint> {
    /// `None` for a store that is to be made.
    store: Option<&'a Snapshot<F>>,
    /// Read when the first name is entered.
    stored: Option<DocumentNames>,
    /// Hashes of the names that were entered.
    entered: HashSet<u128>,
}

impl<'a, F: Fingerprint> NamesInUse<'a, F> {
    pub(super) fn new(store: Option<&'a Snapshot<F>>) -> Self {
        NamesInUse { store, stored: None, entered: HashSet::new() }
    }

    /// Takes note of the name of a document that is added; says who has it already.
    pub(super) fn enter(&mut self, name: &str) -> Result<Option<InUse>> {
        if !self.entered.insert(xxh3_128(name.as_bytes())) {
            return Ok(Some(InUse::Entered));
        }
        let Some(store) = self.store else { return Ok(None) };
        let stored = match &mut self.stored {
            Some(stored) => stored,
            none => none.insert(DocumentNames::read(store)?),
        };
        for id in stored.find(store, name)? {
            // A document that was deleted has an empty note.
            if store.note(id)?.is_some_and(|note| !note.is_empty()) {
                return Ok(Some(InUse::Stored));
            }
        }
        Ok(None)
    }
}
