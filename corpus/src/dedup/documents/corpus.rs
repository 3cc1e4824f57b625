//! All documents of a corpus: their fingerprints, and what they are called. In memory, or on disk if that is too much.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use simstore::{Error, Fingerprint, Result};
use xxhash_rust::xxh3::Xxh3;

use super::on_disk::{OnDisk, Spilling, visit_between};
use super::preference::{Keep, Preference, Values};
use super::repeated;
use super::sketches::Sketches;
use super::stretch::Stretch;
use crate::numbers::{bytes, count_of};
use crate::spill::{Budget, Temporary};
use crate::watch::Step;
use crate::{DocumentOptions, IdRef, Item, Notice, Record, Watch};

/// Bytes of a stretch that is put on disk: a share of the budget, at least and at most so much.
const SHARE_OF_A_STRETCH: u64 = 16;
const SMALL_STRETCH: u64 = 1 << 16;
const LARGE_STRETCH: u64 = 32 << 20;
/// Bytes that a document takes that is told of, besides its id and what else is known of it: here, among the groups, and while
/// clusters are made of these.
const BYTES_OF_ONE_TOLD: u64 = 160;

/// All that was read, in order of input. In memory it takes the bytes of a fingerprint for each document, and what the ids need:
/// nothing where they are positions. On disk it takes that there; in memory, only what documents are told of that are near others.
#[derive(Debug)]
pub(super) struct Corpus<F> {
    /// All, or those that are not on disk yet.
    pub(super) stretch: Stretch<F>,
    place: Place<F>,
    /// Documents without text.
    empty: usize,
    /// Documents without a value that decides which is kept.
    missing: usize,
    /// Whether the ids of all are numbers, and are their positions.
    are_numbers: bool,
    are_positions: bool,
    /// Documents that have an id which another has.
    same_id: usize,
    /// Where texts are compared by similarity.
    pub(super) sketches: Option<Sketches>,
}

/// Where documents are.
#[derive(Debug)]
enum Place<F> {
    Memory,
    /// The first ones are on disk.
    Spilling(Box<Spilling<F>>),
    Disk(Box<Spilled<F>>),
}

/// A corpus on disk.
#[derive(Debug)]
pub(super) struct Spilled<F> {
    pub(super) on_disk: OnDisk<F>,
    /// What may be used of memory and of the disk.
    pub(super) room: Room,
    told: OnceLock<Told<F>>,
}

/// The documents that are told of, ascending.
#[derive(Debug)]
struct Told<F> {
    documents: Vec<usize>,
    stretch: Stretch<F>,
}

/// What a run may use of memory and of the disk.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) budget: Budget,
    pub(super) temporary: Arc<Temporary>,
}

