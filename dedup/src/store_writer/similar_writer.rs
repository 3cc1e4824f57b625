//! Writer of documents to a store of similar documents.

use simstore::store::BulkLoad;
use simstore::{Error, Fingerprint, Result};
use simstore_text::{DocumentComparer, EncodedDocument};

use crate::documents::block::DocumentRef;
use crate::documents::rereader::DocumentRereader;
use crate::rows::SignatureRow;
use crate::workspace::Workspace;
use simstore_corpus::spill::{RowCursor, Rows, RowsIter, Sorter};
use simstore_io::DocumentOptions;

/// Writes documents to a store of similar documents, in input order. The fingerprints of a document are bands of its
/// MinHash signature. Its note, the data that the store keeps with its id, has the whole signature, and the text if the
/// store keeps texts.
pub(crate) struct SimilarStoreWriter<'a> {
    signatures: RowCursor<RowsIter<'a, SignatureRow>, SignatureRow>,
    /// Reads the texts from the inputs a second time, if the store keeps texts; else `None`.
    texts: Option<(DocumentRereader<'a>, &'a DocumentOptions)>,
    comparer: &'a DocumentComparer,
    /// Notes of the documents: (id, note). They are sorted, because a store takes notes in order of ids.
    notes: Sorter<(u64, Vec<u8>)>,
}

impl<'a> SimilarStoreWriter<'a> {
    pub(crate) fn new(
        signatures: &'a Rows<SignatureRow>,
        texts: Option<(DocumentRereader<'a>, &'a DocumentOptions)>,
        comparer: &'a DocumentComparer,
        workspace: &Workspace,
    ) -> Result<Self> {
        let notes = Sorter::new(workspace.temporary.clone(), workspace.share());
        Ok(SimilarStoreWriter { signatures: signatures.cursor()?, texts, comparer, notes })
    }

    pub(crate) fn push<F: Fingerprint>(
        &mut self,
        load: &mut BulkLoad<'_, F>,
        document: &DocumentRef<'_>,
        id: u64,
        name: Option<&str>,
    ) -> Result<()> {
        let number = document.number as u32;
        let row = self.signatures.seek(number, |row| row.document)?;
        let row = row
            .ok_or_else(|| Error::Bug("a document without signature is added to similar ones".to_owned()))?;
        let text = match &mut self.texts {
            Some((reread, options)) => reread.record(document.number)?.into_document(options)?.text,
            None => String::new(),
        };
        let kept = EncodedDocument::new(row.signature(), &text, self.comparer).map_err(|error| {
            Error::Refused(format!("{}: nothing was added: {error}", document.location()))
        })?;
        for (at, fingerprint) in kept.fingerprints().enumerate() {
            match name.filter(|_| at == 0) {
                Some(name) => load.insert_named(fingerprint, id, name)?,
                None => load.insert(fingerprint, id)?,
            }
        }
        self.notes.push((id, kept.note()))
    }

    /// Writes the collected notes to the store, in order of ids.
    pub(crate) fn finish<F: Fingerprint>(self, load: &mut BulkLoad<'_, F>) -> Result<()> {
        self.notes.finish()?.try_for_each(|row| row.and_then(|(id, note)| load.set_note(id, &note)))
    }
}
