//! How documents are compared: by the similarity of their texts, or by the distance of their fingerprints.
//! [`ComparisonConfig`] is the user's choice, and may leave values to defaults. [`Criterion`] is the resolved
//! threshold.

use serde::Serialize;
use simstore::{Error, Result};
use simstore_text::{Profile, Resources, check_recall, check_similarity};

use simstore_corpus::{Diagnostic, Observer};

/// How documents are compared: texts by their similarity, or fingerprints by their distance.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ComparisonConfig {
    /// The inputs and the stores determine the comparison. With stores, the threshold of the stores applies, except that
    /// a run of documents against stores of fingerprints fails: it needs an explicit distance. Without stores, texts are
    /// compared with a minimum similarity of 0.8, and inputs that are fingerprints with a maximum distance of 3 bits.
    #[default]
    Default,
    /// Compares texts by their Jaccard similarity.
    Similarity(SimilarityConfig),
    /// Compares fingerprints by the number of differing bits.
    Distance(DistanceConfig),
}

/// Settings for comparing texts. The similarity of two texts is the Jaccard similarity of their feature sets:
/// the number of common features divided by the number of distinct features of both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimilarityConfig {
    /// Least similarity of near-duplicates, above 0 and up to 1. The default is 0.8, or with a store, the minimum
    /// similarity of the store. A low similarity does not allow a high recall: the default recall needs a
    /// similarity of at least 0.43.
    pub min_similarity: Option<f64>,
    /// Least probability of finding a pair whose similarity is exactly the minimum; 0.95 by default. Pairs with a
    /// higher similarity are found with a higher probability.
    pub recall: Option<f64>,
    /// Name of the [`Profile`] that turns texts into features. The default is
    /// [shingles](simstore_text::Profile::shingles), or for files of source code,
    /// [code](simstore_text::Profile::code).
    pub profile: Option<String>,
}

/// Settings for comparing fingerprints. The distance of two fingerprints is the number of differing bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DistanceConfig {
    /// Largest distance of near-duplicates, in bits. Without stores, the default is 3. With stores, the default for
    /// inputs that are fingerprints is the smallest distance that one of the stores was created for; for documents,
    /// the distance must be set.
    pub max_distance: Option<u32>,
    /// Width of fingerprints in bits, 64 or 128. The default is 64, or the width of the store.
    pub bits: Option<u32>,
    /// Name of the [`Profile`] that turns texts into fingerprints. The default is the
    /// profile of the store, or without a store, `Profile::default()`.
    pub profile: Option<String>,
    /// If set, documents with near fingerprints are near-duplicates only if their texts are similar too. The
    /// texts are read a second time.
    pub verify: Option<VerifyConfig>,
}

/// Settings for verifying documents with near fingerprints: their texts must be similar, too.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyConfig {
    /// Least Jaccard similarity of the two texts, from 0 to 1.
    pub min_similarity: f64,
    /// Name of the profile that turns the texts into features. It has the same default as
    /// [`SimilarityConfig::profile`].
    pub profile: Option<String>,
}

/// Options as a user gives them, from which [`into_config`](Self::into_config) makes a [`ComparisonConfig`]. Options
/// for comparing texts and options for comparing fingerprints exclude each other.
#[derive(Clone, Debug, Default)]
pub struct ComparisonOptions {
    /// Value for [`SimilarityConfig::min_similarity`].
    pub similar: Option<f64>,
    /// Value for [`SimilarityConfig::recall`].
    pub recall: Option<f64>,
    /// Value for [`DistanceConfig::max_distance`].
    pub distance: Option<u32>,
    /// Value for [`DistanceConfig::bits`].
    pub bits: Option<u32>,
    /// Value for [`DistanceConfig::profile`] if fingerprints are compared, else for [`SimilarityConfig::profile`].
    pub profile: Option<String>,
    /// Value for [`VerifyConfig::min_similarity`].
    pub verify_text: Option<f64>,
    /// Value for [`VerifyConfig::profile`] if fingerprints are compared, else for [`SimilarityConfig::profile`].
    pub verify_profile: Option<String>,
    /// If set, only equal texts are duplicates: texts are compared by
    /// [`Profile::exact`](simstore_text::Profile::exact), with a minimum similarity of 1.
    pub exact: bool,
}

