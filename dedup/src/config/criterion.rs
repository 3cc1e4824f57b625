//! The criterion of near documents: how similar their texts are, or in how many bits their fingerprints differ. [`Compare`] is the
//! request of a user, and [`Criterion`] the same without defaults.

use serde::Serialize;
use simstore::{Error, Result};
use simstore_text::{Profile, Resources, check_recall, check_similarity};

use simstore_corpus::{Notice, Watch};

/// How documents are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Compare {
    /// Chosen by input and stores: texts of similarity 0.8, fingerprints within 3 bits, or the threshold of the stores.
    #[default]
    Default,
    /// Compares texts by their similarity.
    Similar(Similar),
    /// Compares fingerprints by the number of differing bits.
    Distance(Distance),
}

/// Settings for texts. Their similarity is the share of their features that two texts have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Similar {
    /// Least similarity of near texts, above 0 and up to 1. The default is 0.8, or the similarity of the store. The value must be
    /// large enough for the recall: at least 0.43 for the default recall.
    pub least: Option<f64>,
    /// Least probability of finding two texts of exactly the least similarity; 0.95 by default. More similar texts are found with
    /// a greater probability.
    pub recall: Option<f64>,
    /// Name of the [`Profile`](simstore_text::Profile) of the features. The default is
    /// [shingles](simstore_text::Profile::shingles), or for files of source code, [code](simstore_text::Profile::code).
    pub profile: Option<String>,
}

/// Settings for fingerprints, which are compared by the number of differing bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distance {
    /// Greatest distance of near fingerprints, in bits. The default is 3, or the distance of the store.
    pub most: Option<u32>,
    /// Width of fingerprints in bits, 64 or 128. The default is 64, or the width of the store.
    pub bits: Option<u32>,
    /// Name of the [`Profile`](simstore_text::Profile) that turns texts into fingerprints. The default is the default profile, or
    /// the profile of the store.
    pub profile: Option<String>,
    /// If set, near fingerprints count only if their texts are similar. The texts are read a second time.
    pub verify: Option<Verify>,
}

/// Check of the texts of documents with near fingerprints. The documents are near only if their texts are similar, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Verify {
    /// Least similarity of two texts, from 0 to 1: the share of all features of the two texts that is in both.
    pub least: f64,
    /// Name of the profile of these features, with the default of [`Similar::profile`].
    pub profile: Option<String>,
}

/// User options that choose a [`Compare`]. An option about texts and an option about fingerprints exclude each other.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// [`Similar::least`].
    pub similar: Option<f64>,
    /// [`Similar::recall`].
    pub recall: Option<f64>,
    /// [`Distance::most`].
    pub distance: Option<u32>,
    /// [`Distance::bits`].
    pub bits: Option<u32>,
    /// [`Distance::profile`], or with `similar` [`Similar::profile`].
    pub profile: Option<String>,
    /// [`Verify::least`].
    pub verify_text: Option<f64>,
    /// [`Verify::profile`] or [`Similar::profile`].
    pub verify_profile: Option<String>,
    /// Compares texts by [`Profile::exact`](simstore_text::Profile::exact), with similarity 1.
    pub exact: bool,
}

impl Compare {
    /// Compares texts; near texts have at least this similarity.
    pub fn similar(least: f64) -> Compare {
        Compare::Similar(Similar { least: Some(least), ..Similar::default() })
    }

    /// Compares fingerprints; near fingerprints differ in at most `most` bits.
    pub fn distance(most: u32) -> Compare {
        Compare::Distance(Distance { most: Some(most), ..Distance::default() })
    }

    /// Refuses numbers out of range.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Compare::Similar(Similar { least, recall, .. }) => {
                least.map_or(Ok(()), check_similarity)?;
                recall.map_or(Ok(()), check_recall)
            }
            Compare::Distance(Distance { verify: Some(Verify { least, .. }), .. })
                if !(0.0..=1.0).contains(least) =>
            {
                bad("option `verify_text`: expected a number from 0 to 1")
            }
            _ => Ok(()),
        }
    }

    /// Whether only equal texts are duplicates, as with [`CompareOptions::exact`].
    pub(crate) fn is_exact(&self) -> bool {
        let exact = Profile::exact().to_string();
        self.of_similar().is_some_and(|similar| similar.profile.as_ref() == Some(&exact))
    }

    /// Settings for texts, if these are compared.
    pub(crate) fn of_similar(&self) -> Option<&Similar> {
        if let Compare::Similar(similar) = self { Some(similar) } else { None }
    }

    /// Settings for fingerprints, if these are compared.
    pub(crate) fn of_distance(&self) -> Option<&Distance> {
        if let Compare::Distance(distance) = self { Some(distance) } else { None }
    }

    /// Settings for the check of texts, if near fingerprints are verified.
    pub(crate) fn verify(&self) -> Option<&Verify> {
        self.of_distance()?.verify.as_ref()
    }
}

