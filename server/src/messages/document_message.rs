//! Documents in requests, and the answers about them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AnswerId, HexDigits, JsonId, MatchList};

/// A document to store: a text or a fingerprint, with an id.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentMessage {
    /// Number or name of the document. Without an id, the document gets the next free number
    #[serde(default)]
    pub(crate) id: Option<JsonId>,
    /// Text of the document, for a store with a text profile
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Fingerprint of the document, for a store of fingerprints
    #[serde(default)]
    pub(crate) fingerprint: Option<HexDigits>,
}

/// Outcome of the request to store a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DocumentOutcome {
    /// The document is stored now
    Stored,
    /// Not stored: the matches are stored already
    Duplicate,
    /// The same document is already stored with the same id
    Present,
    /// Not stored: the text has no words
    Empty,
}

/// Answer for a document.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DocumentAnswer {
    /// Id of the document; null in a store without ids
    pub(crate) id: Option<AnswerId>,
    pub(crate) result: DocumentOutcome,
    #[serde(flatten)]
    pub(crate) found: MatchList,
}

/// A stored document.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct StoredDocumentMessage {
    pub(crate) id: AnswerId,
    /// Fingerprints of the document, in a store of fingerprints
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprints: Option<Vec<String>>,
    /// Text of the document, in a store that keeps texts
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// Answer to a deletion.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DeletionAnswer {
    pub(crate) id: AnswerId,
    /// Always true: a document that is not stored has the status 404
    pub(crate) deleted: bool,
}
