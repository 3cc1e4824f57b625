//! Items of a request: one object, or an array of objects.

use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;
use simstore::error::excerpt;

use crate::config::ServiceLimits;
use crate::messages::{CompareMessage, ComparedSide, DocumentMessage, QueryMessage};
use crate::service_error::{ServiceError, ServiceResult};

/// A document or a query of a request.
pub(crate) trait RequestItem: DeserializeOwned + Send + 'static {
    /// Noun for messages, as a plural.
    const NOUN: &'static str;

    /// Checks what the type of a member cannot say.
    ///
    /// # Errors
    /// The status 422 with the rule that the item breaks.
    fn check(&self, limits: &ServiceLimits) -> ServiceResult<()>;
}

/// The items of a body.
pub(crate) enum JsonItems<I> {
    One(I),
    /// The items of an array. An item that cannot be read is an error in its place.
    List(Vec<ServiceResult<I>>),
}

/// Parses one object or an array of objects.
///
/// # Errors
/// The status 400 for malformed JSON, 413 for too many items, 422 for an object with unknown or invalid members.
pub(crate) fn parse_items<I: RequestItem>(
    body: &[u8],
    limits: &ServiceLimits,
) -> ServiceResult<JsonItems<I>> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
        return parse_item(body, limits).map(JsonItems::One);
    }
    let items: Vec<&RawValue> = serde_json::from_slice(body).map_err(|error| json_error(&error))?;
    if items.len() > limits.items {
        return Err(ServiceError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-many-items",
            format!("{} {}: at most {} are allowed in an array", items.len(), I::NOUN, limits.items),
        ));
    }
    let items = items.into_iter().map(|item| parse_item(item.get().as_bytes(), limits));
    Ok(JsonItems::List(items.collect()))
}

/// Parses one object.
///
/// # Errors
/// The status 400 for malformed JSON, 422 for unknown or invalid members.
pub(crate) fn parse_item<I: RequestItem>(json: &[u8], limits: &ServiceLimits) -> ServiceResult<I> {
    let item: I = serde_json::from_slice(json).map_err(|error| json_error(&error))?;
    item.check(limits)?;
    Ok(item)
}

fn json_error(error: &serde_json::Error) -> ServiceError {
    let message = shorten(&error.to_string());
    match error.classify() {
        Category::Data => ServiceError::unusable("invalid-member", message),
        _ => {
            ServiceError::new(StatusCode::BAD_REQUEST, "malformed-json", format!("malformed JSON: {message}"))
        }
    }
}

/// Shortens a message that may quote a long text of the request. Keeps the position at the end of the message.
fn shorten(message: &str) -> String {
    match message.rsplit_once(" at line ") {
        Some((reason, position)) => format!("{} at line {position}", excerpt(reason)),
        None => excerpt(message).into_owned(),
    }
}

fn check_text(text: Option<&str>, limits: &ServiceLimits) -> ServiceResult<()> {
    match text {
        Some(text) if text.len() > limits.text_bytes => Err(ServiceError::unusable(
            "text-too-long",
            format!("a text of {} bytes: at most {} are allowed", text.len(), limits.text_bytes),
        )),
        _ => Ok(()),
    }
}

impl RequestItem for DocumentMessage {
    const NOUN: &'static str = "documents";

    fn check(&self, limits: &ServiceLimits) -> ServiceResult<()> {
        if self.text.is_some() == self.fingerprint.is_some() {
            let message = "a document has either a `text` or a `fingerprint`";
            return Err(ServiceError::unusable("invalid-member", message));
        }
        check_text(self.text.as_deref(), limits)
    }
}

impl RequestItem for QueryMessage {
    const NOUN: &'static str = "queries";

    fn check(&self, limits: &ServiceLimits) -> ServiceResult<()> {
        let given = [self.text.is_some(), self.fingerprint.is_some(), self.id.is_some()];
        if given.into_iter().filter(|&is_given| is_given).count() != 1 {
            let message = "a query has exactly one of `text`, `fingerprint` and `id`";
            return Err(ServiceError::unusable("invalid-member", message));
        }
        if self.limit.is_some_and(|limit| limit > limits.results) {
            let message = format!("`limit` is greater than {}, the maximum of this service", limits.results);
            return Err(ServiceError::unusable("limit", message));
        }
        check_text(self.text.as_deref(), limits)
    }
}

impl RequestItem for CompareMessage {
    const NOUN: &'static str = "comparisons";

    fn check(&self, limits: &ServiceLimits) -> ServiceResult<()> {
        for ComparedSide { text, fingerprint, id } in [&self.a, &self.b] {
            let given = [text.is_some(), fingerprint.is_some(), id.is_some()];
            if given.into_iter().filter(|&is_given| is_given).count() != 1 {
                let message = "`a` and `b` have exactly one of `text`, `fingerprint` and `id` each";
                return Err(ServiceError::unusable("invalid-member", message));
            }
            check_text(text.as_deref(), limits)?;
        }
        Ok(())
    }
}
