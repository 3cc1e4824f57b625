//! Rescue of a damaged store of similar documents.

use std::path::Path;

use simstore::store::{Finding, SalvageOptions, Salvaged, salvage, salvageable_marks};
use simstore::{Durability, Error, Result, Snapshot, Store, StoreOptions, Transaction};

use super::check::{Check, Flaw, check_similar, stored_fingerprints};
use super::texts::{Packing, dictionary_marks};
use super::{SIMILAR_MARK, SimilarSettings, estimate};
use crate::Sketched;

/// Changes of the new store are written in transactions of so many documents.
const BATCH: usize = 1000;

/// Makes another store of the intact part of a damaged one, as [`salvage`] does. Of a store of similar documents it keeps the settings,
/// the dictionary, and each document whose note is sound, with its text and all of its fingerprints; other documents are left out. If
/// the dictionary is lost, the new store has no texts. If the settings are lost, the new store has
/// the settings `given`, or none.
///
/// The new store is checked in the end: see [`check_similar`].
///
/// # Errors
/// As [`salvage`]; [`Error::Setting`] if the settings are not lost and other ones are given; [`Error::BadArgument`] if the options ask
/// for a distance that is too small for similar documents, or for new ids.
pub fn salvage_similar(
    path: &Path,
    new: &Path,
    options: &SalvageOptions,
    given: Option<SimilarSettings>,
) -> Result<Salvaged> {
    let marks = salvageable_marks::<u64>(path)?;
    let stored = marks.get(SIMILAR_MARK).and_then(|mark| std::str::from_utf8(mark).ok());
    let settings = match (stored.and_then(SimilarSettings::parse), given) {
        // Whether it keeps texts need not be given.
        (Some(stored), Some(given)) if !stored.finds_as(&given.with_texts_as(&stored)) => {
            return Err(Error::Setting {
                path: path.to_path_buf(),
                setting: "settings",
                has: stored.describe(),
                asked: given.describe(),
            });
        }
        (stored, given) => stored.or(given),
    };
    let Some(settings) = settings else {
        let mut salvaged = salvage::<u64>(path, new, options)?;
        if has_signatures(&Snapshot::open(new)?)? {
            salvaged.findings.push(lost(
                path,
                "the settings of the store of similar documents: the new store answers queries by fingerprint only; give the settings \
                 with `salvage --similar S --recall R`"
                    .to_owned(),
            ));
        }
        return Ok(salvaged);
    };
    let least = settings.distance();
    if let Some(distance) = options.distance.filter(|&distance| distance < least) {
        return Err(Error::BadArgument(format!(
            "{}: a store of similar documents with these settings needs a distance of {least} or more, not {distance}",
            path.display()
        )));
    }
    if options.keep_without_ids {
        return Err(Error::BadArgument(format!(
            "{}: in a store of similar documents, a fingerprint without an id is useless: leave out the option that keeps it",
            path.display()
        )));
    }
    let kept_marks = dictionary_marks().chain([SIMILAR_MARK.to_owned()]).collect();
    let options = SalvageOptions { least_distance: Some(least), kept_marks, ..options.clone() };
    let mut salvaged = salvage::<u64>(path, new, &options)?;
    if stored.is_none() && !has_signatures(&Snapshot::open(new)?)? {
        let what = "no document has a signature; the settings for similar documents are ignored";
        salvaged.findings.push(lost(path, what.to_owned()));
        return Ok(salvaged);
    }
    Repair { new, settings, cuts_notes: false }.run(stored.is_none(), &mut salvaged)?;
    let store = Snapshot::<u64>::open(new)?;
    let stats = store.stats();
    (salvaged.fingerprints, salvaged.ids) = (stats.fingerprints, stats.ids);
    (salvaged.names, salvaged.notes) = (stats.names, stats.notes);
    check_similar(&store, |error| salvaged.findings.push(lost(new, error.to_string())))?;
    Ok(salvaged)
}

fn lost(path: &Path, what: String) -> Finding {
    Finding { path: path.to_path_buf(), offset: None, what, lost: true }
}

