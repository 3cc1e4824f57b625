//! Documents as they are read: fingerprints or sketches, what they are called, and what decides which is kept.

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result, threads};
use simstore_text::{Profile, Sketched, Sketcher};
use xxhash_rust::xxh3::xxh3_64;

use super::super::documents::{Corpus, count_repeated};
use super::super::options::Options;
use super::super::parts::Parts;
use super::super::room::Room;
use super::super::source::{Source, Text};
use super::features::{Features, FeaturesWriter};
use crate::inputs::item::Malformed;
use crate::output::Unfinished;
use crate::spill::{SpillFile, SpillWriter};
use crate::watch::Step;
use crate::{Block, Counts, InputKind, Inputs, Item, Notice, Piece, Watch};

/// Documents after which the memory is looked at.
const MEMORY_CHECKED: usize = 4096;
/// Documents that are fingerprinted at once, on all cores.
const BATCH: usize = 1024;
/// Texts of fewer bytes are done before another core has woken up.
const ALONE: usize = 1 << 12;

/// What was read.
pub(crate) struct Read<F> {
    pub(crate) corpus: Corpus<F>,
    pub(crate) counts: Counts,
    /// Files, for they can be read again.
    pub(crate) inputs: Option<Inputs>,
    /// The features of all documents, if these were handed over and texts are compared.
    pub(crate) features: Option<Features>,
    /// The texts of all of them, if these are to be stored.
    pub(crate) texts: Option<SpillFile>,
}

/// What is put aside of documents that are handed over, and cannot be read again.
struct Aside<'a> {
    features: Option<&'a mut FeaturesWriter>,
    texts: Option<&'a mut SpillWriter>,
}

/// How what is handed over becomes a corpus.
pub(crate) struct Reading<'a> {
    pub(crate) options: &'a Options,
    pub(crate) profile: &'a Profile,
    /// Makes the sketches of documents that are compared by similarity.
    pub(crate) sketcher: Option<&'a Sketcher>,
    /// The profile of the features by which texts are compared, if they are.
    pub(crate) profile_of_texts: Option<&'a Profile>,
    /// Whether the texts of documents that are handed over are put aside.
    pub(crate) keeps_texts: bool,
    pub(crate) unfinished: &'a Unfinished,
    pub(crate) room: &'a Room,
    pub(crate) watch: &'a dyn Watch,
}

