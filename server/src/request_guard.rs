//! Checks of a request before it is answered, in order: origin, token, number of requests. A request is recorded if it is answered,
//! refused, late, or panics.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tower_service::Service;

use crate::access_log::RequestRecord;
use crate::authorization::check_token;
use crate::request_limits::{UnderWay, answer_in_time, begin_request};
use crate::request_origin::check_origin;
use crate::service_error::{ServiceError, ServiceResult};
use crate::service_state::ServiceState;

/// Checks and records the requests to a service.
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
        let record = RequestRecord::start(&request);
        let admitted = admit(&self.state, &mut request);
        let answer = admitted.map(|under_way| (under_way, self.inner.call(request)));
        let state = self.state.clone();
        Box::pin(async move {
            let answered = match answer {
                Ok((under_way, answer)) => {
                    let answer = AssertUnwindSafe(answer).catch_unwind();
                    match under_way {
                        Some(_) => answer_in_time(state.config.limits.request_time, answer).await,
                        None => Ok(answer.await),
                    }
                }
                Err(refusal) => Err(refusal),
            };
            let mut response = match answered {
                Ok(Ok(Ok(response))) => response,
                Ok(Ok(Err(never))) => match never {},
                Ok(Err(_panic)) => ServiceError::panicked().into_response(),
                Err(refusal) => refusal.into_response(),
            };
            record.finish(&state.metrics, &mut response);
            Ok(response)
        })
    }
}

fn admit(state: &ServiceState, request: &mut Request) -> ServiceResult<Option<UnderWay>> {
    check_origin(&state.config, request)?;
    check_token(&state.config, request)?;
    begin_request(state, request)
}
