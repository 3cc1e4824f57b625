//! Inverse document frequencies: learned from a corpus, and read from tables.

use std::collections::HashMap;
use std::fmt;

use crate::Profile;
use crate::resources::Resource;
use simstore::Result;

/// Weights by IDF are counted in units of 2^-24.
pub(crate) const IDF_UNIT: f64 = (1 << 24) as f64;

/// The largest IDF: in [`IDF_UNIT`], it fits a `u32`.
const MAX_IDF: f64 = 255.0;

/// In how many documents each feature comes: what a table of inverse document frequencies is
/// learned from.
///
/// A feature of df among N documents has the IDF ln(1 + N / df), a smoothed form of K. Spärck
/// Jones's ("A statistical interpretation of term specificity and its application in retrieval",
/// 1972) that is above 0 also for what comes in every document.
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

/// Bytes that a feature takes besides its text: its place, where a quarter is free, and that of the text.
const BYTES_OF_A_FEATURE: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Frequency {
    documents: u64,
    /// The last document that it came in, from 1: it is counted once in each.
    last: u64,
}

impl DocumentFrequencies {
    /// Counts the features of a document, whatever the profile's weights. Of Chinese texts,
    /// every word that may become a keyword counts, not only those of greatest weight.
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

/// A table of inverse document frequencies.
///
/// A feature that it does not hold has the lower median of its IDFs, as in jieba. It could be
/// given the largest, since it is rare; but rare features are often misspelt words, numbers and
/// names that near-duplicates differ in, and should not outweigh what they share.
#[derive(Debug)]
pub(crate) struct IdfTable {
    features: HashMap<Box<str>, f64>,
    median: f64,
}

impl IdfTable {
    /// Reads lines `feature<TAB>idf`, or `word idf` where there is no tab.
    pub(crate) fn parse(table: &Resource) -> Result<Self> {
        let mut features = HashMap::new();
        let mut all = Vec::new();
        for (number, line) in table.lines() {
            let fields = line.rsplit_once('\t').or_else(|| line.trim_end().rsplit_once(char::is_whitespace));
            let idf = fields.and_then(|(feature, idf)| {
                let idf = idf.trim().parse().ok().filter(|idf| (0.0..=MAX_IDF).contains(idf))?;
                Some((feature, idf))
            });
            let Some((feature, idf)) = idf else {
                let reason = "no line of an IDF table: expected `feature<TAB>idf` or `word idf`, with an IDF from 0 to 255";
                return Err(table.bad(number, reason.to_owned()));
            };
            features.insert(feature.into(), idf);
            all.push(idf);
        }
        if all.is_empty() {
            return Err(table.bad(1, "the IDF table is empty".to_owned()));
        }
        let middle = (all.len() - 1) / 2;
        let (_, &mut median, _) = all.select_nth_unstable_by(middle, f64::total_cmp);
        Ok(IdfTable { features, median })
    }

    /// The IDF of a feature, in units of [`IDF_UNIT`].
    pub(crate) fn units(&self, feature: &str) -> u32 {
        (self.features.get(feature).unwrap_or(&self.median) * IDF_UNIT).round() as u32
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, f64)> {
        self.features.iter().map(|(feature, &idf)| (&**feature, idf))
    }

    pub(crate) fn median(&self) -> f64 {
        self.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    fn table(text: &str) -> Result<IdfTable> {
        IdfTable::parse(&Resource::new("idf.tsv", text))
    }

    fn lines(frequencies: &DocumentFrequencies, min: u64) -> String {
        frequencies.rows(min).iter().map(|row| format!("{row}\n")).collect()
    }

    #[test]
    fn both_forms_of_lines() {
        let read = table("\u{feff}to be\t1.5\r\n\n a\t2\n数据 13.900677652 \nx y 3\n").unwrap();
        let idf = |feature: &str| f64::from(read.units(feature)) / IDF_UNIT;
        assert_eq!((idf("to be"), idf(" a"), idf("x y")), (1.5, 2.0, 3.0));
        assert!((idf("数据") - 13.900677652).abs() < 1e-6);
        assert_eq!((idf("unknown"), read.median()), (2.0, 2.0));
        assert_eq!(table("a 255").unwrap().units("a"), 255 << 24);
    }

    #[test]
    fn malformed_tables() {
        for (text, line) in [
            ("", 1),
            ("\n\n", 1),
            ("a", 1),
            ("a 1\nb\t-1", 2),
            ("a 256", 1),
            ("a nan", 1),
            ("a\tinf", 1),
            ("1.5", 1),
        ] {
            let error = table(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("idf.tsv:{line}: ")), "{text:?}: {error}");
        }
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
