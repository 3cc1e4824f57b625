//! Keywords of Chinese texts: words of jieba, weighted by TF-IDF.

use std::sync::LazyLock;

use jieba_rs::{Jieba, Keyword, KeywordExtract, KeywordExtractConfig, TfIdf};

use crate::clean::Cleaning;
use crate::idf_table::{IDF_UNIT, IdfTable};
use crate::resources::Resource;
use simstore::Result;

/// Maximum frequency of a word in a user dictionary. With this maximum, sums of frequencies fit in 64 bits.
const FREQUENCY_MAX: usize = 1_000_000_000;

/// Default dictionary of jieba-rs, loaded when the first text needs it.
static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);
/// Default IDF table and stop words of jieba-rs, loaded when the first text needs them.
static TF_IDF: LazyLock<TfIdf> = LazyLock::new(TfIdf::default);

/// Extracts the keywords of texts with jieba-rs. The user may add words to its dictionary and stop words, and replace its IDF table.
#[derive(Default)]
pub(crate) struct KeywordExtractor {
    /// Default dictionary extended by words of the user. `None` if [`JIEBA`] is used.
    jieba: Option<Jieba>,
    /// IDF table and stop words, if the user replaces the table or adds stop words. Otherwise `None`, and [`TF_IDF`] is used.
    tf_idf: Option<TfIdf>,
}

impl KeywordExtractor {
    /// Creates an extractor. Dictionary words and stop words are normalised by `cleaning`, so that they match cleaned texts.
    pub(crate) fn new(
        cleaning: &Cleaning,
        dictionary: Option<&Resource>,
        stop_words: Option<&Resource>,
        idf: Option<&IdfTable>,
    ) -> Result<Self> {
        let jieba = dictionary.map(|dictionary| extended_dictionary(dictionary, cleaning)).transpose()?;
        let mut tf_idf = idf.map(tf_idf_from_table);
        if let Some(stop_words) = stop_words {
            let mut config = KeywordExtractConfig::builder();
            for (_, word) in stop_words.lines() {
                config = config.add_stop_word(cleaning.normalise(word.trim()));
            }
            *tf_idf.get_or_insert_with(TfIdf::default).config_mut() = config.build();
        }
        Ok(KeywordExtractor { jieba, tf_idf })
    }

    /// Visits the `count` keywords of greatest weight in a text, heaviest first, with their weights in units of 2^-24. Keywords of
    /// equal weight are in code point order. Each keyword has at least two characters.
    ///
    /// The weight of a word is its share of the text's words times its inverse document frequency. With `search`, words of two and
    /// three characters inside longer words count as words of the text, too.
    pub(crate) fn visit(&self, text: &str, count: usize, search: bool, mut visit: impl FnMut(&str, u32)) {
        let jieba = self.jieba.as_ref().unwrap_or_else(|| &JIEBA);
        let tf_idf = self.tf_idf.as_ref().unwrap_or_else(|| &TF_IDF);
        // jieba-rs breaks ties by code point order, so the result does not depend on the order of a hash map.
        let keywords = if search {
            search_keywords(jieba, tf_idf, text, count)
        } else {
            tf_idf.extract_keywords(jieba, text, count, Vec::new())
        };
        for keyword in keywords {
            visit(&keyword.keyword, (keyword.weight * IDF_UNIT).round() as u32);
        }
    }
}

/// Returns the `count` heaviest keywords among the words that jieba's search mode finds. jieba-rs cannot extract keywords in this
/// mode. So this function passes to jieba-rs, instead of the text, a list of the words that the mode finds, and a dictionary of
/// only these words, all equally frequent. Then jieba-rs splits none of the words.
fn search_keywords(jieba: &Jieba, tf_idf: &TfIdf, text: &str, count: usize) -> Vec<Keyword> {
    let mut found = Jieba::empty();
    let mut words = String::with_capacity(text.len() * 2);
    for token in jieba.cut_for_search(text, false) {
        if token.end - token.start >= tf_idf.config().min_keyword_length() && token.word != "\r\n" {
            found.add_word(token.word, Some(1), None);
            words.push_str(token.word);
            words.push('\n');
        }
    }
    tf_idf.extract_keywords(&found, &words, count, Vec::new())
}

