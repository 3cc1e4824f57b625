//! Matches in answers.

use serde::Serialize;
use utoipa::ToSchema;

use super::AnswerId;

/// A stored fingerprint near the query.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct FingerprintMatch {
    /// Id of the stored document; null in a store without ids
    pub(crate) id: Option<AnswerId>,
    /// Stored fingerprint, in hexadecimal digits
    pub(crate) fingerprint: String,
    /// Number of bits that differ from the query
    pub(crate) distance: u32,
}

/// A stored document similar to the query.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SimilarMatch {
    pub(crate) id: AnswerId,
    /// Jaccard similarity of the texts, from 0 to 1
    pub(crate) similarity: f64,
    /// Standard error of the similarity. It is 0 if the similarity is exact, as in a store that keeps texts
    pub(crate) standard_error: f64,
}

/// A match: a fingerprint or a similar document, depending on the store.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum MatchMessage {
    Fingerprint(FingerprintMatch),
    Similar(SimilarMatch),
}

/// Matches of a query, the nearest first, then by id.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct MatchList {
    /// The nearest matches, up to the limit
    pub(crate) matches: Vec<MatchMessage>,
    /// Whether more matches exist than are listed
    pub(crate) truncated: bool,
    /// Number of all matches
    pub(crate) total: usize,
}
