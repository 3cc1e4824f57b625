//! Cleaning: the steps before a text is cut into features.

use std::borrow::Cow;

use crate::clean::normal::Form;
use crate::clean::signs::Signs;

mod dropped;
mod elements;
mod front_matter;
mod han;
mod html;
mod markdown;
mod normal;
mod plain_text;
mod references;
mod signs;
mod simplified;
mod tags;

pub use crate::clean::dropped::Dropped;
pub(crate) use crate::clean::han::is_mostly_han;

/// How a text is cleaned. The steps come in the order of the fields.
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

/// How markup is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Markup {
    /// Markup is text.
    #[default]
    Keep,
    /// The text may hold HTML, Markdown, both or none.
    PlainText,
    /// The text is HTML.
    HtmlText,
    /// The text is HTML, and navigation and the like are left out.
    MainText,
}

/// Memory of texts between the steps of cleaning, which is used for one text after the other.
#[derive(Default)]
pub(crate) struct Buffers {
    signs: Signs,
    plain: String,
    normal: String,
}

/// A text that is cleaned.
pub(crate) struct Cleaned<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Number of words that were dropped with markup from a text that is no HTML. Front matter and addresses of links do not count.
    dropped_words: usize,
}

impl<'a> Cleaned<'a> {
    /// Makes a text that is not cleaned.
    pub(crate) fn whole(text: &'a str) -> Cleaned<'a> {
        Cleaned { text: text.into(), dropped_words: 0 }
    }

    /// Whether more words were dropped than are left. Front matter does not count, and neither does HTML.
    pub(crate) fn lost_most(&self) -> bool {
        self.dropped_words > words_up_to(&self.text, self.dropped_words)
    }
}

impl Cleaning {
    /// Returns the text that is cut into features.
    pub(crate) fn clean<'a>(&self, text: &str, buffers: &'a mut Buffers) -> Cleaned<'a> {
        let mut dropped_words = 0;
        let mut cleaned =
            self.clean_and_visit(text, buffers, |rule, piece| dropped_words += count_dropped(rule, piece));
        // A part of an HTML document begins with a tag.
        let is_html = || front_matter::split(text).1.trim_start().starts_with('<');
        cleaned.dropped_words = if dropped_words > 0 && is_html() { 0 } else { dropped_words };
        cleaned
    }

    /// Like [`Cleaning::clean`]. Visits each piece that is dropped from a text that is no HTML document.
    pub(crate) fn clean_and_visit<'a, 'b>(
        &self,
        text: &'a str,
        buffers: &'b mut Buffers,
        mut dropped: impl FnMut(Dropped, &'a str),
    ) -> Cleaned<'b> {
        let Buffers { signs, plain, normal } = buffers;
        plain.clear();
        normal.clear();
        let mut text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !self.keep_front_matter {
            let (front_matter, rest) = front_matter::split(text);
            if !front_matter.is_empty() {
                dropped(Dropped::FrontMatter, front_matter);
            }
            text = rest;
        }
        let is_plain = match self.markup {
            Markup::Keep => true,
            Markup::PlainText => !plain_text::push(text, signs, plain, &mut dropped),
            Markup::HtmlText | Markup::MainText => {
                html::push(text, self.markup == Markup::MainText, plain);
                false
            }
        };
        self.form().push(if is_plain { text } else { plain }, normal);
        Cleaned { text: self.reduce(normal.as_str().into()), dropped_words: 0 }
    }

    /// Takes the steps after markup. Words of dictionaries and stop words take them too.
    pub(crate) fn normalise<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.reduce(self.form().normalise(text))
    }

    fn form(&self) -> Form {
        Form { plain_signs: self.markup != Markup::Keep, nfkc: !self.no_nfkc, lower: !self.keep_case }
    }

    /// Takes the steps after normalisation.
    fn reduce<'a>(&self, mut text: Cow<'a, str>) -> Cow<'a, str> {
        if self.simplified
            && let Cow::Owned(simplified) = simplified::simplified(&text)
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

/// Returns the number of words of a piece that was dropped, without names of elements and attributes, and without addresses. Attributes
/// of one word, such as classes, do not count.
fn count_dropped(rule: Dropped, piece: &str) -> usize {
    match rule {
        Dropped::FrontMatter => 0,
        Dropped::LinkTarget => piece.split_once([' ', '\n']).map_or(0, |(_, title)| count_words(title)),
        Dropped::Tag => {
            let values = piece.split(['"', '\'']).skip(1).step_by(2);
            values.filter(|value| value.contains(' ')).map(count_words).sum()
        }
        Dropped::Comment | Dropped::Code | Dropped::FenceInfo => count_words(piece),
    }
}

/// Returns the number of words by white space and ASCII signs. A Han character or kana is a word.
fn count_words(text: &str) -> usize {
    words_up_to(text, usize::MAX)
}

/// Returns the [number of words](count_words), or `most` if there are more.
fn words_up_to(text: &str, most: usize) -> usize {
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
        cleaning.clean(text, &mut Buffers::default()).text.into_owned()
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
