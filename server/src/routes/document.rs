//! `GET /documents/{id}` and `DELETE /documents/{id}`.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::documents::make_durable;
use super::parameters::{DeletionParameters, checked};
use crate::messages::{DeletionAnswer, ErrorMessage, JsonId, StoredDocumentMessage, json_response};
use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Get a document
///
/// Returns a stored document: its fingerprints or, if the store keeps texts, its text. A service that follows another process reads all
/// ids of the store for this.
#[utoipa::path(
    get,
    path = "/documents/{id}",
    params(("id" = String, Path, description = "Number or name of the document", example = "7")),
    responses(
        (status = 200, description = "The document", body = StoredDocumentMessage),
        (status = 404, description = "No such document", body = ErrorMessage),
        (status = 422, description = "The store keeps no ids", body = ErrorMessage),
    ),
    tag = "Documents"
)]
pub(crate) async fn get_document(
    State(state): State<Arc<ServiceState>>,
    id: Result<Path<String>, PathRejection>,
) -> ServiceResult<Response> {
    let id = path_id(id)?;
    let sought = id.clone();
    let found = state.on_engine_thread(move |store| store.document(&sought)).await?;
    let document = found.ok_or_else(|| ServiceError::no_document(&id))?;
    Ok(json_response(StatusCode::OK, &document))
}

/// Delete a document
///
/// Deletes a document with all that the store keeps of it.
#[utoipa::path(
    delete,
    path = "/documents/{id}",
    params(("id" = String, Path, description = "Number or name of the document", example = "7"), DeletionParameters),
    responses(
        (status = 200, description = "Deleted", body = DeletionAnswer),
        (status = 404, description = "No such document", body = ErrorMessage),
        (status = 422, description = "The store keeps no ids", body = ErrorMessage),
        (status = 507, description = "The disk is full", body = ErrorMessage),
    ),
    tag = "Documents"
)]
pub(crate) async fn delete_document(
    State(state): State<Arc<ServiceState>>,
    id: Result<Path<String>, PathRejection>,
    parameters: Result<Query<DeletionParameters>, QueryRejection>,
) -> ServiceResult<Response> {
    let (id, parameters) = (path_id(id)?, checked(parameters)?);
    let sought = id.clone();
    let deleted = state.on_engine_thread(move |store| store.delete(&sought)).await?;
    let id = deleted.ok_or_else(|| ServiceError::no_document(&id))?;
    make_durable(&state, parameters.durability).await?;
    Ok(json_response(StatusCode::OK, &DeletionAnswer { id, deleted: true }))
}

fn path_id(id: Result<Path<String>, PathRejection>) -> ServiceResult<JsonId> {
    let Path(id) = id.map_err(|rejection| {
        ServiceError::new(StatusCode::BAD_REQUEST, "bad-parameter", rejection.body_text())
    })?;
    Ok(JsonId::Text(id))
}
