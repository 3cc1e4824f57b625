//! How far the reading has come.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a person should know about the reading, and is no error: what was passed over, and what was guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadNote {
    /// A file of a folder, or a member of an archive, was passed over: its name is that of no format of documents.
    UnknownFile,
    /// A file of JSON in a folder or an archive was passed over: its objects have no text field, as settings of programs have none.
    OtherJson,
    /// A file of fingerprints in a folder of documents was passed over.
    FingerprintFile,
    /// A name of a file or folder was passed over, which is read under another name: a link, a hard link, or one that was given
    /// twice.
    OtherName,
    /// A link that leads nowhere was passed over.
    DeadLink,
    /// What is neither a file nor a folder was passed over in a folder, or where a pattern matches it: a pipe, a socket, a device.
    NoFile,
    /// A symbolic or hard link in an archive was passed over.
    Link,
    /// A record of a web archive with this `WARC-Type` was passed over: it holds no text.
    WarcRecord(&'static str),
    /// A table has this between its fields, which was not asked for and is not what its name says.
    Delimiter(char),
    /// A text is not UTF-8 and does not say what else: it was read in this encoding.
    Encoding(&'static str),
    /// Cleaning dropped more than half of the words of a document that is no HTML.
    LostWords,
}

/// How far the reading of files has come; may be asked from another thread.
///
/// The totals to compare with are those of [`input_files`](crate::input_files).
#[derive(Debug, Default)]
pub struct ReadProgress {
    bytes: AtomicU64,
    files: AtomicU64,
    notes: Mutex<BTreeMap<ReadNote, u64>>,
}

impl ReadProgress {
    /// Bytes read of the files as they are on disk, before decompression.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Files read to their end, or given up.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// What there is to say about what has been read, and how often.
    pub fn notes(&self) -> BTreeMap<ReadNote, u64> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Further names of files and folders that are read once.
    pub fn other_names(&self) -> u64 {
        self.notes().get(&ReadNote::OtherName).copied().unwrap_or_default()
    }

    /// Files, links, pipes and devices that were passed over, besides [other names](ReadProgress::other_names).
    pub fn passed_over(&self) -> u64 {
        let is_file = |note: &ReadNote| {
            matches!(
                note,
                ReadNote::UnknownFile
                    | ReadNote::OtherJson
                    | ReadNote::FingerprintFile
                    | ReadNote::DeadLink
                    | ReadNote::NoFile
                    | ReadNote::Link
            )
        };
        self.notes().iter().filter(|(note, _)| is_file(note)).map(|(_, count)| count).sum()
    }

    pub(crate) fn note(&self, note: ReadNote) {
        *self.notes.lock().unwrap_or_else(PoisonError::into_inner).entry(note).or_default() += 1;
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}

/// A reader whose bytes are counted.
pub(crate) struct Counted<R> {
    inner: R,
    progress: Arc<ReadProgress>,
}

impl<R> Counted<R> {
    pub(crate) fn new(inner: R, progress: &Arc<ReadProgress>) -> Self {
        Counted { inner, progress: Arc::clone(progress) }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.add_bytes(read as u64);
        Ok(read)
    }
}
