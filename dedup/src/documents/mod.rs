//! The *corpus*: a table of all documents of a run, with fingerprints, ids, locations, and the values that
//! `--keep` compares. It is in memory, or if it exceeds the memory budget, in temporary files.

pub(crate) mod block;
pub(crate) mod field_keys;
pub(crate) mod file_list;
pub(crate) mod id_table;
pub(crate) mod keep_rule;
pub(crate) mod preference_ranks;
pub(crate) mod repeated_ids;
pub(crate) mod rereader;
pub(crate) mod scan;
pub(crate) mod spilled_blocks;
pub(crate) mod text_starts;

use std::any::Any;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use simstore::any::Width;
use simstore::{Error, Fingerprint, Result, each_width};

use crate::documents::block::{DocumentBlock, DocumentRef};
use crate::documents::keep_rule::KeepRule;
use crate::documents::spilled_blocks::{SpilledBlockWriter, SpilledBlocks, visit_between};
use crate::rows::SignatureRow;
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{Rows, RowsWriter, TemporaryFolder};
use simstore_corpus::{Diagnostic, Item, Observer};
use simstore_io::IdRef;
use simstore_io::numbers::{format_bytes, format_count_of};

/// Memory of a document in a [`DocumentLookup`] in bytes, besides its id and its sort key.
const LOOKUP_BYTES_PER_DOCUMENT: u64 = 64;
/// Least value of [`Corpus::max_lookup_documents`], however small the memory budget is.
const MIN_LOOKUP_DOCUMENTS: usize = 1024;
/// Memory per document for comparing MinHash signatures, in bytes. It covers the signature, the index of the
/// document's group of exact duplicates, and the join that finds near signatures.
const SIGNATURE_BYTES_PER_DOCUMENT: u64 = 132;

/// A block that is written to disk has the size of the memory budget divided by this number, but at least
/// [`MIN_BLOCK_BYTES`] and at most [`MAX_BLOCK_BYTES`].
const BLOCK_BUDGET_DIVISOR: u64 = 16;
/// Least size of a block that is written to disk, in bytes, however small the memory budget is.
const MIN_BLOCK_BYTES: u64 = 1 << 16;
/// Greatest size of a block that is written to disk, in bytes.
const MAX_BLOCK_BYTES: u64 = 32 << 20;

/// Table of all documents of a run, in input order, in memory or on disk. A document takes little more than the
/// bytes of its fingerprint and its id. An id that equals the input position takes no space.
#[derive(Debug)]
pub(crate) struct Corpus {
    /// The documents in memory: all documents, or those that are not on disk yet.
    pub(crate) block: DocumentBlock,
    /// Keep rule, which determines the sort keys of the documents.
    keep: KeepRule,
    storage: CorpusStorage,
    /// Number of documents without text.
    pub(crate) empty: usize,
    /// Number of documents that lack the value that the keep rule compares.
    pub(crate) missing_values: usize,
    pub(crate) ids_are_numbers: bool,
    /// Whether each id equals the input position of its document, so that no id repeats.
    pub(crate) ids_are_positions: bool,
    /// Number of documents whose id is also the id of another document.
    pub(crate) repeated_ids: usize,
    /// MinHash signatures of the documents, if they are compared by similarity. `None` after
    /// [`take_signatures`](Self::take_signatures) has returned them.
    signatures: Option<RowsWriter<SignatureRow>>,
}

/// Where the documents of a corpus are stored: in memory, on disk, or both.
#[derive(Debug)]
enum CorpusStorage {
    /// All documents are in memory, in [`Corpus::block`].
    Memory,
    /// The first documents are on disk, and the last ones in memory, in [`Corpus::block`]. More documents may follow.
    Spilling(Box<SpilledBlockWriter>),
    /// All documents are on disk.
    Disk(Box<SpilledCorpus>),
}

/// Corpus in temporary files.
#[derive(Debug)]
pub(crate) struct SpilledCorpus {
    pub(crate) blocks: SpilledBlocks,
    pub(crate) workspace: Workspace,
}

/// Documents in memory, for random access by their index in the corpus: all documents of the corpus, or a selection.
#[derive(Debug)]
pub(crate) struct DocumentLookup<'a> {
    /// Indexes of the selected documents in the corpus, ascending; `None` if the lookup has all documents.
    documents: Option<Vec<usize>>,
    block: Cow<'a, DocumentBlock>,
}

impl Corpus {
    /// Creates an empty corpus. `with_checksums` must be set if the documents are read a second time, or if a
    /// later run has to recognize the same documents. `signatures` is the writer for MinHash signatures, if
    /// documents are compared by similarity.
    pub(crate) fn new(
        width: Width,
        keep: &KeepRule,
        with_checksums: bool,
        signatures: Option<RowsWriter<SignatureRow>>,
    ) -> Self {
        Corpus {
            block: DocumentBlock::new(width, keep.sort_key(0, None).is_some(), with_checksums),
            keep: keep.clone(),
            storage: CorpusStorage::Memory,
            empty: 0,
            missing_values: 0,
            ids_are_numbers: true,
            ids_are_positions: true,
            repeated_ids: 0,
            signatures,
        }
    }

