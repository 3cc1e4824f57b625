//! Files of fingerprints, one for each part of a table.

use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::lock;
use super::parts::Table;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::{Fs, TEMPORARY, WriteFile};
use crate::threads::Process;

/// The bytes that a join has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes written.
    pub written: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes on the disk when these were most.
    pub most: u64,
}

/// Where files are, and what has been moved to and from them.
#[derive(Clone)]
pub(super) struct Place {
    fs: Arc<dyn Fs>,
    folder: PathBuf,
    moved: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    files: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
    now: AtomicU64,
    most: AtomicU64,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("folder", &self.folder).field("moved", &self.moved()).finish()
    }
}

/// Bytes that are read together, and written together where there is memory for it.
pub(super) const BUFFER: usize = 1 << 20;
const LEAST_BUFFER: usize = 1 << 12;

impl Place {
    pub(super) fn new(fs: &Arc<dyn Fs>, folder: &Path) -> Self {
        Place { fs: fs.clone(), folder: folder.to_path_buf(), moved: Arc::default() }
    }

    pub(super) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    pub(super) fn moved(&self) -> Moved {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Moved { written: of(&self.moved.written), read: of(&self.moved.read), most: of(&self.moved.most) }
    }

    pub(super) fn create(&self) -> Result<(PartFile, Box<dyn WriteFile>)> {
        let number = self.moved.files.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("part-{number}{TEMPORARY}"));
        let file = self.fs.create(&path).map_err(Error::io(&path, "create"))?;
        Ok((PartFile { path, bytes: 0, place: self.clone(), process: Process::this() }, file))
    }

    /// A file of these.
    pub(super) fn write_all<F: Fingerprint>(&self, values: &[F]) -> Result<PartFile> {
        let (mut file, mut written) = self.create()?;
        file.write_values(&mut *written, values)?;
        Ok(file)
    }
}

/// A file of fingerprints, one after the other, little-endian; removed when dropped.
#[derive(Debug)]
pub(super) struct PartFile {
    path: PathBuf,
    bytes: u64,
    place: Place,
    process: Process,
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.process.is_here() {
            // What cannot be removed is left to whoever removes the folder.
            let _ = self.place.fs.remove(&self.path);
            self.place.moved.now.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl PartFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn write(&mut self, file: &mut dyn Write, bytes: &[u8]) -> Result<()> {
        file.write_all(bytes).map_err(Error::io(&self.path, "write"))?;
        let (moved, bytes) = (&self.place.moved, bytes.len() as u64);
        self.bytes += bytes;
        moved.written.fetch_add(bytes, Ordering::Relaxed);
        let now = moved.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        moved.most.fetch_max(now, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn write_values<F: Fingerprint>(&mut self, file: &mut dyn Write, values: &[F]) -> Result<()> {
        let mut bytes = Vec::new();
        values.chunks(BUFFER / F::BYTES).try_for_each(|some| {
            bytes.resize(some.len() * F::BYTES, 0);
            some.iter()
                .zip(bytes.chunks_exact_mut(F::BYTES))
                .for_each(|(value, bytes)| value.write_le(bytes));
            self.write(file, &bytes)
        })
    }

    pub(super) fn count<F: Fingerprint>(&self) -> usize {
        self.bytes as usize / F::BYTES
    }

    /// Visits the fingerprints in their order, some at a time.
    pub(super) fn visit<F: Fingerprint>(&self, mut visitor: impl FnMut(&[F]) -> Result<()>) -> Result<()> {
        let mut file = self.place.fs.open(&self.path).map_err(Error::io(&self.path, "open"))?;
        let mut bytes = vec![0; BUFFER.min(self.bytes as usize)];
        let (mut some, mut left) = (Vec::new(), self.bytes as usize);
        while left > 0 {
            let bytes = &mut bytes[..left.min(BUFFER)];
            file.read_exact(bytes).map_err(Error::io(&self.path, "read"))?;
            some.clear();
            some.extend(bytes.chunks_exact(F::BYTES).map(F::read_le));
            left -= bytes.len();
            self.place.moved.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            visitor(&some)?;
        }
        Ok(())
    }

    pub(super) fn read<F: Fingerprint>(&self, values: &mut Vec<F>) -> Result<()> {
        values.clear();
        values.reserve_exact(self.count::<F>());
        self.visit(|some| {
            values.extend_from_slice(some);
            Ok(())
        })
    }
}

/// The parts of a table, as they are written.
#[derive(Debug)]
pub(super) struct Routed<F> {
    table: Table<F>,
    /// Of each part that has any, its file.
    files: Vec<Mutex<Option<OpenFile>>>,
    /// Bytes that are written together.
    buffer: usize,
    place: Place,
    /// Of the thread that pushes.
    pending: Vec<Vec<u8>>,
}

struct OpenFile(PartFile, Box<dyn WriteFile>);

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<F: Fingerprint> Routed<F> {
    /// `memory` is for buffers, of all threads together.
    pub(super) fn new(table: &Table<F>, place: &Place, memory: u64) -> Self {
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
        if open.is_none() {
            let (file, written) = self.place.create()?;
            *open = Some(OpenFile(file, written));
        }
        if let Some(OpenFile(file, written)) = &mut *open {
            file.write(&mut **written, bytes)?;
        }
        bytes.clear();
        Ok(())
    }

    pub(super) fn flush(&self, pending: &mut [Vec<u8>]) -> Result<()> {
        pending.iter_mut().enumerate().try_for_each(|(part, bytes)| self.write(part, bytes))
    }

    /// The files of the parts that are not empty, in order.
    pub(super) fn finish(mut self) -> Result<Vec<PartFile>> {
        let mut pending = std::mem::take(&mut self.pending);
        self.flush(&mut pending)?;
        let files = self
            .files
            .into_iter()
            .filter_map(|file| file.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(files.map(|OpenFile(file, _)| file).collect())
    }
}
