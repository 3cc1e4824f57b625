//! Fingerprints in memory that a job reads instead of files.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::{Error, Fingerprint, Result};
use simstore_io::DocumentId;

/// Name that messages give to fingerprints in memory, instead of the path of a file. The name for documents in memory is
/// [`simstore_io::document::STREAM_NAME`].
const MEMORY_PATH: &str = "fingerprints";

/// Fingerprints in memory, 64 or 128 bits wide.
#[derive(Clone, Debug)]
pub(crate) struct MemoryFingerprints {
    /// The fingerprints: a [`FingerprintList`] of `u64` or `u128`, according to `bits`.
    list: Arc<dyn Any + Send + Sync>,
    bits: u32,
}

/// Fingerprints in memory and their ids. Without ids, the positions of the fingerprints are their ids.
pub(crate) struct FingerprintList<F> {
    pub(crate) fingerprints: Vec<F>,
    pub(crate) ids: Option<Vec<DocumentId>>,
    pub path: Arc<Path>,
}

impl MemoryFingerprints {
    pub(crate) fn new<F: Fingerprint>(fingerprints: Vec<F>, ids: Option<Vec<DocumentId>>) -> Result<Self> {
        if let Some(ids) = ids.as_ref().filter(|ids| ids.len() != fingerprints.len()) {
            let counts = (fingerprints.len(), ids.len());
            return Err(Error::BadArgument(format!("{} fingerprints, but {} ids", counts.0, counts.1)));
        }
        let path = Arc::from(Path::new(MEMORY_PATH));
        Ok(MemoryFingerprints { list: Arc::new(FingerprintList { fingerprints, ids, path }), bits: F::BITS })
    }

    /// Returns the fingerprints with their ids.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the fingerprints have another width than `F`.
    pub(crate) fn get<F: Fingerprint>(&self) -> Result<&FingerprintList<F>> {
        self.list.downcast_ref().ok_or_else(|| {
            let message = format!("the fingerprints have {} bits, not {}", self.bits, F::BITS);
            Error::BadArgument(message)
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(MEMORY_PATH)
    }
}
