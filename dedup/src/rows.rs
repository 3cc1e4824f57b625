//! Rows of fixed size that one stage of the pipeline writes and the next one reads.
//!
//! Documents are numbered in input order. [Unique documents][UniqueDocuments] are numbered by preference:
//! number 0 is the most preferred. So the better of two unique documents has the smaller number.
//!
//! [UniqueDocuments]: crate::pipeline::unique_documents::UniqueDocuments

use simstore::{Error, Result};
use simstore_text::{BANDS, Signature};

use simstore_corpus::spill::FixedSize;

/// Two unique documents that may be near each other: (less preferred, more preferred). The more preferred one has the
/// smaller number.
pub(crate) type Candidate = (u32, u32);

/// Two unique documents that are near each other, and their score: (less preferred, more preferred, score).
pub(crate) type ScoredPair = (u32, u32, PairScore);

/// Assignment of a unique document to a representative: (document, its representative, score of the two).
pub(crate) type AssignmentRow = (u32, u32, PairScore);

/// Score of a pair of documents, as a sortable integer. If documents are compared by similarity, the score is the
/// bits of the Jaccard similarity, an `f64` from 0 to 1. If they are compared by distance, the score is the Hamming
/// distance of the fingerprints.
pub(crate) type PairScore = u64;

/// Converts a similarity to a score, without rounding: the reported similarity is exactly the computed one.
pub(crate) fn score_from_similarity(similarity: f64) -> PairScore {
    // The bit patterns of non-negative doubles sort like the doubles.
    similarity.to_bits()
}

/// Converts a score to a similarity.
pub(crate) fn similarity_from_score(score: PairScore) -> f64 {
    f64::from_bits(score)
}

/// MinHash signature of a document, as a row of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SignatureRow {
    pub(crate) document: u32,
    /// Number of distinct features; 0 if the document has no text.
    pub(crate) features: u32,
    /// Wrapping sum of the hashes of all features of the text.
    pub(crate) sum: u64,
    pub(crate) bands: [u64; BANDS],
}

impl SignatureRow {
    /// Creates the row of a document. `signature` is `None` if the document has no text.
    ///
    /// # Errors
    /// [`Error::Refused`] if `document` exceeds the maximum document number, which has 32 bits.
    pub(crate) fn new(document: usize, signature: Option<&Signature>) -> Result<SignatureRow> {
        let document = u32::try_from(document).ok().filter(|&document| document < u32::MAX).ok_or_else(|| {
            Error::Refused(
                "at most 4,294,967,295 documents can be compared by similarity; option `distance` compares fingerprints instead"
                    .to_owned(),
            )
        })?;
        Ok(match signature {
            Some(&Signature { bands, features, sum }) => SignatureRow { document, features, sum, bands },
            None => SignatureRow { document, features: 0, sum: 0, bands: [0; BANDS] },
        })
    }

    pub(crate) fn signature(&self) -> Signature {
        Signature { bands: self.bands, features: self.features, sum: self.sum }
    }

    /// Digest of the feature set, as the high and the low half of 128 bits. Documents with equal digests are exact
    /// duplicates.
    pub(crate) fn digest(&self) -> (u64, u64) {
        let digest = simstore_text::signature_digest(self.features, self.sum, &self.bands);
        ((digest >> 64) as u64, digest as u64)
    }
}

/// Identifies the representative of a cluster: an input document by its index in the corpus, or a stored document
/// by its index in the rows of all stored representatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RepresentativeId(u64);

/// Bit that is set in a [`RepresentativeId`] if it is the index of a stored document.
const STORED_FLAG: u64 = 1 << 63;

impl RepresentativeId {
    pub(crate) fn document(document: u64) -> RepresentativeId {
        RepresentativeId(document)
    }

    pub(crate) fn stored(index: u64) -> RepresentativeId {
        RepresentativeId(index | STORED_FLAG)
    }

