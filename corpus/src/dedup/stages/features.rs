//! The features of documents that are to be compared by their texts: read once more, and put aside on disk.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;

use super::corpus::Corpus;
use super::listing::changed;
use crate::spill::Temporary;
use crate::watch::Step;
use crate::{DocumentOptions, Inputs, Record, Watch};

/// Documents whose features are taken at once, on all cores.
const BATCH: usize = 256;

/// The features of some documents: their hashes, ascending, on disk. In memory 16 bytes for each.
#[derive(Debug)]
pub(super) struct FeatureSets {
    file: Mutex<File>,
    temporary: Arc<Temporary>,
    /// The documents, ascending, and where the features of each start.
    places: Vec<(usize, u64)>,
    /// Where those of the last document end.
    end: u64,
    /// The documents that are asked for, where these are numbered by themselves.
    documents: Option<Vec<usize>>,
}

impl FeatureSets {
    /// Of no documents yet.
    pub(super) fn new(temporary: &Arc<Temporary>) -> Result<FeatureSets> {
        let file = tempfile::tempfile_in(temporary.parent()).map_err(|error| temporary.failed(&error))?;
        let temporary = Arc::clone(temporary);
        Ok(FeatureSets { file: Mutex::new(file), temporary, places: Vec::new(), end: 0, documents: None })
    }

    /// Reads some documents again, which ascend.
    pub(super) fn read<F: Fingerprint>(
        wanted: impl Iterator<Item = usize>,
        corpus: &Corpus<F>,
        inputs: &Inputs,
        profile: &Profile,
        temporary: &Arc<Temporary>,
        watch: &dyn Watch,
    ) -> Result<FeatureSets> {
        let mut sets = FeatureSets::new(temporary)?;
        let mut wanted = wanted.peekable();
        if wanted.peek().is_none() {
            return Ok(sets);
        }
        let mut batch = Vec::new();
        let (records, options) = (inputs.records(), inputs.options());
        let step = Step::new(watch, "texts to compare").reading(records.progress(), || inputs.total_bytes());
        step.add(0)?;
        for (position, record) in (0..).zip(records) {
            let Some(&next) = wanted.peek() else { break };
            if corpus.position(next) == position {
                let record = record?;
                corpus.check_unchanged(next, &record, options)?;
                batch.push((next, record));
                wanted.next();
                step.add(1)?;
            }
            if batch.len() == BATCH {
                sets.append(&mut batch, options, profile)?;
            }
        }
        sets.append(&mut batch, options, profile)?;
        match wanted.peek() {
            None => Ok(sets),
            Some(&document) => Err(changed(&corpus.place(document))),
        }
    }

    fn append(
        &mut self,
        batch: &mut Vec<(usize, Record)>,
        options: &DocumentOptions,
        profile: &Profile,
    ) -> Result<()> {
        let features = |(document, record): (usize, Record)| {
            Ok((document, profile.feature_set(&record.document(options)?.text)))
        };
        let features: Result<Vec<(usize, Vec<u64>)>> =
            std::mem::take(batch).into_par_iter().map(features).collect();
        features?.into_iter().try_for_each(|(document, features)| self.push(document, &features))
    }

    /// Adds the features of a document behind those before, ascending.
    pub(super) fn push(&mut self, document: usize, features: &[u64]) -> Result<()> {
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = features.iter().flat_map(|feature| feature.to_le_bytes()).collect();
        file.write_all(&bytes).map_err(|error| self.temporary.failed(&error))?;
        self.temporary.wrote(bytes.len() as u64);
        self.places.push((document, self.end));
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Says which documents are asked for, where these are numbered by themselves.
    pub(super) fn set_documents(&mut self, documents: Vec<usize>) {
        self.documents = Some(documents);
    }

    /// The features of a document.
    ///
    /// # Errors
    /// [`Error::Bug`] for one that was not wanted, and those of reading.
    pub(super) fn get(&self, document: usize) -> Result<Vec<u64>> {
        let document = self.documents.as_ref().map_or(document, |documents| documents[document]);
        let Ok(at) = self.places.binary_search_by_key(&document, |&(document, _)| document) else {
            return Err(Error::Bug(format!("document {document} is to be compared, and was not read again")));
        };
        let start = self.places[at].1;
        let end = self.places.get(at + 1).map_or(self.end, |&(_, next)| next);
        let mut bytes = vec![0; (end - start) as usize];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(Error::io(self.temporary.parent(), "read what was put aside in"))?;
        drop(file);
        Ok(bytes.as_chunks().0.iter().map(|&value| u64::from_le_bytes(value)).collect())
    }
}

impl Drop for FeatureSets {
    fn drop(&mut self) {
        self.temporary.removed(self.end);
    }
}
