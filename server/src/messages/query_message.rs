//! Queries.

use serde::Deserialize;
use utoipa::ToSchema;

use super::{HexDigits, JsonId};

/// A search for stored documents near a text, a fingerprint, or a stored document. Exactly one of `text`, `fingerprint` and `id` is
/// given.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryMessage {
    /// Text to search for, in a store with a text profile
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Fingerprint to search for, in a store of fingerprints
    #[serde(default)]
    pub(crate) fingerprint: Option<HexDigits>,
    /// Id of a stored document. The matches do not include the document itself
    #[serde(default)]
    pub(crate) id: Option<JsonId>,
    /// Largest distance of a match in bits, in a store of fingerprints. Default: the largest distance of the store
    #[serde(default)]
    pub(crate) distance: Option<u32>,
    /// Smallest similarity of a match, in a store of similar documents. Default: the threshold of the store
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) similarity: Option<f64>,
    /// Largest number of matches in the answer. Default: 100
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}
