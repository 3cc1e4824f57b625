//! Checks the documents of a [store of similar documents](crate::open_similar_store): whether signature, text and fingerprints of
//! each document match. Checksums of the files are not checked here. `format-spec/similar.md` defines the format.
//!
//! The *note* of a document is the bytes that the store keeps with the document's id: the signature, then the compressed text, if
//! the store keeps texts.

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result, Snapshot};

use super::SimilarSettings;
use super::encoded_document::indexed_fingerprints;
use super::text_codec::TextCodec;
use crate::{Profile, Signature};

/// Number of documents that are read together.
const BATCH_DOCUMENTS: usize = 4096;

/// A document of the store, as [`StoreCheck`] found it.
pub(super) struct CheckedDocument {
    pub(super) id: u64,
    /// Number of stored fingerprints with the document's id.
    pub(super) fingerprints: u64,
    /// The document's signature if its note (signature and compressed text) is undamaged; otherwise the damage.
    pub(super) signature: std::result::Result<Signature, NoteDamage>,
}

/// The damaged part of a document's note (signature and compressed text), with a description of the damage.
pub(super) enum NoteDamage {
    /// The signature is damaged or missing.
    Signature(&'static str),
    /// The text is damaged, or does not match the signature.
    Text(&'static str),
}

/// Reads all documents of a [store of similar documents](crate::open_similar_store), and checks the signature and the compressed
/// text of each.
pub(super) struct StoreCheck<'a, F: Fingerprint> {
    pub(super) store: &'a Snapshot<F>,
    pub(super) settings: SimilarSettings,
    /// Decompresses the texts. `None` if texts are not checked.
    pub(super) codec: Option<TextCodec>,
    /// Profile of the store. By this profile, the signature of each text is computed, and compared with the stored signature.
    /// `None` if the profile needs files, such as a dictionary; then texts are only decompressed.
    pub(super) profile: Option<Profile>,
}

impl<F: Fingerprint> StoreCheck<'_, F> {
    /// Calls `visit` with each document, in ascending order of id. A damaged document that has only fingerprints, or only a note
    /// (signature and compressed text), is visited too.
    pub(super) fn visit(&self, mut visit: impl FnMut(CheckedDocument) -> Result<()>) -> Result<()> {
        // Pairs of id and number of fingerprints: (id, 0) for each note, (id, 1) for each fingerprint.
        let mut ids: Vec<(u64, u64)> = self.store.ids_with_notes()?.into_iter().map(|id| (id, 0)).collect();
        for entry in self.store.iter() {
            ids.push((entry?.id.unwrap_or(0), 1));
        }
        ids.par_sort_unstable();
        let documents: Vec<&[(u64, u64)]> = ids.chunk_by(|a, b| a.0 == b.0).collect();
        for batch in documents.chunks(BATCH_DOCUMENTS) {
            let ids: Vec<u64> = batch.iter().map(|same| same[0].0).collect();
            let notes = self.store.notes_of(&ids)?;
            let read = batch.par_iter().zip(notes).map(|(same, note)| {
                let fingerprints = same.iter().map(|&(_, one)| one).sum();
                let signature = match note {
                    Some(note) => self.read(&note)?,
                    // The note was deleted, see `Snapshot::ids_with_notes`.
                    None if fingerprints == 0 => return Ok(None),
                    None => Err(NoteDamage::Signature("no note")),
                };
                Ok(Some(CheckedDocument { id: same[0].0, fingerprints, signature }))
            });
            read.collect::<Result<Vec<_>>>()?.into_iter().flatten().try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// Checks a document's note. Returns the signature in the note, or the damage. The outer error is for a store that cannot be
    /// read.
    fn read(&self, note: &[u8]) -> Result<std::result::Result<Signature, NoteDamage>> {
        let Some((signature, compressed)) = Signature::from_bytes(note) else {
            return Ok(Err(NoteDamage::Signature("a note without a signature")));
        };
        let Some(codec) = self.codec.as_ref().filter(|_| self.settings.has_texts()) else {
            return Ok(Ok(signature));
        };
        let text = match codec.decompress(compressed, self.store)? {
            Ok(text) => text,
            Err(found) => return Ok(Err(NoteDamage::Text(found))),
        };
        if let Some(profile) = &self.profile
            && Signature::new(&profile.feature_set(&text)).as_ref() != Some(&signature)
        {
            return Ok(Err(NoteDamage::Text("a text that does not match its signature")));
        }
        Ok(Ok(signature))
    }
}

/// Returns the distinct fingerprints under which a store with these settings indexes a document, in ascending order. They are the
/// first bands (64-bit words) of the document's signature.
pub(super) fn distinct_fingerprints<F: Fingerprint>(
    signature: &Signature,
    settings: &SimilarSettings,
) -> Vec<F> {
    let mut stored: Vec<F> = indexed_fingerprints(signature, settings.bands()).collect();
    stored.sort_unstable();
    stored.dedup();
    stored
}

/// Checks the content of a [store of similar documents](crate::open_similar_store): the settings, the compression dictionary, and
/// the note of each document (the bytes stored with its id: signature and compressed text). Each signature must match the indexed
/// fingerprints of the document and, unless the store's profile needs files, its text. A plain store of fingerprints is not
/// checked.
///
/// Calls `damaged` for each problem, and returns the number of problems. The files must be undamaged, so call [`Snapshot::verify`]
/// first.
///
/// # Errors
/// Errors of reading the store.
pub fn check_similar_store<F: Fingerprint>(
    store: &Snapshot<F>,
    mut damaged: impl FnMut(Error),
) -> Result<u64> {
    let settings = match SimilarSettings::from_store(store) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Ok(0),
        Err(error @ Error::Refused(_)) => {
            damaged(error);
            return Ok(1);
        }
        Err(error) => return Err(error),
    };
    let codec = TextCodec::default();
    if settings.has_texts() {
        match codec.load_dictionary(store) {
            Err(error @ Error::Refused(_)) => {
                damaged(error);
                return Ok(1);
            }
            loaded => loaded?,
        };
    }
    let profile = store.profile().parse().ok();
    let check = StoreCheck { store, settings, codec: Some(codec), profile };
    let mut problems = 0;
    let mut problem = |id: u64, found: &str| {
        problems += 1;
        damaged(Error::Refused(format!(
            "{}: document {id}: {found}; delete the document, and add it again",
            store.path().display()
        )));
    };
    check.visit(|document| {
        let signature = match &document.signature {
            Ok(signature) => signature,
            Err(NoteDamage::Signature(found) | NoteDamage::Text(found)) => {
                problem(document.id, &format!("expected a note with a signature (and the text, in a store with texts), found {found}"));
                return Ok(());
            }
        };
        let expected = distinct_fingerprints::<F>(signature, &settings);
        for &fingerprint in &expected {
            if !store.contains_pair(fingerprint, document.id)? {
                problem(document.id, &format!("its fingerprint {fingerprint:x} is not in the tables"));
            }
        }
        if document.fingerprints > expected.len() as u64 {
            problem(document.id, "it has fingerprints that are not in its signature");
        }
        Ok(())
    })?;
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use simstore::{Durability, Store, StoreOptions, Transaction};

    use super::*;
    use crate::SimilarDocuments;

    /// A function that damages a store of three documents. It receives the signature of the document with id 1.
    type Damage = fn(&mut Transaction<'_, u64>, &Signature);

    fn signature(text: &str) -> Signature {
        Signature::new(&Profile::shingles().feature_set(text)).unwrap()
    }

    /// Creates a store of three documents, damages it, and returns the error messages of the check.
    fn found(damage: Damage) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let settings = SimilarSettings::new(0.8, 0.95).unwrap().with_texts();
        let texts = ["to be or not to be that", "is the question whether", "it is nobler in the mind"];
        let documents =
            SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), settings).unwrap();
        for (id, text) in (0..).zip(texts) {
            documents.add(text, id, None).unwrap();
        }
        drop(documents);
        let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
        let mut transaction = store.transaction();
        damage(&mut transaction, &signature(texts[1]));
        transaction.commit(Durability::Os).unwrap();
        let mut found = Vec::new();
        let problems = check_similar_store(&store.snapshot(), |error| found.push(error.to_string())).unwrap();
        assert_eq!(problems, found.len() as u64);
        found
    }

    #[test]
    fn each_damage_is_found_and_a_sound_store_has_none() {
        assert_eq!(found(|_, _| {}), [""; 0]);
        assert_eq!(
            found(|transaction, signature| {
                let settings = SimilarSettings::new(0.8, 0.95).unwrap();
                settings.delete(transaction, signature, 1);
            }),
            [""; 0]
        );
        let damages: [(Damage, &str); 9] = [
            (
                |transaction, _| transaction.set_note(1, &[]).unwrap(),
                "document 1: expected a note with a signature",
            ),
            (|transaction, _| transaction.set_note(1, &[7; 30]).unwrap(), "found a note without a signature"),
            (
                |transaction, signature| transaction.set_note(1, &signature.to_bytes()).unwrap(),
                "found no text",
            ),
            (
                |transaction, signature| {
                    let bytes = [&signature.to_bytes()[..], &5_u32.to_le_bytes(), b"no frame"].concat();
                    transaction.set_note(1, &bytes).unwrap();
                },
                "found a text that cannot be decompressed",
            ),
            (
                |transaction, of_text| {
                    let text = TextCodec::default().compress("another text than it was").unwrap();
                    transaction.set_note(1, &[of_text.to_bytes(), text].concat()).unwrap();
                },
                "found a text that does not match its signature",
            ),
            (
                |transaction, _| {
                    let other = signature("another text than it was");
                    let text = TextCodec::default().compress("another text than it was").unwrap();
                    transaction.set_note(1, &[other.to_bytes(), text].concat()).unwrap();
                },
                "is not in the tables",
            ),
            (
                |transaction, signature| {
                    let compressed = TextCodec::default().compress("is the question whether").unwrap();
                    // A deletion also deletes the note.
                    transaction.delete(signature.bands[1], 1);
                    transaction.set_note(1, &[signature.to_bytes(), compressed].concat()).unwrap();
                },
                "is not in the tables",
            ),
            (|transaction, _| transaction.insert(7, 1), "fingerprints that are not in its signature"),
            (
                |transaction, _| {
                    transaction.set_metadata("similar", b"similar 0.8 recall 0.95 bands 9").unwrap();
                },
                "does not say how similar documents are found",
            ),
        ];
        for (damage, message) in damages {
            let found = found(damage);
            assert!(
                !found.is_empty() && found.iter().any(|found| found.contains(message)),
                "{message}: {found:?}"
            );
        }
    }
}
