//! Comparison of texts with stored documents. Similarities are exact if the store keeps texts, and otherwise estimated from
//! signatures.

use std::collections::HashSet;
use std::fmt;

use simstore::{Error, Fingerprint, Result, Snapshot, Store};

use super::text_codec::{DICTIONARY_SAMPLES, TextCodec, store_dictionary, truncate_sample};
use super::{EstimateLimit, SimilarSettings, SimilarityEstimate};
use crate::{Profile, Signature, jaccard};

/// A stored document that is similar to a text.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarDocument {
    /// Id of the document.
    pub id: u64,
    /// Name of the document, if it has one.
    pub name: Option<String>,
    /// Similarity to the text: exact if the store keeps texts, otherwise estimated.
    pub estimate: SimilarityEstimate,
}

/// A document that was read from a store, for comparison with any number of texts.
#[derive(Clone, Debug)]
pub struct StoredDocument {
    /// Id of the document.
    pub id: u64,
    /// Signature of the document.
    pub signature: Signature,
    /// Compressed text; empty if the store keeps no texts.
    compressed_text: Vec<u8>,
}

/// Compares texts with the documents of a [store of similar documents](crate::open_similar_store). If the store keeps texts, the
/// comparer also compresses and decompresses them.
pub struct DocumentComparer {
    settings: SimilarSettings,
    profile: Profile,
    codec: TextCodec,
}

impl fmt::Debug for DocumentComparer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DocumentComparer").field(&self.settings).finish()
    }
}

impl DocumentComparer {
    /// Creates a comparer for a store with these settings and this profile. Loads the store's compression dictionary, if it
    /// exists.
    ///
    /// # Errors
    /// Errors of reading the store.
    pub fn new<F: Fingerprint>(
        store: &Snapshot<F>,
        settings: SimilarSettings,
        profile: Profile,
    ) -> Result<Self> {
        let codec = TextCodec::default();
        if settings.has_texts() {
            codec.load_dictionary(store)?;
        }
        Ok(DocumentComparer { settings, profile, codec })
    }

    /// Returns the settings of the store.
    pub fn settings(&self) -> &SimilarSettings {
        &self.settings
    }

