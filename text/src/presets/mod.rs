//! Presets, which reproduce the fingerprints of other tools, bit for bit.

use std::fmt;
use std::str::FromStr;

use self::weighted_fingerprint::visit_keywords;
use crate::simhash::Simhash;
use simstore::error::did_you_mean;
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result};

mod jieba_idf;
mod partial_sort;
mod practice_report;
mod pypi;
mod seomoz;
mod string_hash;
mod weighted_fingerprint;
mod yanyiwu;

/// Reproduces the fingerprints of another tool, bit for bit, for users who already have such fingerprints.
///
/// | name | bits | equals |
/// |---|---|---|
/// | `pypi-simhash` | 64 | `Simhash(text).value` of the package `simhash` 2.1.2 on PyPI |
/// | `seomoz-simhash` | 64 | `hash_tokenizer(text, Strspn())` of seomoz/simhash-cpp at commit 98dd188: a cyclic lookup3 hash of every three words of ASCII letters |
/// | `yanyiwu-simhash` | 64 | `make(text, 5)` of yanyiwu/simhash 1.3.0, if jieba-rs segments the text as cppjieba 5.4.0 does |
/// | `string-hash-64` | 64 | the class `simhash` that many tutorials for Python and Java contain, called with `text.split()` and `hashbits=64`: tokens between white space, hashed with a variant of Python 2's string hash |
/// | `string-hash-128` | 128 | the same class, with `hashbits=128` |
/// | `practice-report` | 64 | a pipeline for Chinese: the 50 heaviest keywords that jieba 0.42.1 extracts from the Han characters of the text, with their weights, hashed as in `string-hash-64` |
///
/// Like its tool, a preset gives every text a fingerprint. Texts without features have the fingerprint of the empty text, so
/// they are near-duplicates of one another.
///
/// ```
/// use simstore_text::Preset;
///
/// let preset: Preset = "pypi-simhash".parse()?;
/// assert_eq!(preset.bits(), 64);
/// let simhash = preset.fingerprint::<u64>("How are you? I am fine.").unwrap();
/// assert_eq!(simhash.fingerprint, 0xb513_c88e_a87e_a888);
/// assert_eq!(preset.fingerprint::<u128>("another width"), None);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// The package `simhash` on PyPI, from github.com/1e0ng/simhash.
    PypiSimhash,
    /// github.com/seomoz/simhash-cpp, at a version that still tokenizes texts itself.
    SeomozSimhash,
    /// github.com/yanyiwu/simhash, for Chinese.
    YanyiwuSimhash,
    /// The class `simhash` that many tutorials for Python and Java contain, called with `text.split()` and `hashbits=64`.
    StringHash64,
    /// The class `simhash` that many tutorials for Python and Java contain, called with `text.split()` and `hashbits=128`.
    StringHash128,
    /// A pipeline for Chinese, described in a practice report: the 50 heaviest keywords that jieba 0.42.1 extracts from the Han
    /// characters of the text, hashed as in [`Preset::StringHash64`].
    PracticeReport,
}

impl Preset {
    /// All presets, in the order of their declaration.
    pub const ALL: [Preset; 6] = [
        Preset::PypiSimhash,
        Preset::SeomozSimhash,
        Preset::YanyiwuSimhash,
        Preset::StringHash64,
        Preset::StringHash128,
        Preset::PracticeReport,
    ];

