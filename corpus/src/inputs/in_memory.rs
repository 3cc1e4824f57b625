//! Fingerprints that are given in memory.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::{Error, Fingerprint, Result};
use simstore_io::DocumentId;

/// What fingerprints are called that are given, as documents are [`simstore_io::document::GIVEN`].
const FINGERPRINTS: &str = "fingerprints";

/// Fingerprints in memory, of either width.
#[derive(Clone, Debug)]
pub(crate) struct GivenFingerprints {
    /// A [`Given`].
    given: Arc<dyn Any + Send + Sync>,
    bits: u32,
}

/// Fingerprints of a width, with ids or numbered by their positions.
pub(crate) struct Given<F> {
    pub(crate) fingerprints: Vec<F>,
    pub(crate) ids: Option<Vec<DocumentId>>,
    pub path: Arc<Path>,
}

impl GivenFingerprints {
    pub(crate) fn new<F: Fingerprint>(fingerprints: Vec<F>, ids: Option<Vec<DocumentId>>) -> Result<Self> {
        if let Some(ids) = ids.as_ref().filter(|ids| ids.len() != fingerprints.len()) {
            let counts = (fingerprints.len(), ids.len());
            return Err(Error::BadArgument(format!("{} fingerprints, but {} ids", counts.0, counts.1)));
        }
        let path = Arc::from(Path::new(FINGERPRINTS));
        Ok(GivenFingerprints { given: Arc::new(Given { fingerprints, ids, path }), bits: F::BITS })
    }

    /// The fingerprints, if they have this width.
    pub(crate) fn get<F: Fingerprint>(&self) -> Result<&Given<F>> {
        self.given.downcast_ref().ok_or_else(|| {
            let message = format!("the fingerprints have {} bits, not {}", self.bits, F::BITS);
            Error::BadArgument(message)
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(FINGERPRINTS)
    }
}
