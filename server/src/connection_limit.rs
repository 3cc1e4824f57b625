//! Limits of connections: their number, and the time until the client reads.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tower_service::Service;

/// Accepts connections up to a limit. Connections beyond it are closed at once.
#[derive(Clone)]
pub(crate) struct ConnectionLimit {
    connections: Arc<Semaphore>,
    /// Maximum time without the client reading a byte of an answer.
    write_time: Duration,
    count: Gauge,
}

impl ConnectionLimit {
    pub(crate) fn new(maximum: usize, write_time: Duration, count: Gauge) -> ConnectionLimit {
        let connections = Arc::new(Semaphore::new(maximum.min(Semaphore::MAX_PERMITS)));
        ConnectionLimit { connections, write_time, count }
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
    type Stream = Pin<Box<TimeoutStream<TcpStream>>>;
    type Service = ConnectionService<S>;
    type Future = Ready<io::Result<(Self::Stream, ConnectionService<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(permit) = self.connections.clone().try_acquire_owned() else {
            return ready(Err(io::Error::other("too many connections")));
        };
        self.count.inc();
        let connection = CountedConnection { _permit: permit, count: self.count.clone() };
        let accepted = stream.set_nodelay(true).map(|()| {
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(self.write_time));
            (Box::pin(stream), ConnectionService { inner: service, _connection: Arc::new(connection) })
        });
        ready(accepted)
    }
}
