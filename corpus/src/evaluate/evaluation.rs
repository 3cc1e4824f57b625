//! What comes of an evaluation.

use serde::{Deserialize, Serialize};

use crate::evaluate::curve::ProfileCurve;
use crate::evaluate::similar::SimilarPoint;

/// The distance of Manku, Jain and Das Sarma, for fingerprints of [`PAPER_BITS`].
pub const PAPER_K: u32 = 3;
/// The width of their fingerprints, in bits.
pub const PAPER_BITS: u32 = 64;

/// What the profiles make of the pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// One for each profile, in their order.
    pub profiles: Vec<ProfileCurve>,
    /// One for each least similarity that is compared with the distances, in their order.
    pub similar: Vec<SimilarPoint>,
    /// The width of the fingerprints, in bits.
    pub bits: u32,
    /// Labelled pairs.
    pub pairs: u64,
    /// How many of them are positive.
    pub positives: u64,
    /// Malformed pairs skipped.
    pub bad: u64,
    /// The size of the corpus.
    pub documents: u64,
    /// From this similarity on, random pairs are alike.
    pub alike_from: f64,
}

impl Evaluation {
    /// Whether the fingerprints are as wide as the paper's: then [`PAPER_K`] is its distance.
    pub fn has_paper(&self) -> bool {
        self.bits == PAPER_BITS
    }
}
