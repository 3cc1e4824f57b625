//! Visits of all documents in order, in memory or from disk.

use std::borrow::Cow;

use simstore::{Error, Fingerprint, Result, each_width};
use xxhash_rust::xxh3::Xxh3;

use crate::corpus::Corpus;
use crate::corpus::block::{Document, Stretch};
use simstore_corpus::Observer;
use simstore_corpus::Stage;

/// Documents that are counted together: to count each takes time.
const COUNTED: usize = 64;

impl Corpus {
    /// All documents, in memory or from disk, some that follow one another at a time.
    pub(crate) fn pieces(&self) -> Box<dyn Iterator<Item = Result<Piece<'_>>> + '_> {
        let Some(spilled) = self.spilled() else {
            let piece = Piece { first: 0, stretch: Cow::Borrowed(&self.stretch) };
            return Box::new(std::iter::once(Ok(piece)));
        };
        match spilled.on_disk.stretches() {
            Ok(stretches) => Box::new(stretches.map(|read| {
                let (first, stretch) = read?;
                Ok(Piece { first, stretch: Cow::Owned(stretch) })
            })),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    /// Visits all documents in order, in a step of its own.
    pub(crate) fn scan(
        &self,
        observer: &dyn Observer,
        what: &'static str,
        mut visitor: impl FnMut(Document<'_>) -> Result<()>,
    ) -> Result<()> {
        let stage = Stage::new(observer, what);
        stage.add(0)?;
        self.visit(|document| {
            let number = document.number;
            visitor(document)?;
            if (number + 1).is_multiple_of(COUNTED) { stage.add(COUNTED as u64) } else { Ok(()) }
        })
    }

    /// Visits all documents in order.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(Document<'_>) -> Result<()>) -> Result<()> {
        for piece in self.pieces() {
            let piece = piece?;
            (0..piece.stretch.len()).try_for_each(|at| visitor(piece.document(at)))?;
        }
        Ok(())
    }

    /// Maps and filters the documents, in order.
    pub(crate) fn filter_map<T>(
        &self,
        mut make: impl FnMut(Document<'_>) -> Result<Option<T>>,
    ) -> impl Iterator<Item = Result<T>> {
        let mut documents = self.in_order();
        (0..self.len()).filter_map(move |number| documents.get(number).and_then(&mut make).transpose())
    }

    /// Documents that are asked for in order.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder { pieces: self.pieces(), piece: None }
    }

    /// Tells this corpus from any other.
    pub(crate) fn checksum(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        self.visit(|document| {
            let id = document.id().text();
            // The last and the first 64 bits, which are the same of a 64-bit fingerprint.
            let [low, high] = each_width!(&document.stretch.fingerprints, all => {
                let fingerprint = all[document.at];
                [fingerprint.low_u64(), fingerprint.high_u64()]
            });
            let checksum = document.stretch.checksums.as_ref().map_or(0, |all| all[document.at]).into();
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

/// Documents that follow one another.
pub(crate) struct Piece<'a> {
    /// The number of the first.
    first: usize,
    pub(crate) stretch: Cow<'a, Stretch>,
}

impl Piece<'_> {
    /// One of them, by its place.
    pub(crate) fn document(&self, at: usize) -> Document<'_> {
        Document { number: self.first + at, stretch: &self.stretch, at }
    }
}

/// Documents that are asked for in order.
pub(crate) struct InOrder<'a> {
    pieces: Box<dyn Iterator<Item = Result<Piece<'a>>> + 'a>,
    piece: Option<Piece<'a>>,
}

impl InOrder<'_> {
    /// A document, which does not come before those that were asked for.
    ///
    /// # Errors
    /// The errors of reading; [`Error::Bug`] if the document does not exist.
    pub(crate) fn get(&mut self, number: usize) -> Result<Document<'_>> {
        while self.piece.as_ref().is_none_or(|piece| piece.first + piece.stretch.len() <= number) {
            self.piece =
                Some(self.pieces.next().ok_or_else(|| Error::Bug(format!("no document {number}")))??);
        }
        match &self.piece {
            Some(piece) if piece.first <= number => Ok(piece.document(number - piece.first)),
            _ => Err(Error::Bug(format!("document {number} is asked for too late"))),
        }
    }
}
