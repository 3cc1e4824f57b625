//! Progress of reading files, and diagnostics for the user.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something about the input that the user should know although it is no error: a skipped file, or a guess about a
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadDiagnostic {
    /// Skipped a file of a folder, or a member of an archive: no document format has its extension.
    UnknownExtension,
    /// Skipped a JSON file in a folder or an archive: none of its objects has a text field. An example is the
    /// settings file of a program.
    JsonWithoutText,
    /// Skipped a file of fingerprints in a folder of documents.
    FingerprintFile,
    /// Skipped a path because its file or folder is read under another path. The skipped path is a link or a hard link,
    /// or was given twice.
    DuplicatePath,
    /// Skipped a link whose target does not exist.
    DanglingLink,
    /// Skipped a pipe, a socket, or a device that is in a folder or matches a glob.
    SpecialFile,
    /// Skipped a symbolic or hard link in an archive.
    ArchiveLink,
    /// Skipped a record of a web archive: records of this `WARC-Type` hold no text.
    WarcRecordWithoutText(&'static str),
    /// The table was read with this delimiter. No option set it, and the file extension implies another delimiter.
    DetectedDelimiter(char),
    /// The text was read in this encoding, which was guessed: the text is not UTF-8 and declares no encoding.
    DetectedEncoding(&'static str),
    /// A document that is not HTML lost more than half of its words by cleaning, which removes text that looks like tags
    /// and comments.
    MostWordsRemoved,
}

/// Counters of what a reader of files has read so far. Other threads may read the counters at any time.
///
/// The totals to compare them with can be computed from [`input_files`](crate::input_files), which returns all files
/// with their sizes.
#[derive(Debug, Default)]
pub struct ReadProgress {
    bytes: AtomicU64,
    files: AtomicU64,
    diagnostics: Mutex<BTreeMap<ReadDiagnostic, u64>>,
}

impl ReadProgress {
    /// Number of bytes read from the files on disk, before decompression.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of files that were read to their end or given up after an error.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Number of occurrences of each diagnostic so far.
    pub fn diagnostics(&self) -> BTreeMap<ReadDiagnostic, u64> {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of paths skipped because their file or folder is read under another path.
    pub fn duplicate_paths(&self) -> u64 {
        self.diagnostics().get(&ReadDiagnostic::DuplicatePath).copied().unwrap_or_default()
    }

    /// Number of skipped files, links, pipes, and devices, not counting
    /// [duplicate paths](ReadProgress::duplicate_paths).
    pub fn skipped_files(&self) -> u64 {
        let is_file = |diagnostic: &ReadDiagnostic| {
            matches!(
                diagnostic,
                ReadDiagnostic::UnknownExtension
                    | ReadDiagnostic::JsonWithoutText
                    | ReadDiagnostic::FingerprintFile
                    | ReadDiagnostic::DanglingLink
                    | ReadDiagnostic::SpecialFile
                    | ReadDiagnostic::ArchiveLink
            )
        };
        self.diagnostics().iter().filter(|(diagnostic, _)| is_file(diagnostic)).map(|(_, count)| count).sum()
    }

    /// Counts one occurrence of a diagnostic.
    pub fn add_diagnostic(&self, diagnostic: ReadDiagnostic) {
        *self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner).entry(diagnostic).or_default() += 1;
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a file that was read to its end or given up.
    pub fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}

/// A reader that counts the bytes that it reads. It repeats calls that a signal interrupted, so the readers
/// on top of it (of lines, sections, archives) never see [`Interrupted`](io::ErrorKind::Interrupted).
pub(crate) struct CountingReader<R> {
    inner: R,
    progress: Arc<ReadProgress>,
}

impl<R> CountingReader<R> {
    pub(crate) fn new(inner: R, progress: &Arc<ReadProgress>) -> Self {
        CountingReader { inner, progress: Arc::clone(progress) }
    }
}

impl<R: Read> Read for CountingReader<R> {
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
