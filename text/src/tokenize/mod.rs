//! Cutting a cleaned text into features.

mod chars;
mod jieba;
mod lines;
mod phrases;
mod words;

use crate::presets::Preset;
pub(crate) use crate::tokenize::jieba::Keywords;

/// Words in a feature of `auto`, and of a text without keywords.
const AUTO_WORDS: usize = 2;
/// Keywords of a text, where a name does not say.
pub(crate) const DEFAULT_KEYWORDS: usize = 50;

/// How a text is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Tokenizer {
    #[default]
    Auto,
    Words(usize),
    Chars(usize),
    Jieba(usize),
    Phrases,
    Sentences(usize),
    Tokens,
    Features,
    Preset(Preset),
}

impl Tokenizer {
    /// Whether nothing may be cleaned before.
    pub(crate) fn takes_text_as_it_is(self) -> bool {
        matches!(self, Tokenizer::Features | Tokenizer::Preset(_))
    }

    /// Number of keywords of a text that has any.
    pub(crate) fn keywords(self) -> usize {
        match self {
            Tokenizer::Jieba(count) => count,
            _ => DEFAULT_KEYWORDS,
        }
    }

    /// Visits the features of a text that are no keywords, each with weight 1 but for those that
    /// bring their own.
    pub(crate) fn visit(self, text: &str, mut visit: impl FnMut(&str, u32)) {
        let mut each = |feature: &str| visit(feature, 1);
        match self {
            Tokenizer::Auto | Tokenizer::Jieba(_) => words::word_ngrams(text, AUTO_WORDS, each),
            Tokenizer::Words(n) => words::word_ngrams(text, n, each),
            Tokenizer::Chars(n) => chars::char_ngrams(text, n, each),
            Tokenizer::Phrases => phrases::phrases(text, each),
            Tokenizer::Sentences(count) => phrases::longest_sentences(text, count, each),
            Tokenizer::Tokens => text.split_whitespace().for_each(&mut each),
            Tokenizer::Features => lines::weighted_lines(text, visit),
            Tokenizer::Preset(preset) => preset.visit_features(text, visit),
        }
    }
}
