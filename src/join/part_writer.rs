//! Temporary files of the fingerprints of a join, one for each part of a [`JoinTable`].

use std::sync::{Arc, Mutex, PoisonError};

use super::parts::JoinTable;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::spill::{SpillFile, SpillLocation, SpillWriter};
use crate::threads::lock;

/// Size of the buffer for reading a file, and maximum size of the buffer for writing the file of a part, in bytes.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
/// Minimum size of the buffer for writing the file of a part, in bytes.
const MIN_BUFFER_BYTES: usize = 1 << 12;

/// Number of fingerprints in a file.
pub(super) fn fingerprint_count<F: Fingerprint>(file: &SpillFile) -> usize {
    file.bytes() as usize / F::BYTES
}

/// Visits the fingerprints of a file in the order of the file, in batches.
pub(super) fn visit<F: Fingerprint>(
    file: &SpillFile,
    mut visitor: impl FnMut(&[F]) -> Result<()>,
) -> Result<()> {
    let (mut reader, mut batch) = (file.open_with_buffer(BUFFER_BYTES)?, Vec::new());
    while reader.read_batch(&mut batch)? {
        visitor(&batch)?;
    }
    Ok(())
}

/// Reads all fingerprints of a file into `values`, which loses its old content.
pub(super) fn read<F: Fingerprint>(file: &SpillFile, values: &mut Vec<F>) -> Result<()> {
    values.clear();
    values.reserve_exact(fingerprint_count::<F>(file));
    visit(file, |batch| {
        values.extend_from_slice(batch);
        Ok(())
    })
}

/// Writer that divides fingerprints into the parts of a [`JoinTable`], and writes each part to its own temporary
/// file.
#[derive(Debug)]
pub(super) struct PartWriter<F> {
    table: JoinTable<F>,
    /// File of each part; `None` while nothing is written for the part.
    files: Vec<Mutex<Option<SpillWriter>>>,
    /// Size of the buffer for each part, in bytes. A full buffer is written to the file of its part.
    buffer: usize,
    location: Arc<dyn SpillLocation>,
    /// For each part, the bytes that [`PartWriter::push`] received, but that are not written to the part's file yet.
    pending: Vec<Vec<u8>>,
}

impl<F: Fingerprint> PartWriter<F> {
    /// Creates a writer for the parts of a table. The buffers of all threads together take at most about `memory`
    /// bytes.
    pub(super) fn new(table: &JoinTable<F>, location: &Arc<dyn SpillLocation>, memory: u64) -> Self {
        let parts = table.parts();
        let each = memory as usize / ((rayon::current_num_threads() + 1) * parts);
        PartWriter {
            table: table.clone(),
            files: (0..parts).map(|_| Mutex::new(None)).collect(),
            buffer: each.clamp(MIN_BUFFER_BYTES, BUFFER_BYTES) / F::BYTES * F::BYTES,
            location: location.clone(),
            pending: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, fingerprints: &[F]) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let pushed = self.push_with(fingerprints, &mut pending);
        self.pending = pending;
        pushed
    }

    pub(super) fn push_with(&self, fingerprints: &[F], pending: &mut Vec<Vec<u8>>) -> Result<()> {
        if pending.is_empty() {
            pending.resize_with(self.files.len(), || Vec::with_capacity(self.buffer));
        }
        for &fingerprint in fingerprints {
            let part = self.table.part(fingerprint);
            let bytes = &mut pending[part];
            let end = bytes.len();
            bytes.resize(end + F::BYTES, 0);
            fingerprint.write_le(&mut bytes[end..]);
            if bytes.len() >= self.buffer {
                self.write(part, bytes)?;
            }
        }
        Ok(())
    }

    fn write(&self, part: usize, bytes: &mut Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut open = lock(&self.files[part]);
        let mut file = match open.take() {
            Some(file) => file,
            // Without a buffer, since each write has the size of a full buffer.
            None => SpillWriter::create_with_buffer(self.location.clone(), 0)?,
        };
        file.push(bytes)?;
        *open = Some(file);
        bytes.clear();
        Ok(())
    }

    pub(super) fn flush(&self, pending: &mut [Vec<u8>]) -> Result<()> {
        pending.iter_mut().enumerate().try_for_each(|(part, bytes)| self.write(part, bytes))
    }

    /// Writes the buffered fingerprints, and returns the files of the non-empty parts in the order of the
    /// parts.
    pub(super) fn finish(mut self) -> Result<Vec<SpillFile>> {
        let mut pending = std::mem::take(&mut self.pending);
        self.flush(&mut pending)?;
        let files = self.files.into_iter();
        files
            .filter_map(|file| file.into_inner().unwrap_or_else(PoisonError::into_inner))
            .map(SpillWriter::finish)
            .collect()
    }
}
