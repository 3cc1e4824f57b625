//! The question that options ask of documents and of stores.

use simstore::{Error, Fingerprint, Result};
use simstore_text::{Profile, SimilarSettings};

use super::against::{Against, profile_of};
use super::documents::Keep;
use super::options::Options;
use super::question::{Asked, Question};
use super::stages::choice;
use crate::InputKind;

/// What is asked where nothing says what.
const SIMILARITY: f64 = 0.8;
const DISTANCE: u32 = 3;

impl Options {
    /// The question that is asked of inputs of a kind, and of stores if there are some. `settings` are those of stores of similar
    /// documents.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for options that ask for another question than is answered, and where a store would change the
    /// question that is asked by default.
    pub(super) fn ask<F: Fingerprint>(
        &self,
        kind: InputKind,
        stores: &[Against<F>],
        settings: &[SimilarSettings],
    ) -> Result<Asked> {
        let mut asked = if settings.is_empty() {
            self.ask_fingerprints_or_texts(kind, stores)?
        } else {
            Asked::plainly(self.ask_similar_stores(kind, settings, profile_of(stores)?)?)
        };
        match asked.question {
            Question::Distance(distance) => {
                if self.recall.is_some() {
                    return bad(
                        "option `recall` is about texts that are compared by similarity: of fingerprints within a distance, all are \
                         found",
                    );
                }
                if self.verify_profile.is_some() && self.verify_text.is_none() {
                    asked.warnings.push(
                        "option `verify_profile` is not used: without option `verify_text`, fingerprints alone decide".to_owned(),
                    );
                }
                check_distance::<F>(distance)?;
            }
            // Refused before anything is read.
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
        // Within the least distance all stores can be asked.
        let distance = distances.min().unwrap_or(DISTANCE);
        // A store that is made holds what the question asks for.
        let there = stores.iter().find(|store| store.exists());
        if let (Some(_), Some(_)) = (self.similar, there) {
            return bad(
                "option `similar` compares texts, but the store of option `against` holds only fingerprints: compare with a store \
                 that `simstore add` has made with option `similar`, or use option `distance`",
            );
        }
        if let Some(similar) = self.similar {
            return Ok(Asked::plainly(Question::Similarity(similar)));
        }
        if self.distance.is_some() || kind == InputKind::Fingerprints {
            return Ok(Asked::plainly(Question::Distance(self.distance.unwrap_or(distance))));
        }
        if let Some(store) = there {
            let store = store.path().display();
            return bad(format!(
                "{store}: a store of fingerprints tells in how many bits texts differ, not how similar they are: give option \
                 `distance` ({distance} finds copies with the smallest edits), or compare with a store that `simstore add` has made \
                 with option `similar`"
            ));
        }
        Ok(match self.asks_for_fingerprints() {
            None => Asked::plainly(Question::Similarity(SIMILARITY)),
            Some(option) => Asked {
                question: Question::Distance(DISTANCE),
                warnings: vec![format!(
                    "option `{option}` compares fingerprints, here within {DISTANCE} bits: option `distance` sets how many; without \
                     option `{option}`, texts are compared by their similarity"
                )],
            },
        })
    }

    /// An option that is about fingerprints, and so asks for them.
    fn asks_for_fingerprints(&self) -> Option<&'static str> {
        let options = [
            (self.bits.is_some(), "bits"),
            (self.profile.is_some(), "profile"),
            (self.verify_text.is_some(), "verify_text"),
        ];
        let option = options.into_iter().find(|(is_set, _)| *is_set).map(|(_, option)| option);
        // Files that profiles refer to may be those of `verify_profile`.
        option.or_else(|| self.given_resources().next().filter(|_| self.verify_profile.is_none()))
    }

    /// Refuses a rule that does not go with stores of similar documents.
    fn check_keep(&self) -> Result<()> {
        if self.keep == Keep::None {
            return bad(
                "option `keep` none cannot be used with a store of similar documents: first remove what has near-duplicates, with \
                 option `keep` none and option `output`, then compare that output with the store",
            );
        }
        Ok(())
    }

    /// The settings of the store of similar documents that is added to, if it is one, or is to be made.
    pub(super) fn added_to_similar<F: Fingerprint>(
        &self,
        question: Question,
        stores: &[Against<F>],
        settings: &[SimilarSettings],
    ) -> Result<Option<SimilarSettings>> {
        let (Question::Similarity(least), Some(first)) = (question, stores.first().filter(|_| self.add))
        else {
            return if self.with_texts {
                bad("option `with_texts` is for a store of similar documents that option `add` makes")
            } else {
                Ok(None)
            };
        };
        if first.exists() {
            // Those of the stores that are there, in their order.
            let stored = settings.first().copied();
            return match stored.filter(|stored| self.with_texts && !stored.has_texts()) {
                Some(_) => bad(format!(
                    "option `with_texts`: {} was made without texts, and stays so: leave it out, or name another store",
                    first.path().display()
                )),
                None => Ok(stored),
            };
        }
        self.check_keep()?;
        let made = SimilarSettings::new(least, self.recall())?;
        Ok(Some(if self.with_texts { made.with_texts() } else { made }))
    }

    /// The question of stores of similar documents: their own, or that of a greater similarity.
    fn ask_similar_stores(
        &self,
        kind: InputKind,
        settings: &[SimilarSettings],
        stored: Option<&str>,
    ) -> Result<Question> {
        let is_other = |name: &Option<String>| match name {
            Some(name) => Ok(Some(&*Profile::with_resources(name, &self.resources)?.to_string()) != stored),
            None => Ok::<bool, Error>(false),
        };
        let of_distance = [
            (kind == InputKind::Fingerprints, "fingerprints in the input"),
            (self.distance.is_some(), "option `distance`"),
            (self.bits.is_some(), "option `bits`"),
            (is_other(&self.profile)?, "option `profile`"),
            (is_other(&self.verify_profile)?, "option `verify_profile`"),
        ];
        if let Some((_, what)) = of_distance.iter().find(|(is_set, _)| *is_set) {
            return bad(format!(
                "{what}: a store of similar documents compares texts by their similarity, in its own way"
            ));
        }
        self.check_keep()?;
        let greatest = |of: fn(&SimilarSettings) -> f64| settings.iter().map(of).max_by(f64::total_cmp);
        let stored = greatest(SimilarSettings::similar).unwrap_or(SIMILARITY);
        let least = self.similar.unwrap_or(stored);
        if least < stored {
            return bad(format!(
                "option `similar` is {least}, but the store finds only documents of similarity {stored} or more"
            ));
        }
        let recall = settings.iter().map(SimilarSettings::recall).min_by(f64::total_cmp);
        match (self.recall, recall) {
            (Some(asked), Some(recall)) if asked > recall => bad(format!(
                "option `recall` is {asked}, but the store was made to find texts with a probability of {recall}"
            )),
            _ => Ok(Question::Similarity(least)),
        }
    }
}

fn bad<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::BadArgument(reason.into()))
}

/// Refuses a distance that no plan can be made for.
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
