//! All documents of a corpus: their fingerprints and ids. They are in memory, or on disk beyond the budget.

pub(crate) mod block;
pub(crate) mod file_list;
pub(crate) mod ids;
pub(crate) mod keep_rule;
pub(crate) mod keep_value;
pub(crate) mod on_disk;
pub(crate) mod ranks;
pub(crate) mod repeated_ids;
pub(crate) mod reread;
pub(crate) mod scan;

use std::any::Any;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use simstore::any::Width;
use simstore::{Error, Fingerprint, Result, each_width};

use crate::corpus::block::{Document, Stretch};
use crate::corpus::keep_rule::Keep;
use crate::corpus::on_disk::{OnDisk, Spilling, visit_between};
use crate::rows::SignatureRow;
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{Rows, RowsWriter, TemporaryFolder};
use simstore_corpus::{Diagnostic, Item, Observer};
use simstore_io::IdRef;
use simstore_io::numbers::{format_bytes, format_count_of};

/// Bytes of memory of a document that is reported, besides its id and values; and the number of documents that are reported in any case.
const BYTES_OF_ONE_TOLD: u64 = 64;
const LEAST_TOLD: usize = 1024;
/// Bytes of memory of a document with sketches: for the sketches, the number of its set, and the join.
const BYTES_OF_A_SKETCHED_ONE: u64 = 132;

/// Bytes of a stretch that is put on disk: a share of the budget, at least and at most so much.
const SHARE_OF_A_STRETCH: u64 = 16;
const SMALL_STRETCH: u64 = 1 << 16;
const LARGE_STRETCH: u64 = 32 << 20;
/// All documents in order of input. Each takes the bytes of its fingerprint and of its id, in memory or on disk. Ids that are positions
/// take nothing.
#[derive(Debug)]
pub(crate) struct Corpus {
    /// All, or those that are not on disk yet.
    pub(crate) stretch: Stretch,
    /// The rule whose keys documents have.
    keep: Keep,
    place: Place,
    /// Number of documents without text.
    pub(crate) empty: usize,
    /// Number of documents without a value that decides which is kept.
    pub(crate) missing: usize,
    /// Whether all ids are numbers; and whether they are the documents' positions, so that none repeats.
    pub(crate) are_numbers: bool,
    pub(crate) are_positions: bool,
    /// Number of documents that have an id that another has.
    pub(crate) same_id: usize,
    /// Where texts are compared by similarity; until all are read.
    sketches: Option<RowsWriter<SignatureRow>>,
}

/// Where documents are.
#[derive(Debug)]
enum Place {
    Memory,
    /// The first ones are on disk.
    Spilling(Box<Spilling>),
    Disk(Box<Spilled>),
}

/// A corpus on disk.
#[derive(Debug)]
pub(crate) struct Spilled {
    pub(crate) on_disk: OnDisk,
    /// The memory and the folders that may be used.
    pub(crate) workspace: Workspace,
}

/// Some documents in memory, to be asked for in any order.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    /// Ascending, if these are not all.
    documents: Option<Vec<usize>>,
    stretch: Cow<'a, Stretch>,
}

impl Corpus {
    /// A corpus of nothing yet. Documents that are read again, or known again, need checksums.
    pub(crate) fn new(
        width: Width,
        keep: &Keep,
        with_checksums: bool,
        sketches: Option<RowsWriter<SignatureRow>>,
    ) -> Self {
        Corpus {
            stretch: Stretch::new(width, keep.key(0, None).is_some(), with_checksums),
            keep: keep.clone(),
            place: Place::Memory,
            empty: 0,
            missing: 0,
            are_numbers: true,
            are_positions: true,
            same_id: 0,
            sketches,
        }
    }

    /// Adds a document.
    pub(crate) fn push<F: Fingerprint>(&mut self, item: &Item<F>) -> Result<()> {
        if let Some(sketches) = &mut self.sketches {
            sketches
                .push(SignatureRow::new(self.stretch.len() + self.place.len(), item.signature.as_ref())?)?;
        }
        let key = self.keep.key(item.text_bytes, item.extra.as_deref());
        self.stretch.push(item, key.as_deref());
        self.empty += usize::from(item.fingerprint.is_none());
        self.missing += usize::from(key.is_some_and(|key| key.len() == 1));
        Ok(())
    }

