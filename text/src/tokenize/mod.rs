//! Cutting a cleaned text into features.

mod ascii;
mod chars;
mod code;
mod exact;
mod jieba;
mod lines;
mod phrases;
mod shingles;
mod unspaced;
mod word_hash;
mod words;

use simstore::processor::{Work, dispatch};
use xxhash_rust::xxh3::xxh3_64;

use crate::clean::is_mostly_han;
use crate::distinct::HashesSeen;
use crate::presets::Preset;
pub(crate) use crate::tokenize::jieba::Keywords;
use crate::tokenize::shingles::push_shingles;
use crate::tokenize::word_hash::word_hash;
pub(crate) use crate::tokenize::words::Words;

/// Words in a feature of `auto` and `by-script`, and of a text without keywords.
const AUTO_WORDS: usize = 2;
/// Keywords of a text, where a name does not say.
pub(crate) const DEFAULT_KEYWORDS: usize = 50;
/// Words in a feature of source code, where a name does not say. Its words are 2.0 to 2.6 times as many as those of the same file
/// as a text, for signs are words: so a word that is replaced costs about as large a share of the features as in a text by
/// three words.
pub(crate) const DEFAULT_CODE: usize = 7;

/// Appends the hashes of the words of a text.
struct WordHashes<'a> {
    text: &'a str,
    segmented: bool,
    hashes: &'a mut Vec<u64>,
}

impl Work for WordHashes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let WordHashes { text, segmented, hashes } = self;
        words::visit_words(text, segmented, |text, start, end| {
            hashes.push(word_hash(text.as_bytes(), start, end));
        });
    }
}

/// How a text is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Tokenizer {
    #[default]
    Auto,
    ByScript,
    Words(usize),
    Code(usize),
    Chars(usize),
    Jieba(usize),
    Phrases,
    Sentences(usize),
    Tokens,
    Features,
    Exact,
    Preset(Preset),
}

impl Tokenizer {
    /// Whether features consist of words as texts have them.
    pub(crate) fn takes_words(self) -> bool {
        matches!(self, Tokenizer::Auto | Tokenizer::ByScript | Tokenizer::Words(_) | Tokenizer::Jieba(_))
    }

    /// Whether nothing may be cleaned before.
    pub(crate) fn takes_text_as_it_is(self) -> bool {
        matches!(self, Tokenizer::Code(_) | Tokenizer::Features | Tokenizer::Exact | Tokenizer::Preset(_))
    }

    /// Number of keywords of a text that has any.
    pub(crate) fn keywords(self) -> usize {
        match self {
            Tokenizer::Jieba(count) => count,
            _ => DEFAULT_KEYWORDS,
        }
    }

    /// Returns the number of words in a feature, if features are runs of words.
    fn shingle_size(self, text: &str) -> Option<usize> {
        match self {
            Tokenizer::Auto | Tokenizer::Jieba(_) => Some(AUTO_WORDS),
            Tokenizer::ByScript => Some(if is_mostly_han(text) { 1 } else { AUTO_WORDS }),
            Tokenizer::Words(n) | Tokenizer::Code(n) => Some(n),
            _ => None,
        }
    }

    /// Appends the xxh3 of the features of a text that are no keywords and have weight 1. A feature may occur several times. Returns
    /// whether each counts once.
    pub(crate) fn push_plain_hashes(
        self,
        text: &str,
        segmented: bool,
        words: &mut Words,
        hashes: &mut Vec<u64>,
    ) -> bool {
        let size = self.shingle_size(text);
        let mut push = |feature: &str| hashes.push(xxh3_64(feature.as_bytes()));
        match (self, size) {
            (Tokenizer::Code(_), _) | (_, None) => self.visit(text, segmented, |feature, _| push(feature)),
            (_, Some(n)) => words.visit_ngrams(text, n, segmented, push),
        }
        // Single words are the features of Chinese text, and count each time.
        self == Tokenizer::ByScript && size == Some(AUTO_WORDS)
    }

    /// Appends the 64-bit hashes of the features of a text that are no keywords. A feature may occur several times.
    ///
    /// The hash of a run of words is made from the hashes of the words: see [`push_shingles`]. `words` is memory for the latter.
    pub(crate) fn push_hashes(
        self,
        text: &str,
        segmented: bool,
        words: &mut Vec<u64>,
        hashes: &mut Vec<u64>,
    ) {
        if self == Tokenizer::Exact {
            return exact::visit_whole(text, |whole| hashes.extend(exact::halves(whole)));
        }
        let Some(n) = self.shingle_size(text) else {
            return self.visit(text, segmented, |feature, _| hashes.push(xxh3_64(feature.as_bytes())));
        };
        words.clear();
        match self {
            Tokenizer::Code(_) => {
                code::visit_words(text, |word| words.push(word_hash(word.as_bytes(), 0, word.len())));
            }
            _ => dispatch(WordHashes { text, segmented, hashes: words }),
        }
        push_shingles(words, n, hashes);
    }

    /// Visits the features of a text that are no keywords, each with weight 1 but for those that
    /// bring their own.
    pub(crate) fn visit(self, text: &str, segmented: bool, mut visit: impl FnMut(&str, u32)) {
        let mut each = |feature: &str| visit(feature, 1);
        match self {
            Tokenizer::Auto | Tokenizer::Jieba(_) => words::word_ngrams(text, AUTO_WORDS, segmented, each),
            Tokenizer::ByScript if is_mostly_han(text) => words::word_ngrams(text, 1, segmented, each),
            Tokenizer::ByScript => {
                let mut seen = HashesSeen::default();
                words::word_ngrams(text, AUTO_WORDS, segmented, |feature| {
                    // Two features of the same 64 bits are too rare to matter.
                    if seen.insert(xxh3_64(feature.as_bytes())) {
                        each(feature);
                    }
                });
            }
            Tokenizer::Words(n) => words::word_ngrams(text, n, segmented, each),
            Tokenizer::Code(n) => code::code_ngrams(text, n, each),
            Tokenizer::Chars(n) => chars::char_ngrams(text, n, each),
            Tokenizer::Phrases => phrases::phrases(text, each),
            Tokenizer::Sentences(count) => phrases::longest_sentences(text, count, each),
            Tokenizer::Tokens => text.split_whitespace().for_each(&mut each),
            Tokenizer::Features => lines::weighted_lines(text, visit),
            Tokenizer::Exact => exact::visit_whole(text, each),
            Tokenizer::Preset(preset) => preset.visit_features(text, visit),
        }
    }
}
