//! The outermost layer of the service: records each request, and refuses requests of foreign origins. An answer is recorded if it is a
//! success, a refusal, or follows a panic. A request whose client disconnects has no answer, and is not recorded.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tower_service::Service;

use crate::access_log::RequestRecord;
use crate::request_origin::check_origin;
use crate::service_error::ServiceError;
use crate::service_state::ServiceState;

/// Records the requests that the inner service answers.
#[derive(Clone)]
pub(crate) struct RequestRecorder<S> {
    pub(crate) state: Arc<ServiceState>,
    pub(crate) inner: S,
}

impl<S> Service<Request> for RequestRecorder<S>
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

    fn call(&mut self, request: Request) -> Self::Future {
        let record = RequestRecord::start(&request);
        let checked = check_origin(&self.state.config, &request);
        let answer = checked.map(|()| catch_unwind(AssertUnwindSafe(|| self.inner.call(request))));
        let state = self.state.clone();
        Box::pin(async move {
            let answered = match answer {
                Ok(Ok(answer)) => AssertUnwindSafe(answer).catch_unwind().await,
                Ok(Err(panic)) => Err(panic),
                Err(refusal) => Ok(Ok(refusal.into_response())),
            };
            let mut response = match answered {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(_panic) => ServiceError::panicked().into_response(),
            };
            record.finish(&state.metrics, &mut response);
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;
    use tower_layer::layer_fn;

    use super::*;
    use crate::config::ServerConfig;

    #[test]
    fn a_panic_is_answered_and_counted() {
        let state = Arc::new(ServiceState::new(ServerConfig::new("s".as_ref())));
        let recorded = state.clone();
        let panics = || async {
            if true {
                panic!("on purpose");
            }
        };
        let mut router = Router::new()
            .route("/", get(panics))
            .layer(layer_fn(move |inner| RequestRecorder { state: recorded.clone(), inner }));
        let request = Request::builder().uri("/").header("host", "localhost").body(Body::empty()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let response = runtime.block_on(Service::<Request>::call(&mut router, request)).unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.headers().contains_key("x-request-id"));
        let metrics = state.metrics.encode(None, 0, false).unwrap();
        assert!(
            metrics.contains(r#"simstore_requests_total{method="GET",route="/",status="500"} 1"#),
            "{metrics}"
        );
    }
}
