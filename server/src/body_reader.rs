//! Bodies of requests, read without a thread, within the limits of size, memory and time.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;

use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::{BODY_UNIT, ServiceState};

/// Number of [`BODY_UNIT`]s that are reserved at a time.
const RESERVED_UNITS: usize = 64;

/// Kind of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// One JSON object or array.
    Json,
    /// One JSON object a line.
    Lines,
}

impl BodyKind {
    /// Returns the kind of a body by its header `Content-Type`.
    ///
    /// # Errors
    /// The status 415 for other types.
    pub(crate) fn from_headers(headers: &HeaderMap) -> ServiceResult<BodyKind> {
        let content_type =
            headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case("application/json") {
            return Ok(BodyKind::Json);
        }
        if media_type.eq_ignore_ascii_case("application/x-ndjson") {
            return Ok(BodyKind::Lines);
        }
        Err(ServiceError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            "the header `Content-Type` must be application/json, or application/x-ndjson for one object a line",
        ))
    }
}

/// Memory that is reserved for the body of a request, until this is dropped.
pub(crate) struct BodyMemory {
    state: Arc<ServiceState>,
    permit: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    pub(crate) fn new(state: Arc<ServiceState>) -> BodyMemory {
        BodyMemory { state, permit: None }
    }

    /// Reserves memory, so that the whole body may have `bytes` bytes.
    ///
    /// # Errors
    /// The status 429 if the bodies of all requests under way take too much memory.
    pub(crate) fn reserve(&mut self, bytes: usize) -> ServiceResult<()> {
        let reserved = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let needed = bytes.div_ceil(BODY_UNIT).saturating_sub(reserved);
        if needed == 0 {
            return Ok(());
        }
        let units = u32::try_from(needed.next_multiple_of(RESERVED_UNITS)).unwrap_or(u32::MAX);
        let more = self.state.body_units.clone().try_acquire_many_owned(units);
        let more = more.or_else(|_| {
            self.state.body_units.clone().try_acquire_many_owned(u32::try_from(needed).unwrap_or(u32::MAX))
        });
        let more = more.map_err(|_| {
            let message = "the bodies of the requests under way take too much memory: try again in a moment";
            ServiceError::new(StatusCode::TOO_MANY_REQUESTS, "bodies-memory", message)
        })?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

/// Returns the next part of a body; `None` at its end.
///
/// # Errors
/// The status 408 if the client sends nothing for too long, 400 if the body ends early.
pub(crate) async fn next_part(state: &ServiceState, body: &mut Body) -> ServiceResult<Option<Bytes>> {
    let idle_time = state.config.limits.idle_time;
    loop {
        let frame = match tokio::time::timeout(idle_time, body.frame()).await {
            Err(_) => {
                let message =
                    format!("the body did not arrive: no byte for {} seconds", idle_time.as_secs_f64());
                return Err(ServiceError::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", message));
            }
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => {
                let message = format!("the body ended early: {error}");
                return Err(ServiceError::new(StatusCode::BAD_REQUEST, "body-cut", message));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers are no part of the body.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// Reads a whole body.
///
/// # Errors
/// The status 413 if the body is too large, and the errors of [`next_part`] and [`BodyMemory::reserve`].
pub(crate) async fn read_body(
    state: &Arc<ServiceState>,
    headers: &HeaderMap,
    mut body: Body,
) -> ServiceResult<(Vec<u8>, BodyMemory)> {
    let limit = state.config.limits.body_bytes;
    let too_large = || {
        let message =
            format!("the body is larger than {limit} bytes: send several requests, or a stream of lines");
        ServiceError::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", message)
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let (mut bytes, mut memory) = (Vec::new(), BodyMemory::new(state.clone()));
    while let Some(part) = next_part(state, &mut body).await? {
        let total = bytes.len() + part.len();
        if total > limit {
            return Err(too_large());
        }
        memory.reserve(total)?;
        bytes.extend_from_slice(&part);
    }
    Ok((bytes, memory))
}
