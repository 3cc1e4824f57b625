//! Admission of requests: by token, then by the number of requests under way. An admitted request has a limited time.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tower_service::Service;

use crate::authorization::check_token;
use crate::request_limits::{answer_in_time, begin_request};
use crate::service_state::ServiceState;

/// Passes requests to the inner service, or refuses them.
#[derive(Clone)]
pub(crate) struct RequestGuard<S> {
    pub(crate) state: Arc<ServiceState>,
    pub(crate) inner: S,
}

impl<S> Service<Request> for RequestGuard<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let state = &self.state;
        let admitted = check_token(&state.config, &request).and_then(|()| begin_request(state, &mut request));
        let time = state.config.limits.request_time;
        match admitted {
            Ok(Some(under_way)) => {
                let answer = self.inner.call(request);
                Box::pin(async move {
                    let _under_way = under_way;
                    answer_in_time(time, answer).await.unwrap_or_else(|late| Ok(late.into_response()))
                })
            }
            Ok(None) => Box::pin(self.inner.call(request)),
            Err(refusal) => Box::pin(std::future::ready(Ok(refusal.into_response()))),
        }
    }
}
