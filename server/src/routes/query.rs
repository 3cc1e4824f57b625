//! `POST /query`: finds stored documents.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use rayon::prelude::*;

use crate::body_reader::{BodyKind, read_body};
use crate::json_items::{JsonItems, parse_items};
use crate::line_stream::answer_lines;
use crate::messages::{ErrorMessage, ItemAnswer, MatchList, OneOrList, QueryMessage, json_response};
use crate::request_limits::UnderWay;
use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Number of matches in an answer if the query does not say.
const DEFAULT_LIMIT: usize = 100;
/// Number of queries of a stream that are answered together.
const BATCH_LINES: usize = 100;
/// Maximum number of matches in the answer for an array, as a multiple of the maximum for one query.
const LIST_FACTOR: usize = 100;

/// Find stored documents
///
/// Finds the stored documents near a text, a fingerprint or a stored document: for one query, for each query of an array, or for one
/// query a line (`application/x-ndjson`).
#[utoipa::path(
    post,
    path = "/query",
    request_body(
        description = "A query, an array of queries, or a stream of lines",
        content(
            (OneOrList<QueryMessage, QueryMessage> = "application/json", examples(
                ("text" = (summary = "Documents near a text", value = json!({"text": "To be or not to be: that is the question!"}))),
                ("fingerprint" = (summary = "Fingerprints within 2 bits", value = json!({"fingerprint": "0123456789abcdee", "distance": 2, "limit": 10}))),
                ("id" = (summary = "Documents near a stored document", value = json!({"id": 7}))),
                ("array" = (summary = "Several queries", value = json!([{"id": 7}, {"id": 7, "limit": 1}]))),
            )),
            (QueryMessage = "application/x-ndjson"),
        )
    ),
    responses(
        (status = 200, description = "The matches, the nearest first. For an array or a stream: a list of matches for each query", content((OneOrList<MatchList, ItemAnswer<MatchList>> = "application/json"), (ItemAnswer<MatchList> = "application/x-ndjson"))),
        (status = 404, description = "No document has the `id` of the query", body = ErrorMessage),
        (status = 422, description = "Not a query of this store, or beyond the distance or similarity that it answers", body = ErrorMessage),
    ),
    tag = "Queries"
)]
pub(crate) async fn query(
    State(state): State<Arc<ServiceState>>,
    request: Request,
) -> ServiceResult<Response> {
    state.opened()?;
    let under_way = request.extensions().get::<UnderWay>().cloned();
    let (parts, body) = request.into_parts();
    if BodyKind::from_headers(&parts.headers)? == BodyKind::Lines {
        let worker = state.clone();
        let work = move |queries| query_list(worker.clone(), queries);
        return Ok(answer_lines::<QueryMessage, _, _, _>(state, body, under_way, BATCH_LINES, work));
    }
    let (body, _memory) = read_body(&state, &parts.headers, body).await?;
    let answer = match parse_items(&body, &state.config.limits)? {
        JsonItems::One(query) => OneOrList::One(query_one(&state, query).await?),
        JsonItems::List(queries) => OneOrList::List(query_list(state, queries).await?),
    };
    Ok(json_response(StatusCode::OK, &answer))
}

fn limit(query: &QueryMessage) -> usize {
    query.limit.unwrap_or(DEFAULT_LIMIT)
}

async fn query_one(state: &ServiceState, query: QueryMessage) -> ServiceResult<MatchList> {
    let store = &state.opened()?.store;
    if store.is_short(&query) {
        // Handing a query of some microseconds to another thread would take longer than the query.
        let result = store.query(&query, limit(&query));
        state.note_failure(&result);
        return result;
    }
    state.on_engine_thread(move |store| store.query(&query, limit(&query))).await
}

fn too_many_matches(maximum: usize) -> ServiceError {
    let message = format!(
        "the answer has more than {maximum} matches: send fewer queries together, or a smaller `limit`"
    );
    ServiceError::new(StatusCode::PAYLOAD_TOO_LARGE, "too-many-matches", message)
}

async fn query_list(
    state: Arc<ServiceState>,
    queries: Vec<ServiceResult<QueryMessage>>,
) -> ServiceResult<Vec<ItemAnswer<MatchList>>> {
    let max_matches = state.config.limits.results.saturating_mul(LIST_FACTOR);
    let answers = state.on_engine_thread(move |store| {
        let count = AtomicUsize::new(0);
        let answer = |query: ServiceResult<QueryMessage>| {
            let found = query.and_then(|query| store.query(&query, limit(&query)));
            let matches = found.as_ref().map_or(0, |found| found.matches.len());
            if count.fetch_add(matches, Ordering::Relaxed) + matches > max_matches {
                return Err(too_many_matches(max_matches));
            }
            match found {
                Err(error) if error.status.is_server_error() => Err(error),
                Err(error) => Ok(ItemAnswer::Error(error.body())),
                Ok(found) => Ok(ItemAnswer::Answer(found)),
            }
        };
        queries.into_par_iter().map(answer).collect::<ServiceResult<Vec<_>>>()
    });
    answers.await
}
