//! Visits all records of inputs in order.

use std::path::Path;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::inputs::fingerprinted_documents::FingerprintedDocuments;
use crate::inputs::item::MalformedHandler;
use crate::observer::Stage;
use crate::{InputCounts, InputKind, Inputs, Item, Observer};
use simstore::{Fingerprint, Result};
use simstore_io::ReadProgress;
use simstore_text::{MinHasher, Profile};

/// Number of visited items after which the count of the stage is increased, because an increase for each item would be slow.
const STAGE_COUNT_BATCH: u64 = 64;

/// A fingerprint with its id, or a block of fingerprints without ids.
#[derive(Debug)]
pub enum ItemOrBlock<'a, F> {
    /// One fingerprint with its id.
    Item(Item<F>),
    /// Consecutive fingerprints, whose positions are their ids.
    Block(FingerprintBlock<'a, F>),
}

/// Consecutive fingerprints of a raw file or in memory. Their ids are their positions.
#[derive(Clone, Copy, Debug)]
pub struct FingerprintBlock<'a, F> {
    /// Fingerprints, in the order of the input.
    pub fingerprints: &'a [F],
    /// Position of the first fingerprint of the block among the records of all inputs, from 0. Malformed records count too.
    pub position: u64,
    /// Path of the raw file, or the name that messages give to fingerprints in memory.
    pub path: &'a Arc<Path>,
    /// Number of the block's first fingerprint within its file, from 1.
    pub line: u64,
}

