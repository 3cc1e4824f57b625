//! Features of documents whose texts are compared: taken in a second reading, and put aside on disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;

use super::super::documents::{Corpus, Reread};
use super::super::room::Room;
use crate::spill::{Temporary, read_at};
use crate::watch::Step;
use crate::{DocumentOptions, Inputs, Record, Watch};

/// Documents, and bytes of records, whose features are taken at once on all cores.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 << 20;
/// Features that are read with their number.
const FEW: usize = 64;

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
}

impl FeaturesWriter {
    pub(crate) fn new(room: &Room) -> Result<FeaturesWriter> {
        let temporary = Arc::clone(&room.temporary);
        let limit = usize::try_from(room.share() / 2).unwrap_or(usize::MAX) / size_of::<(u32, u64)>();
        let file = BufWriter::new(unnamed(&temporary)?);
        Ok(FeaturesWriter {
            file,
            temporary,
            places: Vec::new(),
            limit: limit.max(1024),
            on_disk: None,
            end: 0,
        })
    }

    /// Appends the features of a document.
    pub(crate) fn push(&mut self, document: u32, features: &[u64]) -> Result<()> {
        let mut bytes = Vec::with_capacity(8 * (features.len() + 1));
        bytes.extend((features.len() as u64).to_le_bytes());
        features.iter().for_each(|feature| bytes.extend(feature.to_le_bytes()));
        self.file.write_all(&bytes).map_err(|error| self.temporary.failed(&error))?;
        self.temporary.counts.add_written(bytes.len() as u64);
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
        self.end += bytes.len() as u64;
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
    /// # Errors [`Error::Bug`] for one that was not wanted, and the errors of reading.
    pub(crate) fn get(&self, document: u32) -> Result<Vec<u64>> {
        let missing = || Error::Bug(format!("document {document} is to be compared, and was not read again"));
        let failed = || Error::io(self.temporary.parent(), "read what was put aside in");
        let place = match &self.places {
            Places::Memory(places) => {
                let at = places.binary_search_by_key(&document, |&(document, _)| document);
                at.ok().map(|at| places[at].1)
            }
            Places::File(file) => {
                let mut bytes = [0; 8];
                read_at(file, &mut bytes, u64::from(document) * 8).map_err(failed())?;
                u64::from_le_bytes(bytes).checked_sub(1)
            }
        };
        let place = place.ok_or_else(missing)?;
        let mut bytes = [0; 8 * (FEW + 1)];
        let some = bytes.len().min((self.end - place) as usize);
        read_at(&self.file, &mut bytes[..some], place).map_err(failed())?;
        let mut numbers = bytes.as_chunks().0.iter().map(|&number| u64::from_le_bytes(number));
        let count = numbers.next().unwrap_or_default() as usize;
        let mut features: Vec<u64> = numbers.take(count.min(FEW)).collect();
        if count > FEW {
            let mut rest = vec![0; 8 * (count - FEW)];
            read_at(&self.file, &mut rest, place + some as u64).map_err(failed())?;
            features.extend(rest.as_chunks().0.iter().map(|&number| u64::from_le_bytes(number)));
        }
        Ok(features)
    }
}

impl Drop for Features {
    fn drop(&mut self) {
        self.temporary.counts.add_removed(self.end);
    }
}

/// Reads documents again, to take their features.
pub(crate) struct ReadAgain<'a, F> {
    pub(crate) corpus: &'a Corpus<F>,
    pub(crate) inputs: &'a Inputs,
    pub(crate) profile: &'a Profile,
    pub(crate) room: &'a Room,
    pub(crate) watch: &'a dyn Watch,
}

impl<F: Fingerprint> ReadAgain<'_, F> {
    /// The features of `wanted`: pairs of document, in ascending order, and key.
    pub(crate) fn features(&self, wanted: impl Iterator<Item = Result<(u64, u32)>>) -> Result<Features> {
        let mut all = FeaturesWriter::new(self.room)?;
        let mut wanted = wanted.peekable();
        if wanted.peek().is_none() {
            return all.finish();
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let options = self.inputs.options();
        let mut reread = Reread::new(self.corpus, self.inputs, self.room);
        let step = Step::new(self.watch, "texts to compare")
            .reading(reread.progress(), || self.inputs.total_bytes());
        step.add(0)?;
        for one in wanted {
            let (document, number) = one?;
            let record = reread.record(document as usize)?;
            bytes += record.size();
            batch.push((number, record));
            step.add(1)?;
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                self.append(&mut all, std::mem::take(&mut batch), options)?;
                bytes = 0;
            }
        }
        self.append(&mut all, batch, options)?;
        all.finish()
    }

    fn append(
        &self,
        all: &mut FeaturesWriter,
        batch: Vec<(u32, Record)>,
        options: &DocumentOptions,
    ) -> Result<()> {
        let features = |(number, record): (u32, Record)| {
            Ok((number, self.profile.feature_set(&record.parse(options)?.text)))
        };
        let features: Result<Vec<(u32, Vec<u64>)>> = batch.into_par_iter().map(features).collect();
        features?.into_iter().try_for_each(|(number, features)| all.push(number, &features))
    }
}
