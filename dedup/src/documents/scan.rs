//! Iteration over the documents of a corpus in input order, in memory or from disk.

use std::borrow::Cow;

use simstore::{Error, Fingerprint, Result, each_width};
use xxhash_rust::xxh3::Xxh3;

use crate::documents::Corpus;
use crate::documents::block::{DocumentBlock, DocumentRef};
use simstore_corpus::Observer;
use simstore_corpus::Stage;

/// Number of documents per progress update, because an update for each document would be slow.
const PROGRESS_BATCH: usize = 64;

impl Corpus {
    /// Returns all documents in input order, in blocks of consecutive documents.
    pub(crate) fn blocks(&self) -> Box<dyn Iterator<Item = Result<NumberedBlock<'_>>> + '_> {
        let Some(spilled) = self.spilled() else {
            let numbered = NumberedBlock { first: 0, block: Cow::Borrowed(&self.block) };
            return Box::new(std::iter::once(Ok(numbered)));
        };
        match spilled.blocks.blocks() {
            Ok(blocks) => Box::new(blocks.map(|read| {
                let (first, block) = read?;
                Ok(NumberedBlock { first, block: Cow::Owned(block) })
            })),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    /// Visits all documents in input order, and reports progress as a stage named `what`.
    pub(crate) fn scan(
        &self,
        observer: &dyn Observer,
        what: &'static str,
        mut visitor: impl FnMut(DocumentRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let stage = Stage::new(observer, what);
        stage.add(0)?;
        self.visit(|document| {
            let number = document.number;
            visitor(document)?;
            if (number + 1).is_multiple_of(PROGRESS_BATCH) {
                stage.add(PROGRESS_BATCH as u64)
            } else {
                Ok(())
            }
        })
    }

    /// Visits all documents in input order.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(DocumentRef<'_>) -> Result<()>) -> Result<()> {
        for numbered in self.blocks() {
            let numbered = numbered?;
            (0..numbered.block.len()).try_for_each(|at| visitor(numbered.document(at)))?;
        }
        Ok(())
    }

    /// Calls a function for each document in input order, and returns an iterator over the results that are not
    /// `None`.
    pub(crate) fn filter_map<T>(
        &self,
        mut make: impl FnMut(DocumentRef<'_>) -> Result<Option<T>>,
    ) -> impl Iterator<Item = Result<T>> {
        let mut documents = self.cursor();
        (0..self.len()).filter_map(move |number| documents.get(number).and_then(&mut make).transpose())
    }

    /// Returns a cursor that reads documents in ascending order.
    pub(crate) fn cursor(&self) -> DocumentCursor<'_> {
        DocumentCursor { blocks: self.blocks(), numbered: None }
    }

    /// Returns a hash of the ids, positions, fingerprints and checksums of all documents, which identifies the
    /// corpus. Stores keep a run hash that depends on it, so later versions must compute the same hash.
    pub(crate) fn checksum(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        self.visit(|document| {
            let id = document.id().text();
            // A 64-bit fingerprint has the same low and high word.
            let [low, high] = each_width!(&document.block.fingerprints, all => {
                let fingerprint = all[document.index];
                [fingerprint.low_u64(), fingerprint.high_u64()]
            });
            let checksum = document.block.checksums.as_ref().map_or(0, |all| all[document.index]).into();
            let lengths = [document.position(), id.len() as u64, checksum];
            for number in [low, high].into_iter().chain(lengths) {
                hash.update(&number.to_le_bytes());
            }
            hash.update(id.as_bytes());
            Ok(())
        })?;
        Ok(hash.digest())
    }
}

/// Block of consecutive documents, with the index of its first document.
pub(crate) struct NumberedBlock<'a> {
    /// Index of the first document of the block in the corpus.
    first: usize,
    pub(crate) block: Cow<'a, DocumentBlock>,
}

impl NumberedBlock<'_> {
    /// Returns the document in row `index` of the block.
    pub(crate) fn document(&self, index: usize) -> DocumentRef<'_> {
        DocumentRef { number: self.first + index, block: &self.block, index }
    }
}

/// Reads documents in ascending order.
pub(crate) struct DocumentCursor<'a> {
    blocks: Box<dyn Iterator<Item = Result<NumberedBlock<'a>>> + 'a>,
    numbered: Option<NumberedBlock<'a>>,
}

impl DocumentCursor<'_> {
    /// Returns a document. Documents must be requested in ascending order.
    ///
    /// # Errors
    /// Errors of reading, and [`Error::Bug`] if the document does not exist or comes before the current block.
    pub(crate) fn get(&mut self, number: usize) -> Result<DocumentRef<'_>> {
        while self.numbered.as_ref().is_none_or(|numbered| numbered.first + numbered.block.len() <= number) {
            self.numbered =
                Some(self.blocks.next().ok_or_else(|| Error::Bug(format!("no document {number}")))??);
        }
        match &self.numbered {
            Some(numbered) if numbered.first <= number => Ok(numbered.document(number - numbered.first)),
            _ => Err(Error::Bug(format!("document {number} is asked for too late"))),
        }
    }
}