    /// Adds fingerprints of a file, whose ids count up from the position of the first.
    pub(crate) fn push_block<F: Fingerprint>(
        &mut self,
        fingerprints: &[F],
        position: u64,
        path: &Arc<Path>,
        line: u64,
    ) {
        self.stretch.push_block(fingerprints, position, path, line);
    }

    /// The bytes of memory for comparing all documents in memory, and for their ids. A fingerprint is in the corpus, among the sorted
    /// ones and in the space of the join. With its place among the clusters, it takes three and a half times its size.
    pub(crate) fn memory(&self) -> u64 {
        let fingerprints = self.stretch.len() as u64 * self.stretch.bytes_of_a_fingerprint();
        // With sketches, fingerprints are only kept.
        let fingerprints = if self.sketches.is_some() { fingerprints } else { fingerprints * 7 / 2 };
        let sketches =
            self.sketches.as_ref().map_or(0, |rows| rows.rows_in_memory() as u64 * BYTES_OF_A_SKETCHED_ONE);
        fingerprints + sketches + self.stretch.memory_of_names()
    }

    /// Puts documents on disk if to compare all in memory would take more than the budget.
    pub(crate) fn keep_within(&mut self, workspace: &Workspace, observer: &dyn Observer) -> Result<()> {
        let budget = workspace.budget;
        let most = (budget.bytes / SHARE_OF_A_STRETCH).clamp(SMALL_STRETCH, LARGE_STRETCH);
        let is_too_much = self.memory() > budget.bytes;
        match &mut self.place {
            Place::Spilling(spilling) => {
                self.sketches.iter_mut().try_for_each(RowsWriter::spill)?;
                if self.stretch.memory() > most {
                    spilling.push(&self.stretch)?;
                    self.see_ids();
                    self.stretch = self.stretch.like();
                }
                Ok(())
            }
            Place::Memory if is_too_much => {
                observer.diagnostic(&Diagnostic::Info(&format!(
                    "comparing {} needs more than the {} {}: continuing on disk, in {}",
                    format_count_of(self.len() as u64, "document"),
                    format_bytes(budget.total),
                    if budget.is_explicit { "of option `memory`" } else { "of memory available" },
                    workspace.temporary.folder()?.display()
                )));
                self.place = Place::Spilling(Box::new(self.spill(most, &workspace.temporary)?));
                self.sketches.iter_mut().try_for_each(RowsWriter::spill)
            }
            _ => Ok(()),
        }
    }

    /// Puts on disk what is in memory, in stretches of so many bytes: all of one is taken into memory when it is read.
    fn spill(&mut self, most: u64, temporary: &Arc<TemporaryFolder>) -> Result<Spilling> {
        let mut spilling = Spilling::new(self.width(), temporary)?;
        let mut next = self.stretch.like();
        for at in 0..self.stretch.len() {
            next.push_of(&self.stretch, at);
            if next.memory() > most {
                spilling.push(&next)?;
                next = next.like();
            }
        }
        self.see_ids();
        self.stretch = next;
        Ok(spilling)
    }

    /// Finds whether the ids in memory are numbers, and whether they are positions.
    fn see_ids(&mut self) {
        self.are_numbers &= self.stretch.names.are_numbers();
        self.are_positions &= self.stretch.names.are_positions();
    }

    /// To be called when all have been added.
    pub(crate) fn finish(&mut self, workspace: &Workspace, observer: &dyn Observer) -> Result<()> {
        self.keep_within(workspace, observer)?;
        self.see_ids();
        if let Place::Spilling(mut spilling) = std::mem::replace(&mut self.place, Place::Memory) {
            spilling.push(&self.stretch)?;
            self.stretch = self.stretch.like();
            let on_disk = spilling.finish()?;
            let spilled = Spilled { on_disk, workspace: workspace.clone() };
            self.place = Place::Disk(Box::new(spilled));
        }
        Ok(())
    }

    /// The corpus on disk, if it is there.
    pub(crate) fn spilled(&self) -> Option<&Spilled> {
        match &self.place {
            Place::Disk(spilled) => Some(spilled),
            Place::Memory | Place::Spilling(_) => None,
        }
    }

