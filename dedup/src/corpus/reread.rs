//! Reading documents a second time: each must still be what it was.

use std::path::Path;
use std::sync::Arc;

use simstore::{Error, Result};

use crate::checkpoint::parts::outdated::remove_parts_of;
use crate::corpus::Corpus;
use crate::corpus::scan::InOrder;
use crate::workspace::Workspace;
use simstore_corpus::Inputs;
use simstore_io::{DocumentOptions, ReadProgress, Record, Records};

/// The records of a corpus, read again in order. Each record that is read is compared with its checksum, also if it is not asked for.
pub(crate) struct Reread<'a> {
    records: std::iter::Zip<std::ops::RangeFrom<u64>, Records>,
    progress: Arc<ReadProgress>,
    options: &'a DocumentOptions,
    documents: InOrder<'a>,
    /// The document that is compared next, and the number of all.
    next: usize,
    count: usize,
    /// The folder of `--resume`.
    parts: Option<&'a Path>,
}

impl<'a> Reread<'a> {
    pub(crate) fn new(corpus: &'a Corpus, inputs: &'a Inputs, workspace: &'a Workspace) -> Self {
        let records = inputs.records();
        Reread {
            progress: records.progress(),
            records: (0..).zip(records),
            options: inputs.options(),
            documents: corpus.in_order(),
            next: 0,
            count: corpus.len(),
            parts: workspace.parts.as_deref(),
        }
    }

    /// How far the reading has come.
    pub(crate) fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }

    /// The record of a document. Documents are asked for in ascending order.
    ///
    /// # Errors
    /// [`Error::Refused`] if this record, or one before it, is not what was read first.
    pub(crate) fn record(&mut self, number: usize) -> Result<Record> {
        loop {
            let document = self.documents.get(self.next)?;
            let position = document.position();
            // Malformed records have the positions between.
            let record = self.records.find(|(at, _)| *at >= position);
            let Some((_, record)) = record.filter(|(at, _)| *at == position) else {
                return Err(changed_since(document.file(), &document.place(), self.parts));
            };
            let record = record?;
            if !document.is_unchanged(&record, self.options) {
                return Err(changed_since(document.file(), &document.place(), self.parts));
            }
            self.next += 1;
            if self.next > number {
                return Ok(record);
            }
        }
    }

    /// Compares the records that are left.
    ///
    /// # Errors
    /// As [`Reread::record`].
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.next < self.count { self.record(self.count - 1).map(drop) } else { Ok(()) }
    }
}

/// The error of a record that is not what was read first. It may have come from a part of `--resume`, which knows its file by size, time
/// and ends only: the parts of this file are removed, so that the next run reads it.
fn changed_since(file: &Path, place: &str, parts: Option<&Path>) -> Error {
    let removed = match parts.map(|folder| (folder.display(), remove_parts_of(folder, file))) {
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
