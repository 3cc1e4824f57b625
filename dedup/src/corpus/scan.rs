//! Visits of all documents in order, in memory or from disk.

use std::borrow::Cow;
use std::ops::Deref;
use std::path::Path;

use simstore::{Error, Fingerprint, Result, each_width};
use xxhash_rust::xxh3::Xxh3;

use crate::corpus::Corpus;
use crate::corpus::block::{Held, Stretch};
use simstore_corpus::Step;
use simstore_corpus::Watch;
use simstore_io::{DocumentOptions, IdRef, Record};

/// Documents that are counted together: to count each takes time.
const COUNTED: usize = 64;

impl Corpus {
    /// All documents, in memory or from disk, some that follow one another at a time.
    pub(crate) fn pieces(&self) -> Box<dyn Iterator<Item = Result<Piece<'_>>> + '_> {
        let Some(spilled) = self.spilled() else {
            let piece = Piece { first: 0, stretch: Held::Lent(&self.stretch) };
            return Box::new(std::iter::once(Ok(piece)));
        };
        match spilled.on_disk.stretches() {
            Ok(stretches) => Box::new(stretches.map(|read| {
                let (first, stretch) = read?;
                Ok(Piece { first, stretch: Held::Read(Box::new(stretch)) })
            })),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    /// Visits all documents in order, in a step of its own.
    pub(crate) fn scan(
        &self,
        watch: &dyn Watch,
        what: &'static str,
        mut visitor: impl FnMut(Document<'_>) -> Result<()>,
    ) -> Result<()> {
        let step = Step::new(watch, what);
        step.add(0)?;
        self.visit(|document| {
            let number = document.number;
            visitor(document)?;
            if (number + 1).is_multiple_of(COUNTED) { step.add(COUNTED as u64) } else { Ok(()) }
        })
    }

    /// Visits all documents in order.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(Document<'_>) -> Result<()>) -> Result<()> {
        for piece in self.pieces() {
            let piece = piece?;
            (0..piece.len()).try_for_each(|at| visitor(piece.document(at)))?;
        }
        Ok(())
    }

    /// Maps and filters the documents, in order.
    pub(crate) fn filter_map<T>(
        &self,
        mut make: impl FnMut(Document<'_>) -> Result<Option<T>>,
    ) -> impl Iterator<Item = Result<T>> {
        let (mut pieces, mut piece, mut at) = (self.pieces(), None, 0);
        std::iter::from_fn(move || {
            loop {
                let Some(here) = &piece else {
                    match pieces.next()? {
                        Ok(next) => (piece, at) = (Some(next), 0),
                        Err(error) => return Some(Err(error)),
                    }
                    continue;
                };
                if at == here.len() {
                    piece = None;
                    continue;
                }
                at += 1;
                if let Some(made) = make(here.document(at - 1)).transpose() {
                    return Some(made);
                }
            }
        })
    }
}

/// Documents that follow one another.
pub(crate) struct Piece<'a> {
    /// The number of the first.
    first: usize,
    stretch: Held<'a>,
}

impl Deref for Piece<'_> {
    type Target = Stretch;

    fn deref(&self) -> &Stretch {
        &self.stretch
    }
}

impl Piece<'_> {
    /// One of them, by its place.
    pub(crate) fn document(&self, at: usize) -> Document<'_> {
        Document { number: self.first + at, stretch: self, at }
    }
}

/// A document, where all are visited.
pub(crate) struct Document<'a> {
    /// Which one, from 0.
    pub(crate) number: usize,
    pub(crate) stretch: &'a Stretch,
    /// Its place there.
    pub(crate) at: usize,
}

impl<'a> Document<'a> {
    /// The id.
    pub(crate) fn id(&self) -> IdRef<'a> {
        self.stretch.id(self.at)
    }

    /// The id as bytes; for a text file, the bytes of its path.
    pub(crate) fn id_bytes(&self) -> Cow<'a, [u8]> {
        self.stretch.names.id_bytes(self.at)
    }

    /// Where it stands: `FILE:LINE`.
    pub(crate) fn place(&self) -> String {
        self.stretch.place(self.at)
    }

    /// Its position in the input.
    pub(crate) fn position(&self) -> u64 {
        self.stretch.names.position(self.at)
    }

    /// Its fingerprint, if it has one.
    pub(crate) fn fingerprint(&self) -> Option<u128> {
        self.stretch.fingerprint(self.at)
    }

    /// Its fingerprint in hexadecimal, if it has one.
    pub(crate) fn hex(&self) -> Option<String> {
        self.stretch.hex(self.at)
    }

    /// The file of the document.
    pub(crate) fn file(&self) -> &'a Path {
        self.stretch.names.file(self.at)
    }

    /// Whether a record that was read again has the checksum of the first reading.
    pub(crate) fn is_unchanged(&self, record: &Record, options: &DocumentOptions) -> bool {
        self.stretch.is_unchanged(self.at, record, options)
    }
}

impl Corpus {
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

    /// Documents that are asked for in order.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder { pieces: self.pieces(), piece: None }
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
    /// # Errors The errors of reading; [`Error::Bug`] if there is no such document.
    pub(crate) fn get(&mut self, number: usize) -> Result<Document<'_>> {
        while self.piece.as_ref().is_none_or(|piece| piece.first + piece.len() <= number) {
            self.piece =
                Some(self.pieces.next().ok_or_else(|| Error::Bug(format!("no document {number}")))??);
        }
        match &self.piece {
            Some(piece) if piece.first <= number => Ok(piece.document(number - piece.first)),
            _ => Err(Error::Bug(format!("document {number} is asked for too late"))),
        }
    }
}
