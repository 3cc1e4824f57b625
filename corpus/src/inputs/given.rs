//! Documents and fingerprints that are given in memory.

use std::any::Any;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Document, DocumentId, IdRef};
use simstore::{Error, Fingerprint, Result};

/// What fingerprints are called that are given, as documents are [`crate::document::GIVEN`].
const FINGERPRINTS: &str = "fingerprints";

/// Documents as a pipe of lines of JSON would give them.
pub(crate) struct Lines<I> {
    documents: I,
    extra_field: Option<String>,
    line: Vec<u8>,
    /// Bytes of the line that have been read.
    taken: usize,
}

impl<I: Iterator<Item = Document>> Lines<I> {
    pub(crate) fn new(documents: I, extra_field: Option<String>) -> Self {
        Lines { documents, extra_field, line: Vec::new(), taken: 0 }
    }

    fn write(&mut self, document: &Document) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        line.extend(b"{\"id\":");
        serde_json::to_writer(&mut *line, &IdRef::from(&document.id))?;
        line.extend(b",\"text\":");
        serde_json::to_writer(&mut *line, &document.text)?;
        let is_other = |field: &&String| !["id", "text"].contains(&field.as_str());
        if let (Some(field), Some(extra)) = (self.extra_field.as_ref().filter(is_other), &document.extra) {
            line.push(b',');
            serde_json::to_writer(&mut *line, field)?;
            line.push(b':');
            serde_json::to_writer(&mut *line, extra)?;
        }
        line.extend(b"}\n");
        self.taken = 0;
        Ok(())
    }
}

impl<I: Iterator<Item = Document>> Read for Lines<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.line.len() {
            let Some(document) = self.documents.next() else { return Ok(0) };
            self.write(&document)?;
        }
        let count = buffer.len().min(self.line.len() - self.taken);
        buffer[..count].copy_from_slice(&self.line[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

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
    pub(crate) path: Arc<Path>,
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
