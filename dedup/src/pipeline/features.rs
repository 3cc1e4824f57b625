//! Features of documents whose texts are compared: taken in a second reading, and put aside on disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use simstore::{Error, Result};
use simstore_text::Profile;

use crate::config::resolve::Resolved;
use crate::corpus::Corpus;
use crate::corpus::reread::Reread;
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::Watch;
use simstore_corpus::spill::{Temporary, read_at};
use simstore_io::{DocumentOptions, Record};

/// Documents, and bytes of records, whose features are taken at once on all cores.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 << 20;
/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// The features of some documents, by their numbers: hashes, ascending, on disk.
#[derive(Debug)]
pub(crate) struct Features {
    file: File,
    temporary: Arc<Temporary>,
    places: Places,
    /// The end of the features of the last document.
    end: u64,
}

/// Where the features of documents start.
#[derive(Debug)]
enum Places {
    /// The documents, ascending.
    Memory(Vec<(u32, u64)>),
    /// A number for each document, in order: one more than the place, 0 for none.
    File(File),
}

/// Takes the features of documents that ascend.
#[derive(Debug)]
pub(crate) struct FeaturesWriter {
    file: BufWriter<File>,
    temporary: Arc<Temporary>,
    places: Vec<(u32, u64)>,
    /// So many places are held in memory.
    limit: usize,
    on_disk: Option<(BufWriter<File>, u32)>,
    end: u64,
    /// The features of one document as they are written.
    bytes: Vec<u8>,
}

impl FeaturesWriter {
    pub(crate) fn new(workspace: &Workspace) -> Result<FeaturesWriter> {
        let temporary = Arc::clone(&workspace.temporary);
        let limit = usize::try_from(workspace.share() / 2).unwrap_or(usize::MAX) / size_of::<(u32, u64)>();
        let file = BufWriter::with_capacity(BUFFER_BYTES, unnamed(&temporary)?);
        Ok(FeaturesWriter {
            file,
            temporary,
            places: Vec::new(),
            limit: limit.max(1024),
            on_disk: None,
            end: 0,
            bytes: Vec::new(),
        })
    }

    /// Appends the features of a document.
    pub(crate) fn push(&mut self, document: u32, features: &[u64]) -> Result<()> {
        self.bytes.clear();
        self.bytes.extend((features.len() as u64).to_le_bytes());
        self.bytes.extend(features.iter().flat_map(|feature| feature.to_le_bytes()));
        self.file.write_all(&self.bytes).map_err(|error| self.temporary.failed(&error))?;
        self.temporary.counts.add_written(self.bytes.len() as u64);
        if self.on_disk.is_none() && self.places.len() == self.limit {
            self.on_disk = Some((BufWriter::new(unnamed(&self.temporary)?), 0));
            for (document, place) in std::mem::take(&mut self.places) {
                self.push_place(document, place)?;
            }
        }
        match self.on_disk {
            Some(_) => self.push_place(document, self.end)?,
            None => self.places.push((document, self.end)),
        }
        self.end += self.bytes.len() as u64;
        Ok(())
    }

    fn push_place(&mut self, document: u32, place: u64) -> Result<()> {
        let Some((file, next)) = &mut self.on_disk else { return Ok(()) };
        let between = (*next..document).map(|_| 0);
        let written = between.chain([place + 1]).try_for_each(|place| file.write_all(&place.to_le_bytes()));
        *next = document + 1;
        written.map_err(|error| self.temporary.failed(&error))
    }

    pub(crate) fn finish(self) -> Result<Features> {
        let FeaturesWriter { file, temporary, places, on_disk, end, .. } = self;
        let finish =
            |file: BufWriter<File>| file.into_inner().map_err(|error| temporary.failed(&error.into_error()));
        let places = match on_disk {
            Some((file, _)) => Places::File(finish(file)?),
            None => Places::Memory(places),
        };
        Ok(Features { file: finish(file)?, temporary, places, end })
    }
}

fn unnamed(temporary: &Temporary) -> Result<File> {
    tempfile::tempfile_in(temporary.parent()).map_err(|error| temporary.failed(&error))
}