impl Inputs {
    /// Visits all records of the inputs in order. The profile makes the fingerprints of documents.
    ///
    /// If the visitor finds that an item is malformed, it returns [`Item::malformed`], which is handled like a malformed
    /// record. Any other error ends the visit. The observer receives progress in the stage "documents" or "fingerprints".
    ///
    /// # Errors
    /// [`simstore::Error::Cancelled`] if the observer cancels. [`simstore::Error::BadInput`] for a malformed record, unless
    /// such records are [skipped](Inputs::skip_malformed). [`simstore::Error::BadArgument`] if the profile makes fingerprints
    /// of another width than `F`. Also errors of [`Inputs::kind`] and of the visitor.
    pub fn visit<F: Fingerprint>(
        &self,
        profile: &Profile,
        observer: &dyn Observer,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<InputCounts> {
        match self.kind()? {
            InputKind::Documents => self.visit_documents(profile, observer, visitor),
            InputKind::Fingerprints => self.visit_fingerprints(observer, visitor),
        }
    }

    /// Like [`Inputs::visit`], for inputs that are known to be documents.
    ///
    /// # Errors
    /// Errors of [`Inputs::visit`].
    pub fn visit_documents<F: Fingerprint>(
        &self,
        profile: &Profile,
        observer: &dyn Observer,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<InputCounts> {
        self.visit_iter(self.fingerprint_documents(profile), profile, observer, visitor)
    }

    /// Like [`Inputs::visit_documents`], but computes MinHash signatures. The first band of a document's signature is the
    /// fingerprint of the document.
    ///
    /// # Errors
    /// Errors of [`Inputs::visit`].
    pub fn visit_with_signatures<F: Fingerprint>(
        &self,
        hasher: &MinHasher,
        observer: &dyn Observer,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<InputCounts> {
        let documents = self.fingerprint_documents(hasher.profile()).with_signatures(hasher);
        self.visit_iter(documents, hasher.profile(), observer, visitor)
    }

    /// Like [`Inputs::visit`], but makes fingerprints only for the documents that `is_wanted` accepts, by path and line.
    /// Visits the other documents without fingerprints. With a hasher, also computes signatures. With `with_texts`, items
    /// have their texts.
    ///
    /// # Errors
    /// Errors of [`Inputs::visit`].
    pub fn visit_filtered<F: Fingerprint>(
        &self,
        profile: &Profile,
        hasher: Option<&MinHasher>,
        with_texts: bool,
        observer: &dyn Observer,
        is_wanted: impl Fn(&Path, u64) -> bool + Send + Sync + 'static,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<InputCounts> {
        match self.kind()? {
            InputKind::Documents => {
                let documents = self.fingerprint_documents(profile).with_filter(is_wanted);
                let documents = match hasher {
                    Some(hasher) => documents.with_signatures(hasher),
                    None => documents,
                };
                let documents = if with_texts { documents.with_texts() } else { documents };
                self.visit_iter(documents, profile, observer, visitor)
            }
            InputKind::Fingerprints => self.visit_fingerprints(observer, visitor),
        }
    }

    fn visit_iter<F: Fingerprint>(
        &self,
        mut documents: FingerprintedDocuments<F>,
        profile: &Profile,
        observer: &dyn Observer,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<InputCounts> {
        profile.check_bits(F::BITS)?;
        let read = documents.progress();
        let stage =
            Stage::new(observer, "documents").with_read_progress(Arc::clone(&read), || self.total_bytes());
        let next = |stage: &Stage<'_>| documents.next_while(|| stage.add(0));
        let mut counts =
            visit_each(next, &stage, MalformedHandler::new(self.skips_malformed(), observer), visitor)?;
        counts.count_files(&read);
        report_read_diagnostics(&read, observer);
        Ok(counts)
    }

    /// Like [`Inputs::visit`], for inputs that are known to be fingerprints.
    ///
    /// # Errors
    /// Errors of [`Inputs::visit`].
    pub fn visit_fingerprints<F: Fingerprint>(
        &self,
        observer: &dyn Observer,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<InputCounts> {
        let records = self.fingerprints();
        let read = records.progress();
        let mut records = (0..).zip(records);
        let next = |_: &Stage<'_>| {
            let (position, record) = records.next()?;
            Some(record.map(|item| item.with_position(position)))
        };
        let stage = Stage::new(observer, "fingerprints");
        let mut counts =
            visit_each(next, &stage, MalformedHandler::new(self.skips_malformed(), observer), visitor)?;
        counts.count_files(&read);
        report_read_diagnostics(&read, observer);
        Ok(counts)
    }

    /// Like [`Inputs::visit_fingerprints`], but visits fingerprints in blocks if they are in memory or in raw files, which is
    /// much faster.
    ///
    /// # Errors
    /// Errors of [`Inputs::visit`].
    pub fn visit_blocks<F: Fingerprint>(
        &self,
        observer: &dyn Observer,
        mut visitor: impl FnMut(ItemOrBlock<'_, F>) -> Result<()>,
    ) -> Result<InputCounts> {
        let stage = Stage::new(observer, "fingerprints");
        stage.add(0)?;
        let mut malformed = MalformedHandler::new(self.skips_malformed(), observer);
        let mut records = self.fingerprints::<F>();
        let (mut block, mut position) = (Vec::new(), 0);
        while let Some((fingerprints, first, path)) = records.next_memory_block()? {
            visitor(ItemOrBlock::Block(FingerprintBlock {
                fingerprints,
                position: first,
                path,
                line: first + 1,
            }))?;
            position = first + fingerprints.len() as u64;
            stage.add(fingerprints.len() as u64)?;
        }
        loop {
            block.clear();
            let count = records.read_block(&mut block)?;
            if count > 0 {
                let Some((path, last)) = records.location() else { break };
                let line = last + 1 - count;
                visitor(ItemOrBlock::Block(FingerprintBlock { fingerprints: &block, position, path, line }))?;
                position += count;
                stage.add(count)?;
                continue;
            }
            let Some(record) = records.next() else { break };
            let visited = record.and_then(|item| visitor(ItemOrBlock::Item(item.with_position(position))));
            if let Err(error) = visited {
                malformed.handle(error)?;
            }
            position += 1;
            if position.is_multiple_of(STAGE_COUNT_BATCH) {
                stage.add(STAGE_COUNT_BATCH)?;
            }
        }
        let bad = malformed.count();
        let mut counts = InputCounts { read: position - bad, malformed: bad, ..InputCounts::default() };
        counts.count_files(&records.progress());
        report_read_diagnostics(&records.progress(), observer);
        Ok(counts)
    }
}

fn visit_each<F: Fingerprint>(
    mut next: impl FnMut(&Stage<'_>) -> Option<Result<Item<F>>>,
    stage: &Stage<'_>,
    mut malformed: MalformedHandler<'_>,
    mut visitor: impl FnMut(Item<F>) -> Result<()>,
) -> Result<InputCounts> {
    let mut counts = InputCounts::default();
    let mut seen: u64 = 0;
    stage.add(0)?;
    while let Some(item) = next(stage) {
        let visited = item.and_then(|item| {
            let mut counted = counts;
            counted.count(&item);
            visitor(item)?;
            counts = counted;
            Ok(())
        });
        if let Err(error) = visited {
            malformed.handle(error)?;
        }
        seen += 1;
        if seen.is_multiple_of(STAGE_COUNT_BATCH) {
            stage.add(STAGE_COUNT_BATCH)?;
        }
    }
    counts.malformed = malformed.count();
    Ok(counts)
}

/// Reports to the observer what a reader of files has skipped or guessed. Called when the reader is at its end.
pub fn report_read_diagnostics(read: &ReadProgress, observer: &dyn Observer) {
    read.diagnostics()
        .into_iter()
        .for_each(|(read, count)| observer.diagnostic(&Diagnostic::Read(read, count)));
}
