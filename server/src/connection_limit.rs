//! A limit of the number of connections.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

/// Accepts connections up to a limit. Connections beyond it are closed at once.
#[derive(Clone)]
pub(crate) struct ConnectionLimit {
    connections: Arc<Semaphore>,
    count: Gauge,
}

impl ConnectionLimit {
    pub(crate) fn new(maximum: usize, count: Gauge) -> ConnectionLimit {
        ConnectionLimit { connections: Arc::new(Semaphore::new(maximum.min(Semaphore::MAX_PERMITS))), count }
    }
}

/// Counts a connection until it is dropped.
struct CountedConnection {
    _permit: OwnedSemaphorePermit,
    count: Gauge,
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.count.dec();
    }
}

/// The service of one connection.
#[derive(Clone)]
pub(crate) struct ConnectionService<S> {
    inner: S,
    _connection: Arc<CountedConnection>,
}

impl<R, S: Service<R>> Service<R> for ConnectionService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.inner.call(request)
    }
}

impl<S> Accept<TcpStream, S> for ConnectionLimit {
    type Stream = TcpStream;
    type Service = ConnectionService<S>;
    type Future = Ready<io::Result<(TcpStream, ConnectionService<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(permit) = self.connections.clone().try_acquire_owned() else {
            return ready(Err(io::Error::other("too many connections")));
        };
        self.count.inc();
        let connection = CountedConnection { _permit: permit, count: self.count.clone() };
        let accepted = stream
            .set_nodelay(true)
            .map(|()| (stream, ConnectionService { inner: service, _connection: Arc::new(connection) }));
        ready(accepted)
    }
}
