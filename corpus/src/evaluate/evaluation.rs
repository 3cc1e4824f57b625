//! Result of an evaluation of text profiles on labelled pairs.

use serde::{Deserialize, Serialize};

use crate::evaluate::curve::ProfileCurve;
use crate::evaluate::similarity_point::SimilarityPoint;

/// Distance k that Manku, Jain and Das Sarma (2007) use in their paper, for fingerprints of [`PAPER_BITS`] bits.
pub const PAPER_K: u32 = 3;
/// Width of the fingerprints in the paper that [`PAPER_K`] is from, in bits.
pub const PAPER_BITS: u32 = 64;

/// Result of an evaluation: recall, precision and F1 of each profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// One curve for each profile, in the order of [`EvaluateOptions::profiles`](crate::evaluate::EvaluateOptions::profiles).
    pub profiles: Vec<ProfileCurve>,
    /// One point for each similarity threshold, in the order of
    /// [`EvaluateOptions::similar`](crate::evaluate::EvaluateOptions::similar).
    pub similar: Vec<SimilarityPoint>,
    /// Width of the fingerprints, in bits.
    pub bits: u32,
    /// Number of labelled pairs.
    pub pairs: u64,
    /// Number of labelled pairs that are positive (near-duplicates).
    pub positives: u64,
    /// Number of skipped malformed pairs.
    #[serde(rename = "bad")]
    pub malformed: u64,
    /// Size of the corpus for which precision and F1 are predicted, in documents.
    pub documents: u64,
    /// Minimum Jaccard similarity at which two unrelated texts (a *random pair*) count as [alike](crate::evaluate), so that
    /// finding the pair is not an error.
    pub alike_from: f64,
}

impl Evaluation {
    /// Whether the fingerprints have [`PAPER_BITS`] bits. If so, [`PAPER_K`] applies to them.
    pub fn has_paper(&self) -> bool {
        self.bits == PAPER_BITS
    }
}
