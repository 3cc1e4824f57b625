//! Files of fingerprints, one for each part of a table.

use std::sync::{Arc, Mutex, PoisonError};

use super::parts::Table;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::spill::{Place, SpillFile, SpillWriter};
use crate::threads::lock;

/// Bytes that are read together, and written together where there is memory for it.
pub(super) const BUFFER: usize = 1 << 20;
const LEAST_BUFFER: usize = 1 << 12;

/// How many fingerprints a file has.
pub(super) fn length<F: Fingerprint>(file: &SpillFile) -> usize {
    file.bytes() as usize / F::BYTES
}

/// Visits the fingerprints of a file in their order, some at a time.
pub(super) fn visit<F: Fingerprint>(
    file: &SpillFile,
    mut visitor: impl FnMut(&[F]) -> Result<()>,
) -> Result<()> {
    let (mut reader, mut some) = (file.read_with(BUFFER)?, Vec::new());
    while reader.some(&mut some)? {
        visitor(&some)?;
    }
    Ok(())
}

/// Reads all fingerprints of a file.
pub(super) fn read<F: Fingerprint>(file: &SpillFile, values: &mut Vec<F>) -> Result<()> {
    values.clear();
    values.reserve_exact(length::<F>(file));
    visit(file, |some| {
        values.extend_from_slice(some);
        Ok(())
    })
}

/// The parts of a table, as they are written.
#[derive(Debug)]
pub(super) struct Routed<F> {
    table: Table<F>,
    /// Of each part that has any, its file.
    files: Vec<Mutex<Option<SpillWriter>>>,
    /// Bytes that are written together.
    buffer: usize,
    place: Arc<dyn Place>,
    /// Of the thread that pushes.
    pending: Vec<Vec<u8>>,
}

impl<F: Fingerprint> Routed<F> {
    /// `memory` is for buffers, of all threads together.
    pub(super) fn new(table: &Table<F>, place: &Arc<dyn Place>, memory: u64) -> Self {
        let parts = table.parts();
        let each = memory as usize / ((rayon::current_num_threads() + 1) * parts);
        Routed {
            table: table.clone(),
            files: (0..parts).map(|_| Mutex::new(None)).collect(),
            buffer: each.clamp(LEAST_BUFFER, BUFFER) / F::BYTES * F::BYTES,
            place: place.clone(),
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
            // What is pushed comes in large pieces: it is written as it comes.
            None => SpillWriter::create_with(self.place.clone(), 0)?,
        };
        file.push(bytes)?;
        *open = Some(file);
        bytes.clear();
        Ok(())
    }

    pub(super) fn flush(&self, pending: &mut [Vec<u8>]) -> Result<()> {
        pending.iter_mut().enumerate().try_for_each(|(part, bytes)| self.write(part, bytes))
    }

    /// The files of the parts that are not empty, in order.
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
