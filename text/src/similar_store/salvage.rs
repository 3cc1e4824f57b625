//! Salvage of a damaged store of similar documents.

use std::path::Path;

use simstore::store::{Issue, SalvageOptions, SalvageReport, salvage, salvageable_metadata};
use simstore::{Durability, Error, Result, Snapshot, Store, StoreOptions, Transaction};

use super::check::{NoteDamage, StoreCheck, check_similar_store, distinct_fingerprints};
use super::text_codec::{TextCodec, dictionary_keys};
use super::{SIMILAR_STORE_KEY, SimilarSettings, similarity_estimate};
use crate::Signature;

/// Number of documents that are read together or written in one transaction.
const BATCH_DOCUMENTS: usize = 1000;

/// Writes the intact part of the damaged store at `path` to a new store at `new`, as [`salvage`] does.
///
/// If the damaged store is a [store of similar documents](crate::open_similar_store), the new store gets its settings, its
/// compression dictionary, and each document whose note (signature and compressed text) is undamaged. Fingerprints that such a
/// document lost are computed again from its signature. Documents with a damaged note are left out.
///
/// If the dictionary is lost, the new store keeps no texts. If the settings are lost, the new store gets `given_settings`, or no
/// settings. Finally, the new store is checked: see [`check_similar_store`].
///
/// # Errors
/// - The errors of [`salvage`].
/// - [`Error::Setting`] if the stored settings are intact and differ from `given_settings`.
/// - [`Error::BadArgument`] if the distance in `options` is smaller than the settings need, or if `options` keep fingerprints
///   without ids.
pub fn salvage_similar_store(
    path: &Path,
    new: &Path,
    options: &SalvageOptions,
    given_settings: Option<SimilarSettings>,
) -> Result<SalvageReport> {
    let metadata = salvageable_metadata::<u64>(path)?;
    let stored = metadata.get(SIMILAR_STORE_KEY).and_then(|value| std::str::from_utf8(value).ok());
    let settings = match (stored.and_then(SimilarSettings::parse), given_settings) {
        // `given_settings` need not say whether the store keeps texts.
        (Some(stored), Some(given_settings))
            if !stored.is_equivalent_to(&given_settings.with_texts_as(&stored)) =>
        {
            return Err(Error::Setting {
                path: path.to_path_buf(),
                setting: "settings",
                has: stored.describe(),
                requested: given_settings.describe(),
            });
        }
        (stored, given_settings) => stored.or(given_settings),
    };
    let Some(settings) = settings else {
        let mut salvaged = salvage::<u64>(path, new, options)?;
        if has_signatures(&Snapshot::open(new)?)? {
            salvaged.issues.push(lost_issue(
                path,
                "the settings of the store of similar documents: the new store answers queries by fingerprint only; give the settings \
                 with `salvage --similar S --recall R`"
                    .to_owned(),
            ));
        }
        return Ok(salvaged);
    };
    let min_distance = settings.band_distance();
    if let Some(distance) = options.distance.filter(|&distance| distance < min_distance) {
        return Err(Error::BadArgument(format!(
            "{}: a store of similar documents with these settings needs a distance of {min_distance} or more, not {distance}",
            path.display()
        )));
    }
    if options.keep_without_ids {
        return Err(Error::BadArgument(format!(
            "{}: in a store of similar documents, a fingerprint without an id is useless: leave out the option that keeps it",
            path.display()
        )));
    }
    let kept_metadata = dictionary_keys().chain([SIMILAR_STORE_KEY.to_owned()]).collect();
    let options = SalvageOptions { min_distance: Some(min_distance), kept_metadata, ..options.clone() };
    let mut salvaged = salvage::<u64>(path, new, &options)?;
    if stored.is_none() && !has_signatures(&Snapshot::open(new)?)? {
        let what = "no document has a signature; the settings for similar documents are ignored";
        salvaged.issues.push(lost_issue(path, what.to_owned()));
        return Ok(salvaged);
    }
    StoreRepair { new, settings, removes_texts: false }.run(stored.is_none(), &mut salvaged)?;
    let store = Snapshot::<u64>::open(new)?;
    let stats = store.stats();
    (salvaged.fingerprints, salvaged.ids) = (stats.fingerprints, stats.ids);
    (salvaged.names, salvaged.notes) = (stats.names, stats.notes);
    check_similar_store(&store, |error| salvaged.issues.push(lost_issue(new, error.to_string())))?;
    Ok(salvaged)
}

fn lost_issue(path: &Path, what: String) -> Issue {
    Issue { path: path.to_path_buf(), offset: None, description: what, is_loss: true }
}