/// Returns the default dictionary, extended by the words of `dictionary`. The lines of `dictionary` are `word`, `word frequency`,
/// `word tag` or `word frequency tag`. The words are normalised by `cleaning`, like the texts in which they are found.
fn extended_dictionary(dictionary: &Resource, cleaning: &Cleaning) -> Result<Jieba> {
    let mut jieba = JIEBA.clone();
    for (number, line) in dictionary.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let frequency = match fields[1..] {
            [] => None,
            [frequency] | [frequency, _] if frequency.bytes().all(|b| b.is_ascii_digit()) => {
                let frequency = frequency.parse().ok().filter(|&frequency| frequency <= FREQUENCY_MAX);
                Some(frequency.ok_or_else(|| {
                    dictionary
                        .line_error(number, format!("the frequency of a word is more than {FREQUENCY_MAX}"))
                })?)
            }
            [tag] if tag.bytes().all(|b| b.is_ascii_alphabetic()) => None,
            _ => {
                let reason = "invalid line of a dictionary: expected `word`, `word frequency`, `word tag` or \
                              `word frequency tag`";
                return Err(dictionary.line_error(number, reason.to_owned()));
            }
        };
        jieba.add_word(&cleaning.normalise(fields[0]), frequency, None);
    }
    Ok(jieba)
}