impl ComparisonConfig {
    /// Returns a configuration that compares texts. Near-duplicates have a similarity of at least `least`.
    pub fn by_similarity(least: f64) -> ComparisonConfig {
        ComparisonConfig::Similarity(SimilarityConfig {
            min_similarity: Some(least),
            ..SimilarityConfig::default()
        })
    }

    /// Returns a configuration that compares fingerprints. Fingerprints of near-duplicates differ in at most
    /// `most` bits.
    pub fn by_distance(most: u32) -> ComparisonConfig {
        ComparisonConfig::Distance(DistanceConfig { max_distance: Some(most), ..DistanceConfig::default() })
    }

    /// Fails if a similarity or the recall is out of range.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            ComparisonConfig::Similarity(SimilarityConfig { min_similarity: least, recall, .. }) => {
                least.map_or(Ok(()), check_similarity)?;
                recall.map_or(Ok(()), check_recall)
            }
            ComparisonConfig::Distance(DistanceConfig {
                verify: Some(VerifyConfig { min_similarity: least, .. }),
                ..
            }) if !(0.0..=1.0).contains(least) => {
                bad_argument("option `verify_text`: expected a number from 0 to 1")
            }
            _ => Ok(()),
        }
    }

    /// Whether only equal texts are duplicates, as with [`ComparisonOptions::exact`].
    pub(crate) fn is_exact(&self) -> bool {
        let exact = Profile::exact().to_string();
        self.similarity_config().is_some_and(|similar| similar.profile.as_ref() == Some(&exact))
    }

    /// Returns the settings for texts, if texts are compared.
    pub(crate) fn similarity_config(&self) -> Option<&SimilarityConfig> {
        if let ComparisonConfig::Similarity(similar) = self { Some(similar) } else { None }
    }

    /// Returns the settings for fingerprints, if fingerprints are compared.
    pub(crate) fn distance_config(&self) -> Option<&DistanceConfig> {
        if let ComparisonConfig::Distance(distance) = self { Some(distance) } else { None }
    }

    /// Returns the settings for verifying texts, if the texts of near fingerprints are verified.
    pub(crate) fn verify_config(&self) -> Option<&VerifyConfig> {
        self.distance_config()?.verify.as_ref()
    }
}

impl ComparisonOptions {
    /// Converts the options to a configuration. `resources` has the files that profiles refer to.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if options exclude each other.
    pub fn into_config(self, resources: &Resources, observer: &dyn Observer) -> Result<ComparisonConfig> {
        let ComparisonOptions {
            similar,
            recall,
            distance,
            bits,
            profile,
            verify_text,
            verify_profile,
            exact,
        } = self;
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
                return bad_argument(format!(
                    "option `exact` finds only equal texts: leave out option `{option}`"
                ));
            }
            let profile = Some(Profile::exact().to_string());
            return Ok(ComparisonConfig::Similarity(SimilarityConfig {
                min_similarity: Some(1.0),
                recall,
                profile,
            }));
        }
        if similar.is_some() {
            let distance_config = [
                (distance.is_some(), "distance"),
                (bits.is_some(), "bits"),
                (verify_text.is_some(), "verify_text"),
            ];
            if let Some((_, option)) = distance_config.into_iter().find(|(is_set, _)| *is_set) {
                return bad_argument(format!(
                    "option `{option}` compares fingerprints, option `similar` compares texts: leave out one of them"
                ));
            }
            if profile.is_some() && verify_profile.is_some() {
                return bad_argument(
                    "options `profile` and `verify_profile` both set how texts are compared: leave out one of them",
                );
            }
            return Ok(ComparisonConfig::Similarity(SimilarityConfig {
                min_similarity: similar,
                recall,
                profile: profile.or(verify_profile),
            }));
        }
        // Resource files without `verify_profile` belong to the profile of fingerprints.
        let for_fingerprints = verify_profile.is_none() && given_resources(resources).next().is_some();
        if distance.is_none()
            && bits.is_none()
            && profile.is_none()
            && verify_text.is_none()
            && !for_fingerprints
        {
            return Ok(match (recall, verify_profile) {
                (None, None) => ComparisonConfig::Default,
                (recall, profile) => {
                    ComparisonConfig::Similarity(SimilarityConfig { min_similarity: None, recall, profile })
                }
            });
        }
        if recall.is_some() {
            return bad_argument(
                "option `recall` needs comparison by similarity: a search by distance finds all pairs",
            );
        }
        if verify_profile.is_some() && verify_text.is_none() {
            observer.diagnostic(&Diagnostic::Warning(
                "option `verify_profile` has no effect without option `verify_text`",
            ));
        }
        let verify = verify_text.map(|least| VerifyConfig { min_similarity: least, profile: verify_profile });
        Ok(ComparisonConfig::Distance(DistanceConfig { max_distance: distance, bits, profile, verify }))
    }
}

