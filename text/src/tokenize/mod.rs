//! Tokenization: splits a cleaned text into features.

mod ascii_words;
mod chars;
mod code;
mod jieba;
mod phrases;
mod shingles;
mod unspaced_scripts;
mod weighted_lines;
mod whole_text;
mod word_hash;
mod words;

use simstore::simd::{Kernel, dispatch};
use xxhash_rust::xxh3::xxh3_64;

use crate::clean::is_mostly_han;
use crate::hash_deduplicator::PrehashedSet;
use crate::presets::Preset;
pub(crate) use crate::tokenize::jieba::KeywordExtractor;
use crate::tokenize::shingles::push_shingles;
use crate::tokenize::word_hash::word_hash;
pub(crate) use crate::tokenize::words::WordBuffer;

/// Number of words per feature for the tokenizers `auto` and `by-script`, and for texts in which `jieba-N` finds no keywords.
const AUTO_WORDS: usize = 2;
/// Default number of keywords that are extracted from a text.
pub(crate) const DEFAULT_KEYWORD_COUNT: usize = 50;
/// Default number of words per feature of source code. In the same source code, the tokenizer `code-N` finds 2.0 to 2.6 times as
/// many words as `words-N`, because it counts punctuation characters as words. So 7 words of `code-N` span about as much source
/// code as 3 words of `words-N`, and a replaced word changes about the same share of the features.
pub(crate) const DEFAULT_CODE_WORDS: usize = 7;

/// Appends the hash of each word of `text` to `hashes`. [`dispatch`] runs this kernel with the newest SIMD instructions of the
/// processor.
struct WordHashKernel<'a> {
    text: &'a str,
    segmented: bool,
    hashes: &'a mut Vec<u64>,
}

impl Kernel for WordHashKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let WordHashKernel { text, segmented, hashes } = self;
        words::visit_words(text, segmented, |text, start, end| {
            hashes.push(word_hash(text.as_bytes(), start, end));
        });
    }
}

/// The part of a profile that splits texts into features.
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
    /// Whether the tokenizer's features consist of words of natural language.
    pub(crate) fn uses_words(self) -> bool {
        matches!(self, Tokenizer::Auto | Tokenizer::ByScript | Tokenizer::Words(_) | Tokenizer::Jieba(_))
    }

    /// Whether the tokenizer needs the original text, without cleaning.
    pub(crate) fn skips_cleaning(self) -> bool {
        matches!(self, Tokenizer::Code(_) | Tokenizer::Features | Tokenizer::Exact | Tokenizer::Preset(_))
    }

    /// Returns the maximum number of keywords that are extracted from a text.
    pub(crate) fn keyword_count(self) -> usize {
        match self {
            Tokenizer::Jieba(count) => count,
            _ => DEFAULT_KEYWORD_COUNT,
        }
    }

    /// Returns the number of words per feature, or `None` if the features of `text` are not n-grams of words.
    fn shingle_size(self, text: &str) -> Option<usize> {
        match self {
            Tokenizer::Auto | Tokenizer::Jieba(_) => Some(AUTO_WORDS),
            Tokenizer::ByScript => Some(if is_mostly_han(text) { 1 } else { AUTO_WORDS }),
            Tokenizer::Words(n) | Tokenizer::Code(n) => Some(n),
            _ => None,
        }
    }

    /// Appends the 64-bit xxh3 of each feature of a text to `hashes`, as often as the feature occurs. Features and the parameter
    /// `segmented` are as in [`Tokenizer::visit`]. Returns `true` if each feature must count only once. The caller must then
    /// remove repeated hashes.
    pub(crate) fn push_unit_weight_hashes(
        self,
        text: &str,
        segmented: bool,
        words: &mut WordBuffer,
        hashes: &mut Vec<u64>,
    ) -> bool {
        let size = self.shingle_size(text);
        let mut push = |feature: &str| hashes.push(xxh3_64(feature.as_bytes()));
        match (self, size) {
            (Tokenizer::Code(_), _) | (_, None) => self.visit(text, segmented, |feature, _| push(feature)),
            (_, Some(n)) => words.visit_ngrams(text, n, segmented, push),
        }
        // Features of Chinese texts are single words, and every occurrence counts.
        self == Tokenizer::ByScript && size == Some(AUTO_WORDS)
    }

    /// Appends to `hashes` the 64-bit hash of each feature of a text, as [feature sets](crate::Profile::feature_set) contain it.
    /// For tokenizers that select keywords, the features are n-grams of words instead of keywords. A hash is appended as often as
    /// its feature occurs. With `segmented`, dictionaries split Thai, Lao, Khmer and Burmese into words.
    ///
    /// If features are n-grams of words, their hashes are computed from the hashes of the words: see [`push_shingles`]. `words`
    /// is a reusable buffer for the hashes of the words.
    pub(crate) fn push_hashes(
        self,
        text: &str,
        segmented: bool,
        words: &mut Vec<u64>,
        hashes: &mut Vec<u64>,
    ) {
        if self == Tokenizer::Exact {
            return whole_text::visit_whole(text, |whole| hashes.extend(whole_text::hash_halves(whole)));
        }
        let Some(n) = self.shingle_size(text) else {
            return self.visit(text, segmented, |feature, _| hashes.push(xxh3_64(feature.as_bytes())));
        };
        words.clear();
        match self {
            Tokenizer::Code(_) => {
                code::visit_words(text, |word| words.push(word_hash(word.as_bytes(), 0, word.len())));
            }
            _ => dispatch(WordHashKernel { text, segmented, hashes: words }),
        }
        push_shingles(words, n, hashes);
    }

    /// Visits the features of a text with their weights. For tokenizers that select keywords, visits n-grams of words instead of
    /// keywords. Each weight is 1, except for [`Tokenizer::Features`] and presets. With `segmented`, dictionaries split Thai,
    /// Lao, Khmer and Burmese into words.
    pub(crate) fn visit(self, text: &str, segmented: bool, mut visit: impl FnMut(&str, u32)) {
        let mut each = |feature: &str| visit(feature, 1);
        match self {
            Tokenizer::Auto | Tokenizer::Jieba(_) => words::word_ngrams(text, AUTO_WORDS, segmented, each),
            Tokenizer::ByScript if is_mostly_han(text) => words::word_ngrams(text, 1, segmented, each),
            Tokenizer::ByScript => {
                let mut seen = PrehashedSet::default();
                words::word_ngrams(text, AUTO_WORDS, segmented, |feature| {
                    // Two features with the same 64-bit hash are too rare to matter.
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
            Tokenizer::Features => weighted_lines::weighted_lines(text, visit),
            Tokenizer::Exact => whole_text::visit_whole(text, each),
            Tokenizer::Preset(preset) => preset.visit_features(text, visit),
        }
    }
}
