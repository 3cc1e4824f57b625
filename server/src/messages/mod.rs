//! Bodies of requests and answers.

mod compare_message;
mod document_message;
mod health_message;
mod json_id;
mod match_message;
mod query_message;
mod segment_details;
mod stats_message;
mod trace_message;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use self::compare_message::{
    BitComparison, CompareMessage, ComparedSide, ComparisonAnswer, PassageMessage, TextComparison,
};
pub(crate) use self::document_message::{
    DeletionAnswer, DocumentAnswer, DocumentMessage, DocumentOutcome, StoredDocumentMessage,
};
pub(crate) use self::health_message::{CompactionStarted, FlushAnswer, HealthMessage};
pub(crate) use self::json_id::{AnswerId, GREATEST_EXACT_INTEGER, HexDigits, JsonId};
pub(crate) use self::match_message::{FingerprintMatch, MatchList, MatchMessage, SimilarMatch};
pub(crate) use self::query_message::QueryMessage;
pub(crate) use self::segment_details::{BlockDetails, SegmentDetails, TableDetails};
pub(crate) use self::stats_message::{CompactionMessage, SegmentMessage, ServiceStats, StoreStats};
pub(crate) use self::trace_message::{SegmentTrace, TableTrace, TraceAnswer};

/// Body of an answer that reports an error.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(example = json!({"error": "line 1, column 8: expected value", "code": "malformed-json"}))]
pub(crate) struct ErrorMessage {
    /// Message for a person
    pub(crate) error: String,
    /// Kind of the error, for a program
    pub(crate) code: String,
}

/// Answer for one item of a list or of a stream of lines: the answer of a single request, or its error.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ItemAnswer<A> {
    Answer(A),
    Error(ErrorMessage),
}

/// A body with one item, or with an array of items.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum OneOrList<O, L> {
    One(O),
    List(Vec<L>),
}

/// Returns an answer with a JSON body, which ends with a line feed.
pub(crate) fn json_response(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(mut body) => {
            body.push(b'\n');
            (status, [(CONTENT_TYPE, "application/json")], body).into_response()
        }
        // All bodies are plain structs, which always can be written.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