impl<F: Fingerprint> Corpus<F> {
    /// A corpus of nothing yet. Documents that are read again, or known again, need checksums.
    pub(super) fn new(keep: &Keep, with_checksums: bool, sketches: Option<Sketches>) -> Self {
        Corpus {
            stretch: Stretch::new(Values::new(keep), with_checksums),
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
    pub(super) fn push(&mut self, item: &Item<F>) {
        self.stretch.push(item);
        self.empty += usize::from(item.fingerprint.is_none());
        self.missing += usize::from(self.stretch.values.lacks(item.extra.as_deref()));
        self.sketches.iter_mut().for_each(|sketches| sketches.push(item.sketched.as_deref()));
    }

    /// Adds fingerprints of a file, whose ids count up from the position of the first.
    pub(super) fn push_block(&mut self, fingerprints: &[F], position: u64, path: &Arc<Path>, line: u64) {
        self.stretch.push_block(fingerprints, position, path, line);
    }

    /// The memory that it takes to compare all that is in memory, and to hold what it is called. A fingerprint stands in the corpus,
    /// among the sorted ones and in the space of the join; with its place among the clusters, that is three and a half times its
    /// size.
    pub(super) fn memory(&self) -> u64 {
        let fingerprints = self.stretch.len() as u64 * F::BYTES as u64;
        // With sketches, fingerprints are only kept.
        let fingerprints = if self.sketches.is_some() { fingerprints } else { fingerprints * 7 / 2 };
        let sketches = self.sketches.as_ref().map_or(0, Sketches::memory);
        fingerprints + sketches + self.stretch.memory_of_names()
    }

    /// Puts documents on disk if to compare all in memory would take more than the budget.
    pub(super) fn keep_within(&mut self, room: &Room, watch: &dyn Watch) -> Result<()> {
        let budget = room.budget;
        let most = (budget.bytes / SHARE_OF_A_STRETCH).clamp(SMALL_STRETCH, LARGE_STRETCH);
        let is_too_much = self.memory() > budget.bytes;
        match &mut self.place {
            Place::Spilling(spilling) => {
                self.sketches.iter_mut().try_for_each(|sketches| sketches.spill(&room.temporary))?;
                if self.stretch.memory() > most {
                    spilling.push(&self.stretch)?;
                    self.see_ids();
                    self.stretch = self.stretch.like();
                }
                Ok(())
            }
            Place::Memory if is_too_much => {
                watch.notice(&Notice::Remark(&format!(
                    "comparing {} takes more than the {} {}: they are put on disk, in {}",
                    count_of(self.len() as u64, "document"),
                    bytes(budget.of),
                    if budget.is_given { "of option `memory`" } else { "of memory available" },
                    room.temporary.folder()?.display()
                )));
                self.place = Place::Spilling(Box::new(self.spill(most, &room.temporary)?));
                self.sketches.iter_mut().try_for_each(|sketches| sketches.spill(&room.temporary))
            }
            _ => Ok(()),
        }
    }

    /// Puts on disk what is in memory, in stretches of so many bytes: all of one is taken into memory when it is read.
    fn spill(&mut self, most: u64, temporary: &Arc<Temporary>) -> Result<Spilling<F>> {
        let mut spilling = Spilling::new(temporary)?;
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

    /// Sees of which kind the ids are of those in memory.
    fn see_ids(&mut self) {
        self.are_numbers &= self.stretch.names.are_numbers();
        self.are_positions &= self.stretch.names.are_positions();
    }

    /// To be called when all have been added.
    pub(super) fn finish(&mut self, room: &Room, watch: &dyn Watch) -> Result<()> {
        self.keep_within(room, watch)?;
        self.see_ids();
        self.sketches.iter_mut().try_for_each(Sketches::finish)?;
        if let Place::Spilling(mut spilling) = std::mem::replace(&mut self.place, Place::Memory) {
            spilling.push(&self.stretch)?;
            self.stretch = self.stretch.like();
            let on_disk = spilling.finish()?;
            let spilled = Spilled { on_disk, room: room.clone(), told: OnceLock::new() };
            self.place = Place::Disk(Box::new(spilled));
        }
        if !self.are_positions {
            let memory = if self.spilled().is_some() { room.budget.bytes / 2 } else { u64::MAX };
            self.same_id = repeated::count(self, &room.temporary, memory, watch)?;
        }
        Ok(())
    }

    /// The corpus on disk, if it is there.
    pub(super) fn spilled(&self) -> Option<&Spilled<F>> {
        match &self.place {
            Place::Disk(spilled) => Some(spilled),
            Place::Memory | Place::Spilling(_) => None,
        }
    }

    /// Takes documents into memory that are told of, which ascend: only of these may be asked what follows here, if the corpus is on
    /// disk. Once.
    ///
    /// # Errors
    /// [`Error::Refused`] if these are more than the budget, and those of reading.
    pub(super) fn recall(&self, documents: Vec<usize>, watch: &dyn Watch) -> Result<()> {
        let Some(Spilled { on_disk, room, told }) = self.spilled() else { return Ok(()) };
        let of_each = BYTES_OF_ONE_TOLD + on_disk.bytes_of_others() / (on_disk.len() as u64).max(1);
        let needed = documents.len() as u64 * of_each;
        if needed > room.budget.bytes {
            return Err(Error::Refused(format!(
                "{} are near others, and need {}",
                count_of(documents.len() as u64, "document"),
                room.budget.too_little_for(needed)
            )));
        }
        let mut stretch = self.stretch.like();
        let mut wanted = documents.iter().copied().peekable();
        let step = Step::new(watch, "documents read back from disk");
        for read in on_disk.stretches()? {
            let (first, read) = read?;
            while let Some(document) = wanted.next_if(|&document| document < first + read.len()) {
                stretch.push_of(&read, document - first);
            }
            step.add(read.len() as u64)?;
        }
        // Nobody recalls twice.
        let _ = told.set(Told { documents, stretch });
        Ok(())
    }

    /// Where a document is in memory.
    fn at(&self, document: usize) -> (&Stretch<F>, usize) {
        match self.spilled().and_then(|spilled| spilled.told.get()) {
            Some(told) => (&told.stretch, told.documents.partition_point(|&other| other < document)),
            None => (&self.stretch, document),
        }
    }

    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.stretch.len()
            + match &self.place {
                Place::Memory => 0,
                Place::Spilling(spilling) => spilling.len(),
                Place::Disk(spilled) => spilled.on_disk.len(),
            }
    }

    /// Number of documents without text.
    pub(super) fn empty(&self) -> usize {
        self.empty
    }

    /// How many documents have no value of the field that decides which is kept.
    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// How many documents have an id that another has.
    pub(super) fn same_id(&self) -> usize {
        self.same_id
    }

    /// Whether all ids are numbers.
    pub(super) fn are_numbers(&self) -> bool {
        self.are_numbers
    }

    /// The fingerprint; zero for a document without text.
    pub(super) fn fingerprint(&self, document: usize) -> F {
        let (stretch, at) = self.at(document);
        stretch.fingerprints[at]
    }

    /// What a document is called.
    pub(super) fn id(&self, document: usize) -> IdRef<'_> {
        let (stretch, at) = self.at(document);
        stretch.id(at)
    }

    /// Where a document stands: `FILE:LINE`.
    pub(super) fn place(&self, document: usize) -> String {
        let (stretch, at) = self.at(document);
        stretch.place(at)
    }

    /// A document's position in the input: malformed records have one too.
    pub(super) fn position(&self, document: usize) -> u64 {
        let (stretch, at) = self.at(document);
        stretch.names.position(at)
    }

    /// Fails unless a record that was read again is what a document was made of.
    pub(super) fn check_unchanged(
        &self,
        document: usize,
        record: &Record,
        options: &DocumentOptions,
    ) -> Result<()> {
        let (stretch, at) = self.at(document);
        stretch.check_unchanged(at, record, options)
    }

    /// The order in which documents are preferred.
    pub(super) fn preference<'a>(&'a self, keep: &'a Keep) -> Preference<'a> {
        let told = self.spilled().and_then(|spilled| spilled.told.get());
        let stretch = told.map_or(&self.stretch, |told| &told.stretch);
        let told = told.map(|told| &told.documents[..]);
        Preference { keep, values: &stretch.values, names: &stretch.names, told }
    }

    /// Visits the fingerprints of all documents that have one, in order, some that follow one another at a time, each time with the
    /// number of the first document.
    pub(super) fn visit_fingerprints(&self, visitor: impl FnMut(usize, &[F]) -> Result<()>) -> Result<()> {
        match self.spilled() {
            Some(spilled) => spilled.on_disk.visit_fingerprints(visitor),
            None => visit_between(&self.stretch.fingerprints, &self.stretch.empty, visitor),
        }
    }

    /// Tells this corpus from any other.
    pub(super) fn checksum(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        self.visit(|document| {
            let id = document.id().text();
            let fingerprint = document.stretch.fingerprints[document.at];
            let checksum = document.stretch.checksums.as_ref().map_or(0, |all| all[document.at]).into();
            let lengths = [document.position(), id.len() as u64, checksum];
            for number in [fingerprint.low_u64(), fingerprint.high_u64()].into_iter().chain(lengths) {
                hash.update(&number.to_le_bytes());
            }
            hash.update(id.as_bytes());
            Ok(())
        })?;
        Ok(hash.digest())
    }
}