impl Reading<'_> {
    /// Reads all.
    pub(crate) fn read<F: Fingerprint>(&self, source: Source<'_>, mut corpus: Corpus<F>) -> Result<Read<F>> {
        let push = |corpus: &mut Corpus<F>, item: &Item<F>| {
            corpus.push(item)?;
            if corpus.len().is_multiple_of(MEMORY_CHECKED) {
                corpus.keep_within(self.room, self.watch)
            } else {
                Ok(())
            }
        };
        let (mut features, mut texts) = (None, None);
        let (counts, inputs) = match source {
            Source::Files(inputs) => (self.read_files(&inputs, &mut corpus, push)?, Some(inputs)),
            Source::Documents(documents) => {
                self.profile.check_bits(F::BITS)?;
                features = self.profile_of_texts.map(|_| FeaturesWriter::new(self.room)).transpose()?;
                if self.keeps_texts {
                    texts = Some(SpillWriter::create(self.room.temporary.clone())?);
                }
                let aside = Aside { features: features.as_mut(), texts: texts.as_mut() };
                (self.read_documents(documents, aside, |item| push(&mut corpus, &item))?, None)
            }
            Source::Fingerprints(fingerprints) => {
                let step = Step::new(self.watch, "fingerprints");
                step.add(0)?;
                let mut counts = Counts::default();
                for (position, fingerprint) in (0..).zip(fingerprints) {
                    let (id, value) = fingerprint?;
                    let fingerprint = F::from_u128(value);
                    if fingerprint.to_u128() != value {
                        let reason = format!("fingerprint {value:x} of {id}: more than {} bits", F::BITS);
                        return Err(Error::BadArgument(reason));
                    }
                    let item = Item { id, ..Item::new(position, Some(fingerprint)) };
                    counts.read += 1;
                    push(&mut corpus, &item)?;
                    step.add(1)?;
                }
                (counts, None)
            }
        };
        corpus.finish(self.room, self.watch)?;
        if !corpus.are_positions() {
            let memory = if corpus.spilled().is_some() { self.room.budget.bytes / 2 } else { u64::MAX };
            let same_id = count_repeated(&corpus, &self.room.temporary, memory, self.watch)?;
            corpus.set_same_id(same_id);
        }
        let texts = texts.map(SpillWriter::finish).transpose()?;
        let features: Option<Features> = features.map(FeaturesWriter::finish).transpose()?;
        Ok(Read { corpus, counts, inputs, features, texts })
    }

    fn read_files<F: Fingerprint>(
        &self,
        inputs: &Inputs,
        corpus: &mut Corpus<F>,
        mut push: impl FnMut(&mut Corpus<F>, &Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        if inputs.kind()? == InputKind::Fingerprints {
            return inputs.visit_pieces(self.watch, |piece| match piece {
                Piece::Item(item) => push(corpus, &item),
                Piece::Block(Block { fingerprints, position, path, line }) => {
                    corpus.push_block(fingerprints, position, path, line);
                    corpus.keep_within(self.room, self.watch)
                }
            });
        }
        self.profile.check_bits(F::BITS)?;
        let &Reading { profile, sketcher, unfinished, watch, .. } = self;
        let Some(folder) = &self.options.resume else {
            return match sketcher {
                Some(sketcher) => inputs.visit_sketched(sketcher, watch, |item| push(corpus, &item)),
                None => inputs.visit_documents(profile, watch, |item| push(corpus, &item)),
            };
        };
        let section_bytes = self.options.section;
        let parts =
            Parts { folder, shard: None, inputs, profile, sketcher, section_bytes, unfinished, watch };
        let (counts, tally) = parts.visit(|item| push(corpus, &item))?;
        watch.notice(&Notice::Parts { found: tally.found, made: tally.made });
        Ok(counts)
    }

    /// Fingerprints documents on all cores.
    fn read_documents<F: Fingerprint>(
        &self,
        documents: impl Iterator<Item = Result<Text>>,
        mut aside: Aside<'_>,
        mut visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        threads::ensure_pool()?;
        let step = Step::new(self.watch, "documents");
        step.add(0)?;
        let mut counts = Counts::default();
        let mut malformed = Malformed::new(self.options.skip_bad, self.watch);
        let mut documents = documents.fuse();
        let mut position = 0;
        loop {
            let mut batch = Vec::with_capacity(BATCH);
            while batch.len() < BATCH
                && let Some(document) = documents.next()
            {
                match document {
                    Ok(document) => batch.push(document),
                    Err(error) => malformed.take(error)?,
                }
            }
            if batch.is_empty() {
                counts.bad = malformed.count();
                return Ok(counts);
            }
            let make = |document: &Text| {
                let set = self.profile_of_texts.map(|profile| profile.feature_set(&document.text));
                let sketched = match (&set, self.sketcher) {
                    // The profile of texts is that of the sketches.
                    (Some(set), Some(_)) => Sketched::new(set),
                    (None, Some(sketcher)) => sketcher.sketch(&document.text),
                    (_, None) => None,
                };
                let simhash = match (&sketched, self.sketcher) {
                    (Some(sketched), _) => Some(sketched.first()),
                    (None, None) => self.profile.fingerprint::<F>(&document.text),
                    (None, Some(_)) => None,
                };
                (simhash, sketched, set)
            };
            let bytes: usize = batch.iter().map(|document| document.text.len()).sum();
            let made: Vec<_> = match bytes {
                ..ALONE => batch.iter().map(make).collect(),
                _ => batch.par_iter().map(make).collect(),
            };
            for (document, (simhash, sketched, set)) in batch.into_iter().zip(made) {
                if let (Some(features), Some(set)) = (&mut aside.features, set) {
                    features.push(position as u32, &set)?;
                }
                if let Some(texts) = &mut aside.texts {
                    texts.push_text(&document.text)?;
                }
                let item = Item {
                    id: document.id,
                    features: simhash.as_ref().map(|simhash| simhash.features),
                    sketched: sketched.map(Box::new),
                    text_bytes: document.text.len() as u64,
                    extra: document.extra,
                    checksum: xxh3_64(document.text.as_bytes()),
                    has_id: true,
                    ..Item::new(position, simhash.map(|simhash| simhash.fingerprint))
                };
                position += 1;
                counts.count(&item);
                visitor(item)?;
                step.add(1)?;
            }
        }
    }
}