    pub(crate) fn push<F: Fingerprint>(&mut self, item: &Item<F>) -> Result<()> {
        if let Some(signatures) = &mut self.signatures {
            signatures
                .push(SignatureRow::new(self.block.len() + self.storage.len(), item.signature.as_ref())?)?;
        }
        let key = self.keep.sort_key(item.text_bytes, item.extra.as_deref());
        self.block.push(item, key.as_deref());
        self.empty += usize::from(item.fingerprint.is_none());
        self.missing_values += usize::from(key.is_some_and(|key| key.len() == 1));
        Ok(())
    }

    /// Appends consecutive fingerprints of a file. The first one has the input position `position`, which is also
    /// its id, and is in line `line` of the file. Each further fingerprint has the next position and the next line.
    pub(crate) fn push_block<F: Fingerprint>(
        &mut self,
        fingerprints: &[F],
        position: u64,
        path: &Arc<Path>,
        line: u64,
    ) {
        self.block.push_block(fingerprints, position, path, line);
    }

    /// Estimated memory for comparing all documents in memory, in bytes. A fingerprint takes 3.5 times its
    /// size, because it is in the corpus, in a sorted list, and in the buffers of the search, and because it has a
    /// cluster number.
    pub(crate) fn memory(&self) -> u64 {
        let fingerprints = self.block.len() as u64 * self.block.fingerprint_bytes();
        // If documents are compared by similarity, fingerprints are stored but not joined.
        let fingerprints = if self.signatures.is_some() { fingerprints } else { fingerprints * 7 / 2 };
        let signatures = self
            .signatures
            .as_ref()
            .map_or(0, |rows| rows.rows_in_memory() as u64 * SIGNATURE_BYTES_PER_DOCUMENT);
        fingerprints + signatures + self.block.memory_besides_fingerprints()
    }

    /// Moves documents to disk if comparing all documents in memory would exceed the memory budget.
    pub(crate) fn spill_beyond_budget(
        &mut self,
        workspace: &Workspace,
        observer: &dyn Observer,
    ) -> Result<()> {
        let budget = workspace.budget;
        let most = (budget.bytes / BLOCK_BUDGET_DIVISOR).clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
        let is_too_much = self.memory() > budget.bytes;
        match &mut self.storage {
            CorpusStorage::Spilling(writer) => {
                self.signatures.iter_mut().try_for_each(RowsWriter::spill)?;
                if self.block.memory() > most {
                    writer.push(&self.block)?;
                    self.check_ids();
                    self.block = self.block.empty_like();
                }
                Ok(())
            }
            CorpusStorage::Memory if is_too_much => {
                observer.diagnostic(&Diagnostic::Info(&format!(
                    "comparing {} needs more than the {} {}: continuing on disk, in {}",
                    format_count_of(self.len() as u64, "document"),
                    format_bytes(budget.total),
                    if budget.is_explicit { "of option `memory`" } else { "of memory available" },
                    workspace.temporary.folder()?.display()
                )));
                self.storage = CorpusStorage::Spilling(Box::new(self.spill(most, &workspace.temporary)?));
                self.signatures.iter_mut().try_for_each(RowsWriter::spill)
            }
            _ => Ok(()),
        }
    }

    /// Moves the documents in memory to disk, in blocks of about `most` bytes. The last, incomplete block stays in
    /// memory. Blocks are small, because a block is always read as a whole.
    fn spill(&mut self, most: u64, temporary: &Arc<TemporaryFolder>) -> Result<SpilledBlockWriter> {
        let mut writer = SpilledBlockWriter::new(self.width(), temporary)?;
        let mut next = self.block.empty_like();
        for at in 0..self.block.len() {
            next.push_from(&self.block, at);
            if next.memory() > most {
                writer.push(&next)?;
                next = next.empty_like();
            }
        }
        self.check_ids();
        self.block = next;
        Ok(writer)
    }

    /// Updates `ids_are_numbers` and `ids_are_positions` with the documents in memory.
    fn check_ids(&mut self) {
        self.ids_are_numbers &= self.block.ids.are_numbers();
        self.ids_are_positions &= self.block.ids.are_positions();
    }

    /// Completes the corpus after the last document. Must be called before the documents are visited.
    pub(crate) fn finish(&mut self, workspace: &Workspace, observer: &dyn Observer) -> Result<()> {
        self.spill_beyond_budget(workspace, observer)?;
        self.check_ids();
        if let CorpusStorage::Spilling(mut writer) =
            std::mem::replace(&mut self.storage, CorpusStorage::Memory)
        {
            writer.push(&self.block)?;
            self.block = self.block.empty_like();
            let blocks = writer.finish()?;
            let spilled = SpilledCorpus { blocks, workspace: workspace.clone() };
            self.storage = CorpusStorage::Disk(Box::new(spilled));
        }
        Ok(())
    }