/// Whether a store has any document whose note (the bytes stored with its id) begins with a signature, and that has the first
/// band of this signature as a fingerprint.
fn has_signatures(store: &Snapshot<u64>) -> Result<bool> {
    let ids = store.ids_with_notes()?;
    for ids in ids.chunks(BATCH_DOCUMENTS) {
        for (&id, note) in ids.iter().zip(store.notes_of(ids)?) {
            if let Some((signature, _)) = Signature::from_bytes(&note.unwrap_or_default())
                && store.contains_pair(signature.bands[0], id)?
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns the notes (signature and compressed text) of the first [`BATCH_DOCUMENTS`] documents.
fn first_notes(store: &Snapshot<u64>) -> Result<Vec<Vec<u8>>> {
    let ids = store.ids_with_notes()?;
    let notes = store.notes_of(&ids[..ids.len().min(BATCH_DOCUMENTS)])?;
    Ok(notes.into_iter().flatten().collect())
}

/// Repairs a salvaged store of similar documents, so that each of its documents has a signature, all its fingerprints and, if the
/// store keeps texts, its text.
struct StoreRepair<'a> {
    new: &'a Path,
    settings: SimilarSettings,
    /// Whether texts are removed from the documents' notes, because the compression dictionary is lost.
    removes_texts: bool,
}

/// The documents of a salvaged store that need repair, and counts of damaged documents.
#[derive(Default)]
struct RepairPlan {
    /// Number of all documents of the store, damaged or not.
    documents: u64,
    /// Number of documents with a damaged text but an undamaged signature.
    without_text: u64,
    /// Number of documents that are deleted by the repair, because their signature or text is damaged.
    left_out: u64,
    /// Documents that need repair, in ascending order of id. A document with a signature will be rewritten. A document with `None`
    /// will be deleted.
    changes: Vec<(u64, Option<Signature>)>,
}

impl StoreRepair<'_> {
    fn run(mut self, settings_are_lost: bool, salvaged: &mut SalvageReport) -> Result<()> {
        let store = Snapshot::<u64>::open(self.new)?;
        if settings_are_lost && StoreRepair::has_texts(&store)? {
            self.settings = self.settings.with_texts();
        }
        let mut plan = self.check(&store)?;
        let dictionary_is_lost = plan.as_ref().is_none_or(|plan| plan.without_text * 2 > plan.documents);
        if dictionary_is_lost {
            (self.settings, self.removes_texts) = (self.settings.without_texts(), true);
            salvaged.issues.push(lost_issue(
                self.new,
                "the dictionary of the texts: the new store keeps signatures without texts, and estimates similarities".to_owned(),
            ));
            plan = self.check(&store)?;
        }
        let RepairPlan { left_out, changes, .. } = plan.unwrap_or_default();
        if left_out > 0 {
            let what = format!("left out {left_out} documents with a lost or damaged note or text");
            salvaged.issues.push(lost_issue(self.new, what));
        }
        let metadata = self.settings.to_string();
        if store.metadata(SIMILAR_STORE_KEY)?.as_deref() != Some(metadata.as_bytes()) || !changes.is_empty() {
            self.write(&store, metadata.as_bytes(), &changes)?;
        }
        Ok(())
    }

    /// Whether the first document's note contains more than a signature, which means that the store keeps texts.
    fn has_texts(store: &Snapshot<u64>) -> Result<bool> {
        Ok(first_notes(store)?.first().is_some_and(|note| note.len() > similarity_estimate::SIGNATURE_BYTES))
    }

    /// Reads and checks all documents of the store, and returns the necessary repairs. Returns `None` if the store's compression
    /// dictionary is invalid.
    fn check(&self, store: &Snapshot<u64>) -> Result<Option<RepairPlan>> {
        let codec = TextCodec::default();
        if self.settings.has_texts() {
            match codec.load_dictionary(store) {
                Err(Error::Refused(_)) => return Ok(None),
                loaded => loaded?,
            };
        }
        let check = StoreCheck {
            store,
            settings: self.settings,
            codec: Some(codec),
            profile: store.profile().parse().ok(),
        };
        let mut plan = RepairPlan::default();
        check.visit(|document| {
            plan.documents += 1;
            plan.without_text += u64::from(matches!(document.signature, Err(NoteDamage::Text(_))));
            let signature = document.signature.ok();
            plan.left_out += u64::from(signature.is_none());
            let expected =
                signature.as_ref().map(|signature| distinct_fingerprints::<u64>(signature, &self.settings));
            let expected = expected.unwrap_or_default();
            // To remove texts from notes, all documents are rewritten.
            let mut is_whole = document.fingerprints == expected.len() as u64 && !self.removes_texts;
            for &fingerprint in &expected {
                is_whole &= store.contains_pair(fingerprint, document.id)?;
            }
            if !is_whole {
                plan.changes.push((document.id, signature));
            }
            Ok(())
        })?;
        Ok(Some(plan))
    }

    /// Writes the settings, encoded in `metadata`, to the store. Then rewrites or deletes the documents in `changes`, as
    /// [`RepairPlan::changes`] describes. `old` is a snapshot of the store before the changes.
    fn write(
        &self,
        old: &Snapshot<u64>,
        metadata: &[u8],
        changes: &[(u64, Option<Signature>)],
    ) -> Result<()> {
        // Existing pairs of id and fingerprint, for the documents that change.
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
        transaction.set_metadata(SIMILAR_STORE_KEY, metadata)?;
        transaction.commit(Durability::Os)?;
        for batch in changes.chunks(BATCH_DOCUMENTS) {
            let mut transaction = store.transaction();
            for (id, signature) in batch {
                let begin = pairs.partition_point(|pair| pair.0 < *id);
                let existing = pairs[begin..].iter().take_while(|pair| pair.0 == *id);
                // A deletion also deletes the note and the name.
                existing.for_each(|pair| transaction.delete(pair.1, *id));
                if let Some(signature) = signature {
                    self.insert(&mut transaction, old, *id, signature)?;
                }
            }
            transaction.commit(Durability::Os)?;
        }
        store.compact()?;
        store.sync()
    }

    /// Inserts a document again. Its fingerprints are computed from its signature. Its name and note are read from the snapshot
    /// `old`. If the store keeps no texts, the note is only the signature.
    fn insert(
        &self,
        transaction: &mut Transaction<'_, u64>,
        old: &Snapshot<u64>,
        id: u64,
        signature: &Signature,
    ) -> Result<()> {
        let mut name = old.name(id)?;
        for fingerprint in distinct_fingerprints::<u64>(signature, &self.settings) {
            match name.take() {
                Some(name) => transaction.insert_named(fingerprint, id, &name)?,
                None => transaction.insert(fingerprint, id),
            }
        }
        let note = if self.settings.has_texts() { old.note(id)? } else { None };
        transaction.set_note(id, &note.unwrap_or_else(|| signature.to_bytes()))
    }
}
