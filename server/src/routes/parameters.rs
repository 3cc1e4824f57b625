//! Parameters in the address of a request.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::service_error::{ServiceError, ServiceResult};

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestedDurability {
    /// When it is on the disk: it survives a power failure
    #[default]
    Sync,
    /// When the operating system has it: it survives the end of the service
    Os,
}

/// Parameters of `POST /documents`.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AdditionParameters {
    /// Store a document only if it is no near-duplicate of a stored one. Default: true
    #[serde(default = "yes")]
    #[param(required = false, default = true)]
    pub(crate) if_new: bool,
    /// When a write is acknowledged. Default: sync
    #[serde(default)]
    #[param(required = false, inline)]
    pub(crate) durability: RequestedDurability,
}

/// Parameters of `DELETE /documents/{id}`.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeletionParameters {
    /// When the deletion is acknowledged. Default: sync
    #[serde(default)]
    #[param(required = false, inline)]
    pub(crate) durability: RequestedDurability,
}

fn yes() -> bool {
    true
}

/// Returns the parameters, or the status 400 with the reason why they cannot be used.
pub(super) fn checked<P>(parameters: Result<Query<P>, QueryRejection>) -> ServiceResult<P> {
    parameters.map(|Query(parameters)| parameters).map_err(|rejection| {
        ServiceError::new(StatusCode::BAD_REQUEST, "bad-parameter", rejection.body_text())
    })
}

/// Returns the parts of a path, or the status 400 with the reason why they cannot be used.
pub(super) fn checked_path<P>(path: Result<Path<P>, PathRejection>) -> ServiceResult<P> {
    path.map(|Path(parts)| parts).map_err(|rejection| {
        ServiceError::new(StatusCode::BAD_REQUEST, "bad-parameter", rejection.body_text())
    })
}
