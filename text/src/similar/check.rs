//! A full check of a store of similar documents, beyond the check of its files: `format-spec/similar.md`.

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result, Snapshot};

use super::SimilarSettings;
use super::kept::fingerprints;
use super::texts::Packing;
use crate::{Profile, Sketched};

/// Number of documents in a batch.
const BATCH: usize = 4096;

/// A document as it is found in a store.
pub(super) struct FoundDocument {
    pub(super) id: u64,
    /// Number of its fingerprints in the tables and logs.
    pub(super) fingerprints: u64,
    /// Its signature, if its note is sound.
    pub(super) sketched: std::result::Result<Sketched, Flaw>,
}

/// Damage of a note.
pub(super) enum Flaw {
    /// The signature is damaged or missing.
    Signature(&'static str),
    /// The text is damaged; the signature looks sound.
    Text(&'static str),
}

/// Reads a store of similar documents.
pub(super) struct Check<'a, F: Fingerprint> {
    pub(super) store: &'a Snapshot<F>,
    pub(super) settings: SimilarSettings,
    /// `None` where texts are not unpacked.
    pub(super) packing: Option<Packing>,
    /// `None` if it is unknown; then texts are not compared with their signatures.
    pub(super) profile: Option<Profile>,
}

impl<F: Fingerprint> Check<'_, F> {
    /// Visits all documents, ascending by id, also without fingerprints or without a note.
    pub(super) fn visit(&self, mut visit: impl FnMut(FoundDocument) -> Result<()>) -> Result<()> {
        // An id for each note and for each fingerprint, with the number of fingerprints.
        let mut ids: Vec<(u64, u64)> = self.store.noted_ids()?.into_iter().map(|id| (id, 0)).collect();
        for entry in self.store.iter() {
            ids.push((entry?.id.unwrap_or(0), 1));
        }
        ids.par_sort_unstable();
        let documents: Vec<&[(u64, u64)]> = ids.chunk_by(|a, b| a.0 == b.0).collect();
        for batch in documents.chunks(BATCH) {
            let ids: Vec<u64> = batch.iter().map(|same| same[0].0).collect();
            let notes = self.store.notes_of(&ids)?;
            let read = batch.par_iter().zip(notes).map(|(same, note)| {
                let (note, fingerprints) = (note.unwrap_or_default(), same.iter().map(|&(_, one)| one).sum());
                if note.is_empty() && fingerprints == 0 {
                    return Ok(None);
                }
                Ok(Some(FoundDocument { id: same[0].0, fingerprints, sketched: self.read(&note)? }))
            });
            read.collect::<Result<Vec<_>>>()?.into_iter().flatten().try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// The signature in a note, if all of the note is sound.
    fn read(&self, note: &[u8]) -> Result<std::result::Result<Sketched, Flaw>> {
        if note.is_empty() {
            return Ok(Err(Flaw::Signature("no note")));
        }
        let Some((sketched, packed)) = Sketched::from_bytes(note) else {
            return Ok(Err(Flaw::Signature("a note without a signature")));
        };
        let Some(packing) = self.packing.as_ref().filter(|_| self.settings.has_texts()) else {
            return Ok(Ok(sketched));
        };
        let text = match packing.unpack(packed, self.store)? {
            Ok(text) => text,
            Err(found) => return Ok(Err(Flaw::Text(found))),
        };
        if let Some(profile) = &self.profile
            && Sketched::new(&profile.feature_set(&text)).as_ref() != Some(&sketched)
        {
            return Ok(Err(Flaw::Text("a text that does not match its signature")));
        }
        Ok(Ok(sketched))
    }
}

/// The fingerprints that a store has of a document, ascending, each once.
pub(super) fn stored_fingerprints<F: Fingerprint>(sketched: &Sketched, settings: &SimilarSettings) -> Vec<F> {
    let mut stored: Vec<F> = fingerprints(sketched, settings.sketches()).collect();
    stored.sort_unstable();
    stored.dedup();
    stored
}

/// Checks a store of similar documents: settings, dictionary and notes. Also checks that texts match the signatures in their notes,
/// and that fingerprints match the signatures. Calls `damaged` for each problem, and returns the number of problems. A store of
/// fingerprints has no problems. Expects files without damage: see [`Snapshot::verify`].
///
/// Texts are compared with their signatures where the store's profile needs no files.
///
/// # Errors
/// Errors of reading the store.
pub fn check_similar<F: Fingerprint>(store: &Snapshot<F>, mut damaged: impl FnMut(Error)) -> Result<u64> {
    let settings = match SimilarSettings::of_store(store) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Ok(0),
        Err(error @ Error::Refused(_)) => {
            damaged(error);
            return Ok(1);
        }
        Err(error) => return Err(error),
    };
    let packing = Packing::default();
    if settings.has_texts() {
        match packing.learn(store) {
            Err(error @ Error::Refused(_)) => {
                damaged(error);
                return Ok(1);
            }
            learnt => learnt?,
        };
    }
    let profile = store.profile().parse().ok();
    let check = Check { store, settings, packing: Some(packing), profile };
    let mut problems = 0;
    let mut problem = |id: u64, found: &str| {
        problems += 1;
        damaged(Error::Refused(format!(
            "{}: document {id}: {found}; delete the document, and add it again",
            store.path().display()
        )));
    };
    check.visit(|document| {
        let sketched = match &document.sketched {
            Ok(sketched) => sketched,
            Err(Flaw::Signature(found) | Flaw::Text(found)) => {
                problem(document.id, &format!("expected a note with a signature (and the text, in a store with texts), found {found}"));
                return Ok(());
            }
        };
        let expected = stored_fingerprints::<F>(sketched, &settings);
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

    /// How a sound store is damaged.
    type Damage = fn(&mut Transaction<'_, u64>, &Sketched);

    fn sketched(text: &str) -> Sketched {
        Sketched::new(&Profile::shingles().feature_set(text)).unwrap()
    }

    /// Messages of the check after some damage to document 1 of three.
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
        damage(&mut transaction, &sketched(texts[1]));
        transaction.commit(Durability::Os).unwrap();
        let mut found = Vec::new();
        let problems = check_similar(&store.snapshot(), |error| found.push(error.to_string())).unwrap();
        assert_eq!(problems, found.len() as u64);
        found
    }

    #[test]
    fn each_damage_is_found_and_a_sound_store_has_none() {
        assert_eq!(found(|_, _| {}), [""; 0]);
        assert_eq!(
            found(|transaction, sketched| {
                let settings = SimilarSettings::new(0.8, 0.95).unwrap();
                settings.delete(transaction, sketched, 1);
            }),
            [""; 0]
        );
        let damages: [(Damage, &str); 9] = [
            (
                |transaction, _| transaction.note(1, &[]).unwrap(),
                "document 1: expected a note with a signature",
            ),
            (|transaction, _| transaction.note(1, &[7; 30]).unwrap(), "found a note without a signature"),
            (|transaction, sketched| transaction.note(1, &sketched.to_bytes()).unwrap(), "found no text"),
            (
                |transaction, sketched| {
                    let bytes = [&sketched.to_bytes()[..], &5_u32.to_le_bytes(), b"no frame"].concat();
                    transaction.note(1, &bytes).unwrap();
                },
                "found a text that cannot be decompressed",
            ),
            (
                |transaction, of_text| {
                    let text = Packing::default().pack("another text than it was").unwrap();
                    transaction.note(1, &[of_text.to_bytes(), text].concat()).unwrap();
                },
                "found a text that does not match its signature",
            ),
            (
                |transaction, _| {
                    let other = sketched("another text than it was");
                    let text = Packing::default().pack("another text than it was").unwrap();
                    transaction.note(1, &[other.to_bytes(), text].concat()).unwrap();
                },
                "is not in the tables",
            ),
            (
                |transaction, sketched| {
                    let packed = Packing::default().pack("is the question whether").unwrap();
                    // A deletion forgets the note.
                    transaction.delete(sketched.sketches[1], 1);
                    transaction.note(1, &[sketched.to_bytes(), packed].concat()).unwrap();
                },
                "is not in the tables",
            ),
            (|transaction, _| transaction.insert(7, 1), "fingerprints that are not in its signature"),
            (
                |transaction, _| transaction.mark("similar", b"similar 0.8 recall 0.95 bands 9").unwrap(),
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
