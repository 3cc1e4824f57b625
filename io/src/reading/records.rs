//! Documents as they stand in files, not yet parsed: file after file.

use std::path::PathBuf;
use std::sync::Arc;

use crate::bytes::pipes::Pipes;
use crate::bytes::section::Section;
use crate::progress::ReadProgress;
use crate::reading::file::File;
use crate::reading::files::{Files, Found};
use crate::reading::in_memory::GivenDocuments;
use crate::reading::record::Record;
use crate::{Document, DocumentOptions};
use simstore::{Error, Result};

/// The documents of files and folders, in order.
///
/// # Errors
/// Items are [`Error::BadInput`](simstore::Error::BadInput) for a malformed document, after which the next one follows, and for a file that
/// cannot be opened, decompressed or read on, or that lacks the columns asked for, after which the next file
/// follows. [`Error::Io`](simstore::Error::Io) for a file that is not there, and [`Error::BadArgument`](simstore::Error::BadArgument) for one that holds fingerprints
/// and for a pattern that matches nothing end the iteration.
pub fn documents(
    paths: &[PathBuf],
    options: &DocumentOptions,
) -> impl Iterator<Item = Result<Document>> + use<> {
    let options = options.clone();
    records(paths, &options).projected(true).map(move |record| record?.document(&options))
}

/// The documents of files and folders, in order and not yet parsed: for callers that write out
/// some of what they read.
///
/// # Errors
/// Items are [`Error::BadInput`] for a document longer than [`max_bytes`](DocumentOptions::max_bytes); for what
/// else is, and for what ends the iteration, see [`documents`](crate::documents).
pub fn records(paths: &[PathBuf], options: &DocumentOptions) -> Records {
    Records::new(paths, options, &Arc::default())
}

/// An iterator over the documents of files: see [`records`].
#[derive(Debug)]
pub struct Records {
    files: Files,
    /// A section that comes before them.
    section: Option<Section>,
    /// The file that is being read.
    open: Option<File>,
    options: DocumentOptions,
    /// Whether only the columns that documents consist of are read, where that is less work.
    is_projected: bool,
    progress: Arc<ReadProgress>,
    pipes: Arc<Pipes>,
    failed: bool,
}

impl Records {
    /// The documents of a section of a file.
    pub fn of_section(section: &Section, options: &DocumentOptions, pipes: &Arc<Pipes>) -> Records {
        Records { section: Some(section.clone()), ..Records::new(&[], options, pipes) }
    }

    /// Documents that are given, in no file.
    pub fn of_given(given: &GivenDocuments, options: &DocumentOptions) -> Records {
        Records { open: Some(File::Given(given.read())), ..Records::new(&[], options, &Arc::default()) }
    }

    /// Iterates over the documents of files, as [`records`] does. `pipes` keeps bytes of pipes that were read ahead.
    pub fn new(paths: &[PathBuf], options: &DocumentOptions, pipes: &Arc<Pipes>) -> Records {
        let progress = Arc::default();
        Records {
            files: Files::new(paths, options, &progress, pipes),
            section: None,
            open: None,
            options: options.clone(),
            is_projected: false,
            progress,
            pipes: Arc::clone(pipes),
            failed: false,
        }
    }

    /// Reads only the columns that documents consist of: rows cannot be written again.
    pub fn projected(self, is_projected: bool) -> Self {
        Records { is_projected, ..self }
    }

    /// How far the reading has come.
    pub fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }

    /// The next record of the file that is being read, or else of the next one that has any.
    fn advance(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(file) = &mut self.open {
                if let Some(record) = file.next()? {
                    return Ok(Some(record));
                }
                let is_file = !matches!(file, File::Given(_));
                self.open = None;
                if is_file {
                    self.progress.add_file();
                }
            }
            if let Some(section) = self.section.take() {
                self.open = Some(File::Ended);
                let (options, projected, progress) = (&self.options, self.is_projected, &self.progress);
                self.open = Some(File::of_section(&section, options, projected, progress)?);
                continue;
            }
            let Some(file) = self.files.next() else { return Ok(None) };
            let Found { path, format, compression } = file?;
            // What cannot be opened has been read as far as it can be.
            self.open = Some(File::Ended);
            let (options, projected, pipes) = (&self.options, self.is_projected, &self.pipes);
            self.open =
                Some(File::open(&path, format, compression, options, projected, &self.progress, pipes)?);
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
