//! Iterators over the documents of files: [`records`] returns them unparsed, [`documents`] parsed.

use std::path::PathBuf;
use std::sync::Arc;

use crate::bytes::read_once::ReadOnceInputs;
use crate::bytes::section::Section;
use crate::read_progress::ReadProgress;
use crate::reading::document_stream::DocumentStream;
use crate::reading::input_files::{DetectedFile, InputFileWalker};
use crate::reading::record::Record;
use crate::reading::record_reader::RecordReader;
use crate::{Document, DocumentOptions};
use simstore::{Error, Result};

/// Returns the documents of files and folders, in order.
///
/// # Errors
/// - [`Error::BadInput`](simstore::Error::BadInput) for a malformed document. After it, the iterator continues with the
///   next document.
/// - [`Error::BadInput`](simstore::Error::BadInput) also for a file that cannot be opened, read, or decompressed, or
///   that lacks the requested columns. After it, the iterator continues with the next file.
/// - [`Error::Io`](simstore::Error::Io) for a file that does not exist, and
///   [`Error::BadArgument`](simstore::Error::BadArgument) for a file of fingerprints or a glob without
///   matches. After these errors, the iterator ends.
pub fn documents(
    paths: &[PathBuf],
    options: &DocumentOptions,
) -> impl Iterator<Item = Result<Document>> + use<> {
    let options = options.clone();
    records(paths, &options).with_projection(true).map(move |record| record?.into_document(&options))
}

/// Returns the documents of files and folders, in order and not yet parsed. Use this function to write selected
/// documents with a [`DocumentWriter`](crate::DocumentWriter).
///
/// # Errors
/// [`Error::BadInput`] for a document longer than [`max_bytes`](DocumentOptions::max_bytes). All other errors
/// are listed at [`documents`](crate::documents).
pub fn records(paths: &[PathBuf], options: &DocumentOptions) -> Records {
    Records::new(paths, options, &Arc::default())
}

/// Iterator over the documents of files: see [`records`].
#[derive(Debug)]
pub struct Records {
    files: InputFileWalker,
    /// Section of a file, to be read before `files`; `None` after it was opened.
    section: Option<Section>,
    /// Reader of the current file.
    current: Option<RecordReader>,
    options: DocumentOptions,
    /// Whether to read only the columns that `options` names, if the format allows it (Parquet).
    is_projected: bool,
    progress: Arc<ReadProgress>,
    read_once: Arc<ReadOnceInputs>,
    failed: bool,
}

impl Records {
    /// Returns the documents in a section of a file.
    pub fn from_section(
        section: &Section,
        options: &DocumentOptions,
        read_once: &Arc<ReadOnceInputs>,
    ) -> Records {
        Records { section: Some(section.clone()), ..Records::new(&[], options, read_once) }
    }

    /// Returns the documents of an iterator.
    pub fn from_stream(stream: &DocumentStream, options: &DocumentOptions) -> Records {
        Records {
            current: Some(RecordReader::Stream(stream.reader())),
            ..Records::new(&[], options, &Arc::default())
        }
    }

    /// Returns the documents of files, like [`records`]. The first bytes of standard input and pipes are read to detect
    /// their formats; `read_once` keeps these bytes until the documents are read.
    pub fn new(paths: &[PathBuf], options: &DocumentOptions, read_once: &Arc<ReadOnceInputs>) -> Records {
        let progress = Arc::default();
        Records {
            files: InputFileWalker::new(paths, options, &progress, read_once),
            section: None,
            current: None,
            options: options.clone(),
            is_projected: false,
            progress,
            read_once: Arc::clone(read_once),
            failed: false,
        }
    }

    /// Sets whether only the columns named by the [`DocumentOptions`] (id, texts, extra field) are read from Parquet
    /// files. Such records must not be written by a [`DocumentWriter`](crate::DocumentWriter), because they lack the
    /// other columns.
    pub fn with_projection(self, is_projected: bool) -> Self {
        Records { is_projected, ..self }
    }

    /// Returns the counters of bytes, files, and diagnostics.
    pub fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }

    /// Returns the next record of the current file, or of the next file that has one.
    fn advance(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(file) = &mut self.current {
                if let Some(record) = file.next()? {
                    return Ok(Some(record));
                }
                let is_file = !matches!(file, RecordReader::Stream(_));
                self.current = None;
                if is_file {
                    self.progress.add_file();
                }
            }
            if let Some(section) = self.section.take() {
                self.current = Some(RecordReader::Ended);
                let (options, projected, progress) = (&self.options, self.is_projected, &self.progress);
                self.current = Some(RecordReader::from_section(&section, options, projected, progress)?);
                continue;
            }
            let Some(file) = self.files.next() else { return Ok(None) };
            let DetectedFile { path, format, compression } = file?;
            // A file that cannot be opened counts as read.
            self.current = Some(RecordReader::Ended);
            let (options, projected, read_once) = (&self.options, self.is_projected, &self.read_once);
            self.current = Some(RecordReader::open(
                &path, format, compression, options, projected, &self.progress, read_once,
            )?);
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.advance();
        self.failed = matches!(&record, Err(error) if !matches!(error, Error::BadInput { .. }));
        record.transpose()
    }
}
