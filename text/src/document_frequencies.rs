//! Document frequencies of features, counted in a corpus.

use std::collections::HashMap;
use std::fmt;

use crate::Profile;

/// Counts the documents that contain each feature, and computes a table of inverse document frequencies (IDF).
///
/// If a feature occurs in df of N documents, its IDF is ln(1 + N / df). This is a smoothed form of K. Spärck Jones's definition ("A
/// statistical interpretation of term specificity and its application in retrieval", 1972). The smoothed IDF is above 0 even for a
/// feature that occurs in every document.
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
    features: HashMap<Box<str>, FeatureCount>,
    /// Total length of the distinct features in bytes.
    bytes: usize,
}

/// Estimated memory of a feature in bytes, without its text: a hash table slot (a quarter of the slots is free) and the
/// overhead of the text's allocation.
const FEATURE_OVERHEAD_BYTES: usize = 64;

#[derive(Clone, Copy, Debug)]
struct FeatureCount {
    documents: u64,
    /// Sequence number, from 1, of the last added document that contains the feature. If the feature occurs again in this
    /// document, it is not counted again.
    last_document: u64,
}

impl DocumentFrequencies {
    /// Adds a document, given by its text. Counts each distinct feature of the document once, whatever its weight. If the profile
    /// selects keywords, every word that may become a keyword is counted, not only the words of greatest weight.
    ///
    /// Memory grows with the number of distinct features.
    pub fn add(&mut self, profile: &Profile, text: &str) {
        self.documents += 1;
        let document = self.documents;
        profile.visit_unweighted(text, |feature| {
            let Some(frequency) = self.features.get_mut(feature) else {
                // jieba returns line breaks as words, but a line of the table cannot contain one.
                if !feature.contains(['\n', '\r']) {
                    self.bytes += feature.len();
                    self.features
                        .insert(feature.into(), FeatureCount { documents: 1, last_document: document });
                }
                return;
            };
            frequency.documents += u64::from(frequency.last_document != document);
            frequency.last_document = document;
        });
    }

    /// Adds the counts in `other`. A document that was added to both counters is counted twice.
    pub fn merge(&mut self, other: DocumentFrequencies) {
        self.documents += other.documents;
        for (feature, frequency) in other.features {
            let length = feature.len();
            let entry = self.features.entry(feature).or_insert_with(|| {
                self.bytes += length;
                FeatureCount { documents: 0, last_document: 0 }
            });
            entry.documents += frequency.documents;
        }
    }

    /// Returns the estimated memory, in bytes, of the distinct features and their document counts.
    pub fn memory(&self) -> u64 {
        (self.bytes + self.features.capacity() * FEATURE_OVERHEAD_BYTES) as u64
    }

    /// Removes all features and returns them in code point order, each with the number of documents that contain it. The total
    /// number of documents is kept.
    pub fn take_counts(&mut self) -> Vec<(Box<str>, u64)> {
        self.bytes = 0;
        let features = std::mem::take(&mut self.features).into_iter();
        let mut counts: Vec<_> =
            features.map(|(feature, frequency)| (feature, frequency.documents)).collect();
        counts.sort_unstable();
        counts
    }

    /// Returns the number of added documents.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the number of distinct features that have a document count.
    pub fn features(&self) -> usize {
        self.features.len()
    }

    /// Returns the rows of the IDF table, in code point order of the features. Omits features that occur in fewer than
    /// `min_documents` documents.
    pub fn rows(&self, min_documents: u64) -> Vec<IdfRow<'_>> {
        let row = |(feature, frequency): (_, &FeatureCount)| {
            IdfRow::new(feature, frequency.documents, self.documents)
        };
        let features = self.features.iter().map(|(feature, frequency)| (&**feature, frequency));
        let mut rows: Vec<_> =
            features.filter(|(_, frequency)| frequency.documents >= min_documents).map(row).collect();
        rows.sort_unstable_by_key(|row| row.feature);
        rows
    }
}

/// A row of an IDF table. `Display` writes it as a line `feature<TAB>idf`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdfRow<'a> {
    /// Text of the feature, such as a word.
    pub feature: &'a str,
    /// Number of documents that contain the feature.
    pub documents: u64,
    /// Inverse document frequency, rounded to four decimals, so that it is the same on every machine.
    pub idf: f64,
}

impl<'a> IdfRow<'a> {
    /// Returns the row of a feature that occurs in `documents` of `total_documents` documents.
    pub fn new(feature: &'a str, documents: u64, total_documents: u64) -> Self {
        let idf = (1.0 + total_documents as f64 / documents as f64).ln();
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
        /// The IDF table of two merged counters equals a table that is computed by definition, from the set of words of each text.
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
