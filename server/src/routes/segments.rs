//! `GET /segments`, and one table or one block of a segment.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::parameters::checked_path;
use crate::messages::{BlockDetails, ErrorMessage, SegmentDetails, TableDetails, json_response};
use crate::service_error::ServiceResult;
use crate::service_state::ServiceState;
use crate::stores::TablePlace;

/// List the segments
///
/// Returns the segments of the store, oldest first, with their tables.
#[utoipa::path(
    get,
    path = "/segments",
    responses((status = 200, description = "The segments", body = Vec<SegmentDetails>)),
    tag = "Inspection"
)]
pub(crate) async fn segments(State(state): State<Arc<ServiceState>>) -> ServiceResult<Response> {
    let segments = state.on_engine_thread(|store| Ok(store.upkeep().inspection().segments())).await?;
    Ok(json_response(StatusCode::OK, &segments))
}

/// Describe a table
///
/// Returns a table of a segment, with a histogram of the codes of its fingerprints.
#[utoipa::path(
    get,
    path = "/segments/{segment}/tables/{table}",
    params(
        ("segment" = u64, Path, description = "File number of the segment", example = 1),
        ("table" = usize, Path, description = "Index of the table in its segment, from 0", example = 0),
    ),
    responses(
        (status = 200, description = "The table", body = TableDetails),
        (status = 404, description = "No such segment or table", body = ErrorMessage),
    ),
    tag = "Inspection"
)]
pub(crate) async fn table(
    State(state): State<Arc<ServiceState>>,
    place: Result<Path<(u64, usize)>, PathRejection>,
) -> ServiceResult<Response> {
    let (segment, table) = checked_path(place)?;
    let place = TablePlace { segment, table };
    let details = state.on_engine_thread(move |store| store.upkeep().inspection().table(place)).await?;
    Ok(json_response(StatusCode::OK, &details))
}

/// Describe a block
///
/// Returns a block of a table with its fingerprints, and how each of them is coded.
#[utoipa::path(
    get,
    path = "/segments/{segment}/tables/{table}/blocks/{block}",
    params(
        ("segment" = u64, Path, description = "File number of the segment", example = 1),
        ("table" = usize, Path, description = "Index of the table in its segment, from 0", example = 0),
        ("block" = usize, Path, description = "Index of the block in its table, from 0", example = 0),
    ),
    responses(
        (status = 200, description = "The block", body = BlockDetails),
        (status = 404, description = "No such segment, table or block", body = ErrorMessage),
    ),
    tag = "Inspection"
)]
pub(crate) async fn block(
    State(state): State<Arc<ServiceState>>,
    place: Result<Path<(u64, usize, usize)>, PathRejection>,
) -> ServiceResult<Response> {
    let (segment, table, block) = checked_path(place)?;
    let place = TablePlace { segment, table };
    let details =
        state.on_engine_thread(move |store| store.upkeep().inspection().block(place, block)).await?;
    Ok(json_response(StatusCode::OK, &details))
}
