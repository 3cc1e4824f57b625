//! Loading many fingerprints into a store at once.

use std::sync::Arc;

use super::flush;
use super::shared::{Change, Shared};
use super::writer::Writer;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{MAX_KEY, MAX_MARK};
use crate::options::BuildOptions;
use crate::progress::ProgressCallback;
use crate::segment::SegmentBuilder;

/// Fingerprints on their way into one segment of a store; made by [`Store::load`](crate::Store::load).
///
/// They become visible and durable all at once by [`Load::finish`]; dropped before, nothing of them stays.
pub struct Load<'a, F: Fingerprint> {
    shared: &'a Arc<Shared<F>>,
    writer: &'a Writer<F>,
    builder: SegmentBuilder<F>,
    is_empty: bool,
    highest_id: Option<u64>,
    progress: Option<ProgressCallback>,
}

impl<'a, F: Fingerprint> Load<'a, F> {
    pub(super) fn new(
        shared: &'a Arc<Shared<F>>,
        writer: &'a Writer<F>,
        progress: Option<ProgressCallback>,
    ) -> Result<Self> {
        shared.check()?;
        let view = shared.view();
        let distance = view.manifest.settings.distance;
        let options = BuildOptions { progress: progress.clone(), ..shared.build_options(&view, distance) };
        let builder = SegmentBuilder::new(&shared.path, shared.take_number(), options);
        Ok(Load { shared, writer, builder, is_empty: true, highest_id: None, progress })
    }

    /// Adds a fingerprint with an id.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a sorted run cannot be written.
    pub fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        self.is_empty = false;
        self.highest_id = self.highest_id.max(Some(id));
        self.builder.insert(fingerprint, id)
    }

    /// [`Load::insert`] for a document that has a name, up to 64 KiB of it. Ids come in ascending order.
    ///
    /// # Errors
    /// As [`Builder::insert_named`](crate::Builder::insert_named).
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        self.builder.name(id, name)?;
        self.insert(fingerprint, id)
    }

    /// Keeps some bytes with a document, as [`Transaction::note`](crate::Transaction::note) does, if there is anything to load. Ids
    /// come in ascending order.
    ///
    /// # Errors
    /// As [`Builder::note`](crate::Builder::note).
    pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.builder.note(id, note)
    }

    /// Keeps some bytes under a key, as [`Transaction::mark`](crate::Transaction::mark) does, if there is anything to load. Keys come
    /// in ascending order.
    ///
    /// # Errors
    /// As [`Transaction::mark`](crate::Transaction::mark).
    pub fn mark(&mut self, key: &str, value: &[u8]) -> Result<()> {
        for (what, length, most) in [("key", key.len(), MAX_KEY), ("value", value.len(), MAX_MARK)] {
            if length > most {
                return Err(Error::BadArgument(format!(
                    "a mark with a {what} of {length} bytes: at most {most} are allowed"
                )));
            }
        }
        self.builder.mark(key, value)
    }

    /// Makes all visible and durable. It is newer than everything written before this call.
    ///
    /// # Errors
    /// As [`Store::insert`](crate::Store::insert), and [`Error::Cancelled`]; then nothing was loaded.
    pub fn finish(self) -> Result<()> {
        if self.is_empty {
            return self.shared.check();
        }
        self.shared.check_process()?;
        let builder = self.builder;
        let entry = self.shared.in_pool(|| builder.finish())?;
        // Deletes from before must not hide what comes now: they go into a segment first.
        self.writer.freeze_and(|| {
            let opened = self.shared.wait_for_flush(self.progress.as_ref()).and_then(|()| {
                let distance = self.shared.view().manifest.settings.distance;
                Ok((distance, flush::open(self.shared, distance, &entry)?))
            });
            let (distance, segment) = opened.inspect_err(|_| self.shared.remove(&entry))?;
            self.shared.change(Change {
                removed: Vec::new(),
                added: Some((entry.clone(), segment)),
                flushed: false,
                distance,
                highest_id: self.highest_id,
            })
        })
    }
}
