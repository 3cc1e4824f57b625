//! Progress of reading files.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A note for the user that is no error: a skipped file, or a guess about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadNote {
    /// Skipped a file of a folder, or a member of an archive: its extension belongs to no format of documents.
    UnknownFile,
    /// Skipped a JSON file in a folder or an archive: its objects have no text field. An example is the settings of a program.
    OtherJson,
    /// Skipped a file of fingerprints in a folder of documents.
    FingerprintFile,
    /// Skipped a second name of a file or folder: a link, a hard link, or a name that was given twice. The file or folder is read
    /// under its other name.
    OtherName,
    /// Skipped a link that leads nowhere.
    DeadLink,
    /// Skipped a pipe, a socket or a device, in a folder or as a match of a pattern.
    NoFile,
    /// Skipped a symbolic or hard link in an archive.
    Link,
    /// Skipped a record of a web archive: records of this `WARC-Type` hold no text.
    WarcRecord(&'static str),
    /// A table has this delimiter, although no option asks for it and the file name implies another.
    Delimiter(char),
    /// A text is not UTF-8 and names no encoding: the text was read in this encoding.
    Encoding(&'static str),
    /// Cleaning dropped more than half of the words of a document that is no HTML.
    LostWords,
}

/// Progress of reading files; may be read from another thread.
///
/// [`input_files`](crate::input_files) returns the totals for comparison.
#[derive(Debug, Default)]
pub struct ReadProgress {
    bytes: AtomicU64,
    files: AtomicU64,
    notes: Mutex<BTreeMap<ReadNote, u64>>,
}

impl ReadProgress {
    /// Bytes read from the files on disk, before decompression.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Files that were read to their end, or given up.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// All notes so far, and how often each occurred.
    pub fn notes(&self) -> BTreeMap<ReadNote, u64> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Further names of files and folders that are read once.
    pub fn other_names(&self) -> u64 {
        self.notes().get(&ReadNote::OtherName).copied().unwrap_or_default()
    }

    /// Skipped files, links, pipes and devices, without [other names](ReadProgress::other_names).
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

    /// Counts a note.
    pub fn note(&self, note: ReadNote) {
        *self.notes.lock().unwrap_or_else(PoisonError::into_inner).entry(note).or_default() += 1;
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a file that has been read.
    pub fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}

/// A reader that counts the bytes, and repeats calls that a signal interrupts: readers of lines, sections and archives are above it
/// and see no interrupted call.
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
        let read = loop {
            match self.inner.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.progress.add_bytes(read as u64);
        Ok(read)
    }
}
