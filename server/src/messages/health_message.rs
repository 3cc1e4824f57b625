//! Short answers about the state of the service.

use serde::Serialize;
use utoipa::ToSchema;

/// State of the service.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct HealthMessage {
    /// `live`, `ready`, or the reason why the service is not ready
    pub(crate) status: String,
}

/// Answer after a flush: all earlier writes are in segments.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct FlushAnswer {
    /// Number of segments after the flush
    pub(crate) segments: usize,
}

/// Answer to the start of a compaction. `/stats` has its progress.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CompactionStarted {
    /// Always `started`
    pub(crate) compaction: String,
}
