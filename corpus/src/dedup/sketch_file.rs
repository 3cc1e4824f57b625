//! The sketches of all documents of a corpus that is on disk.

use std::sync::Arc;

use simstore::{Error, Result};

use super::similar::choice::SKETCHES;
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
    /// Further sketches, where a document has more than a row holds, and how many.
    further: SpillWriter,
    per_further: usize,
    /// The features of those that have few: the document, how many, and these.
    few: SpillWriter,
    len: u32,
    members: u64,
}

/// Sketches, sizes and small sets, in order of input: 80 bytes on disk for each document, and 8 for each feature of those that have
/// few.
#[derive(Debug)]
pub(super) struct SketchFile {
    rows: SpillFile,
    further: SpillFile,
    per_further: usize,
    few: SpillFile,
    len: u32,
    members: u64,
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
    /// Of documents that have so many sketches.
    pub(super) fn new(temporary: &Arc<Temporary>, per: usize) -> Result<Self> {
        let (rows, few) = (temporary.create("sketches")?, temporary.create("few")?);
        let (further, per_further) = (temporary.create("further")?, per.saturating_sub(SKETCHES));
        Ok(SketchWriter { rows, further, per_further, few, len: 0, members: 0 })
    }

    /// Adds those of further documents.
    pub(super) fn push(&mut self, sketches: &Sketches) -> Result<()> {
        for at in 0..sketches.len() {
            let mut words = [0; SKETCHES];
            words.iter_mut().zip(sketches.of(at)).for_each(|(place, &word)| *place = word);
            let row = SketchRow {
                document: self.len,
                features: sketches.features(at),
                sum: sketches.sum(at),
                words,
            };
            row.push_to(&mut self.rows)?;
            for word in sketches.all(at).iter().skip(SKETCHES) {
                self.further.push(&word.to_le_bytes())?;
            }
            if let Some(members) = sketches.members(at) {
                push_members(&mut self.few, self.len, members)?;
                self.members += members.len() as u64;
            }
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
        let SketchWriter { rows, further, per_further, few, len, members } = self;
        Ok(SketchFile {
            rows: rows.finish()?,
            further: further.finish()?,
            per_further,
            few: few.finish()?,
            len,
            members,
        })
    }
}

/// Adds the features of a document that has few.
pub(super) fn push_members(file: &mut SpillWriter, document: u32, members: &[u64]) -> Result<()> {
    file.push(&document.to_le_bytes())?;
    file.push_records(members.iter().copied())
}

/// The next of them; `false` if there is none.
pub(super) fn read_members(file: &mut SpillReader) -> Result<Option<(u32, Vec<u64>)>> {
    let mut document = [0; 4];
    if !file.fill(&mut document)? {
        return Ok(None);
    }
    Ok(Some((u32::from_le_bytes(document), file.records()?)))
}

impl SketchFile {
    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Number of features of all documents that have few.
    pub(super) fn members(&self) -> u64 {
        self.members
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

    /// Visits the features of those that have few, in order.
    pub(super) fn visit_few(&self, mut visitor: impl FnMut(u32, &[u64]) -> Result<()>) -> Result<()> {
        let mut file = self.few.read()?;
        while let Some((document, members)) = read_members(&mut file)? {
            visitor(document, &members)?;
        }
        Ok(())
    }

    /// Visits all documents in order, each with its further sketches, and its features if they are few.
    fn visit_all(
        &self,
        mut visitor: impl FnMut(&SketchRow, &[u64], Option<&[u64]>) -> Result<()>,
    ) -> Result<()> {
        let (mut few, mut further) = (self.few.read()?, self.further.read()?);
        let mut next = read_members(&mut few)?;
        let (mut bytes, mut words) = (vec![0; 8 * self.per_further], vec![0; self.per_further]);
        self.visit(|row| {
            if !bytes.is_empty() && !further.fill(&mut bytes)? {
                return Err(further.changed());
            }
            words
                .iter_mut()
                .zip(bytes.as_chunks().0)
                .for_each(|(word, &bytes)| *word = u64::from_le_bytes(bytes));
            match &next {
                Some((document, members)) if *document == row.document => {
                    visitor(row, &words, Some(members))?;
                    next = read_members(&mut few)?;
                    Ok(())
                }
                _ => visitor(row, &words, None),
            }
        })
    }

    fn per(&self) -> usize {
        SKETCHES + self.per_further
    }

    /// The sketches of some documents, which ascend, in memory: the first of them is 0 there.
    pub(super) fn of(&self, documents: &[usize]) -> Result<Sketches> {
        let mut sketches = Sketches::new(self.per());
        let mut wanted = documents.iter().copied().peekable();
        self.visit_all(|row, further, members| {
            if wanted.next_if_eq(&(row.document as usize)).is_some() {
                sketches.push_row(row, further, members);
            }
            Ok(())
        })?;
        Ok(sketches)
    }

    /// Visits all documents, some that follow one another at a time, with the number of the first of them.
    pub(super) fn visit_pieces(&self, mut visitor: impl FnMut(usize, &Sketches) -> Result<()>) -> Result<()> {
        let (mut first, mut sketches) = (0, Sketches::new(self.per()));
        self.visit_all(|row, further, members| {
            sketches.push_row(row, further, members);
            if sketches.len() == PIECE {
                visitor(first, &sketches)?;
                first += sketches.len();
                sketches = Sketches::new(self.per());
            }
            Ok(())
        })?;
        visitor(first, &sketches)
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
        let members = |document: u32| -> Vec<u64> { (0..u64::from(document % 3)).collect() };
        let further = |document: u32| [u64::from(document) + 7, 1];
        let mut all = Sketches::new(SKETCHES + 2);
        (0..100).for_each(|at| {
            all.push_row(&row(at), &further(at), (at % 3 == 2).then(|| members(at)).as_deref());
        });
        let mut writer = SketchWriter::new(&temporary, SKETCHES + 2).unwrap();
        writer.push(&all).unwrap();
        let file = writer.finish().unwrap();
        assert_eq!((file.len(), file.members()), (100, 66));
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
            assert_eq!((sketches.of(at), sketches.features(at)), (&row.words[..], row.features));
            assert_eq!(sketches.all(at), [&row.words[..], &further(document as u32)].concat());
            assert_eq!(sketches.members(at).is_some(), document % 3 == 2);
            assert!(sketches.members(at).is_none_or(|few| few == members(row.document)));
        }
    }
}
