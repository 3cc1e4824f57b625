//! Second reading of the input documents, which detects changed files by checksums.

use std::path::Path;
use std::sync::Arc;

use simstore::{Error, Result};

use crate::checkpoint::parts::remove_parts::remove_parts_with_file;
use crate::documents::Corpus;
use crate::documents::scan::DocumentCursor;
use crate::workspace::Workspace;
use simstore_corpus::Inputs;
use simstore_io::{DocumentOptions, ReadProgress, Record, Records};

/// Reads the records of a corpus a second time, in input order. Compares the checksum of each record with the
/// checksum of the first reading, even for records that are not requested.
pub(crate) struct DocumentRereader<'a> {
    records: std::iter::Zip<std::ops::RangeFrom<u64>, Records>,
    progress: Arc<ReadProgress>,
    options: &'a DocumentOptions,
    documents: DocumentCursor<'a>,
    /// Index of the next document to read.
    next: usize,
    /// Number of documents in the corpus.
    count: usize,
    /// Folder of the part files, if the run can be resumed.
    parts: Option<&'a Path>,
}

impl<'a> DocumentRereader<'a> {
    pub(crate) fn new(corpus: &'a Corpus, inputs: &'a Inputs, workspace: &'a Workspace) -> Self {
        let records = inputs.records();
        DocumentRereader {
            progress: records.progress(),
            records: (0..).zip(records),
            options: inputs.options(),
            documents: corpus.cursor(),
            next: 0,
            count: corpus.len(),
            parts: workspace.parts.as_deref(),
        }
    }

    /// Progress of the second reading.
    pub(crate) fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }

    /// Returns the record of a document. Documents must be requested in ascending order.
    ///
    /// # Errors
    /// [`Error::Refused`] if this record, or a record between the last requested one and this one, has changed
    /// since the first reading.
    pub(crate) fn record(&mut self, number: usize) -> Result<Record> {
        loop {
            let document = self.documents.get(self.next)?;
            let position = document.position();
            // Skips malformed records, which take positions too.
            let record = self.records.find(|(at, _)| *at >= position);
            let Some((_, record)) = record.filter(|(at, _)| *at == position) else {
                return Err(file_changed_error(document.file(), &document.location(), self.parts));
            };
            let record = record?;
            if !document.is_unchanged(&record, self.options) {
                return Err(file_changed_error(document.file(), &document.location(), self.parts));
            }
            self.next += 1;
            if self.next > number {
                return Ok(record);
            }
        }
    }

    /// Reads the remaining records, and compares their checksums.
    ///
    /// # Errors
    /// The errors of [`DocumentRereader::record`].
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.next < self.count { self.record(self.count - 1).map(drop) } else { Ok(()) }
    }
}

/// Returns the error for a record at `place` that has changed since the first reading. Also removes the part files of
/// its input file from the folder `parts`, so that the next run reads the file itself. These part files may be
/// outdated, because a part file identifies its input files only by size, modification time, and a checksum of their
/// first and last bytes.
fn file_changed_error(file: &Path, place: &str, parts: Option<&Path>) -> Error {
    let removed = match parts.map(|folder| (folder.display(), remove_parts_with_file(folder, file))) {
        None | Some((_, Ok(0))) => String::new(),
        Some((folder, Ok(count))) => {
            let (parts, were) = if count == 1 { ("part", "was") } else { ("parts", "were") };
            format!(", or since an earlier run read it: its {count} {parts} in {folder} {were} removed")
        }
        Some((folder, Err(error))) => {
            format!(
                ", or since an earlier run read it; its parts cannot be removed ({error}): remove {folder}"
            )
        }
    };
    Error::Refused(format!(
        "{place}: the file changed while the inputs were read{removed}; nothing was written: run this again when the file does not \
         change"
    ))
}