impl CompareOptions {
    /// Combines the options. `resources` holds the files that profiles refer to.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if options exclude each other.
    pub fn compare(self, resources: &Resources, watch: &dyn Watch) -> Result<Compare> {
        let CompareOptions { similar, recall, distance, bits, profile, verify_text, verify_profile, exact } =
            self;
        if exact {
            let others = [
                (similar.is_some(), "similar"),
                (recall.is_some(), "recall"),
                (distance.is_some(), "distance"),
                (bits.is_some(), "bits"),
                (profile.is_some(), "profile"),
                (verify_text.is_some(), "verify_text"),
                (verify_profile.is_some(), "verify_profile"),
            ];
            if let Some((_, option)) = others.into_iter().find(|(is_set, _)| *is_set) {
                return bad(format!("option `exact` finds only equal texts: leave out option `{option}`"));
            }
            let profile = Some(Profile::exact().to_string());
            return Ok(Compare::Similar(Similar { least: Some(1.0), recall, profile }));
        }
        if similar.is_some() {
            let of_distance = [
                (distance.is_some(), "distance"),
                (bits.is_some(), "bits"),
                (verify_text.is_some(), "verify_text"),
            ];
            if let Some((_, option)) = of_distance.into_iter().find(|(is_set, _)| *is_set) {
                return bad(format!(
                    "option `{option}` compares fingerprints, option `similar` compares texts: leave out one of them"
                ));
            }
            if profile.is_some() && verify_profile.is_some() {
                return bad(
                    "options `profile` and `verify_profile` both set how texts are compared: leave out one of them",
                );
            }
            return Ok(Compare::Similar(Similar {
                least: similar,
                recall,
                profile: profile.or(verify_profile),
            }));
        }
        // With `verify_profile`, the resource files may belong to that profile. Otherwise they belong to fingerprints.
        let for_fingerprints = verify_profile.is_none() && given_resources(resources).next().is_some();
        if distance.is_none()
            && bits.is_none()
            && profile.is_none()
            && verify_text.is_none()
            && !for_fingerprints
        {
            return Ok(match (recall, verify_profile) {
                (None, None) => Compare::Default,
                (recall, profile) => Compare::Similar(Similar { least: None, recall, profile }),
            });
        }
        if recall.is_some() {
            return bad(
                "option `recall` needs comparison by similarity: a search by distance finds all pairs",
            );
        }
        if verify_profile.is_some() && verify_text.is_none() {
            watch.notice(&Notice::Warning(
                "option `verify_profile` has no effect without option `verify_text`",
            ));
        }
        let verify = verify_text.map(|least| Verify { least, profile: verify_profile });
        Ok(Compare::Distance(Distance { most: distance, bits, profile, verify }))
    }
}

/// Names of the given options for files that profiles refer to.
pub(crate) fn given_resources(resources: &Resources) -> impl Iterator<Item = &'static str> + use<> {
    let Resources { dictionary, stop_words, idf } = resources;
    let all = [("dictionary", dictionary), ("stop_words", stop_words), ("idf", idf)];
    all.map(|(option, resource)| resource.is_some().then_some(option)).into_iter().flatten()
}

/// The condition for near documents. It is serialized as a field `similar` or `distance`, after the options of these names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Criterion {
    /// Texts of at least this similarity, from 0 to 1.
    #[serde(rename = "similar")]
    Similarity(f64),
    /// Fingerprints that differ in at most this many bits.
    Distance(u32),
}

/// The error for an invalid option.
pub(crate) fn bad<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::BadArgument(reason.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(options: CompareOptions) -> std::result::Result<Compare, String> {
        options.compare(&Resources::default(), &()).map_err(|error| error.to_string())
    }

    #[test]
    fn options_that_exclude_one_another_are_refused() {
        let none = CompareOptions::default;
        let name = || Some("words-2".to_owned());
        let similar = || CompareOptions { similar: Some(0.9), ..none() };
        let of_distance: [fn(CompareOptions) -> CompareOptions; 4] = [
            |options| CompareOptions { distance: Some(3), ..options },
            |options| CompareOptions { bits: Some(128), ..options },
            |options| CompareOptions { verify_text: Some(0.5), ..options },
            |options| CompareOptions { profile: Some("words-2".to_owned()), ..options },
        ];
        for (at, with) in of_distance.iter().enumerate() {
            assert!(matches!(said(with(none())), Ok(Compare::Distance(_))), "{at}");
            let recall = said(with(CompareOptions { recall: Some(0.9), ..none() })).unwrap_err();
            assert!(recall.contains("option `recall` needs comparison by similarity"), "{recall}");
            let both = said(with(similar()));
            // With `similar`, `profile` is a profile of texts.
            match at {
                3 => assert!(matches!(both, Ok(Compare::Similar(Similar { profile: Some(_), .. })))),
                _ => assert!(both.unwrap_err().contains("leave out one of them")),
            }
        }
        let exact = |options| CompareOptions { exact: true, ..options };
        let equal = Similar { least: Some(1.0), recall: None, profile: Some("exact".to_owned()) };
        assert_eq!(said(exact(none())), Ok(Compare::Similar(equal)));
        for with in of_distance {
            assert!(said(exact(with(none()))).unwrap_err().contains("option `exact` finds only equal texts"));
        }
        assert!(said(exact(similar())).unwrap_err().contains("leave out option `similar`"));
        let two = CompareOptions { profile: name(), verify_profile: name(), ..similar() };
        assert!(said(two).unwrap_err().contains("leave out one of them"));
        assert_eq!(said(none()), Ok(Compare::Default));
        let of_texts = Compare::Similar(Similar { profile: name(), ..Similar::default() });
        assert_eq!(said(CompareOptions { verify_profile: name(), ..none() }), Ok(of_texts));
        let verified = CompareOptions { verify_text: Some(0.5), verify_profile: name(), ..none() };
        let Ok(compare) = said(verified) else { panic!() };
        assert_eq!(compare.verify(), Some(&Verify { least: 0.5, profile: name() }));
    }
}