    /// Returns the corpus on disk; `None` if it is in memory.
    pub(crate) fn spilled(&self) -> Option<&SpilledCorpus> {
        match &self.storage {
            CorpusStorage::Disk(spilled) => Some(spilled),
            CorpusStorage::Memory | CorpusStorage::Spilling(_) => None,
        }
    }

    /// Takes the signatures of all documents, in input order. Returns `None` if the corpus has no signatures, or
    /// if they were taken before.
    pub(crate) fn take_signatures(&mut self) -> Result<Option<Rows<SignatureRow>>> {
        self.signatures.take().map(RowsWriter::finish).transpose()
    }

    /// Loads documents for random access. `documents` has their indexes in the corpus, which must be ascending.
    /// If the corpus is in memory, nothing is loaded, and the lookup has all documents.
    pub(crate) fn lookup(
        &self,
        documents: Vec<usize>,
        observer: &dyn Observer,
    ) -> Result<DocumentLookup<'_>> {
        let Some(SpilledCorpus { blocks, .. }) = self.spilled() else {
            return Ok(DocumentLookup { documents: None, block: Cow::Borrowed(&self.block) });
        };
        let mut block = self.block.empty_like();
        let mut next_documents = documents.iter().copied().peekable();
        let stage = Stage::new(observer, "documents read back from disk");
        stage.add(0)?;
        for read in blocks.blocks()? {
            if next_documents.peek().is_none() {
                break;
            }
            let (first, read) = read?;
            while let Some(document) = next_documents.next_if(|&document| document < first + read.len()) {
                block.push_from(&read, document - first);
            }
            stage.add(read.len() as u64)?;
        }
        Ok(DocumentLookup { documents: Some(documents), block: Cow::Owned(block) })
    }

    /// Maximum number of documents for one call of [`lookup`](Corpus::lookup), so that these documents fit in one
    /// share of the memory budget. `usize::MAX` if the corpus is in memory.
    pub(crate) fn max_lookup_documents(&self) -> usize {
        let Some(SpilledCorpus { blocks, workspace }) = self.spilled() else { return usize::MAX };
        let bytes_per_document =
            LOOKUP_BYTES_PER_DOCUMENT + blocks.metadata.bytes() / (blocks.index.documents as u64).max(1);
        usize::try_from(workspace.share() / bytes_per_document)
            .unwrap_or(usize::MAX)
            .max(MIN_LOOKUP_DOCUMENTS)
    }

    pub(crate) fn width(&self) -> Width {
        self.block.fingerprints.width()
    }

    /// Formats a fingerprint in hexadecimal, with the number of digits for the width of this corpus.
    pub(crate) fn to_hex(&self, fingerprint: u128) -> String {
        each_width!(self.width(), type F => F::from_u128(fingerprint).to_hex())
    }

    pub(crate) fn len(&self) -> usize {
        self.block.len() + self.storage.len()
    }

    /// Visits all fingerprints in input order, in slices of consecutive documents. Each call gets the index of
    /// the first document of the slice. Documents without text are left out.
    ///
    /// # Errors
    /// [`Error::Bug`] if `F` does not have the width of the corpus, and the errors of the visitor and of
    /// reading.
    pub(crate) fn visit_fingerprints<F: Fingerprint>(
        &self,
        visitor: impl FnMut(usize, &[F]) -> Result<()>,
    ) -> Result<()> {
        match self.spilled() {
            Some(spilled) => spilled.blocks.visit_fingerprints(visitor),
            None => {
                let all =
                    each_width!(&self.block.fingerprints, all => (all as &dyn Any).downcast_ref::<Vec<F>>());
                let all = all.ok_or_else(|| Error::Bug("fingerprints of another width".to_owned()))?;
                visit_between(all, &self.block.empty, visitor)
            }
        }
    }
}

impl CorpusStorage {
    /// Number of documents on disk.
    fn len(&self) -> usize {
        match self {
            CorpusStorage::Memory => 0,
            CorpusStorage::Spilling(writer) => writer.index.documents,
            CorpusStorage::Disk(spilled) => spilled.blocks.index.documents,
        }
    }
}

impl DocumentLookup<'_> {
    fn document(&self, number: usize) -> DocumentRef<'_> {
        let documents = self.documents.as_ref();
        let index = documents.map_or(number, |all| all.partition_point(|&other| other < number));
        DocumentRef { number, block: &self.block, index }
    }

    /// Returns the fingerprint of a document; zero if it has no text.
    pub(crate) fn fingerprint(&self, document: usize) -> u128 {
        self.block.fingerprint(self.document(document).index)
    }

    /// Returns the fingerprint of a document in hexadecimal; `None` if it has no text.
    pub(crate) fn hex(&self, document: usize) -> Option<String> {
        self.document(document).hex()
    }

    pub(crate) fn id(&self, document: usize) -> IdRef<'_> {
        self.document(document).id()
    }

    /// Returns the location of a document as `FILE:LINE`.
    pub(crate) fn location(&self, document: usize) -> String {
        self.document(document).location()
    }
}