    /// Returns the profile that defines the features of a text.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn compress(&self, text: &str) -> Result<Vec<u8>> {
        self.codec.compress(text)
    }

    /// Trains a compression dictionary on stored texts and stores the dictionary, if the store has at least
    /// [`DICTIONARY_SAMPLES`](Self::DICTIONARY_SAMPLES) texts and no dictionary. Texts that are added later then take fewer bytes.
    /// Returns whether the store now has a dictionary.
    ///
    /// # Errors
    /// Errors of reading or writing the store.
    pub fn build_dictionary<F: Fingerprint>(&self, store: &Store<F>) -> Result<bool> {
        let snapshot = store.snapshot();
        if !self.settings.has_texts() || self.codec.load_dictionary(&snapshot)? {
            return Ok(self.settings.has_texts());
        }
        // An id occurs several times, since a document has several fingerprints.
        let (mut texts, mut seen) = (Vec::new(), HashSet::new());
        for entry in snapshot.iter() {
            let Some(id) = entry?.id.filter(|&id| seen.insert(id)) else { continue };
            texts.extend(self.text(&snapshot, id)?.map(truncate_sample));
            if texts.len() == DICTIONARY_SAMPLES {
                store_dictionary(store, &texts)?;
                return self.codec.load_dictionary(&store.snapshot());
            }
        }
        Ok(false)
    }

    /// Number of texts that a compression dictionary is trained on.
    pub const DICTIONARY_SAMPLES: usize = DICTIONARY_SAMPLES;

    /// Returns the beginning of a text, at most 16 KiB. Only this part is used for training a compression dictionary.
    pub fn truncate_sample(text: String) -> String {
        truncate_sample(text)
    }

    /// Trains a compression dictionary on `texts`, for example the texts that are about to be added, and stores the dictionary.
    /// Does nothing if the store already has a dictionary or keeps no texts, and for fewer than
    /// [`DICTIONARY_SAMPLES`](Self::DICTIONARY_SAMPLES) `texts`.
    ///
    /// # Errors
    /// Errors of reading or writing the store.
    pub fn build_dictionary_from<F: Fingerprint>(&self, store: &Store<F>, texts: &[String]) -> Result<()> {
        if self.settings.has_texts()
            && texts.len() >= DICTIONARY_SAMPLES
            && !self.codec.load_dictionary(&store.snapshot())?
        {
            store_dictionary(store, texts)?;
            self.codec.load_dictionary(&store.snapshot())?;
        }
        Ok(())
    }

    /// Returns the text of the document with this id; `None` if the store has no such document or keeps no texts.
    ///
    /// # Errors
    /// Errors of reading the store; [`Error::Refused`] if the document's note (signature and compressed text) is damaged.
    pub fn text<F: Fingerprint>(&self, store: &Snapshot<F>, id: u64) -> Result<Option<String>> {
        if !self.settings.has_texts() {
            return Ok(None);
        }
        let Some(note) = store.note(id)? else { return Ok(None) };
        let (_, compressed_text) = split_note(store, id, &note)?;
        self.decompress(store, id, compressed_text).map(Some)
    }

    fn decompress<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        id: u64,
        compressed_text: &[u8],
    ) -> Result<String> {
        self.codec.decompress(compressed_text, store)?.map_err(|found| damaged_note(store, id, found))
    }

    /// Returns the documents with these ids. `ids` must be in ascending order. Ids of deleted documents are skipped.
    ///
    /// # Errors
    /// Errors of reading the store; [`Error::Refused`] if a document's note (signature and compressed text) is damaged.
    pub fn documents<F: Fingerprint>(&self, store: &Snapshot<F>, ids: &[u64]) -> Result<Vec<StoredDocument>> {
        let mut documents = Vec::with_capacity(ids.len());
        for (&id, note) in ids.iter().zip(store.notes_of(ids)?) {
            let Some(mut note) = note else { continue };
            let (signature, compressed_text) = split_note(store, id, &note)?;
            let start = note.len() - compressed_text.len();
            documents.push(StoredDocument { id, signature, compressed_text: note.split_off(start) });
        }
        Ok(documents)
    }

    /// Returns the feature set of a stored document's text, in ascending order.
    ///
    /// # Errors
    /// Errors of reading the store; [`Error::Refused`] if the text is damaged.
    pub fn features<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        document: &StoredDocument,
    ) -> Result<Vec<u64>> {
        Ok(self.profile.feature_set(&self.decompress(store, document.id, &document.compressed_text)?))
    }

    /// Estimates the similarity of a stored document to a text from their signatures. Returns `None` if the exact similarity must
    /// be computed from the texts: the store keeps texts, and the signatures differ.
    pub fn signature_estimate(
        &self,
        document: &StoredDocument,
        text_signature: &Signature,
    ) -> Option<SimilarityEstimate> {
        let estimate = document.signature.estimate(text_signature);
        (!self.settings.has_texts() || estimate.standard_error == 0.0).then_some(estimate)
    }

    /// Whether the signatures of a stored document and a text differ in at most
    /// [`signature_distance`](SimilarSettings::signature_distance) bits. If they differ in more bits, document and text are too
    /// dissimilar for a comparison.
    pub fn is_candidate(&self, document: &StoredDocument, text_signature: &Signature) -> bool {
        document.signature.distance(text_signature) <= self.settings.signature_distance()
    }

    /// Returns the documents among `ids` whose similarity to a text is at least `min_similarity`, the most similar first.
    ///
    /// `text_signature` is the signature of the text. `features` returns the text's feature set in ascending order. It is called at
    /// most once, and only if an exact comparison needs the features. In a store that keeps texts, similarities are exact. In
    /// other stores they are [estimates](Signature::estimate).
    ///
    /// # Errors
    /// The errors of [`DocumentComparer::documents`], [`DocumentComparer::features`] and `features`.
    pub fn find_similar<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        text_signature: &Signature,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
        min_similarity: f64,
    ) -> Result<Vec<SimilarDocument>> {
        Ok(self.compare(store, text_signature, features, ids, min_similarity)?.0)
    }

    /// Like [`DocumentComparer::find_similar`], but returns no documents if the text counts as new.
    ///
    /// In a store that keeps texts, a text is new if no document is similar. In other stores, similarities are estimates. The more
    /// candidates there are, the more probable it is that some estimate is too high. So in these stores, a text is also new if no
    /// estimate reaches the [limit](EstimateLimit) for the number of candidates.
    ///
    /// # Errors
    /// The errors of [`DocumentComparer::find_similar`].
    pub fn find_earlier<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        text_signature: &Signature,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
        min_similarity: f64,
    ) -> Result<Vec<SimilarDocument>> {
        let (found, is_earlier) = self.compare(store, text_signature, features, ids, min_similarity)?;
        Ok(if is_earlier { found } else { Vec::new() })
    }

    /// Returns the documents that [`DocumentComparer::find_similar`] returns, and a flag. If the flag is `false`, the text counts
    /// as new even if similar documents exist: see [`DocumentComparer::find_earlier`].
    fn compare<F: Fingerprint>(
        &self,
        store: &Snapshot<F>,
        text_signature: &Signature,
        features: impl FnOnce() -> Result<Vec<u64>>,
        ids: &[u64],
        min_similarity: f64,
    ) -> Result<(Vec<SimilarDocument>, bool)> {
        let (mut found, mut make_features, mut features) = (Vec::new(), Some(features), None::<Vec<u64>>);
        let documents = self.documents(store, ids)?;
        for document in &documents {
            let estimate = match self.signature_estimate(document, text_signature) {
                Some(estimate) => estimate,
                None if !self.is_candidate(document, text_signature) => continue,
                None => {
                    let stored = self.features(store, document)?;
                    let text_features = match &mut features {
                        Some(features) => features,
                        none => none.insert(
                            make_features.take().map_or_else(|| Ok(Vec::new()), |features| features())?,
                        ),
                    };
                    SimilarityEstimate::exact(jaccard(&stored, text_features))
                }
            };
            if estimate.similarity >= min_similarity {
                found.push((document.id, estimate));
            }
        }
        found.sort_by(|(a, x), (b, y)| y.similarity.total_cmp(&x.similarity).then(a.cmp(b)));
        let named = |(id, estimate)| Ok(SimilarDocument { id, name: store.name(id)?, estimate });
        let found: Vec<SimilarDocument> = found.into_iter().map(named).collect::<Result<_>>()?;
        let is_earlier = self.settings.has_texts() || {
            let near = documents
                .iter()
                .filter(|document| document.signature.is_near(text_signature, min_similarity));
            let limit = EstimateLimit::new(min_similarity, near.count() as u64);
            documents.iter().any(|document| limit.accepts(&document.signature, text_signature))
        };
        Ok((found, is_earlier))
    }
}

impl SimilarSettings {
    /// Returns the signature of the document with this id; `None` if the store has no such document.
    ///
    /// # Errors
    /// Errors of reading the store; [`Error::Refused`] if the signature is damaged.
    pub fn signature<F: Fingerprint>(&self, store: &Snapshot<F>, id: u64) -> Result<Option<Signature>> {
        let Some(note) = store.note(id)? else { return Ok(None) };
        split_note(store, id, &note).map(|(signature, _)| Some(signature))
    }
}

/// Splits the note of a document (the bytes that the store keeps with its id) into the signature and the compressed text.
fn split_note<'a, F: Fingerprint>(
    store: &Snapshot<F>,
    id: u64,
    note: &'a [u8],
) -> Result<(Signature, &'a [u8])> {
    Signature::from_bytes(note).ok_or_else(|| damaged_note(store, id, "bytes that are not a signature"))
}

fn damaged_note<F: Fingerprint>(store: &Snapshot<F>, id: u64, found: &str) -> Error {
    Error::Refused(format!(
        "{}: the note of document {id} holds {found}, expected a signature (and the text, in a store with texts): delete the document \
         and add it again",
        store.path().display()
    ))
}
