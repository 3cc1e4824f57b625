//! Turns options into the question that a run answers about documents and stores.

use std::path::Path;

use simstore::any::Width;
use simstore::error::excerpt;
use simstore::store::{is_store, stored_bits};
use simstore::{Error, Fingerprint, Result};
use simstore_text::{Profile, SimilarSettings};

use super::against::{Against, profile_of};
use super::documents::Keep;
use super::options::Options;
use super::question::{Asked, Compare, Distance, Question, Similar, given_resources};
use super::stages::choice;
use simstore_corpus::InputKind;

/// Default thresholds: the least similarity, and the greatest distance in bits.
pub(super) const SIMILARITY: f64 = 0.8;
const DISTANCE: u32 = 3;

impl Options {
    /// Refuses options that do not apply to this kind of input.
    pub(super) fn check_with(&self, kind: InputKind) -> Result<()> {
        if kind == InputKind::Documents {
            return Ok(());
        }
        let option = match &self.compare {
            Compare::Similar(Similar { least: Some(_), .. }) => Some("similar"),
            Compare::Similar(Similar { recall: Some(_), .. }) => Some("recall"),
            Compare::Similar(_) => Some("verify_profile"),
            Compare::Distance(Distance { profile: Some(_), .. }) => Some("profile"),
            Compare::Distance(Distance { verify: Some(_), .. }) => Some("verify_text"),
            Compare::Distance(_) | Compare::Default => None,
        };
        let others = [
            (self.resume.is_some(), "resume"),
            (self.keep == Keep::Longest || self.keep.field().is_some(), "keep"),
        ];
        let other = others.into_iter().find(|(is_set, _)| *is_set).map(|(_, option)| option);
        match option.or(other).or_else(|| given_resources(&self.resources).next()) {
            Some(option) => {
                bad(format!("option `{option}` needs documents, but the inputs are fingerprints"))
            }
            None => Ok(()),
        }
    }

    /// Width of the fingerprints: as the option `bits` or the stores say, else 64 bits.
    pub(super) fn width(&self) -> Result<Width> {
        let mut stored: Option<(u32, &Path)> = None;
        for (at, store) in self.against.iter().enumerate() {
            if !is_store(store) {
                // The first store may be missing if documents are added: it is made then.
                if at == 0 && self.add.is_some() {
                    continue;
                }
                return Err(Error::Refused(format!("{}: no such store", store.display())));
            }
            let bits = stored_bits(store)?;
            match stored {
                Some((other, first)) if other != bits => {
                    return Err(Error::Refused(format!(
                        "{}: has {bits}-bit fingerprints, but {} has {other}-bit fingerprints: use stores of one width",
                        store.display(),
                        first.display()
                    )));
                }
                _ => stored = Some((bits, store)),
            }
        }
        let asked = self.compare.of_distance().and_then(|distance| distance.bits);
        Width::of(asked.or(stored.map(|(bits, _)| bits)).unwrap_or(u64::BITS))
    }

    /// Returns the question for inputs of this kind, and for the stores, if any. `settings` holds the settings of the stores of
    /// similar documents.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if inputs or stores cannot answer the question of the options, or if a store would change the
    /// default question.
    pub(super) fn ask<F: Fingerprint>(
        &self,
        kind: InputKind,
        stores: &[Against<F>],
        settings: &[SimilarSettings],
    ) -> Result<Asked> {
        let asked = if settings.is_empty() {
            self.ask_fingerprints_or_texts(kind, stores)?
        } else {
            Asked::plainly(self.ask_similar_stores(kind, settings, profile_of(stores)?)?)
        };
        match asked.question {
            Question::Distance(distance) => check_distance::<F>(distance)?,
            // An impossible similarity or recall is refused before any input is read.
            Question::Similarity(least) => drop(choice::choose(least, self.recall(), 0)?),
        }
        Ok(asked)
    }

    fn ask_fingerprints_or_texts<F: Fingerprint>(
        &self,
        kind: InputKind,
        stores: &[Against<F>],
    ) -> Result<Asked> {
        let distances = stores.iter().filter_map(|store| Some(store.snapshot()?.distance()));
        // Every store can answer within the smallest distance of all stores.
        let distance = distances.min().unwrap_or(DISTANCE);
        // A store that does not exist yet will be made for the question.
        let there = stores.iter().find(|store| store.exists());
        match (&self.compare, there) {
            (Compare::Similar(Similar { least: Some(_), .. }), Some(_)) => bad(
                "option `similar` compares texts, but the store of option `against` has only fingerprints: use a store created by \
                 `simstore add` with option `similar`, or use option `distance`",
            ),
            (Compare::Distance(Distance { most: Some(most), .. }), _) => {
                Ok(Asked::plainly(Question::Distance(*most)))
            }
            _ if kind == InputKind::Fingerprints => Ok(Asked::plainly(Question::Distance(distance))),
            (_, Some(there)) => bad(format!(
                "{}: this store has fingerprints and no text similarities: give option `distance` ({distance} finds copies with very \
                 small edits), or use a store created by `simstore add` with option `similar`",
                there.path().display()
            )),
            (Compare::Distance(_), None) => Ok(Asked {
                question: Question::Distance(DISTANCE),
                warning: self.asks_for_fingerprints().map(|option| {
                    format!(
                        "option `{option}` compares fingerprints, within {DISTANCE} bits by default (option `distance` changes this); \
                         leave it out to compare texts by similarity"
                    )
                }),
            }),
            (Compare::Similar(similar), None) => {
                Ok(Asked::plainly(Question::Similarity(similar.least.unwrap_or(SIMILARITY))))
            }
            (Compare::Default, None) => Ok(Asked::plainly(Question::Similarity(SIMILARITY))),
        }
    }

