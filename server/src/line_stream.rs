//! Streams of lines: each line of the body is an item, and each line of the answer is its result.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::body_reader::{BodyMemory, next_part};
use crate::json_items::{RequestItem, parse_item};
use crate::messages::ItemAnswer;
use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Number of parts of the answer that wait until the client reads them. Each has the lines of one part of the body.
const WAITING_PARTS: usize = 64;

/// Answers a stream of lines. `work` returns the answers of up to `batch_lines` items, in their order. The stream ends early after an error that is not
/// the error of one line; its last line is this error.
pub(crate) fn answer_lines<I, A, W, R>(
    state: Arc<ServiceState>,
    body: Body,
    under_way: impl Send + 'static,
    batch_lines: usize,
    work: W,
) -> Response
where
    I: RequestItem,
    A: Serialize + Send,
    W: Fn(Vec<ServiceResult<I>>) -> R + Send + Sync + 'static,
    R: Future<Output = ServiceResult<Vec<ItemAnswer<A>>>> + Send,
{
    let (sender, receiver) = mpsc::channel(WAITING_PARTS);
    tokio::spawn(async move {
        let _under_way = under_way;
        if let Err(error) = answer_parts(&state, body, &sender, batch_lines, work).await {
            let line = lines_of(&[ItemAnswer::<()>::Error(error.body())]);
            let _ = send_part(&state, &sender, line).await;
        }
    });
    let body = Body::from_stream(ReceiverStream::new(receiver));
    (StatusCode::OK, [(CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

async fn answer_parts<I, A, W, R>(
    state: &Arc<ServiceState>,
    mut body: Body,
    sender: &mpsc::Sender<Result<Bytes, Infallible>>,
    batch_lines: usize,
    work: W,
) -> ServiceResult<()>
where
    I: RequestItem,
    A: Serialize,
    W: Fn(Vec<ServiceResult<I>>) -> R,
    R: Future<Output = ServiceResult<Vec<ItemAnswer<A>>>>,
{
    let limits = &state.config.limits;
    let (mut buffer, mut memory) = (Vec::<u8>::new(), BodyMemory::new(state.clone()));
    loop {
        let part = next_part(state, &mut body).await?;
        let is_end = part.is_none();
        buffer.extend_from_slice(&part.unwrap_or_default());
        memory.reserve(buffer.len())?;
        // The last line may come without a line feed.
        let complete = if is_end {
            buffer.len()
        } else {
            buffer.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
        };
        let is_blank = |line: &&[u8]| line.iter().all(u8::is_ascii_whitespace);
        let lines = buffer[..complete].split(|&byte| byte == b'\n').filter(|line| !is_blank(line));
        let mut items = Vec::new();
        for line in lines {
            items.push(parse_item::<I>(line, limits));
            if items.len() == batch_lines {
                send_part(state, sender, lines_of(&work(std::mem::take(&mut items)).await?)).await?;
            }
        }
        if !items.is_empty() {
            send_part(state, sender, lines_of(&work(items).await?)).await?;
        }
        if is_end {
            return Ok(());
        }
        buffer.drain(..complete);
        if buffer.len() > limits.body_bytes {
            let message = format!("a line is longer than {} bytes", limits.body_bytes);
            return Err(ServiceError::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", message));
        }
    }
}

fn lines_of<A: Serialize>(answers: &[ItemAnswer<A>]) -> Bytes {
    let mut lines = Vec::new();
    for answer in answers {
        // Writing plain structs to memory cannot fail.
        let _ = serde_json::to_writer(&mut lines, answer);
        lines.push(b'\n');
    }
    lines.into()
}

/// Sends a part of the answer, as soon as the client has read enough of the earlier parts.
async fn send_part(
    state: &ServiceState,
    sender: &mpsc::Sender<Result<Bytes, Infallible>>,
    part: Bytes,
) -> ServiceResult<()> {
    let sent = tokio::time::timeout(state.config.limits.idle_time, sender.send(Ok(part))).await;
    // The connection is closed, or the client does not read: nobody gets this error.
    let gone = |reason: &str| ServiceError::new(StatusCode::REQUEST_TIMEOUT, "answer-timeout", reason);
    match sent {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(gone("the connection was closed")),
        Err(_) => Err(gone("the client does not read the answer while it sends lines")),
    }
}
