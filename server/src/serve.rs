//! The life of a service: listen, open the store, answer, stop.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use simstore::{Error, Result};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::config::ServerConfig;
use crate::connection_limit::ConnectionLimit;
use crate::file_limit::raise_file_limit;
use crate::router::router;
use crate::service_state::ServiceState;
use crate::stop_signal::stop_signal;
use crate::stores::open_store;
use crate::tls::{follow_certificate, read_certificate};

/// Time for work on the store to end after the last answer.
const CLOSING_TIME: Duration = Duration::from_secs(10);

/// Serves a store until the process gets SIGTERM or SIGINT. Then answers the requests that were accepted, and closes the store. Raises
/// the limit of open files as far as the user may, and accepts fewer connections if it is still too low, with a warning.
///
/// # Errors
/// [`Error::BadArgument`] for unusable settings; [`Error::Io`] if the address is in use; the errors of opening the store.
pub fn serve(config: &ServerConfig) -> Result<()> {
    let mut config = config.clone();
    let (connections, allowed) = (&mut config.limits.connections, raise_file_limit());
    if *connections > allowed {
        tracing::warn!("at most {allowed} connections: the process may not open more files (`ulimit -Hn`)");
        *connections = allowed;
    }
    RunningService::start(&config)?.wait()
}

/// A service that was started in this process.
pub struct RunningService {
    runtime: Runtime,
    state: Arc<ServiceState>,
    address: SocketAddr,
    handle: Handle<SocketAddr>,
    listening: JoinHandle<std::io::Result<()>>,
    /// Opens the store; `None` once it has ended.
    opening: Option<JoinHandle<Result<()>>>,
}

impl RunningService {
    /// Starts a service. When this returns, the service listens, and opens the store in the background.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for unusable settings; [`Error::Io`] if the address is in use; [`Error::Thread`].
    pub fn start(config: &ServerConfig) -> Result<RunningService> {
        config.check()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Error::Thread { source })?;
        let address_error = |error| Error::io(Path::new(&config.address.to_string()), "listen on")(error);
        let listener = TcpListener::bind(config.address).map_err(address_error)?;
        let address = listener.local_addr().map_err(address_error)?;
        let state = Arc::new(ServiceState::new(config.clone()));
        let handle = Handle::new();
        let tls = config.tls.as_ref().map(|files| runtime.block_on(read_certificate(files))).transpose()?;
        if let (Some(files), Some(tls)) = (&config.tls, &tls) {
            runtime.spawn(follow_certificate(files.clone(), tls.clone()));
        }
        let service = router(&state);
        let listening = runtime.spawn(listen(listener, handle.clone(), tls, service, state.clone()));
        let opening = Some(runtime.spawn(open(state.clone())));
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        tracing::info!("listening on {scheme}://{address}");
        if config.tls.is_none() && !address.ip().is_loopback() {
            tracing::warn!(
                "tokens and documents cross the network unencrypted: give a certificate, or use a reverse proxy with TLS"
            );
        }
        Ok(RunningService { runtime, state, address, handle, listening, opening })
    }

    /// Returns the address that the service listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the store is open, so that requests are answered.
    ///
    /// # Errors
    /// The errors of opening the store.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        match self.opening.take() {
            Some(opening) => self.runtime.block_on(opened(opening)),
            None => Ok(()),
        }
    }

    /// Waits for SIGTERM or SIGINT, then stops the service.
    ///
    /// # Errors
    /// The errors of opening the store, and of [`RunningService::stop`].
    pub fn wait(mut self) -> Result<()> {
        let opening = self.opening.take();
        let outcome = self.runtime.block_on(async {
            let failed = async {
                match opening {
                    Some(opening) => opened(opening).await.err(),
                    None => None,
                }
            };
            tokio::select! {
                Some(error) = failed => Err(error),
                signalled = stop_signal() => signalled,
            }
        });
        let stopped = self.stop();
        outcome.and(stopped)
    }

    /// Stops accepting requests, answers those that were accepted, within the time that the settings allow, and closes the store.
    ///
    /// # Errors
    /// The errors of writing the log.
    pub fn stop(self) -> Result<()> {
        let RunningService { runtime, state, handle, listening, opening, .. } = self;
        let time = state.config.shutdown_time;
        tracing::info!("stopping: answering {} requests", state.requests_under_way());
        state.compaction.cancel();
        opening.iter().for_each(JoinHandle::abort);
        handle.graceful_shutdown(Some(time));
        let _ = runtime.block_on(listening);
        let left = state.requests_under_way();
        if left > 0 {
            tracing::warn!("{left} requests were not answered within {} seconds", time.as_secs_f64());
        }
        runtime.shutdown_timeout(CLOSING_TIME);
        // All tasks have ended, so this is the last reference, and the store is closed when it is dropped.
        let store = Arc::into_inner(state).and_then(ServiceState::into_store);
        let Some(store) = store else {
            tracing::warn!("work on the store did not end in time; its acknowledged writes are safe");
            return Ok(());
        };
        drop(store);
        tracing::info!("stopped");
        Ok(())
    }
}

/// Waits for the end of the task that opens the store.
async fn opened(opening: JoinHandle<Result<()>>) -> Result<()> {
    opening.await.unwrap_or_else(|_| Err(Error::Bug("the store could not be opened".to_owned())))
}

/// Opens the store on a thread that may wait, then refreshes it from time to time if it only reads.
async fn open(state: Arc<ServiceState>) -> Result<()> {
    let config = state.config.clone();
    let opened = tokio::task::spawn_blocking(move || open_store(&config)).await;
    let store = opened.map_err(|_| Error::Bug("opening the store panicked".to_owned()))??;
    state.set_store(store.clone());
    tracing::info!("ready: {} is open", state.config.store.display());
    if state.config.read_only {
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(state.config.refresh).await;
                let followed = store.clone();
                let refreshed = tokio::task::spawn_blocking(move || followed.upkeep().refresh()).await;
                if let Ok(Err(error)) = refreshed {
                    state.record_error(&error.to_string());
                }
            }
        });
    }
    Ok(())
}

async fn listen(
    listener: TcpListener,
    handle: Handle<SocketAddr>,
    tls: Option<RustlsConfig>,
    service: Router,
    state: Arc<ServiceState>,
) -> std::io::Result<()> {
    let limits = state.config.limits;
    let connections =
        ConnectionLimit::new(limits.connections, limits.idle_time, state.metrics.connections().clone());
    drop(state);
    let mut server =
        axum_server::from_tcp(listener)?.handle(handle).first_request_timeout(limits.header_time);
    server.http_builder().http1().header_read_timeout(limits.header_time);
    server
        .http_builder()
        .http2()
        .keep_alive_interval(limits.idle_time)
        .keep_alive_timeout(limits.header_time)
        .max_concurrent_streams(Some(128));
    let service = service.into_make_service();
    match tls {
        Some(config) => {
            let acceptor =
                RustlsAcceptor::new(config).handshake_timeout(limits.header_time).acceptor(connections);
            server.acceptor(acceptor).serve(service).await
        }
        None => server.acceptor(connections).serve(service).await,
    }
}
