//! What is done to a text before it is cut into features.

use std::borrow::Cow;

mod front_matter;
mod han;
mod html;
mod markup;
mod normal;
mod simplified;

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

/// What is done about markup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Markup {
    #[default]
    Keep,
    /// Signs of HTML and Markdown are taken out of what may be either, or plain text.
    Strip,
    /// The text is read as HTML.
    Html,
    /// The text is read as HTML, and navigation and the like are left out.
    MainText,
}

impl Cleaning {
    /// The text that is to be cut.
    pub(crate) fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = if self.keep_front_matter { text } else { front_matter::without_front_matter(text) };
        match self.markup {
            Markup::Keep => self.normalise(text),
            Markup::Strip => self.normalise(&markup::without_markup(text)).into_owned().into(),
            Markup::Html => self.normalise(&html::text_of(text, false)).into_owned().into(),
            Markup::MainText => self.normalise(&html::text_of(text, true)).into_owned().into(),
        }
    }

    /// The steps after those that a document needs: words of a list take them too.
    pub(crate) fn normalise<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = normal::normalise(text, !self.no_nfkc, !self.keep_case);
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
        let all =
            Cleaning { markup: Markup::Html, simplified: true, strip_digits: true, ..Cleaning::default() };
        // The digits of a reference, of a wide form and of a word; a compatibility character that has a simplified form.
        assert_eq!(
            all.clean("\u{feff}---\nid: 1\n---\n<p>Caf&#233; １2 b3b &lt;八萬\u{f9b0}>"),
            "\n\ncafé  bb <八万聆>"
        );
        let han = Cleaning { only_han: true, ..Cleaning::default() };
        assert_eq!(han.clean("第１章：SQL数据库㍿"), "第 章 数据库株式会社");
    }

    #[test]
    fn what_is_kept() {
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