/// Returns jieba-rs's TF-IDF weighting with the IDFs of a table. A word missing from the table has the table's median IDF.
fn tf_idf_from_table(table: &IdfTable) -> TfIdf {
    let mut tf_idf = TfIdf::new(None::<&mut std::io::Empty>, KeywordExtractConfig::default());
    let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    let lines: String =
        table.rows().filter(|(word, _)| is_word(word)).map(|(word, idf)| format!("{word} {idf}\n")).collect();
    // `TfIdf` takes its median from the last load. So the last load is a single row, with the table's median for a key that is
    // no word.
    for lines in [lines, format!("\0 {}\n", table.median())].iter().filter(|lines| !lines.is_empty()) {
        tf_idf.load_dict(&mut lines.as_bytes()).expect("bytes in memory can be read");
    }
    tf_idf
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn found(keywords: &KeywordExtractor, text: &str, count: usize, search: bool) -> Vec<(String, u32)> {
        let mut found = Vec::new();
        keywords.visit(text, count, search, |word, weight| found.push((word.to_owned(), weight)));
        found
    }

    fn words(found: &[(String, u32)]) -> BTreeSet<&str> {
        found.iter().map(|(word, _)| &word[..]).collect()
    }

    fn keywords(dictionary: Option<&str>, stop_words: Option<&str>, idf: Option<&str>) -> KeywordExtractor {
        let resource = |text: &str| Resource::new("a file", text);
        let (dictionary, stop_words) = (dictionary.map(resource), stop_words.map(resource));
        let idf = idf.map(|idf| IdfTable::parse(&resource(idf)).unwrap());
        let cleaning = Cleaning::default();
        KeywordExtractor::new(&cleaning, dictionary.as_ref(), stop_words.as_ref(), idf.as_ref()).unwrap()
    }

    #[test]
    fn heaviest_first_and_ties_by_word() {
        let text = "数据库引擎 alpha beta gamma delta 数据库";
        let all = found(&KeywordExtractor::default(), text, 50, false);
        assert!(all.is_sorted_by_key(|(word, weight)| (std::cmp::Reverse(*weight), word.clone())), "{all:?}");
        for count in 0..=all.len() {
            assert_eq!(found(&KeywordExtractor::default(), text, count, false), all[..count]);
        }
        assert_eq!(found(&KeywordExtractor::default(), text, usize::MAX, false), all);
    }

    #[test]
    fn the_share_of_the_words_times_the_idf() {
        // 生化学 has the IDF 13.900677652 in jieba's table.
        let weight = (13.900677652 * IDF_UNIT).round() as u32;
        assert_eq!(found(&KeywordExtractor::default(), "生化学", 5, false), [("生化学".to_owned(), weight)]);
        assert!(found(&KeywordExtractor::default(), "的 了 the of", 5, false).is_empty());
    }

    #[test]
    fn search_mode_finds_words_inside_of_words() {
        let text = "小明毕业于中国科学院计算所，\r\n小明在中国科学院。";
        let default = found(&KeywordExtractor::default(), text, 50, false);
        let search = found(&KeywordExtractor::default(), text, 50, true);
        let inside = BTreeSet::from(["中国", "科学", "学院", "科学院", "计算"]);
        assert_eq!(&(&words(&search) - &inside) | &BTreeSet::from(["\r\n"]), words(&default));
        assert!(inside.is_subset(&words(&search)));
    }

    /// In search mode, the keywords and their weights equal TF-IDF computed by its definition, if the IDF table contains every
    /// word.
    #[test]
    fn search_mode_agrees_with_the_definition() {
        let samples = include_str!("../../../samples/zh.jsonl");
        for text in samples.lines().take(30) {
            let mut counts = BTreeMap::<&str, u32>::new();
            for token in JIEBA.cut_for_search(text, false) {
                let is_stop_word = jieba_rs::DEFAULT_STOP_WORDS.contains(&token.word.to_lowercase());
                if token.word.chars().count() >= 2 && !is_stop_word {
                    *counts.entry(token.word).or_default() += 1;
                }
            }
            let idf = |word: &str| 1.0 + (word.len() % 7) as f64 / 4.0;
            let table: String = counts.keys().map(|word| format!("{word}\t{}\n", idf(word))).collect();
            let total: u32 = counts.values().sum();
            let weight = |word: &str, count: u32| f64::from(count) * idf(word) / f64::from(total);
            let mut expected: Vec<(String, u32)> = counts
                .iter()
                .map(|(word, &count)| ((*word).to_owned(), (weight(word, count) * IDF_UNIT).round() as u32))
                .collect();
            expected.sort_by_key(|(word, weight)| (std::cmp::Reverse(*weight), word.clone()));
            assert_eq!(found(&keywords(None, None, Some(&table)), text, usize::MAX, true), expected);
        }
    }

    #[test]
    fn words_of_a_dictionary() {
        let text = "石墨烯量子点的SQL注入";
        assert!(
            !words(&found(&KeywordExtractor::default(), "石墨烯量子点", 5, false)).contains("石墨烯量子点")
        );
        for dictionary in
            ["石墨烯量子点", "\u{feff}石墨烯量子点 1000000 n\n\nSQL注入 5\r\n", "石墨烯量子点 nz\n"]
        {
            let found = found(&keywords(Some(dictionary), None, None), "石墨烯量子点的sql注入", 5, false);
            assert!(words(&found).contains("石墨烯量子点"), "{dictionary}: {found:?}");
            assert_eq!(words(&found).contains("sql注入"), dictionary.contains("SQL"), "{text}");
        }
    }

    #[test]
    fn malformed_dictionaries() {
        for (dictionary, line) in [
            ("a b c d", 1),
            ("a\nb -1", 2),
            ("a 1000000001", 1),
            ("a 99999999999999999999", 1),
            ("\n\na 1.5 n", 3),
        ] {
            let dictionary = Resource::new("words.txt", dictionary);
            let error =
                KeywordExtractor::new(&Cleaning::default(), Some(&dictionary), None, None).err().unwrap();
            assert!(error.to_string().starts_with(&format!("words.txt:{line}: ")), "{error}");
        }
    }

    #[test]
    fn stop_words_beside_those_of_jieba() {
        let text = "数据库引擎 the engine 数据";
        let stopped = found(&keywords(None, Some("数据库\n Engine "), None), text, 9, false);
        assert_eq!(words(&stopped), BTreeSet::from(["引擎", "数据"]));
    }

    #[test]
    fn another_table() {
        let table = keywords(None, None, Some("数据库 2\n引擎\t4\nto be\t9\n数据 8"));
        let weight = |word: &str| found(&table, &format!("{word} {word}"), 1, false)[0].1;
        for (word, idf) in [("数据库", 2.0), ("引擎", 4.0), ("unknown", 4.0)] {
            assert_eq!(f64::from(weight(word)), idf * IDF_UNIT, "{word}");
        }
        // A table without any word of jieba still has a median.
        assert_eq!(found(&keywords(None, None, Some("to be\t3")), "数据", 1, false)[0].1, 3 << 24);
    }
}
