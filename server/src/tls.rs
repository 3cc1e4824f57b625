//! TLS with certificates that are read again when their files change.

use std::path::Path;
use std::time::{Duration, SystemTime};

use axum_server::tls_rustls::RustlsConfig;
use simstore::{Error, Result};

use crate::config::TlsFiles;

/// Time between two looks at the files of a certificate.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Reads a certificate and its key.
///
/// # Errors
/// [`Error::BadArgument`] if a file is missing, is not in PEM format, or if the key is not the certificate's.
pub(crate) async fn read_certificate(files: &TlsFiles) -> Result<RustlsConfig> {
    RustlsConfig::from_pem_file(&files.certificate, &files.key).await.map_err(|error| {
        Error::BadArgument(format!(
            "{} and {}: cannot be used as a certificate and its key in PEM format: {error}",
            files.certificate.display(),
            files.key.display()
        ))
    })
}

/// Reads the certificate again whenever its files have changed, without an end. If the new files cannot be used, the old certificate
/// stays.
pub(crate) async fn follow_certificate(files: TlsFiles, config: RustlsConfig) {
    let changed = |files: &TlsFiles| [modified(&files.certificate), modified(&files.key)];
    let mut known = changed(&files);
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let now = changed(&files);
        if now == known {
            continue;
        }
        known = now;
        match config.reload_from_pem_file(&files.certificate, &files.key).await {
            Ok(()) => tracing::info!("read the new certificate"),
            // If the files are half written, they change once more.
            Err(error) => tracing::warn!(%error, "the new certificate cannot be used; the old one stays"),
        }
    }
}

fn modified(path: &Path) -> Option<(SystemTime, u64)> {
    let file = path.metadata().ok()?;
    Some((file.modified().ok()?, file.len()))
}