/// Whether some note of a store is the signature that a fingerprint of its id is from.
fn has_signatures(store: &Snapshot<u64>) -> Result<bool> {
    let ids = store.noted_ids()?;
    for ids in ids.chunks(BATCH) {
        for (&id, note) in ids.iter().zip(store.notes_of(ids)?) {
            if let Some((sketched, _)) = Sketched::from_bytes(&note.unwrap_or_default())
                && store.contains_pair(sketched.sketches[0], id)?
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The first notes that are not empty.
fn first_notes(store: &Snapshot<u64>) -> Result<Vec<Vec<u8>>> {
    let ids = store.noted_ids()?;
    let notes = store.notes_of(&ids[..ids.len().min(BATCH)])?;
    Ok(notes.into_iter().flatten().filter(|note| !note.is_empty()).collect())
}

/// Has a new store hold whole documents, and nothing else.
struct Repair<'a> {
    new: &'a Path,
    settings: SimilarSettings,
    /// Whether texts are removed from notes.
    cuts_notes: bool,
}

/// Documents of a store.
#[derive(Default)]
struct Found {
    documents: u64,
    /// Documents with a damaged text.
    without_text: u64,
    /// Documents with a damaged note or text.
    left_out: u64,
    /// Ids of documents that the new store does not have as they have to be, with the signature if the note is sound.
    changes: Vec<(u64, Option<Sketched>)>,
}

impl Repair<'_> {
    fn run(mut self, settings_are_lost: bool, salvaged: &mut Salvaged) -> Result<()> {
        let store = Snapshot::<u64>::open(self.new)?;
        if settings_are_lost && Repair::has_texts(&store)? {
            self.settings = self.settings.with_texts();
        }
        let mut found = self.check(&store)?;
        let dictionary_is_lost = found.as_ref().is_none_or(|found| found.without_text * 2 > found.documents);
        if dictionary_is_lost {
            (self.settings, self.cuts_notes) = (self.settings.without_texts(), true);
            salvaged.findings.push(lost(
                self.new,
                "the dictionary of the texts: the new store keeps signatures without texts, and estimates similarities".to_owned(),
            ));
            found = self.check(&store)?;
        }
        let Found { left_out, changes, .. } = found.unwrap_or_default();
        if left_out > 0 {
            let what = format!("left out {left_out} documents with a lost or damaged note or text");
            salvaged.findings.push(lost(self.new, what));
        }
        let mark = self.settings.to_string();
        if store.mark(SIMILAR_MARK)?.as_deref() != Some(mark.as_bytes()) || !changes.is_empty() {
            self.write(&store, mark.as_bytes(), &changes)?;
        }
        Ok(())
    }

    /// Whether notes hold more than a signature.
    fn has_texts(store: &Snapshot<u64>) -> Result<bool> {
        Ok(first_notes(store)?.first().is_some_and(|note| note.len() > estimate::BYTES))
    }

    /// Reads all documents. `None` if the dictionary is none.
    fn check(&self, store: &Snapshot<u64>) -> Result<Option<Found>> {
        let packing = Packing::default();
        if self.settings.has_texts() {
            match packing.learn(store) {
                Err(Error::Refused(_)) => return Ok(None),
                learnt => learnt?,
            };
        }
        let check = Check {
            store,
            settings: self.settings,
            packing: Some(packing),
            profile: store.profile().parse().ok(),
        };
        let mut found = Found::default();
        check.visit(|document| {
            found.documents += 1;
            found.without_text += u64::from(matches!(document.sketched, Err(Flaw::Text(_))));
            let sketched = document.sketched.ok();
            found.left_out += u64::from(sketched.is_none());
            let expected =
                sketched.as_ref().map(|sketched| stored_fingerprints::<u64>(sketched, &self.settings));
            let expected = expected.unwrap_or_default();
            // Notes with texts are cut where the new store keeps none.
            let mut is_whole = document.fingerprints == expected.len() as u64 && !self.cuts_notes;
            for &fingerprint in &expected {
                is_whole &= store.contains_pair(fingerprint, document.id)?;
            }
            if !is_whole {
                found.changes.push((document.id, sketched));
            }
            Ok(())
        })?;
        Ok(Some(found))
    }

    /// Writes whole documents, in order of ids; documents without a signature go.
    fn write(&self, old: &Snapshot<u64>, mark: &[u8], changes: &[(u64, Option<Sketched>)]) -> Result<()> {
        // The fingerprints that are there, by document.
        let mut pairs = Vec::new();
        for entry in old.iter() {
            let entry = entry?;
            let id = entry.id.unwrap_or(0);
            if changes.binary_search_by_key(&id, |&(id, _)| id).is_ok() {
                pairs.push((id, entry.fingerprint));
            }
        }
        pairs.sort_unstable();
        let options = StoreOptions { compaction: false, ..StoreOptions::default() };
        let store = Store::<u64>::open(self.new, options)?;
        let mut transaction = store.transaction();
        transaction.mark(SIMILAR_MARK, mark)?;
        transaction.commit(Durability::Os)?;
        for batch in changes.chunks(BATCH) {
            let mut transaction = store.transaction();
            for (id, sketched) in batch {
                let begin = pairs.partition_point(|pair| pair.0 < *id);
                let there = pairs[begin..].iter().take_while(|pair| pair.0 == *id);
                // A deletion forgets note and name, too.
                there.for_each(|pair| transaction.delete(pair.1, *id));
                if let Some(sketched) = sketched {
                    self.insert(&mut transaction, old, *id, sketched)?;
                }
            }
            transaction.commit(Durability::Os)?;
        }
        store.compact()?;
        store.sync()
    }

    /// Inserts a document as a whole.
    fn insert(
        &self,
        transaction: &mut Transaction<'_, u64>,
        old: &Snapshot<u64>,
        id: u64,
        sketched: &Sketched,
    ) -> Result<()> {
        let mut name = old.name(id)?;
        for fingerprint in stored_fingerprints::<u64>(sketched, &self.settings) {
            match name.take() {
                Some(name) => transaction.insert_named(fingerprint, id, &name)?,
                None => transaction.insert(fingerprint, id),
            }
        }
        let note = if self.settings.has_texts() { old.note(id)? } else { None };
        transaction.note(id, &note.unwrap_or_else(|| sketched.to_bytes()))
    }
}
