//! Documents of equal feature sets, which are similar whatever is asked for.

use std::collections::HashSet;

use rayon::prelude::*;

use super::super::preference::Preference;
use super::super::sketches::Sketches;

/// The different feature sets of a corpus, the most preferred first: a set is as preferred as the best of its documents.
#[derive(Debug)]
pub(in super::super) struct Sets {
    /// Documents, those of a set together, the most preferred first.
    documents: Vec<u32>,
    /// Where the documents of each set start, and the end.
    starts: Vec<u32>,
}

impl Sets {
    /// The sets of all documents that have features and are not `out`.
    pub(super) fn new(sketches: &Sketches, out: &HashSet<usize>, preference: &Preference<'_>) -> Sets {
        let documents = 0..u32::try_from(sketches.len()).unwrap_or(u32::MAX);
        let with_features = documents.filter(|&document| {
            sketches.features(document as usize) > 0 && !out.contains(&(document as usize))
        });
        let mut summed: Vec<(u64, u32)> =
            with_features.map(|document| (sketches.sum(document as usize), document)).collect();
        summed.par_sort_unstable();
        // Equal sums of different sets are next to each other, but perhaps not in one run.
        for same in summed.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            let key = |document: u32| (sketches.features(document as usize), sketches.of(document as usize));
            same.sort_by(|a, b| {
                key(a.1).cmp(&key(b.1)).then_with(|| preference.compare(a.1 as usize, b.1 as usize))
            });
        }
        let is_same =
            |a: &(u64, u32), b: &(u64, u32)| a.0 == b.0 && sketches.are_equal(a.1 as usize, b.1 as usize);
        // The best document of each set, and where the set is.
        let (mut sets, mut start) = (Vec::new(), 0);
        for set in summed.chunk_by(is_same) {
            sets.push((set[0].1, start, set.len()));
            start += set.len();
        }
        sets.par_sort_unstable_by(|a, b| preference.compare(a.0 as usize, b.0 as usize));
        let (mut documents, mut starts) =
            (Vec::with_capacity(summed.len()), Vec::with_capacity(sets.len() + 1));
        for (_, start, length) in sets {
            starts.push(documents.len() as u32);
            documents.extend(summed[start..start + length].iter().map(|&(_, document)| document));
        }
        starts.push(documents.len() as u32);
        Sets { documents, starts }
    }

    /// Number of sets.
    pub(in super::super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The documents of a set, the most preferred first.
    pub(in super::super) fn documents(&self, set: usize) -> &[u32] {
        &self.documents[self.starts[set] as usize..self.starts[set + 1] as usize]
    }

    /// The first document of a set, in order of input.
    pub(super) fn first(&self, set: u32) -> u32 {
        // A set has a document.
        self.documents(set as usize).iter().copied().min().unwrap_or(u32::MAX)
    }

    /// The most preferred document of a set.
    #[inline]
    pub(in super::super) fn best(&self, set: usize) -> usize {
        self.documents[self.starts[set] as usize] as usize
    }
}
