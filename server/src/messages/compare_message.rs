//! Comparisons of two documents.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{HexDigits, JsonId};

/// A comparison of two documents. A store of similar documents compares texts, so it must keep texts to compare a stored document.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompareMessage {
    pub(crate) a: ComparedSide,
    pub(crate) b: ComparedSide,
}

/// One of two compared documents. Exactly one of `text`, `fingerprint` and `id` is given.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComparedSide {
    /// A text, in a store with a text profile
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// A fingerprint, in a store of fingerprints
    #[serde(default)]
    pub(crate) fingerprint: Option<HexDigits>,
    /// Id of a stored document
    #[serde(default)]
    pub(crate) id: Option<JsonId>,
}

/// Similarity of two texts, and where they differ.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TextComparison {
    /// Jaccard similarity of the texts, from 0 to 1
    pub(crate) similarity: f64,
    /// Both texts in order, word by word. White space alone is no difference
    pub(crate) segments: Vec<PassageMessage>,
    /// Whether a text was longer than 32 KiB. Then `segments` compares the starts, and `similarity` still the whole texts
    pub(crate) cut: bool,
}

/// A passage of two compared texts: a string that both have; a list of two strings that differ, the first of `a`, the second of
/// `b`; or the number of equal words that are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum PassageMessage {
    Equal(String),
    Changed([String; 2]),
    Skipped(usize),
}

/// Distance of two fingerprints.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct BitComparison {
    /// Number of bits that differ
    pub(crate) distance: u32,
    /// The fingerprints of `a` and `b`, in hexadecimal digits. Of documents with several fingerprints, the nearest two
    pub(crate) fingerprints: [String; 2],
}

/// Answer of a comparison: texts or fingerprints, depending on the store.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ComparisonAnswer {
    Texts(TextComparison),
    Bits(BitComparison),
}
