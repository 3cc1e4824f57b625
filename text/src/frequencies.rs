//! Inverse document frequencies, learned from a corpus.

use std::collections::HashMap;
use std::fmt;

use crate::Profile;

/// Counts of documents for each feature: the data from which a table of inverse document frequencies is learned.
///
/// A feature of df among N documents has the IDF ln(1 + N / df), a smoothed form of K. Spärck
/// Jones's ("A statistical interpretation of term specificity and its application in retrieval",
/// 1972) that is above 0 also for a feature of every document.
///
/// ```
/// use simstore_text::{DocumentFrequencies, Profile, Resource, Resources};
///
/// let profile: Profile = "words-1".parse()?;
/// let mut frequencies = DocumentFrequencies::default();
/// for text in ["a rose", "a rose is a rose", "a tree", "a lawn"] {
///     frequencies.add(&profile, text);
/// }
/// let table: String = frequencies.rows(2).iter().map(|row| format!("{row}\n")).collect();
/// assert_eq!(table, "a\t0.6931\nrose\t1.0986\n");
///
/// let resources = Resources { idf: Some(Resource::new("idf.tsv", table)), ..Resources::default() };
/// let profile = Profile::with_resources("words-1,weights=idf", &resources)?;
/// assert_eq!(profile.to_string(), "words-1,idf=ae5510eeb7a468e7,weights=idf");
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DocumentFrequencies {
    documents: u64,
    features: HashMap<Box<str>, Frequency>,
    /// Bytes of all features.
    bytes: usize,
}

/// Bytes that a feature takes besides its text: its place, where a quarter is free, and the place of the text.
const BYTES_OF_A_FEATURE: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Frequency {
    documents: u64,
    /// The last document that it came in, from 1: it is counted once in each.
    last: u64,
}

impl DocumentFrequencies {
    /// Counts the features of a document, for any weights of the profile. Of Chinese texts,
    /// every word that may become a keyword counts, not only the words of greatest weight.
    ///
    /// Takes memory for every different feature.
    pub fn add(&mut self, profile: &Profile, text: &str) {
        self.documents += 1;
        let document = self.documents;
        profile.visit_all(text, |feature| {
            let Some(frequency) = self.features.get_mut(feature) else {
                // A line of a table could not hold a line break, which jieba takes for a word.
                if !feature.contains(['\n', '\r']) {
                    self.bytes += feature.len();
                    self.features.insert(feature.into(), Frequency { documents: 1, last: document });
                }
                return;
            };
            frequency.documents += u64::from(frequency.last != document);
            frequency.last = document;
        });
    }

    /// Adds what was counted in other documents.
    pub fn merge(&mut self, other: DocumentFrequencies) {
        self.documents += other.documents;
        for (feature, frequency) in other.features {
            let length = feature.len();
            let entry = self.features.entry(feature).or_insert_with(|| {
                self.bytes += length;
                Frequency { documents: 0, last: 0 }
            });
            entry.documents += frequency.documents;
        }
    }

    /// About how many bytes of memory they take.
    pub fn memory(&self) -> u64 {
        (self.bytes + self.features.capacity() * BYTES_OF_A_FEATURE) as u64
    }

    /// Takes the features with their counts, in code point order; from then on they are counted anew. The number of documents stays.
    pub fn take(&mut self) -> Vec<(Box<str>, u64)> {
        self.bytes = 0;
        let features = std::mem::take(&mut self.features).into_iter();
        let mut counts: Vec<_> =
            features.map(|(feature, frequency)| (feature, frequency.documents)).collect();
        counts.sort_unstable();
        counts
    }

    /// Number of documents.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Number of different features.
    pub fn features(&self) -> usize {
        self.features.len()
    }

    /// The table, in code point order, without features of fewer than `min_documents` documents.
    pub fn rows(&self, min_documents: u64) -> Vec<IdfRow<'_>> {
        let row =
            |(feature, frequency): (_, &Frequency)| IdfRow::new(feature, frequency.documents, self.documents);
        let features = self.features.iter().map(|(feature, frequency)| (&**feature, frequency));
        let mut rows: Vec<_> =
            features.filter(|(_, frequency)| frequency.documents >= min_documents).map(row).collect();
        rows.sort_unstable_by_key(|row| row.feature);
        rows
    }
}

/// A row of a table of inverse document frequencies; shown as a line of one, `feature<TAB>idf`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdfRow<'a> {
    /// The feature.
    pub feature: &'a str,
    /// In how many documents it comes.
    pub documents: u64,
    /// Its inverse document frequency, rounded to four decimals: so it is the same on every
    /// machine.
    pub idf: f64,
}

impl<'a> IdfRow<'a> {
    /// The row of a feature that comes in some of a number of documents.
    pub fn new(feature: &'a str, documents: u64, of: u64) -> Self {
        let idf = (1.0 + of as f64 / documents as f64).ln();
        IdfRow { feature, documents, idf: (idf * 1e4).round() / 1e4 }
    }
}

impl fmt::Display for IdfRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{:.4}", self.feature, self.idf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    fn lines(frequencies: &DocumentFrequencies, min: u64) -> String {
        frequencies.rows(min).iter().map(|row| format!("{row}\n")).collect()
    }

    proptest! {
        /// Against a count of sets, whole and in parts.
        #[test]
        fn document_frequencies(texts in prop::collection::vec("[a-d ]{0,12}", 0..12), cut in 0_usize..12, min in 0_u64..4) {
            let profile: Profile = "words-1,weights=none".parse().unwrap();
            let cut = cut.min(texts.len());
            let mut parts = [&texts[..cut], &texts[cut..]].map(|part| {
                let mut frequencies = DocumentFrequencies::default();
                part.iter().for_each(|text| frequencies.add(&profile, text));
                frequencies
            }).into_iter();
            let mut frequencies = parts.next().unwrap();
            frequencies.merge(parts.next().unwrap());
            let mut counts = BTreeMap::new();
            for text in &texts {
                for word in text.split_whitespace().collect::<BTreeSet<_>>() {
                    *counts.entry(word).or_insert(0) += 1;
                }
            }
            let idf = |count: u64| (1.0 + texts.len() as f64 / count as f64).ln();
            let expected: String = counts
                .iter()
                .filter(|&(_, &count)| count >= min)
                .map(|(word, &count)| format!("{word}\t{:.4}\n", idf(count)))
                .collect();
            prop_assert_eq!(lines(&frequencies, min), expected);
            prop_assert_eq!(frequencies.documents(), texts.len() as u64);
        }
    }

    #[test]
    fn documents_after_a_merge_are_counted() {
        let profile: Profile = "words-1".parse().unwrap();
        let mut frequencies = DocumentFrequencies::default();
        frequencies.add(&profile, "a");
        frequencies.merge(frequencies.clone());
        frequencies.add(&profile, "a a");
        assert_eq!(lines(&frequencies, 3), format!("a\t{:.4}\n", 2_f64.ln()));
    }

    #[test]
    fn all_words_that_may_be_keywords_count() {
        let profile: Profile = "jieba-1,weights=none".parse().unwrap();
        let mut frequencies = DocumentFrequencies::default();
        frequencies.add(&profile, "数据库\r\n引擎");
        assert_eq!(frequencies.rows(1).len(), 2);
    }
}
