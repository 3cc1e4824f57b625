//! Which question is asked: how similar texts are, or in how many bits their fingerprints differ. [`Compare`] is what users ask for,
//! [`Question`] what is answered.

use serde::Serialize;
use simstore::{Error, Result};
use simstore_text::Resources;

use crate::{Notice, Watch};

/// What is near what.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Compare {
    /// By what is at hand: texts of a similarity of 0.8, fingerprints within 3 bits, and what stores were made for.
    #[default]
    Default,
    /// Texts by their similarity.
    Similar(Similar),
    /// Fingerprints by the bits in which they differ.
    Distance(Distance),
}

/// Texts by their similarity: the share of their features that two texts have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Similar {
    /// Least similarity of near texts: a number above 0, up to 1, and large enough for the recall: at least 0.43 by default. 0.8 by
    /// default, or that of the store.
    pub least: Option<f64>,
    /// The least probability that two texts of just that similarity are found; 0.95 by default. More similar ones are found
    /// with a greater one.
    pub recall: Option<f64>,
    /// The name of the [`Profile`](simstore_text::Profile) of the features; [shingles](simstore_text::Profile::shingles) by default,
    /// or for files of source code [that of code](simstore_text::Profile::code).
    pub profile: Option<String>,
}

/// Fingerprints by the bits in which they differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distance {
    /// Fingerprints are near that differ in at most so many bits; 3 by default, or what the store was built for.
    pub most: Option<u32>,
    /// Width of fingerprints in bits, 64 or 128; 64 by default, or that of the store.
    pub bits: Option<u32>,
    /// The name of the [`Profile`](simstore_text::Profile) by which texts become fingerprints; the default one, or that of the
    /// store.
    pub profile: Option<String>,
    /// Whether the texts decide, which are read a second time.
    pub verify: Option<Verify>,
}

/// Documents whose fingerprints are near are alike only if their texts are.
#[derive(Clone, Debug, PartialEq)]
pub struct Verify {
    /// At least this share (0 to 1) of all features of the two is in both.
    pub least: f64,
    /// The name of the profile of these features, as [`Similar::profile`].
    pub profile: Option<String>,
}

/// The same as users say it, by one option each. Options that ask for different things exclude one another.
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
    /// [`Distance::profile`]; with `similar` [`Similar::profile`].
    pub profile: Option<String>,
    /// [`Verify::least`].
    pub verify_text: Option<f64>,
    /// [`Verify::profile`] or [`Similar::profile`].
    pub verify_profile: Option<String>,
}

impl Compare {
    /// Texts of at least this similarity.
    pub fn similar(least: f64) -> Compare {
        Compare::Similar(Similar { least: Some(least), ..Similar::default() })
    }

    /// Fingerprints within so many bits.
    pub fn distance(most: u32) -> Compare {
        Compare::Distance(Distance { most: Some(most), ..Distance::default() })
    }

    /// Refuses numbers that make no sense.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Compare::Similar(Similar { least: Some(least), .. }) if !(*least > 0.0 && *least <= 1.0) => {
                bad("option `similar`: expected a number above 0, up to 1")
            }
            Compare::Similar(Similar { recall: Some(recall), .. }) if !(*recall > 0.0 && *recall < 1.0) => {
                bad("option `recall`: expected a number between 0 and 1")
            }
            Compare::Distance(Distance { verify: Some(Verify { least, .. }), .. })
                if !(0.0..=1.0).contains(least) =>
            {
                bad("option `verify_text`: expected a number from 0 to 1")
            }
            _ => Ok(()),
        }
    }

    /// What is said of texts that are compared by similarity.
    pub(super) fn of_similar(&self) -> Option<&Similar> {
        if let Compare::Similar(similar) = self { Some(similar) } else { None }
    }

    /// What is said of fingerprints.
    pub(super) fn of_distance(&self) -> Option<&Distance> {
        if let Compare::Distance(distance) = self { Some(distance) } else { None }
    }

    /// The texts that decide whether documents of near fingerprints are alike.
    pub(super) fn verify(&self) -> Option<&Verify> {
        self.of_distance()?.verify.as_ref()
    }
}

impl CompareOptions {
    /// What they ask for together. `resources` are files that profiles refer to.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for options that exclude one another.
    pub fn compare(self, resources: &Resources, watch: &dyn Watch) -> Result<Compare> {
        let CompareOptions { similar, recall, distance, bits, profile, verify_text, verify_profile } = self;
        if similar.is_some() {
            let of_distance = [
                (distance.is_some(), "distance"),
                (bits.is_some(), "bits"),
                (verify_text.is_some(), "verify_text"),
            ];
            if let Some((_, option)) = of_distance.into_iter().find(|(is_set, _)| *is_set) {
                return bad(format!(
                    "option `{option}` is about fingerprints, option `similar` about the texts themselves: leave out one of them"
                ));
            }
            if profile.is_some() && verify_profile.is_some() {
                return bad(
                    "options `profile` and `verify_profile` both name what texts are compared by: leave out one of them",
                );
            }
            return Ok(Compare::Similar(Similar {
                least: similar,
                recall,
                profile: profile.or(verify_profile),
            }));
        }
        // Files that profiles refer to may be those of `verify_profile`.
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
                "option `recall` is about texts that are compared by similarity: of fingerprints within a distance, all are \
                 found",
            );
        }
        if verify_profile.is_some() && verify_text.is_none() {
            watch.notice(&Notice::Warning(
                "option `verify_profile` is not used: without option `verify_text`, fingerprints alone decide",
            ));
        }
        let verify = verify_text.map(|least| Verify { least, profile: verify_profile });
        Ok(Compare::Distance(Distance { most: distance, bits, profile, verify }))
    }
}

/// The options of files that profiles refer to, of those that are given.
pub(super) fn given_resources(resources: &Resources) -> impl Iterator<Item = &'static str> + use<> {
    let Resources { dictionary, stop_words, idf } = resources;
    let all = [("dictionary", dictionary), ("stop_words", stop_words), ("idf", idf)];
    all.map(|(option, resource)| resource.is_some().then_some(option)).into_iter().flatten()
}

/// What near means. It is serialized as a field `similar` or `distance`, as the options are called that ask it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Texts of at least this similarity, from 0 to 1.
    #[serde(rename = "similar")]
    Similarity(f64),
    /// Fingerprints that differ in at most so many bits.
    Distance(u32),
}

/// A question, and what a user might not expect of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) question: Question,
    /// Of an option that asks for nothing, but has made it another question than that of similar texts.
    pub(super) warning: Option<String>,
}

impl Asked {
    pub(super) fn plainly(question: Question) -> Asked {
        Asked { question, warning: None }
    }

    /// Says what a user might not expect. Returns the question.
    pub(super) fn told(self, watch: &dyn Watch) -> Question {
        self.warning.iter().for_each(|warning| watch.notice(&Notice::Warning(warning)));
        self.question
    }
}

fn bad<T>(reason: impl Into<String>) -> Result<T> {
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
            assert!(recall.contains("option `recall` is about texts"), "{recall}");
            let both = said(with(similar()));
            // A profile is one of texts then.
            match at {
                3 => assert!(matches!(both, Ok(Compare::Similar(Similar { profile: Some(_), .. })))),
                _ => assert!(both.unwrap_err().contains("leave out one of them")),
            }
        }
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
