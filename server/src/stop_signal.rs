//! The signals that end a service.

use simstore::{Error, Result};

/// Waits for SIGTERM or SIGINT. SIGHUP is ignored: it says that files have changed, which are looked at every few seconds anyway.
#[cfg(unix)]
pub(crate) async fn stop_signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let listen = |kind: SignalKind| signal(kind).map_err(|source| Error::Thread { source });
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let _hangup = listen(SignalKind::hangup())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub(crate) async fn stop_signal() -> Result<()> {
    tokio::signal::ctrl_c().await.map_err(|source| Error::Thread { source })
}
