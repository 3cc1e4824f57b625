//! Adding kept documents to a store of similar documents: sketches, notes and, if the store keeps them, texts.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use simstore::store::Load;
use simstore::{Error, Fingerprint, Result};
use simstore_text::{Kept, StoredTexts};

use crate::corpus::Corpus;
use crate::corpus::reread::Reread;
use crate::corpus::scan::Document;
use crate::rows::SketchRow;
use crate::workspace::Workspace;
use simstore_corpus::Inputs;
use simstore_corpus::spill::{Cursor, Rows, RowsIter, Temporary};
use simstore_io::DocumentOptions;

/// The texts of documents, asked for in order.
pub(crate) enum TextsInOrder<'a> {
    /// The store keeps no texts.
    None,
    Read(Box<Reread<'a>>, &'a DocumentOptions),
}

impl<'a> TextsInOrder<'a> {
    pub(crate) fn of(corpus: &'a Corpus, inputs: &'a Inputs, workspace: &'a Workspace) -> Self {
        TextsInOrder::Read(Box::new(Reread::new(corpus, inputs, workspace)), inputs.options())
    }

    fn next(&mut self, document: &Document<'_>) -> Result<String> {
        match self {
            TextsInOrder::None => Ok(String::new()),
            TextsInOrder::Read(reread, options) => {
                Ok(reread.record(document.number)?.document(options)?.text)
            }
        }
    }
}

/// Notes by their ids, put aside until all are there: a store takes them in the order of ids.
struct Notes<'a> {
    file: File,
    temporary: &'a Temporary,
    /// Of each the id, where its note starts, and how long that is.
    places: Vec<(u64, u64, u32)>,
    end: u64,
}

impl Notes<'_> {
    fn push(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.file.write_all(note).map_err(|error| self.temporary.failed(&error))?;
        self.temporary.counts.add_written(note.len() as u64);
        // A note has at most 16 MiB.
        self.places.push((id, self.end, note.len() as u32));
        self.end += note.len() as u64;
        Ok(())
    }

    fn load<F: Fingerprint>(mut self, load: &mut Load<'_, F>) -> Result<()> {
        self.places.sort_unstable();
        let mut note = Vec::new();
        for &(id, start, length) in &self.places {
            note.resize(length as usize, 0);
            let read = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.read_exact(&mut note));
            read.map_err(Error::io(self.temporary.parent(), "read what was put aside in"))?;
            load.note(id, &note)?;
        }
        Ok(())
    }
}

impl Drop for Notes<'_> {
    fn drop(&mut self) {
        self.temporary.counts.add_removed(self.end);
    }
}

/// Takes documents in order, each under the id and the name that it gets.
pub(crate) struct IntoSimilar<'a> {
    sketches: Cursor<RowsIter<'a, SketchRow>, SketchRow>,
    texts: TextsInOrder<'a>,
    stored: &'a StoredTexts,
    notes: Notes<'a>,
}

impl<'a> IntoSimilar<'a> {
    pub(crate) fn new(
        sketches: &'a Rows<SketchRow>,
        texts: TextsInOrder<'a>,
        stored: &'a StoredTexts,
        temporary: &'a Temporary,
    ) -> Result<Self> {
        let file = tempfile::tempfile_in(temporary.parent()).map_err(|error| temporary.failed(&error))?;
        let notes = Notes { file, temporary, places: Vec::new(), end: 0 };
        Ok(IntoSimilar { sketches: sketches.cursor()?, texts, stored, notes })
    }

    pub(crate) fn push<F: Fingerprint>(
        &mut self,
        load: &mut Load<'_, F>,
        document: &Document<'_>,
        id: u64,
        name: Option<&str>,
    ) -> Result<()> {
        let number = document.number as u32;
        while self.sketches.take_if(|row| row.number < number)?.is_some() {}
        let row = self.sketches.peek()?;
        let row =
            row.ok_or_else(|| Error::Bug("a document without sketches is added to similar ones".to_owned()))?;
        let (sketched, text) = (row.sketched(), self.texts.next(document)?);
        let kept = Kept::new(sketched, &text, self.stored)
            .map_err(|error| Error::Refused(format!("{}: nothing was added: {error}", document.place())))?;
        for (at, fingerprint) in kept.fingerprints().enumerate() {
            match name.filter(|_| at == 0) {
                Some(name) => load.insert_named(fingerprint, id, name)?,
                None => load.insert(fingerprint, id)?,
            }
        }
        self.notes.push(id, &kept.note())
    }

    /// Adds what goes in the order of ids.
    pub(crate) fn finish<F: Fingerprint>(self, load: &mut Load<'_, F>) -> Result<()> {
        self.notes.load(load)
    }
}
