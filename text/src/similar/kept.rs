//! A document as a store keeps it.

use simstore::{Fingerprint, Result, Snapshot, Transaction};

use super::{SimilarSettings, StoredTexts};
use crate::Sketched;

/// A document as a store keeps it: its sketches, and its text if the store keeps texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    sketched: Sketched,
    /// Compressed text, in a store that keeps texts.
    text: Vec<u8>,
    /// Number of sketches that are indexed.
    looked_up: usize,
}

impl Kept {
    /// Combines the sketches of a document with its text, which is included if the store keeps texts.
    ///
    /// # Errors
    /// [`Error::BadArgument`](simstore::Error::BadArgument) if the text is too long for a store.
    pub fn new(sketched: Sketched, text: &str, texts: &StoredTexts) -> Result<Kept> {
        let settings = texts.settings();
        let text = if settings.has_texts() { texts.pack(text)? } else { Vec::new() };
        Ok(Kept { sketched, text, looked_up: settings.sketches() })
    }

    /// Returns the sketches of the document.
    pub fn sketched(&self) -> &Sketched {
        &self.sketched
    }

    /// Returns the document's fingerprints in a store.
    pub fn fingerprints<F: Fingerprint>(&self) -> impl Iterator<Item = F> + '_ {
        fingerprints(&self.sketched, self.looked_up)
    }

    /// Returns the note that a store keeps with the document's id.
    pub fn note(&self) -> Vec<u8> {
        let mut note = self.sketched.to_bytes();
        note.extend_from_slice(&self.text);
        note
    }

    /// Stores the document with an id, and a name if it has one.
    ///
    /// # Errors
    /// [`Error::BadArgument`](simstore::Error::BadArgument) if the name is too long.
    pub fn insert<F: Fingerprint>(
        &self,
        transaction: &mut Transaction<'_, F>,
        id: u64,
        name: Option<&str>,
    ) -> Result<()> {
        for (at, fingerprint) in self.fingerprints().enumerate() {
            match name.filter(|_| at == 0) {
                Some(name) => transaction.insert_named(fingerprint, id, name)?,
                None => transaction.insert(fingerprint, id),
            }
        }
        transaction.note(id, &self.note())
    }
}

/// Returns the fingerprints that index a document: its first sketches. Several may be equal.
pub(super) fn fingerprints<F: Fingerprint>(
    sketched: &Sketched,
    count: usize,
) -> impl Iterator<Item = F> + '_ {
    sketched.sketches[..count].iter().map(|&bits| F::from_u128(bits.into()))
}

impl SimilarSettings {
    /// Deletes the document with this id, including its name and note.
    pub fn delete<F: Fingerprint>(&self, transaction: &mut Transaction<'_, F>, sketched: &Sketched, id: u64) {
        fingerprints(sketched, self.sketches()).for_each(|fingerprint| transaction.delete(fingerprint, id));
    }

    /// Returns the ids of stored documents that may be similar, in ascending order. At least one of their sketches is within the store's
    /// distance.
    ///
    /// # Errors
    /// As [`Snapshot::query`].
    pub fn candidates<F: Fingerprint>(&self, store: &Snapshot<F>, sketched: &Sketched) -> Result<Vec<u64>> {
        let (mut matches, mut ids) = (Vec::new(), Vec::new());
        for fingerprint in fingerprints(sketched, self.sketches()) {
            store.query_into(fingerprint, self.distance(), &mut matches)?;
            ids.extend(matches.iter().filter_map(|found| found.id));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}
