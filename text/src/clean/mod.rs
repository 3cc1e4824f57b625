//! Cleaning: the steps before a text is cut into features.

use std::borrow::Cow;

use crate::clean::normal::Form;

mod dropped;
mod elements;
mod front_matter;
mod han;
mod html;
mod markdown;
mod normal;
mod plain_text;
mod references;
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

impl Cleaning {
    /// Returns the text that is cut into features.
    pub(crate) fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.clean_and_visit(text, |_, _| {})
    }

    /// Like [`Cleaning::clean`]. Visits each piece that is dropped from a text that is no HTML document.
    pub(crate) fn clean_and_visit<'a>(
        &self,
        text: &'a str,
        mut dropped: impl FnMut(Dropped, &'a str),
    ) -> Cow<'a, str> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = if self.keep_front_matter {
            text
        } else {
            let (front_matter, rest) = front_matter::split(text);
            if !front_matter.is_empty() {
                dropped(Dropped::FrontMatter, front_matter);
            }
            rest
        };
        let plain = match self.markup {
            Markup::Keep => text.into(),
            Markup::PlainText => plain_text::plain_text(text, &mut dropped),
            Markup::HtmlText => html::text_of(text, false).into(),
            Markup::MainText => html::text_of(text, true).into(),
        };
        match plain {
            Cow::Borrowed(plain) => self.normalise(plain),
            Cow::Owned(plain) => self.normalise(&plain).into_owned().into(),
        }
    }

    /// Takes the steps after markup. Words of dictionaries and stop words take them too.
    pub(crate) fn normalise<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let form =
            Form { plain_signs: self.markup != Markup::Keep, nfkc: !self.no_nfkc, lower: !self.keep_case };
        let mut text = form.normalise(text);
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

#[cfg(test)]
mod tests {
    use super::*;

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
            all.clean("\u{feff}---\nid: 1\n---\n<p>Caf&#233; １2 b3b &lt;八萬\u{f9b0}>"),
            "\n\ncafé  bb <八万聆>"
        );
        let han = Cleaning { only_han: true, ..Cleaning::default() };
        assert_eq!(han.clean("第１章：SQL数据库㍿"), "第 章 数据库株式会社");
    }

    #[test]
    fn steps_that_are_off() {
        let kept =
            Cleaning { keep_front_matter: true, no_nfkc: true, keep_case: true, ..Cleaning::default() };
        let text = "---\nid: 1\n---\n<b>Ｗｉｄｅ</b>";
        assert_eq!(kept.clean(text), text);
        let lower = Cleaning { keep_case: false, ..kept };
        assert_eq!(lower.clean("ＷＩＤＥ Ab"), "ｗｉｄｅ ab");
        let nfkc = Cleaning { no_nfkc: false, ..kept };
        assert_eq!(nfkc.clean("ＷＩＤＥ Ab"), "WIDE Ab");
    }
}
