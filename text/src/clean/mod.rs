//! Cleaning of a text before tokenization: removal of front matter and markup, and normalisation of characters.

use std::borrow::Cow;

use crate::clean::markup_positions::MarkupPositions;
use crate::clean::normaliser::Normaliser;

mod drop_reason;
mod elements;
mod front_matter;
mod han;
mod html;
mod markdown;
mod markup_positions;
mod normaliser;
mod plain_text;
mod references;
mod simplify;
mod tags;

pub use crate::clean::drop_reason::DropReason;
pub(crate) use crate::clean::han::is_mostly_han;

/// The cleaning options of a profile, in order of application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Cleaning {
    pub(crate) keep_front_matter: bool,
    pub(crate) markup: Markup,
    pub(crate) no_nfkc: bool,
    pub(crate) keep_case: bool,
    pub(crate) simplified: bool,
    pub(crate) only_han: bool,
    pub(crate) strip_digits: bool,
}

/// The kind of markup that cleaning removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Markup {
    /// No markup is removed.
    #[default]
    Keep,
    /// HTML and Markdown markup is removed from any text in which it occurs.
    PlainText,
    /// The text is always read as HTML, and its markup is removed.
    HtmlText,
    /// Like `HtmlText`, but boilerplate such as navigation is removed too.
    MainText,
}

/// Reusable buffers for the intermediate texts of cleaning.
#[derive(Default)]
pub(crate) struct CleaningBuffers {
    markup: MarkupPositions,
    plain: String,
    normal: String,
}

/// A cleaned text, with a count of the words that cleaning dropped.
pub(crate) struct CleanedText<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Number of words that were dropped as part of markup. Words of front matter and link addresses do not count. Always 0 if the
    /// text is an HTML document or fragment.
    dropped_words: usize,
}

impl<'a> CleanedText<'a> {
    /// Wraps a text that needs no cleaning.
    pub(crate) fn from_uncleaned(text: &'a str) -> CleanedText<'a> {
        CleanedText { text: text.into(), dropped_words: 0 }
    }

    /// Whether cleaning dropped more words than it left. Words of front matter do not count. Always false if the text is an HTML
    /// document or fragment.
    pub(crate) fn has_lost_most_words(&self) -> bool {
        self.dropped_words > count_words_up_to(&self.text, self.dropped_words)
    }
}

impl Cleaning {
    /// Returns the cleaned text, ready for tokenization.
    pub(crate) fn clean<'a>(&self, text: &str, buffers: &'a mut CleaningBuffers) -> CleanedText<'a> {
        let mut dropped_words = 0;
        let mut cleaned =
            self.clean_and_visit(text, buffers, |rule, piece| dropped_words += count_dropped(rule, piece));
        // A fragment of an HTML document begins with a tag.
        let is_html = || front_matter::split(text).1.trim_start().starts_with('<');
        cleaned.dropped_words = if dropped_words > 0 && is_html() { 0 } else { dropped_words };
        cleaned
    }

    /// Like [`Cleaning::clean`], but calls `dropped` for each dropped piece instead of counting words. Pieces dropped from an
    /// HTML document are not visited, except its front matter.
    pub(crate) fn clean_and_visit<'a, 'b>(
        &self,
        text: &'a str,
        buffers: &'b mut CleaningBuffers,
        mut dropped: impl FnMut(DropReason, &'a str),
    ) -> CleanedText<'b> {
        let CleaningBuffers { markup, plain, normal } = buffers;
        plain.clear();
        normal.clear();
        let mut text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !self.keep_front_matter {
            let (front_matter, rest) = front_matter::split(text);
            if !front_matter.is_empty() {
                dropped(DropReason::FrontMatter, front_matter);
            }
            text = rest;
        }
        let is_plain = match self.markup {
            Markup::Keep => true,
            Markup::PlainText => !plain_text::push(text, markup, plain, &mut dropped),
            Markup::HtmlText | Markup::MainText => {
                html::push(text, self.markup == Markup::MainText, plain);
                false
            }
        };
        self.normaliser().push(if is_plain { text } else { plain }, normal);
        CleanedText { text: self.convert_characters(normal.as_str().into()), dropped_words: 0 }
    }

    /// Applies all cleaning steps that follow the removal of markup. The same steps are applied to dictionary words and stop words,
    /// so that these match cleaned texts.
    pub(crate) fn normalise<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.convert_characters(self.normaliser().normalise(text))
    }

    fn normaliser(&self) -> Normaliser {
        Normaliser {
            plain_punctuation: self.markup != Markup::Keep,
            nfkc: !self.no_nfkc,
            lower: !self.keep_case,
        }
    }

    /// Applies the last cleaning steps, each only if its option is set: converts Chinese to simplified characters, keeps only Han
    /// characters, removes digits.
    fn convert_characters<'a>(&self, mut text: Cow<'a, str>) -> Cow<'a, str> {
        if self.simplified
            && let Cow::Owned(simplified) = simplify::simplify(&text)
        {
            text = simplified.into();
        }
        if self.only_han {
            text = han::only_han(&text).into();
        }
        if self.strip_digits {
            text = text.replace(char::is_numeric, "").into();
        }
        text
    }
}