    /// Returns the index of an input document as `Ok`, or the index of a stored document as `Err`.
    pub(crate) fn get(self) -> Result<usize, u64> {
        if self.0 & STORED_FLAG == 0 { Ok(self.0 as usize) } else { Err(self.0 & !STORED_FLAG) }
    }
}

/// Score of a document and its representative, and the standard error of that score. The error is also a
/// [`PairScore`]; it is 0 if the score is exact.
pub(crate) type ScoreWithError = (PairScore, PairScore);

/// Input document that belongs to a cluster, with the cluster and its representative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemberRow {
    // The first field, so that sorted rows are in document order.
    pub(crate) document: u64,
    /// Number of the cluster, starting at 1, in order of the clusters' first documents.
    pub(crate) cluster: u32,
    /// Representative of the cluster.
    pub(crate) representative: RepresentativeId,
    pub(crate) measure: ScoreWithError,
}

impl MemberRow {
    /// Whether the document is the representative.
    pub(crate) fn is_representative(&self) -> bool {
        self.representative == RepresentativeId(self.document)
    }

    /// Whether the representative is a stored document.
    pub(crate) fn is_stored(&self) -> bool {
        self.representative.get().is_err()
    }
}

/// Stored document: a document or a fingerprint of a reference store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoredRow {
    /// Index of the store among all reference stores.
    pub(crate) store: u32,
    pub(crate) id: Option<u64>,
    /// Fingerprint, if documents are compared by distance; else 0. A 64-bit fingerprint is zero-extended.
    pub(crate) fingerprint: u128,
}

/// Implements `FixedSize` for a struct. The encoded fields follow one another without gaps.
macro_rules! fixed {
    ($row:ident { $($field:tt: $type:ty),* }) => {
        impl FixedSize for $row {
            const BYTES: usize = 0 $(+ <$type as FixedSize>::BYTES)*;

            #[inline]
            fn write(self, mut bytes: &mut [u8]) {
                $(self.$field.write(bytes.split_off_mut(..<$type as FixedSize>::BYTES).unwrap_or_default());)*
            }

            #[inline]
            fn read(mut bytes: &[u8]) -> Self {
                $row { $($field: FixedSize::read(bytes.split_off(..<$type as FixedSize>::BYTES).unwrap_or_default())),* }
            }
        }
    };
}

fixed!(SignatureRow { document: u32, features: u32, sum: u64, bands: [u64; BANDS] });
fixed!(RepresentativeId { 0: u64 });
fixed!(MemberRow { cluster: u32, document: u64, representative: RepresentativeId, measure: ScoreWithError });
fixed!(StoredRow { store: u32, fingerprint: u128, id: Option<u64> });

/// Input document and a stored document near it: ((input document, rank), stored document, score). The rank orders
/// the stored documents near an input document: rank 0 is the nearest.
pub(crate) type StoredMatchRow = ((u32, u32), StoredRow, ScoreWithError);

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn check<R: FixedSize + PartialEq + Debug>(row: R) {
        let mut bytes = vec![0xaa; R::BYTES + 1];
        row.write(&mut bytes);
        assert_eq!((R::read(&bytes), bytes[R::BYTES]), (row, 0xaa));
    }

    #[test]
    fn rows_come_back_from_their_bytes() {
        for (id, fingerprint) in [(None, 0), (Some(0), u128::MAX), (Some(u64::MAX), 1 << 64)] {
            check(StoredRow { store: u32::MAX, id, fingerprint });
        }
        for by in [RepresentativeId::document(7), RepresentativeId::stored(7), RepresentativeId::stored(0)] {
            check(MemberRow {
                document: u64::MAX >> 1,
                cluster: 3,
                representative: by,
                measure: (score_from_similarity(0.8), 1),
            });
        }
        let bands = std::array::from_fn(|at| u64::MAX - at as u64);
        check(SignatureRow { document: 1, features: u32::MAX, sum: u64::MAX, bands });
        check([u128::MAX - 1, 7]);
    }
}