    /// Returns an option that selects fingerprints without a distance.
    fn asks_for_fingerprints(&self) -> Option<&'static str> {
        let distance = self.compare.of_distance()?;
        let options = [
            (distance.bits.is_some(), "bits"),
            (distance.profile.is_some(), "profile"),
            (distance.verify.is_some(), "verify_text"),
        ];
        let option = options.into_iter().find(|(is_set, _)| *is_set).map(|(_, option)| option);
        option.or_else(|| given_resources(&self.resources).next())
    }

    /// Refuses a `keep` rule that stores of similar documents do not support.
    fn check_keep(&self) -> Result<()> {
        if self.keep == Keep::None {
            return bad(
                "option `keep` none does not work with a store of similar documents: run with option `keep` none and option `output` \
                 first, then compare this output with the store",
            );
        }
        Ok(())
    }

    /// Returns the settings of the store of similar documents that documents are added to. The store may exist or be new. Returns
    /// `None` if no documents are added, or if they are added to a store of fingerprints.
    pub(super) fn added_to_similar<F: Fingerprint>(
        &self,
        question: Question,
        stores: &[Against<F>],
        settings: &[SimilarSettings],
    ) -> Result<Option<SimilarSettings>> {
        let (Question::Similarity(least), Some((first, add))) = (question, stores.first().zip(self.add))
        else {
            return if self.add.is_some_and(|add| add.with_texts) {
                bad("option `with_texts` needs a new store of similar documents, created by option `add`")
            } else {
                Ok(None)
            };
        };
        if first.exists() {
            // `settings` has the existing stores in order, so the first is the store to add to.
            let stored = settings.first().copied();
            return match stored.filter(|stored| add.with_texts && !stored.has_texts()) {
                Some(_) => bad(format!(
                    "option `with_texts`: {} was created without texts: leave the option out, or use another store",
                    first.path().display()
                )),
                None => Ok(stored),
            };
        }
        self.check_keep()?;
        let made = SimilarSettings::new(least, self.recall())?;
        Ok(Some(if add.with_texts { made.with_texts() } else { made }))
    }

    /// Returns the question for stores of similar documents: the similarity of the stores, or a greater one.
    fn ask_similar_stores(
        &self,
        kind: InputKind,
        settings: &[SimilarSettings],
        stored: Option<&str>,
    ) -> Result<Question> {
        let default = (&Similar::default(), &Distance::default());
        let (similar, distance) = match &self.compare {
            Compare::Default => default,
            Compare::Similar(similar) => (similar, default.1),
            Compare::Distance(distance) => (default.0, distance),
        };
        let other = match similar.profile.as_ref().or(distance.profile.as_ref()) {
            Some(name) => {
                let profile = Profile::with_resources(name, &self.resources)?.to_string();
                (Some(&*profile) != stored).then(|| format!("profile `{}`", excerpt(name)))
            }
            None => None,
        };
        let of_distance = [
            (kind == InputKind::Fingerprints, "fingerprints in the input"),
            (distance.most.is_some(), "option `distance`"),
            (distance.bits.is_some(), "option `bits`"),
        ];
        let of_distance =
            of_distance.into_iter().find(|(is_set, _)| *is_set).map(|(_, what)| what.to_owned());
        if let Some(what) = of_distance.or(other) {
            return bad(format!(
                "{what}: not possible with a store of similar documents, which compares texts by their similarity"
            ));
        }
        self.check_keep()?;
        let greatest = |of: fn(&SimilarSettings) -> f64| settings.iter().map(of).max_by(f64::total_cmp);
        let stored = greatest(SimilarSettings::similar).unwrap_or(SIMILARITY);
        let least = similar.least.unwrap_or(stored);
        if least < stored {
            return bad(format!(
                "option `similar` is {least}, but the store was created for a similarity of at least {stored}"
            ));
        }
        let recall = settings.iter().map(SimilarSettings::recall).min_by(f64::total_cmp);
        match (similar.recall, recall) {
            (Some(asked), Some(recall)) if asked > recall => {
                bad(format!("option `recall` is {asked}, but the store was created with recall {recall}"))
            }
            _ => Ok(Question::Similarity(least)),
        }
    }
}

fn bad<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::BadArgument(reason.into()))
}

/// Refuses a distance above the maximum for fingerprints of this width.
fn check_distance<F: Fingerprint>(distance: u32) -> Result<()> {
    if distance <= F::MAX_DISTANCE {
        return Ok(());
    }
    bad(format!(
        "distance {distance} is too large: at most {} for {}-bit fingerprints",
        F::MAX_DISTANCE,
        F::BITS
    ))
}
