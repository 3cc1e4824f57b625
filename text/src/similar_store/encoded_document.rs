//! The form in which a [store of similar documents](crate::open_similar_store) keeps a document: fingerprints, and a note with the
//! signature and the compressed text.

use simstore::{Fingerprint, Result, Snapshot, Transaction};

use super::{DocumentComparer, SimilarSettings};
use crate::Signature;

/// A document encoded for a [store of similar documents](crate::open_similar_store): its signature, and its compressed text if the
/// store keeps texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedDocument {
    signature: Signature,
    /// Compressed text; empty if the store keeps no texts.
    compressed_text: Vec<u8>,
    /// The store indexes this number of bands as fingerprints: the first bands of the signature.
    indexed_bands: usize,
}

impl EncodedDocument {
    /// Encodes a document with this signature and text, for the store of `comparer`. The text is included only if the store keeps
    /// texts.
    ///
    /// # Errors
    /// [`Error::BadArgument`](simstore::Error::BadArgument) if signature and compressed text together exceed 16 MiB.
    pub fn new(signature: Signature, text: &str, comparer: &DocumentComparer) -> Result<EncodedDocument> {
        let settings = comparer.settings();
        let compressed_text = if settings.has_texts() { comparer.compress(text)? } else { Vec::new() };
        Ok(EncodedDocument { signature, compressed_text, indexed_bands: settings.bands() })
    }

    /// Returns the signature of the document.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Iterates over the fingerprints under which the store indexes the document: the first bands (64-bit words) of its signature.
    /// Some fingerprints may be equal.
    pub fn fingerprints<F: Fingerprint>(&self) -> impl Iterator<Item = F> + '_ {
        indexed_fingerprints(&self.signature, self.indexed_bands)
    }

    /// Returns the *note* of the document, the bytes that the store keeps with its id: the signature, then the compressed text.
    pub fn note(&self) -> Vec<u8> {
        let mut note = self.signature.to_bytes();
        note.extend_from_slice(&self.compressed_text);
        note
    }

    /// Inserts the document in `transaction`, with an id and an optional name.
    ///
    /// # Errors
    /// [`Error::BadArgument`](simstore::Error::BadArgument) if the name is longer than 64 KiB.
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
        transaction.set_note(id, &self.note())
    }
}

/// Iterates over the fingerprints under which a document is indexed: the first `count` bands (64-bit words) of its signature.
/// Some fingerprints may be equal.
pub(super) fn indexed_fingerprints<F: Fingerprint>(
    signature: &Signature,
    count: usize,
) -> impl Iterator<Item = F> + '_ {
    signature.bands[..count].iter().map(|&bits| F::from_u128(bits.into()))
}

impl SimilarSettings {
    /// Deletes the document with this id and signature in `transaction`, including its name and its note (signature and text).
    pub fn delete<F: Fingerprint>(
        &self,
        transaction: &mut Transaction<'_, F>,
        signature: &Signature,
        id: u64,
    ) {
        indexed_fingerprints(signature, self.bands())
            .for_each(|fingerprint| transaction.delete(fingerprint, id));
    }

    /// Returns the ids of the candidates, in ascending order. Candidates are stored documents that may be similar to a document
    /// with this signature: one of their indexed bands (64-bit words) differs from one of the first
    /// [`bands`](SimilarSettings::bands) of `signature` in at most [`band_distance`](SimilarSettings::band_distance) bits.
    ///
    /// # Errors
    /// The errors of [`Snapshot::query`].
    pub fn candidates<F: Fingerprint>(&self, store: &Snapshot<F>, signature: &Signature) -> Result<Vec<u64>> {
        let (mut matches, mut ids) = (Vec::new(), Vec::new());
        for fingerprint in indexed_fingerprints(signature, self.bands()) {
            store.query_into(fingerprint, self.band_distance(), &mut matches)?;
            ids.extend(matches.iter().filter_map(|found| found.id));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}
