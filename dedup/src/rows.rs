//! Rows of plain numbers, which the stages of a deduplication pass on.
//!
//! Documents that may be told of are numbered in order of input, [sets](Sets) of them by preference: set 0 is the most preferred, so
//! that the better of two sets is the one with the smaller number.

use simstore::{Error, Result};
use simstore_text::{SKETCHES, Sketched};

use simstore_corpus::spill::Fixed;

/// Two sets that may be near each other: the worse one, and the better one.
pub(crate) type Candidate = (u32, u32);

/// Two sets that are near each other, the worse one first, and how near they are.
pub(crate) type Near = (u32, u32, Nearness);

/// A set, its leader, and how near they are.
pub(crate) type Led = (u32, u32, Nearness);

/// Nearness of two documents, as an integer that can be sorted: the bits of the similarity of their texts, a double from 0 to 1; or
/// the distance of their fingerprints in bits.
pub(crate) type Nearness = u64;

/// Converts a similarity to a nearness. No digit is lost: the similarity that is shown is the one that was compared.
pub(crate) fn of_similarity(similarity: f64) -> Nearness {
    // The bits of doubles that are not negative are in the order of the doubles.
    similarity.to_bits()
}

/// Converts a nearness to a similarity.
pub(crate) fn similarity(nearness: Nearness) -> f64 {
    f64::from_bits(nearness)
}

/// Sketches of a document or a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SketchRow {
    /// Of the document or set.
    pub(crate) number: u32,
    /// Number of features; 0 without text.
    pub(crate) features: u32,
    pub(crate) sum: u64,
    pub(crate) words: [u64; SKETCHES],
}

impl SketchRow {
    /// Makes the row of a document. Without sketches, the document has no text.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is one of too many.
    pub(crate) fn new(document: usize, sketched: Option<&Sketched>) -> Result<SketchRow> {
        let number = u32::try_from(document).ok().filter(|&number| number < u32::MAX).ok_or_else(|| {
            Error::Refused(
                "at most 4,294,967,295 documents can be compared by similarity; option `distance` compares fingerprints instead"
                    .to_owned(),
            )
        })?;
        Ok(match sketched {
            Some(&Sketched { sketches, features, sum }) => {
                SketchRow { number, features, sum, words: sketches }
            }
            None => SketchRow { number, features: 0, sum: 0, words: [0; SKETCHES] },
        })
    }

    pub(crate) fn sketched(&self) -> Sketched {
        Sketched { sketches: self.words, features: self.features, sum: self.sum }
    }

    /// Digest of the set of features: sets with other features have another one.
    pub(crate) fn digest(&self) -> (u64, u64) {
        let digest = simstore_text::digest(self.features, self.sum, &self.words);
        ((digest >> 64) as u64, digest as u64)
    }
}

/// Representative of a cluster: a document, or a stored document by its number among all that were found in stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct By(u64);

/// Tells the two apart.
const STORED: u64 = 1 << 63;

impl By {
    pub(crate) fn document(document: u64) -> By {
        By(document)
    }

    pub(crate) fn stored(number: u64) -> By {
        By(number | STORED)
    }

    /// The document; or else the number of something stored.
    pub(crate) fn get(self) -> Result<usize, u64> {
        if self.0 & STORED == 0 { Ok(self.0 as usize) } else { Err(self.0 & !STORED) }
    }
}

/// Nearness of a document to its representative, and the standard error, as a nearness too: 0 if the first one is exact.
pub(crate) type Measure = (Nearness, Nearness);

/// A document of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    // First, so that members are in order of documents.
    pub(crate) document: u64,
    /// The number of the cluster, from 1, in order of the first documents.
    pub(crate) cluster: u32,
    /// The representative of the cluster.
    pub(crate) by: By,
    pub(crate) measure: Measure,
}

impl Member {
    /// Whether the document is the representative.
    pub(crate) fn is_representative(&self) -> bool {
        self.by == By(self.document)
    }

    /// Whether the representative is a stored document.
    pub(crate) fn is_stored(&self) -> bool {
        self.by.get().is_err()
    }
}

/// Something in one of the stores that documents are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stored {
    /// Which of the stores.
    pub(crate) store: u32,
    pub(crate) id: Option<u64>,
    /// The fingerprint, if fingerprints are compared. A 64-bit fingerprint has leading zeros.
    pub(crate) fingerprint: u128,
}

/// Writes the fields of a row one after the other.
macro_rules! fixed {
    ($row:ident { $($field:tt: $type:ty),* }) => {
        impl Fixed for $row {
            const BYTES: usize = 0 $(+ <$type as Fixed>::BYTES)*;

            #[inline]
            fn write(self, mut bytes: &mut [u8]) {
                $(self.$field.write(bytes.split_off_mut(..<$type as Fixed>::BYTES).unwrap_or_default());)*
            }

            #[inline]
            fn read(mut bytes: &[u8]) -> Self {
                $row { $($field: Fixed::read(bytes.split_off(..<$type as Fixed>::BYTES).unwrap_or_default())),* }
            }
        }
    };
}

fixed!(SketchRow { number: u32, features: u32, sum: u64, words: [u64; SKETCHES] });
fixed!(By { 0: u64 });
fixed!(Member { cluster: u32, document: u64, by: By, measure: Measure });
fixed!(Stored { store: u32, fingerprint: u128, id: Option<u64> });

/// A stored document that is near a document: the document, and the rank among all stored ones near it (the nearest first); the stored
/// document; and how near they are.
pub(crate) type NearStored = ((u32, u32), Stored, Measure);

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn check<R: Fixed + PartialEq + Debug>(row: R) {
        let mut bytes = vec![0xaa; R::BYTES + 1];
        row.write(&mut bytes);
        assert_eq!((R::read(&bytes), bytes[R::BYTES]), (row, 0xaa));
    }

    #[test]
    fn rows_come_back_from_their_bytes() {
        for (id, fingerprint) in [(None, 0), (Some(0), u128::MAX), (Some(u64::MAX), 1 << 64)] {
            check(Stored { store: u32::MAX, id, fingerprint });
        }
        for by in [By::document(7), By::stored(7), By::stored(0)] {
            check(Member { document: u64::MAX >> 1, cluster: 3, by, measure: (of_similarity(0.8), 1) });
        }
        let words = std::array::from_fn(|at| u64::MAX - at as u64);
        check(SketchRow { number: 1, features: u32::MAX, sum: u64::MAX, words });
        check([u128::MAX - 1, 7]);
    }
}