    /// Returns the preset's name, as in `simstore fingerprint --preset NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Preset::PypiSimhash => "pypi-simhash",
            Preset::SeomozSimhash => "seomoz-simhash",
            Preset::YanyiwuSimhash => "yanyiwu-simhash",
            Preset::StringHash64 => "string-hash-64",
            Preset::StringHash128 => "string-hash-128",
            Preset::PracticeReport => "practice-report",
        }
    }

    /// Returns the width of the fingerprints in bits: 64 or 128.
    pub fn bits(self) -> u32 {
        if self == Preset::StringHash128 { 128 } else { 64 }
    }

    /// Returns one line that names the tool and version whose fingerprints the preset reproduces.
    pub fn description(self) -> &'static str {
        match self {
            Preset::PypiSimhash => "Simhash(text).value of the package simhash 2.1.2 on PyPI",
            Preset::SeomozSimhash => {
                "hash_tokenizer(text, Strspn()) of seomoz/simhash-cpp at 98dd188: lookup3, cyclic windows of 3"
            }
            Preset::YanyiwuSimhash => {
                "make(text, 5) of yanyiwu/simhash 1.3.0; equal if jieba-rs and cppjieba 5.4.0 split the text alike"
            }
            Preset::StringHash64 => "Simhash class of Python and Java tutorials, 64 bits, for text.split()",
            Preset::StringHash128 => "Simhash class of Python and Java tutorials, 128 bits, for text.split()",
            Preset::PracticeReport => {
                "Han characters only, 50 weighted keywords of jieba 0.42.1, string hash"
            }
        }
    }

    /// Returns the fingerprint of a text, or `None` if `F` is not [`Preset::bits`] wide.
    pub fn fingerprint<F: Fingerprint>(self, text: &str) -> Option<Simhash<F>> {
        if F::BITS != self.bits() {
            return None;
        }
        match self {
            Preset::PypiSimhash => pypi::fingerprint(text),
            Preset::SeomozSimhash => Some(seomoz::fingerprint(text)),
            Preset::YanyiwuSimhash => Some(yanyiwu::fingerprint(text)),
            Preset::StringHash64 | Preset::StringHash128 => Some(string_hash::fingerprint(text)),
            Preset::PracticeReport => Some(practice_report::fingerprint(text)),
        }
    }

    /// Visits the features of a text with their weights. A feature may occur several times.
    ///
    /// If the reproduced tool selects keywords, the features are these keywords, and their weights are rounded to units of 2^-20.
    /// The fingerprint is computed from the unrounded weights. If the tool selects no keywords, each weight is 1.
    pub fn visit_features(self, text: &str, mut visit: impl FnMut(&str, u32)) {
        match self {
            Preset::PypiSimhash => pypi::visit_features(text, |feature| visit(feature, 1)),
            Preset::SeomozSimhash => seomoz::visit_features(text, |feature| visit(feature, 1)),
            Preset::YanyiwuSimhash => visit_keywords(&yanyiwu::keywords(text), visit),
            Preset::StringHash64 | Preset::StringHash128 => {
                string_hash::tokens(text).for_each(|token| visit(token, 1));
            }
            Preset::PracticeReport => {
                visit_keywords(&practice_report::keywords(&practice_report::only_han(text)), visit);
            }
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = Error;

    /// Parses a preset's name.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for an unknown name.
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(|preset| format!("`{preset}`")).join(", ");
            Error::BadArgument(format!(
                "unknown preset `{}`{}: expected one of {known}",
                excerpt(name).escape_debug(),
                did_you_mean(name, Self::ALL.map(Preset::name))
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_round_trip() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse::<Preset>().unwrap(), preset);
            assert!(!preset.description().is_empty());
        }
        let error = "simhash".parse::<Preset>().unwrap_err().to_string();
        assert!(error.contains("`simhash`") && error.contains("`practice-report`"), "{error}");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in any::<String>(), mixed in "([a-zA-Z0-9._ ]|[\u{4e00}-\u{4fff}]|\\PC){0,80}") {
            for preset in Preset::ALL {
                for text in [&text, &mixed] {
                    prop_assert_eq!(preset.fingerprint::<u64>(text).is_some(), preset.bits() == 64);
                    prop_assert_eq!(preset.fingerprint::<u128>(text).is_some(), preset.bits() == 128);
                    let mut features = HashSet::new();
                    preset.visit_features(text, |feature, _| { features.insert(feature.to_owned()); });
                    let counted = preset.fingerprint::<u64>(text).map(|simhash| simhash.features)
                        .or_else(|| preset.fingerprint::<u128>(text).map(|simhash| simhash.features));
                    prop_assert_eq!(counted, Some(features.len() as u32), "{}", preset);
                }
            }
        }
    }
}
