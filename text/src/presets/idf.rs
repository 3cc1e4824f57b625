//! The IDF table of jieba, a word at a time.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use jieba_rs::{Jieba, KeywordExtract, KeywordExtractConfig, TfIdf};

/// jieba-rs tells the table only through keywords. Here every word is one, and words that are not
/// in the table weigh nothing.
static TABLE: LazyLock<TfIdf> = LazyLock::new(|| {
    let mut table = TfIdf::default();
    let config = KeywordExtractConfig::builder().set_stop_words(BTreeSet::new()).min_keyword_length(1);
    *table.config_mut() = config.build();
    // What is not in the table gets the median of what was loaded last: of one line.
    table.load_dict(&mut "\0 0".as_bytes()).expect("memory can be read");
    table
});

/// The longest word of the table, in bytes. To cut one much longer takes quadratic time.
const LONGEST: usize = 48;

/// Words that a thread remembers: some 200 bytes each.
const REMEMBERED: usize = 1 << 16;

#[derive(Default)]
struct Remembered {
    idf: HashMap<Box<str>, Option<f64>>,
    /// A dictionary of the same words, all equally frequent, cuts each of them into itself.
    words: Option<Jieba>,
}

thread_local! {
    static REMEMBERED_WORDS: RefCell<Remembered> = RefCell::default();
}

/// The inverse document frequency of a word, if it is in jieba's table.
pub(super) fn idf(word: &str) -> Option<f64> {
    if word.len() > LONGEST {
        return None;
    }
    REMEMBERED_WORDS.with_borrow_mut(|remembered| {
        if let Some(&idf) = remembered.idf.get(word) {
            return idf;
        }
        if remembered.idf.len() == REMEMBERED {
            *remembered = Remembered::default();
        }
        let words = remembered.words.get_or_insert_with(Jieba::empty);
        words.add_word(word, Some(1), None);
        // The only word of a text: its weight is its IDF.
        let keywords = TABLE.extract_keywords(words, word, 1, Vec::new());
        let idf = keywords.first().filter(|found| found.keyword == word && found.weight > 0.0);
        let idf = idf.map(|found| found.weight);
        remembered.idf.insert(word.into(), idf);
        idf
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_table() {
        for _ in 0..2 {
            assert_eq!(idf("北京"), Some(4.66740230872));
            assert_eq!(idf("北京大学"), Some(7.64492761022));
            assert_eq!(idf("生化学"), Some(13.900677652));
            assert_eq!(idf("大学"), Some(5.71421322255));
            assert_eq!(idf("第九届全国人民代表大会常务委员会"), Some(13.2075304714));
            for unknown in ["windows", "北京南京", "", "a\0b", "\0"] {
                assert_eq!(idf(unknown), None, "{unknown:?}");
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        for i in 0..=REMEMBERED {
            assert_eq!(idf(&format!("x{i}")), None);
        }
        assert_eq!(idf("生化学"), Some(13.900677652));
        REMEMBERED_WORDS.with_borrow(|remembered| assert!(remembered.idf.len() < 10));
    }
}
