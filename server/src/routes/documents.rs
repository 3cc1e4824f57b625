//! `POST /documents`: stores documents.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::parameters::{AdditionParameters, RequestedDurability, checked};
use crate::body_reader::{BodyKind, read_body};
use crate::json_items::{JsonItems, parse_items};
use crate::line_stream::answer_lines;
use crate::messages::{
    DocumentAnswer, DocumentMessage, DocumentOutcome, ErrorMessage, ItemAnswer, OneOrList, json_response,
};
use crate::request_limits::UnderWay;
use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;
use crate::stores::AdditionOptions;

/// Number of matches that the answer for a duplicate lists.
const LISTED_MATCHES: usize = 100;
/// Number of documents of a stream that are stored together, with one sync.
const BATCH_LINES: usize = 1024;

/// Store documents
///
/// Stores one document, the documents of an array, or one document a line (`application/x-ndjson`). The answer says for each whether it
/// is stored now, or of which stored documents it is a near-duplicate. The documents of an array are stored one after the other, and
/// each has its own answer or error in the answer's array. A repeated request is harmless: a document that is already stored with its id
/// is `present`.
#[utoipa::path(
    post,
    path = "/documents",
    params(AdditionParameters),
    request_body(
        description = "A document, an array of documents, or a stream of lines",
        content(
            (OneOrList<DocumentMessage, DocumentMessage> = "application/json", examples(
                ("text" = (summary = "A text, for a store with a text profile", value = json!({"id": 7, "text": "To be, or not to be, that is the question"}))),
                ("fingerprint" = (summary = "A fingerprint of 64 bits", value = json!({"id": 8, "fingerprint": "0123456789abcdef"}))),
                ("array" = (summary = "Several documents", value = json!([{"id": 9, "text": "Whether 'tis nobler in the mind to suffer"}, {"text": "The slings and arrows of outrageous fortune"}]))),
            )),
            (DocumentMessage = "application/x-ndjson"),
        )
    ),
    responses(
        (status = 200, description = "Not stored: a near-duplicate, or already present. For an array or a stream: the answers", content((OneOrList<DocumentAnswer, ItemAnswer<DocumentAnswer>> = "application/json"), (ItemAnswer<DocumentAnswer> = "application/x-ndjson"))),
        (status = 201, description = "Stored", body = DocumentAnswer),
        (status = 409, description = "The id is stored with other content", body = ErrorMessage),
        (status = 422, description = "Not a document of this store, or a text without words", body = ErrorMessage),
        (status = 507, description = "The disk is full", body = ErrorMessage),
    ),
    tag = "Documents"
)]
pub(crate) async fn add_documents(
    State(state): State<Arc<ServiceState>>,
    parameters: Result<Query<AdditionParameters>, QueryRejection>,
    request: Request,
) -> ServiceResult<Response> {
    let parameters = checked(parameters)?;
    state.opened()?;
    if state.config.read_only {
        return Err(ServiceError::read_only());
    }
    let under_way = request.extensions().get::<UnderWay>().cloned();
    let (parts, body) = request.into_parts();
    if BodyKind::from_headers(&parts.headers)? == BodyKind::Lines {
        let worker = state.clone();
        let work = move |documents| add_list(worker.clone(), documents, parameters);
        return Ok(answer_lines::<DocumentMessage, _, _, _>(state, body, under_way, BATCH_LINES, work));
    }
    let (body, _memory) = read_body(&state, &parts.headers, body).await?;
    match parse_items(&body, &state.config.limits)? {
        JsonItems::One(document) => add_one(&state, document, parameters).await,
        JsonItems::List(documents) => {
            Ok(json_response(StatusCode::OK, &add_list(state, documents, parameters).await?))
        }
    }
}

async fn add_one(
    state: &ServiceState,
    document: DocumentMessage,
    parameters: AdditionParameters,
) -> ServiceResult<Response> {
    let options = addition_options(parameters);
    let answer = state.on_engine_thread(move |store| store.add(&document, options)).await?;
    let status = match answer.result {
        DocumentOutcome::Empty => {
            return Err(ServiceError::unusable("empty-text", "the text has no words, so it was not stored"));
        }
        DocumentOutcome::Stored => StatusCode::CREATED,
        DocumentOutcome::Duplicate | DocumentOutcome::Present => StatusCode::OK,
    };
    make_durable(state, parameters.durability).await?;
    Ok(json_response(status, &answer))
}

/// Stores documents one after the other. Fails only if the store cannot be written at all.
async fn add_list(
    state: Arc<ServiceState>,
    documents: Vec<ServiceResult<DocumentMessage>>,
    parameters: AdditionParameters,
) -> ServiceResult<Vec<ItemAnswer<DocumentAnswer>>> {
    let options = addition_options(parameters);
    let answers = state.on_engine_thread(move |store| {
        let mut answers = Vec::with_capacity(documents.len());
        for document in documents {
            match document.and_then(|document| store.add(&document, options)) {
                Ok(answer) => answers.push(ItemAnswer::Answer(answer)),
                Err(error) if error.status.is_server_error() => return Err(error),
                Err(error) => answers.push(ItemAnswer::Error(error.body())),
            }
        }
        Ok(answers)
    });
    let answers = answers.await?;
    make_durable(&state, parameters.durability).await?;
    Ok(answers)
}

fn addition_options(parameters: AdditionParameters) -> AdditionOptions {
    AdditionOptions { if_new: parameters.if_new, limit: LISTED_MATCHES }
}

/// Waits for the disk if the request asks for it. Also for a duplicate: the stored document must survive a power failure as well.
pub(super) async fn make_durable(state: &ServiceState, durability: RequestedDurability) -> ServiceResult<()> {
    match durability {
        RequestedDurability::Sync => state.sync().await,
        RequestedDurability::Os => Ok(()),
    }
}