impl Features {
    /// The features of a document.
    ///
    /// # Errors
    /// [`Error::Bug`] for one that was not wanted, and the errors of reading.
    pub(crate) fn get(&self, document: u32) -> Result<Vec<u64>> {
        let range = self.range(document)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.read_at(&self.file, &mut bytes, range.start)?;
        // The first number is how many there are.
        let numbers = bytes.as_chunks().0.iter().skip(1);
        Ok(numbers.map(|&number| u64::from_le_bytes(number)).collect())
    }

    /// Bytes of the features of a document.
    ///
    /// # Errors
    /// As [`Features::get`].
    pub(crate) fn bytes(&self, document: u32) -> Result<u64> {
        self.range(document).map(|range| range.end - range.start)
    }

    /// The bytes of the file that hold the features of a document, with their number.
    fn range(&self, document: u32) -> Result<Range<u64>> {
        let missing = || Error::Bug(format!("document {document} is to be compared, and was not read again"));
        match &self.places {
            Places::Memory(places) => {
                let at = places.binary_search_by_key(&document, |&(document, _)| document);
                let at = at.map_err(|_| missing())?;
                Ok(places[at].1..places.get(at + 1).map_or(self.end, |&(_, next)| next))
            }
            Places::File(file) => {
                let mut bytes = [0; 8];
                self.read_at(file, &mut bytes, u64::from(document) * 8)?;
                let start = u64::from_le_bytes(bytes).checked_sub(1).ok_or_else(missing)?;
                self.read_at(&self.file, &mut bytes, start)?;
                Ok(start..start + 8 * (u64::from_le_bytes(bytes) + 1))
            }
        }
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], place: u64) -> Result<()> {
        read_at(file, bytes, place).map_err(Error::io(self.temporary.parent(), "read what was put aside in"))
    }
}

impl Drop for Features {
    fn drop(&mut self) {
        self.temporary.counts.add_removed(self.end);
    }
}

/// Where the features of compared documents come from.
#[derive(Clone, Copy)]
pub(crate) enum FeatureSource<'a> {
    /// The documents, which are read again.
    Documents(ReadAgain<'a>),
    /// Features that were taken before.
    Taken(&'a Features),
}

/// Reads documents again, to take their features.
#[derive(Clone, Copy)]
pub(crate) struct ReadAgain<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) resolved: &'a Resolved,
    pub(crate) workspace: &'a Workspace,
    pub(crate) watch: &'a dyn Watch,
}

impl ReadAgain<'_> {
    /// The features of `wanted`: pairs of document, in ascending order, and key. Inputs without texts have none.
    ///
    /// # Errors
    /// [`Error::Refused`] if an input has changed.
    pub(crate) fn features(&self, wanted: impl Iterator<Item = Result<(u64, u32)>>) -> Result<Features> {
        let mut all = FeaturesWriter::new(self.workspace)?;
        let Resolved { inputs, profile_of_texts, .. } = self.resolved;
        let Some(profile) = profile_of_texts else { return all.finish() };
        self.resolved.check_unchanged()?;
        let mut wanted = wanted.peekable();
        if wanted.peek().is_none() {
            return all.finish();
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let options = inputs.options();
        let mut reread = Reread::new(self.corpus, inputs, self.workspace);
        let step =
            Step::new(self.watch, "texts to compare").reading(reread.progress(), || inputs.total_bytes());
        step.add(0)?;
        for one in wanted {
            let (document, number) = one?;
            let record = reread.record(document as usize)?.detached();
            bytes += record.size();
            batch.push((number, record));
            step.add(1)?;
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                append(&mut all, std::mem::take(&mut batch), profile, options)?;
                bytes = 0;
            }
        }
        append(&mut all, batch, profile, options)?;
        all.finish()
    }
}

/// Takes the features of records on all cores, and appends them in order.
fn append(
    all: &mut FeaturesWriter,
    batch: Vec<(u32, Record)>,
    profile: &Profile,
    options: &DocumentOptions,
) -> Result<()> {
    let features =
        |(number, record): (u32, Record)| Ok((number, profile.feature_set(&record.parse(options)?.text)));
    let features: Result<Vec<(u32, Vec<u64>)>> = batch.into_par_iter().map(features).collect();
    features?.into_iter().try_for_each(|(number, features)| all.push(number, &features))
}
