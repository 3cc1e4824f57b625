//! How alike the texts of near documents really are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;

use super::corpus::Corpus;
use super::groups::Groups;
use super::listing::changed;
use crate::watch::Step;
use crate::{DocumentOptions, Inputs, Record, Watch};

/// Documents whose features are taken at once, on all cores.
const BATCH: usize = 1024;

/// The features of all documents that are near others: their hashes, ascending, on disk.
#[derive(Debug)]
pub(super) struct Texts {
    /// The least similarity of texts that are alike.
    least: f64,
    features: File,
    /// Where a document's features start, and how many there are.
    places: BTreeMap<usize, (u64, usize)>,
    /// The document that was compared last, and its features: it is compared with several.
    last: (usize, Vec<u64>),
    /// Pairs that were compared, and those of them that were not similar.
    pub(super) compared: u64,
    pub(super) unlike: u64,
}

impl Texts {
    /// Reads the documents of groups again.
    pub(super) fn read<F: Fingerprint>(
        least: f64,
        groups: &Groups<F>,
        corpus: &Corpus<F>,
        inputs: &Inputs,
        profile: &Profile,
        watch: &dyn Watch,
    ) -> Result<Texts> {
        let mut texts = Texts {
            least,
            features: tempfile::tempfile().map_err(|error| failed(&error))?,
            places: BTreeMap::new(),
            last: (usize::MAX, Vec::new()),
            compared: 0,
            unlike: 0,
        };
        let wanted = groups.documents();
        let mut wanted = wanted.iter().map(|&(document, _)| document).peekable();
        let mut batch = Vec::new();
        let (records, options) = (inputs.records(), inputs.options());
        let step = Step::new(watch, "texts to compare").reading(records.progress(), || inputs.total_bytes());
        step.add(0)?;
        for (position, record) in (0..).zip(records) {
            let Some(&next) = wanted.peek() else { break };
            if corpus.names.position(next) == position {
                let record = record?;
                corpus.check_unchanged(next, &record, options)?;
                batch.push((next, record));
                wanted.next();
                step.add(1)?;
            }
            if batch.len() == BATCH {
                texts.append(&mut batch, options, profile)?;
            }
        }
        texts.append(&mut batch, options, profile)?;
        match wanted.peek() {
            None => Ok(texts),
            Some(&document) => Err(changed(&corpus.names.place(document))),
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
        let features = features?;
        for (document, features) in features {
            let start = self.features.stream_position().map_err(|error| failed(&error))?;
            let bytes: Vec<u8> = features.iter().flat_map(|feature| feature.to_le_bytes()).collect();
            self.features.write_all(&bytes).map_err(|error| failed(&error))?;
            self.places.insert(document, (start, features.len()));
        }
        Ok(())
    }

    fn features(&mut self, document: usize) -> Result<Vec<u64>> {
        let Some(&(start, count)) = self.places.get(&document) else { return Ok(Vec::new()) };
        let mut bytes = vec![0; count * 8];
        self.features
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.features.read_exact(&mut bytes))
            .map_err(|error| failed(&error))?;
        let mut values = bytes.chunks_exact(8).map(|value| <[u8; 8]>::try_from(value).unwrap_or_default());
        Ok(values.by_ref().map(u64::from_le_bytes).collect())
    }

    /// Forgets how many pairs were compared.
    pub(super) fn count_anew(&mut self) {
        (self.compared, self.unlike) = (0, 0);
    }

    /// Whether the Jaccard similarity of the features of two texts is as great as asked for.
    pub(super) fn are_similar(&mut self, a: usize, b: usize) -> Result<bool> {
        if self.last.0 != a {
            self.last = (a, self.features(a)?);
        }
        let other = self.features(b)?;
        let similarity = jaccard(&self.last.1, &other);
        self.compared += 1;
        self.unlike += u64::from(similarity < self.least);
        Ok(similarity >= self.least)
    }
}

/// The error of a temporary file.
fn failed(error: &io::Error) -> Error {
    let folder = std::env::temp_dir();
    Error::Refused(format!(
        "{}: cannot put texts aside: {error}; another folder can be named by the variable TMPDIR",
        folder.display()
    ))
}

/// The share of all members of two ascending sets that are in both; 1 for two empty sets.
fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        both += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    let all = a.len() + b.len() - both;
    if all == 0 { 1.0 } else { both as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn jaccard_is_that_of_sets() {
        let sets: [&[u64]; 6] =
            [&[], &[1], &[1, 2, 3], &[2, 3, 4, 5], &[7, 8, u64::MAX], &[0, 1, 2, 3, 4, 5, 6, 7]];
        for a in sets {
            for b in sets {
                let (x, y): (BTreeSet<_>, BTreeSet<_>) = (a.iter().collect(), b.iter().collect());
                let (both, all) = (x.intersection(&y).count(), x.union(&y).count());
                let expected = if all == 0 { 1.0 } else { both as f64 / all as f64 };
                assert_eq!(jaccard(a, b), expected, "{a:?} {b:?}");
            }
        }
    }
}