/// Returns the number of words in a piece of text that cleaning dropped for the reason `rule`. Words of front matter and link
/// addresses do not count. In a tag, only the words of quoted attribute values that contain a space count.
fn count_dropped(rule: DropReason, piece: &str) -> usize {
    match rule {
        DropReason::FrontMatter => 0,
        DropReason::LinkTarget => piece.split_once([' ', '\n']).map_or(0, |(_, title)| count_words(title)),
        DropReason::Tag => {
            let values = piece.split(['"', '\'']).skip(1).step_by(2);
            values.filter(|value| value.contains(' ')).map(count_words).sum()
        }
        DropReason::Comment | DropReason::Code | DropReason::FenceInfo => count_words(piece),
    }
}

/// Returns the number of words separated by white space and ASCII punctuation. Each Han character or kana is a word.
fn count_words(text: &str) -> usize {
    count_words_up_to(text, usize::MAX)
}

/// Returns the smaller of `most` and the number of words, as [`count_words`] counts them.
fn count_words_up_to(text: &str, most: usize) -> usize {
    let mut before = false;
    let starts = |byte: u8| {
        let is_inside = std::mem::replace(&mut before, byte.is_ascii_alphanumeric() || byte >= 0x80);
        before && (!is_inside || byte >= 0xe3)
    };
    text.bytes().map(starts).filter(|&starts| starts).take(most).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(cleaning: &Cleaning, text: &str) -> String {
        cleaning.clean(text, &mut CleaningBuffers::default()).text.into_owned()
    }

    #[test]
    fn steps_in_order() {
        let all = Cleaning {
            markup: Markup::HtmlText,
            simplified: true,
            strip_digits: true,
            ..Cleaning::default()
        };
        // Digits of a reference, of a wide form and of a word; a compatibility character with a simplified form.
        assert_eq!(
            cleaned(&all, "\u{feff}---\nid: 1\n---\n<p>Caf&#233; １2 b3b &lt;八萬\u{f9b0}>"),
            "\n\ncafé  bb <八万聆>"
        );
        let han = Cleaning { only_han: true, ..Cleaning::default() };
        assert_eq!(cleaned(&han, "第１章：SQL数据库㍿"), "第 章 数据库株式会社");
    }

    #[test]
    fn steps_that_are_off() {
        let kept =
            Cleaning { keep_front_matter: true, no_nfkc: true, keep_case: true, ..Cleaning::default() };
        let text = "---\nid: 1\n---\n<b>Ｗｉｄｅ</b>";
        assert_eq!(cleaned(&kept, text), text);
        let lower = Cleaning { keep_case: false, ..kept };
        assert_eq!(cleaned(&lower, "ＷＩＤＥ Ab"), "ｗｉｄｅ ab");
        let nfkc = Cleaning { no_nfkc: false, ..kept };
        assert_eq!(cleaned(&nfkc, "ＷＩＤＥ Ab"), "WIDE Ab");
    }
}
