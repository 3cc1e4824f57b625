//! Adding kept documents to a store of similar documents: sketches, notes and, if the store keeps them, texts.

use simstore::store::BulkLoad;
use simstore::{Error, Fingerprint, Result};
use simstore_text::{DocumentComparer, EncodedDocument};

use crate::corpus::block::Document;
use crate::corpus::reread::Reread;
use crate::rows::SignatureRow;
use crate::workspace::Workspace;
use simstore_corpus::spill::{RowCursor, Rows, RowsIter, Sorter};
use simstore_io::DocumentOptions;

/// Takes documents in order, each under the id and the name that it gets.
pub(crate) struct IntoSimilar<'a> {
    sketches: RowCursor<RowsIter<'a, SignatureRow>, SignatureRow>,
    /// The documents read again, if the store keeps texts.
    texts: Option<(Reread<'a>, &'a DocumentOptions)>,
    stored: &'a DocumentComparer,
    /// Notes by their ids: a store takes them in the order of ids.
    notes: Sorter<(u64, Vec<u8>)>,
}

impl<'a> IntoSimilar<'a> {
    pub(crate) fn new(
        sketches: &'a Rows<SignatureRow>,
        texts: Option<(Reread<'a>, &'a DocumentOptions)>,
        stored: &'a DocumentComparer,
        workspace: &Workspace,
    ) -> Result<Self> {
        let notes = Sorter::new(workspace.temporary.clone(), workspace.share());
        Ok(IntoSimilar { sketches: sketches.cursor()?, texts, stored, notes })
    }

    pub(crate) fn push<F: Fingerprint>(
        &mut self,
        load: &mut BulkLoad<'_, F>,
        document: &Document<'_>,
        id: u64,
        name: Option<&str>,
    ) -> Result<()> {
        let number = document.number as u32;
        let row = self.sketches.seek(number, |row| row.document)?;
        let row =
            row.ok_or_else(|| Error::Bug("a document without sketches is added to similar ones".to_owned()))?;
        let text = match &mut self.texts {
            Some((reread, options)) => reread.record(document.number)?.into_document(options)?.text,
            None => String::new(),
        };
        let kept = EncodedDocument::new(row.signature(), &text, self.stored)
            .map_err(|error| Error::Refused(format!("{}: nothing was added: {error}", document.place())))?;
        for (at, fingerprint) in kept.fingerprints().enumerate() {
            match name.filter(|_| at == 0) {
                Some(name) => load.insert_named(fingerprint, id, name)?,
                None => load.insert(fingerprint, id)?,
            }
        }
        self.notes.push((id, kept.note()))
    }

    /// Adds what goes in the order of ids.
    pub(crate) fn finish<F: Fingerprint>(self, load: &mut BulkLoad<'_, F>) -> Result<()> {
        self.notes.finish()?.try_for_each(|row| row.and_then(|(id, note)| load.set_note(id, &note)))
    }
}