/// Returns the option name of each resource that is set, such as `dictionary`.
pub(crate) fn given_resources(resources: &Resources) -> impl Iterator<Item = &'static str> + use<> {
    let Resources { dictionary, stop_words, idf } = resources;
    let all = [("dictionary", dictionary), ("stop_words", stop_words), ("idf", idf)];
    all.map(|(option, resource)| resource.is_some().then_some(option)).into_iter().flatten()
}

/// Threshold for near-duplicates. It is serialized as a field `similar` or `distance`, like the option that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Criterion {
    /// Texts of near-duplicates have at least this similarity, from 0 to 1.
    #[serde(rename = "similar")]
    Similarity(f64),
    /// Fingerprints of near-duplicates differ in at most this number of bits.
    Distance(u32),
}

/// Returns the error for an invalid option.
pub(crate) fn bad_argument<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::BadArgument(reason.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn into_config(options: ComparisonOptions) -> std::result::Result<ComparisonConfig, String> {
        options.into_config(&Resources::default(), &()).map_err(|error| error.to_string())
    }

    #[test]
    fn options_that_exclude_one_another_are_refused() {
        let none = ComparisonOptions::default;
        let name = || Some("words-2".to_owned());
        let similar = || ComparisonOptions { similar: Some(0.9), ..none() };
        let distance_config: [fn(ComparisonOptions) -> ComparisonOptions; 4] = [
            |options| ComparisonOptions { distance: Some(3), ..options },
            |options| ComparisonOptions { bits: Some(128), ..options },
            |options| ComparisonOptions { verify_text: Some(0.5), ..options },
            |options| ComparisonOptions { profile: Some("words-2".to_owned()), ..options },
        ];
        for (at, with) in distance_config.iter().enumerate() {
            assert!(matches!(into_config(with(none())), Ok(ComparisonConfig::Distance(_))), "{at}");
            let recall = into_config(with(ComparisonOptions { recall: Some(0.9), ..none() })).unwrap_err();
            assert!(recall.contains("option `recall` needs comparison by similarity"), "{recall}");
            let both = into_config(with(similar()));
            // With `by_similarity`, `profile` is a profile of texts.
            match at {
                3 => assert!(matches!(
                    both,
                    Ok(ComparisonConfig::Similarity(SimilarityConfig { profile: Some(_), .. }))
                )),
                _ => assert!(both.unwrap_err().contains("leave out one of them")),
            }
        }
        let exact = |options| ComparisonOptions { exact: true, ..options };
        let equal =
            SimilarityConfig { min_similarity: Some(1.0), recall: None, profile: Some("exact".to_owned()) };
        assert_eq!(into_config(exact(none())), Ok(ComparisonConfig::Similarity(equal)));
        for with in distance_config {
            assert!(
                into_config(exact(with(none())))
                    .unwrap_err()
                    .contains("option `exact` finds only equal texts")
            );
        }
        assert!(into_config(exact(similar())).unwrap_err().contains("leave out option `similar`"));
        let two = ComparisonOptions { profile: name(), verify_profile: name(), ..similar() };
        assert!(into_config(two).unwrap_err().contains("leave out one of them"));
        assert_eq!(into_config(none()), Ok(ComparisonConfig::Default));
        let text_config =
            ComparisonConfig::Similarity(SimilarityConfig { profile: name(), ..SimilarityConfig::default() });
        assert_eq!(into_config(ComparisonOptions { verify_profile: name(), ..none() }), Ok(text_config));
        let verified = ComparisonOptions { verify_text: Some(0.5), verify_profile: name(), ..none() };
        let Ok(compare) = into_config(verified) else { panic!() };
        assert_eq!(compare.verify_config(), Some(&VerifyConfig { min_similarity: 0.5, profile: name() }));
    }
}