    /// Takes the sketches of all documents, in order; `None` without sketches, and the second time.
    pub(crate) fn take_sketches(&mut self) -> Result<Option<Rows<SignatureRow>>> {
        self.sketches.take().map(RowsWriter::finish).transpose()
    }

    /// Some documents, which ascend, in memory.
    pub(crate) fn told(&self, documents: Vec<usize>, observer: &dyn Observer) -> Result<Told<'_>> {
        let Some(Spilled { on_disk, .. }) = self.spilled() else {
            return Ok(Told { documents: None, stretch: Cow::Borrowed(&self.stretch) });
        };
        let mut stretch = self.stretch.like();
        let mut wanted = documents.iter().copied().peekable();
        let stage = Stage::new(observer, "documents read back from disk");
        stage.add(0)?;
        for read in on_disk.stretches()? {
            if wanted.peek().is_none() {
                break;
            }
            let (first, read) = read?;
            while let Some(document) = wanted.next_if(|&document| document < first + read.len()) {
                stretch.push_of(&read, document - first);
            }
            stage.add(read.len() as u64)?;
        }
        Ok(Told { documents: Some(documents), stretch: Cow::Owned(stretch) })
    }

    /// How many documents may be told at a time.
    pub(crate) fn most_told(&self) -> usize {
        let Some(Spilled { on_disk, workspace }) = self.spilled() else { return usize::MAX };
        let of_each = BYTES_OF_ONE_TOLD + on_disk.others.bytes() / (on_disk.written.documents as u64).max(1);
        usize::try_from(workspace.share() / of_each).unwrap_or(usize::MAX).max(LEAST_TOLD)
    }

    /// Width of the fingerprints.
    pub(crate) fn width(&self) -> Width {
        self.stretch.fingerprints.width()
    }

    /// A fingerprint of the width of this corpus in hexadecimal.
    pub(crate) fn hex_of(&self, fingerprint: u128) -> String {
        each_width!(self.width(), type F => F::from_u128(fingerprint).to_hex())
    }

    /// Number of documents.
    pub(crate) fn len(&self) -> usize {
        self.stretch.len() + self.place.len()
    }

    /// Visits the fingerprints of all documents that have one, in order, some that follow one another at a time, each time with the
    /// number of the first document.
    ///
    /// # Errors
    /// [`Error::Bug`] if `F` does not have the width of the corpus, and the errors of the visitor and of reading.
    pub(crate) fn visit_fingerprints<F: Fingerprint>(
        &self,
        visitor: impl FnMut(usize, &[F]) -> Result<()>,
    ) -> Result<()> {
        match self.spilled() {
            Some(spilled) => spilled.on_disk.visit_fingerprints(visitor),
            None => {
                let all = each_width!(&self.stretch.fingerprints, all => (all as &dyn Any).downcast_ref::<Vec<F>>());
                let all = all.ok_or_else(|| Error::Bug("fingerprints of another width".to_owned()))?;
                visit_between(all, &self.stretch.empty, visitor)
            }
        }
    }
}

impl Place {
    /// Number of documents on disk.
    fn len(&self) -> usize {
        match self {
            Place::Memory => 0,
            Place::Spilling(spilling) => spilling.written.documents,
            Place::Disk(spilled) => spilled.on_disk.written.documents,
        }
    }
}

impl Told<'_> {
    fn document(&self, number: usize) -> Document<'_> {
        let documents = self.documents.as_ref();
        let at = documents.map_or(number, |all| all.partition_point(|&other| other < number));
        Document { number, stretch: &self.stretch, at }
    }

    /// The fingerprint; zero for a document without text.
    pub(crate) fn fingerprint(&self, document: usize) -> u128 {
        self.stretch.value(self.document(document).at)
    }

    /// The fingerprint in hexadecimal; `None` for a document without text.
    pub(crate) fn hex(&self, document: usize) -> Option<String> {
        self.document(document).hex()
    }

    /// The id of a document.
    pub(crate) fn id(&self, document: usize) -> IdRef<'_> {
        self.document(document).id()
    }

    /// Where a document stands: `FILE:LINE`.
    pub(crate) fn place(&self, document: usize) -> String {
        self.document(document).place()
    }
}
