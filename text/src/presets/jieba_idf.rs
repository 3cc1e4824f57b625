//! Look-up of single words in jieba's IDF table.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use jieba_rs::{Jieba, KeywordExtract, KeywordExtractConfig, TfIdf};

/// jieba's IDF table. jieba-rs gives access to the table only through keyword extraction. In this configuration of the extraction,
/// every word is a keyword, and a word missing from the table has weight 0.
static TABLE: LazyLock<TfIdf> = LazyLock::new(|| {
    let mut table = TfIdf::default();
    let config = KeywordExtractConfig::builder().set_stop_words(BTreeSet::new()).min_keyword_length(1);
    *table.config_mut() = config.build();
    // Words missing from the table have the median of the last load, which is this line.
    table.load_dict(&mut "\0 0".as_bytes()).expect("memory can be read");
    table
});

/// Length in bytes of the longest word in the table. Longer words are not looked up, because the look-up segments the word, which
/// takes time quadratic in its length.
const WORD_BYTES_MAX: usize = 48;

/// Maximum number of words in the cache of a thread. A full cache is cleared. A word takes about 200 bytes.
const CACHED_WORDS_MAX: usize = 1 << 16;

#[derive(Default)]
struct IdfCache {
    idf: HashMap<Box<str>, Option<f64>>,
    /// Dictionary that contains only the cached words, all with the same frequency. With it, jieba-rs never splits a cached word.
    words: Option<Jieba>,
}

thread_local! {
    static CACHE: RefCell<IdfCache> = RefCell::default();
}

/// Returns the inverse document frequency of a word; `None` if jieba's table does not contain it.
pub(super) fn idf(word: &str) -> Option<f64> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    CACHE.with_borrow_mut(|cache| {
        if let Some(&idf) = cache.idf.get(word) {
            return idf;
        }
        if cache.idf.len() == CACHED_WORDS_MAX {
            *cache = IdfCache::default();
        }
        let words = cache.words.get_or_insert_with(Jieba::empty);
        words.add_word(word, Some(1), None);
        // The weight of the only word in a text is its IDF.
        let keywords = TABLE.extract_keywords(words, word, 1, Vec::new());
        let idf = keywords.first().filter(|found| found.keyword == word && found.weight > 0.0);
        let idf = idf.map(|found| found.weight);
        cache.idf.insert(word.into(), idf);
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
        for i in 0..=CACHED_WORDS_MAX {
            assert_eq!(idf(&format!("x{i}")), None);
        }
        assert_eq!(idf("生化学"), Some(13.900677652));
        CACHE.with_borrow(|cache| assert!(cache.idf.len() < 10));
    }
}
