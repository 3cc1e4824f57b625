//! Features of the documents whose pairs are verified. They are computed while the inputs are read a second
//! time, and kept in a temporary file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use simstore::{Error, Result};
use simstore_text::Profile;

use crate::config::resolve::ResolvedConfig;
use crate::documents::Corpus;
use crate::documents::rereader::DocumentRereader;
use crate::documents::text_starts::{TextStart, TextStarts};
use crate::workspace::Workspace;
use simstore_corpus::Observer;
use simstore_corpus::Stage;
use simstore_corpus::spill::{TemporaryFolder, read_exact_at};
use simstore_io::{DocumentOptions, Record};

/// Maximum number of documents in a batch. The features of a batch are computed at the same time, on all cores.
const BATCH: usize = 256;
/// Size in bytes at which a batch of records ends, even with fewer than [`BATCH`] documents.
const BATCH_BYTES: usize = 8 << 20;
/// Size of the write buffer of a [`FeatureFile`], in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// Temporary file with the features of documents. For each document, the file has the number of features, then the
/// hashes of the features in ascending order, as little-endian `u64`.
#[derive(Debug)]
pub(crate) struct FeatureFile {
    file: File,
    temporary: Arc<TemporaryFolder>,
    offsets: FeatureOffsets,
    /// Size of `file` in bytes.
    end: u64,
}

/// Offsets in a [`FeatureFile`] at which the features of documents start.
#[derive(Debug)]
enum FeatureOffsets {
    /// Pairs (document, offset of its features), in ascending order.
    Memory(Vec<(u32, u64)>),
    /// File with one little-endian `u64` per document: the offset of the document's features plus one, or 0 if the
    /// [`FeatureFile`] does not have these features.
    File(File),
}

/// Writer of a [`FeatureFile`]. Documents must come in ascending order.
#[derive(Debug)]
pub(crate) struct FeatureFileWriter {
    file: BufWriter<File>,
    temporary: Arc<TemporaryFolder>,
    offsets: Vec<(u32, u64)>,
    /// Maximum number of offsets in memory. If there are more, all offsets are in a file.
    max_offsets: usize,
    /// File with the offset of each document's features, and the index of the document whose offset is written next.
    /// `None` as long as all offsets fit in memory.
    offsets_on_disk: Option<(BufWriter<File>, u32)>,
    /// Number of bytes written to `file` so far.
    end: u64,
    /// Buffer for the encoded features of one document.
    buffer: Vec<u8>,
}

impl FeatureFileWriter {
    pub(crate) fn new(workspace: &Workspace) -> Result<FeatureFileWriter> {
        let temporary = Arc::clone(&workspace.temporary);
        let max_offsets =
            usize::try_from(workspace.share() / 2).unwrap_or(usize::MAX) / size_of::<(u32, u64)>();
        let file = BufWriter::with_capacity(BUFFER_BYTES, unnamed_file(&temporary)?);
        Ok(FeatureFileWriter {
            file,
            temporary,
            offsets: Vec::new(),
            max_offsets: max_offsets.max(1024),
            offsets_on_disk: None,
            end: 0,
            buffer: Vec::new(),
        })
    }

    /// Appends the features of a document.
    pub(crate) fn push(&mut self, document: u32, features: &[u64]) -> Result<()> {
        self.buffer.clear();
        self.buffer.extend((features.len() as u64).to_le_bytes());
        self.buffer.extend(features.iter().flat_map(|feature| feature.to_le_bytes()));
        self.file.write_all(&self.buffer).map_err(|error| self.temporary.write_error(&error))?;
        self.temporary.counts.add_written(self.buffer.len() as u64);
        if self.offsets_on_disk.is_none() && self.offsets.len() == self.max_offsets {
            self.offsets_on_disk = Some((BufWriter::new(unnamed_file(&self.temporary)?), 0));
            for (document, offset) in std::mem::take(&mut self.offsets) {
                self.push_offset(document, offset)?;
            }
        }
        match self.offsets_on_disk {
            Some(_) => self.push_offset(document, self.end)?,
            None => self.offsets.push((document, self.end)),
        }
        self.end += self.buffer.len() as u64;
        Ok(())
    }

    fn push_offset(&mut self, document: u32, offset: u64) -> Result<()> {
        let Some((file, next)) = &mut self.offsets_on_disk else { return Ok(()) };
        let missing = (*next..document).map(|_| 0);
        let written =
            missing.chain([offset + 1]).try_for_each(|offset| file.write_all(&offset.to_le_bytes()));
        *next = document + 1;
        written.map_err(|error| self.temporary.write_error(&error))
    }

    pub(crate) fn finish(self) -> Result<FeatureFile> {
        let FeatureFileWriter { file, temporary, offsets, offsets_on_disk, end, .. } = self;
        let finish = |file: BufWriter<File>| {
            file.into_inner().map_err(|error| temporary.write_error(&error.into_error()))
        };
        let offsets = match offsets_on_disk {
            Some((file, _)) => FeatureOffsets::File(finish(file)?),
            None => FeatureOffsets::Memory(offsets),
        };
        Ok(FeatureFile { file: finish(file)?, temporary, offsets, end })
    }
}

fn unnamed_file(temporary: &TemporaryFolder) -> Result<File> {
    tempfile::tempfile_in(temporary.parent()).map_err(|error| temporary.write_error(&error))
}

