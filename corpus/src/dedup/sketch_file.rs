//! The sketches of all documents of a corpus that is on disk.

use std::sync::Arc;

use simstore::{Error, Result};
use simstore_text::{SKETCHES, Sketched};

use super::sketches::Sketches;
use crate::spill::{SpillFile, SpillReader, SpillWriter, Temporary};

/// A row: the document, its number of features, their sum, and the sketches.
const BYTES: usize = 4 + 4 + 8 + 8 * SKETCHES;

/// Documents that are visited together.
const PIECE: usize = 1 << 12;

/// What is known of a document by its sketches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SketchRow {
    pub(super) document: u32,
    /// Number of features; 0 without text.
    pub(super) features: u32,
    pub(super) sum: u64,
    pub(super) words: [u64; SKETCHES],
}

/// Writes the sketches of documents in order of input.
#[derive(Debug)]
pub(super) struct SketchWriter {
    rows: SpillWriter,
    len: u32,
}

/// Sketches and sizes, in order of input: 80 bytes on disk for each document.
#[derive(Debug)]
pub(super) struct SketchFile {
    rows: SpillFile,
    len: u32,
}

impl SketchRow {
    /// What tells its set of features from others.
    pub(super) fn digest(&self) -> u128 {
        simstore_text::digest(self.features, self.sum, &self.words)
    }

    pub(super) fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.document.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.features.to_le_bytes());
        for (word, place) in [self.sum].iter().chain(&self.words).zip(bytes[8..].as_chunks_mut().0) {
            *place = word.to_le_bytes();
        }
        file.push(&bytes)
    }

    /// The next row of a file, if there is one.
    pub(super) fn read(file: &mut SpillReader) -> Result<Option<SketchRow>> {
        let mut bytes = [0; BYTES];
        if !file.fill(&mut bytes)? {
            return Ok(None);
        }
        let (halves, _) = bytes[..8].as_chunks();
        let mut words = bytes[8..].as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
        let sum = words.next().unwrap_or_default();
        let mut row = SketchRow {
            document: u32::from_le_bytes(halves[0]),
            features: u32::from_le_bytes(halves[1]),
            sum,
            words: [0; SKETCHES],
        };
        row.words.iter_mut().zip(words).for_each(|(place, word)| *place = word);
        Ok(Some(row))
    }
}

impl SketchWriter {
    pub(super) fn new(temporary: &Arc<Temporary>) -> Result<Self> {
        Ok(SketchWriter { rows: temporary.create("sketches")?, len: 0 })
    }

    /// Adds those of further documents.
    pub(super) fn push(&mut self, sketches: &Sketches) -> Result<()> {
        for at in 0..sketches.len() {
            let row = SketchRow {
                document: self.len,
                features: sketches.features(at),
                sum: sketches.sum(at),
                words: *sketches.of(at),
            };
            row.push_to(&mut self.rows)?;
            self.len = self.len.checked_add(1).ok_or_else(|| {
                Error::Refused(
                    "by similarity, at most 4,294,967,295 documents can be compared: option `distance` compares fingerprints"
                        .to_owned(),
                )
            })?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<SketchFile> {
        Ok(SketchFile { rows: self.rows.finish()?, len: self.len })
    }
}

impl SketchFile {
    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Visits all documents in order.
    pub(super) fn visit(&self, mut visitor: impl FnMut(&SketchRow) -> Result<()>) -> Result<()> {
        let mut file = self.rows.read()?;
        let mut documents = 0..self.len;
        while let Some(row) = SketchRow::read(&mut file)? {
            // Rows are in order, and each says which it is.
            if documents.next() != Some(row.document) {
                return Err(file.changed());
            }
            visitor(&row)?;
        }
        if documents.is_empty() { Ok(()) } else { Err(file.changed()) }
    }

    /// All documents, to be asked for in order.
    pub(super) fn rows(&self) -> Result<SketchRows> {
        Ok(SketchRows(self.rows.read()?))
    }

    /// The sketches of some documents, which ascend, in memory: the first of them is 0 there.
    pub(super) fn of(&self, documents: &[usize]) -> Result<Sketches> {
        let mut sketches = Sketches::default();
        let mut wanted = documents.iter().copied().peekable();
        self.visit(|row| {
            if wanted.next_if_eq(&(row.document as usize)).is_some() {
                sketches.push_row(row);
            }
            Ok(())
        })?;
        Ok(sketches)
    }

    /// Visits all documents, some that follow one another at a time, with the number of the first of them.
    pub(super) fn visit_pieces(&self, mut visitor: impl FnMut(usize, &Sketches) -> Result<()>) -> Result<()> {
        let (mut first, mut sketches) = (0, Sketches::default());
        self.visit(|row| {
            sketches.push_row(row);
            if sketches.len() == PIECE {
                visitor(first, &sketches)?;
                first += sketches.len();
                sketches = Sketches::default();
            }
            Ok(())
        })?;
        visitor(first, &sketches)
    }
}

/// Reads the sketches of documents in order.
#[derive(Debug)]
pub(super) struct SketchRows(SpillReader);

impl SketchRows {
    /// Those of a document, which comes after those that were asked for before.
    pub(super) fn skip_to(&mut self, document: usize) -> Result<Sketched> {
        while let Some(row) = SketchRow::read(&mut self.0)? {
            if row.document as usize == document {
                return Ok(Sketched { sketches: row.words, features: row.features, sum: row.sum });
            }
        }
        Err(self.0.changed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Unfinished;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let temporary = Temporary::new(Some(folder.path()), &Unfinished::default(), &()).unwrap();
        let row = |document: u32| SketchRow {
            document,
            features: document % 3,
            sum: u64::from(document) << 40,
            words: std::array::from_fn(|at| u64::from(document) << at),
        };
        let mut all = Sketches::default();
        (0..100).for_each(|at| all.push_row(&row(at)));
        let mut writer = SketchWriter::new(&temporary).unwrap();
        writer.push(&all).unwrap();
        let file = writer.finish().unwrap();
        assert_eq!(file.len(), 100);
        let mut next = 0;
        let visited = file.visit(|read| {
            assert_eq!(*read, row(next));
            next += 1;
            Ok(())
        });
        visited.unwrap();
        assert_eq!(next, 100);
        let some = [0, 5, 6, 98, 99];
        let sketches = file.of(&some).unwrap();
        assert_eq!(sketches.len(), some.len());
        for (at, document) in some.into_iter().enumerate() {
            let row = row(document as u32);
            assert_eq!((sketches.of(at), sketches.features(at)), (&row.words, row.features));
        }
    }
}