impl FeatureFile {
    /// Returns the features of a document, in ascending order.
    ///
    /// # Errors
    /// [`Error::Bug`] if the file does not have the features of this document; I/O errors.
    pub(crate) fn get(&self, document: u32) -> Result<Vec<u64>> {
        let range = self.range(document)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.read_at(&self.file, &mut bytes, range.start)?;
        // The first number is the count.
        let numbers = bytes.as_chunks().0.iter().skip(1);
        Ok(numbers.map(|&number| u64::from_le_bytes(number)).collect())
    }

    /// Size of the features of a document in the file, in bytes.
    ///
    /// # Errors
    /// The errors of [`FeatureFile::get`].
    pub(crate) fn bytes(&self, document: u32) -> Result<u64> {
        self.range(document).map(|range| range.end - range.start)
    }

    /// Returns the range of bytes in the file that holds the number of features of a document and the features.
    fn range(&self, document: u32) -> Result<Range<u64>> {
        let missing = || Error::Bug(format!("document {document} is to be compared, and was not read again"));
        match &self.offsets {
            FeatureOffsets::Memory(offsets) => {
                let at = offsets.binary_search_by_key(&document, |&(document, _)| document);
                let at = at.map_err(|_| missing())?;
                Ok(offsets[at].1..offsets.get(at + 1).map_or(self.end, |&(_, next)| next))
            }
            FeatureOffsets::File(file) => {
                let mut bytes = [0; 8];
                self.read_at(file, &mut bytes, u64::from(document) * 8)?;
                let start = u64::from_le_bytes(bytes).checked_sub(1).ok_or_else(missing)?;
                self.read_at(&self.file, &mut bytes, start)?;
                Ok(start..start + 8 * (u64::from_le_bytes(bytes) + 1))
            }
        }
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(file, bytes, offset)
            .map_err(Error::io(self.temporary.parent(), "read what was put aside in"))
    }
}

impl Drop for FeatureFile {
    fn drop(&mut self) {
        self.temporary.counts.add_removed(self.end);
    }
}

/// Where the features of the documents to verify come from.
#[derive(Clone, Copy)]
pub(crate) enum FeatureSource<'a> {
    /// Reads the inputs again and computes the features.
    Documents(FeatureReader<'a>),
    /// File with the features, which were computed before.
    File(&'a FeatureFile),
}

/// Reads documents a second time and computes their features.
#[derive(Clone, Copy)]
pub(crate) struct FeatureReader<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) resolved: &'a ResolvedConfig,
    pub(crate) workspace: &'a Workspace,
    pub(crate) observer: &'a dyn Observer,
    /// Where the starts of the texts are put aside, for the report page.
    pub(crate) texts: Option<&'a TextStarts>,
}

impl FeatureReader<'_> {
    /// Computes the features of the documents in `documents`, and returns a file with these features. An item of
    /// `documents` is a pair: the index of a document in the corpus, and the index by which [`FeatureFile::get`]
    /// finds the features of the document. Both must be ascending. If the inputs have no texts, the file is empty.
    ///
    /// # Errors
    /// [`Error::Refused`] if an input has changed.
    pub(crate) fn features(
        &self,
        documents: impl Iterator<Item = Result<(u64, u32)>>,
    ) -> Result<FeatureFile> {
        let mut all = FeatureFileWriter::new(self.workspace)?;
        let ResolvedConfig { inputs, text_profile, .. } = self.resolved;
        let Some(profile) = text_profile else { return all.finish() };
        self.resolved.check_unchanged()?;
        let mut documents = documents.peekable();
        if documents.peek().is_none() {
            return all.finish();
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let options = inputs.options();
        let mut reread = DocumentRereader::new(self.corpus, inputs, self.workspace);
        let stage = Stage::new(self.observer, "texts to compare")
            .with_read_progress(reread.progress(), || inputs.total_bytes());
        stage.add(0)?;
        for pair in documents {
            let (document, number) = pair?;
            let record = reread.record(document as usize)?.detached();
            bytes += record.size();
            batch.push((document, number, record));
            stage.add(1)?;
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                append(&mut all, std::mem::take(&mut batch), profile, options, self.texts)?;
                bytes = 0;
            }
        }
        append(&mut all, batch, profile, options, self.texts)?;
        all.finish()
    }
}

/// Computes the features of a batch of records on all cores, and appends them to the file in order. Also puts the starts of the texts
/// aside, if `texts` is set. A record comes with the index of its document and the index of its features.
fn append(
    all: &mut FeatureFileWriter,
    batch: Vec<(u64, u32, Record)>,
    profile: &Profile,
    options: &DocumentOptions,
    texts: Option<&TextStarts>,
) -> Result<()> {
    let read = |(document, number, record): (u64, u32, Record)| -> Result<_> {
        let parsed = record.parse(options)?;
        let start = texts.map(|_| TextStart::new(&parsed.text));
        Ok((document, number, profile.feature_set(&parsed.text), start))
    };
    let read: Vec<_> = batch.into_par_iter().map(read).collect::<Result<_>>()?;
    for (document, number, features, start) in read {
        all.push(number, &features)?;
        if let (Some(texts), Some(start)) = (texts, start) {
            texts.push(document, &start)?;
        }
    }
    Ok(())
}
