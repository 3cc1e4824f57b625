//! Normalisation of characters: NFKC, lower case, apostrophes, invisible characters.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Normalises the characters of texts. Each field switches one step on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Normaliser {
    /// Whether invisible characters are removed and typographic apostrophes become `'`.
    pub(super) plain_punctuation: bool,
    /// Whether the text is converted to normalisation form NFKC.
    pub(super) nfkc: bool,
    /// Whether letters are converted to lower case, character by character. Unlike in `str::to_lowercase`, a capital sigma
    /// becomes `σ` also at the end of a word.
    pub(super) lower: bool,
}

impl Normaliser {
    const NONE: Normaliser = Normaliser { plain_punctuation: false, nfkc: false, lower: false };

    /// Returns the normalised text.
    pub(super) fn normalise(self, text: &str) -> Cow<'_, str> {
        if self == Normaliser::NONE || text.is_ascii() && !self.lower {
            return text.into();
        }
        let mut normal = String::with_capacity(text.len());
        self.push(text, &mut normal);
        normal.into()
    }

    /// Appends the normalised text.
    pub(super) fn push(self, text: &str, normal: &mut String) {
        match self {
            Normaliser { nfkc: true, lower: true, .. } => self.push_by_runs(text, normal),
            _ => self.push_by_characters(text, normal),
        }
    }

    /// Appends the normalised text character by character. The result defines what [`Normaliser::push_by_runs`] must append.
    fn push_by_characters(self, text: &str, normal: &mut String) {
        let characters = text
            .chars()
            .filter_map(|c| if self.plain_punctuation { plain_punctuation_mark(c) } else { Some(c) });
        match (self.nfkc, self.lower) {
            (true, true) => normal.extend(characters.nfkc().flat_map(char::to_lowercase)),
            (true, false) => normal.extend(characters.nfkc()),
            (false, true) => normal.extend(characters.flat_map(char::to_lowercase)),
            (false, false) => normal.extend(characters),
        }
    }

    /// Appends the same text as [`Normaliser::push_by_characters`] with NFKC and lower case, but is faster: runs of ASCII
    /// characters and of [stable](is_stable) characters need no look-up in Unicode tables.
    fn push_by_runs(self, text: &str, normal: &mut String) {
        let mut rest = text;
        loop {
            let ascii = ascii_length(rest.as_bytes());
            // A combining mark may follow: then it changes the last ASCII character.
            let kept = if ascii == rest.len() { ascii } else { ascii.saturating_sub(1) };
            push_ascii(&rest[..kept], normal);
            rest = &rest[kept..];
            if rest.is_empty() {
                return;
            }
            let first = ascii - kept;
            let length = rest.as_bytes()[first..].iter().take_while(|b| !b.is_ascii()).count();
            self.push_run(&rest[..first + length], normal);
            rest = &rest[first + length..];
        }
    }

    fn push_run(self, run: &str, normal: &mut String) {
        let mut rest = run;
        // NFKC leaves a run of stable characters unchanged, except that a following mark may combine with the last of them.
        // No character combines with a stable character after it.
        while let Some(unstable) = rest.find(|c| !is_stable(c)) {
            let start = rest[..unstable].char_indices().next_back().map_or(0, |(at, _)| at);
            let end = rest[unstable..].find(is_stable).map_or(rest.len(), |length| unstable + length);
            self.push_stable(&rest[..start], normal);
            self.push_by_characters(&rest[start..end], normal);
            rest = &rest[end..];
        }
        self.push_stable(rest, normal);
    }

    /// Appends [stable](is_stable) characters in lower case. With `plain_punctuation`, typographic apostrophes become `'`.
    fn push_stable(self, stable: &str, normal: &mut String) {
        // Only some characters of two bytes, and some from U+2000 to U+2FFF, change.
        let may_change = |byte: u8| (0xc2..=0xdf).contains(&byte) || byte == 0xe2;
        if !stable.bytes().fold(false, |any, byte| any | may_change(byte)) {
            return push_ascii(stable, normal);
        }
        for c in stable.chars() {
            match c {
                '\u{2018}' | '\u{2019}' if self.plain_punctuation => normal.push('\''),
                ..='\u{7f}' => normal.push(c.to_ascii_lowercase()),
                // The other stable characters have no case.
                ..'\u{2000}' => normal.extend(c.to_lowercase()),
                _ => normal.push(c),
            }
        }
    }
}

/// Returns `'` for a typographic apostrophe, `None` for an invisible character, and any other character unchanged.
///
/// Invisible characters are the soft hyphen, the zero-width space, the word joiner, the byte order mark and direction marks.
fn plain_punctuation_mark(c: char) -> Option<char> {
    match c {
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}' => None,
        '\u{2018}' | '\u{2019}' | '\u{2bc}' => Some('\''),
        _ => Some(c),
    }
}

/// Whether NFKC keeps a character unchanged and never combines it with the character before it.
fn is_stable(c: char) -> bool {
    // Han characters are the most frequent, so they are tested first.
    matches!(c, '\u{4e00}'..='\u{9fff}')
        || match c {
            // Latin and Cyrillic letters.
            '\0'..='\u{7f}' | '\u{c0}'..='\u{131}' | '\u{400}'..='\u{482}' | '\u{48a}'..='\u{52f}' => true,
            // Dashes, quotation marks and apostrophes.
            '\u{2010}' | '\u{2012}'..='\u{2016}' | '\u{2018}'..='\u{201a}' | '\u{201c}'..='\u{2023}' => true,
            // Punctuation, kana and Hangul syllables.
            '\u{3001}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' => true,
            '\u{ac00}'..='\u{d7a3}' => true,
            _ => false,
        }
}

/// Returns the number of ASCII bytes at the beginning of a text.
fn ascii_length(bytes: &[u8]) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (chunks, _) = bytes.as_chunks::<32>();
    let is_ascii = |chunk: &[u8; 32]| {
        let words = chunk.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        words.fold(0, |all, word| all | word) & HIGH == 0
    };
    let mut length = 0;
    for chunk in chunks {
        if !is_ascii(chunk) {
            break;
        }
        length += chunk.len();
    }
    while bytes.get(length).is_some_and(u8::is_ascii) {
        length += 1;
    }
    length
}

/// Appends a text with its ASCII letters in lower case. The text must contain no upper-case letters outside ASCII.
fn push_ascii(text: &str, normal: &mut String) {
    let start = normal.len();
    normal.push_str(text);
    normal[start..].make_ascii_lowercase();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: Normaliser = Normaliser { plain_punctuation: true, nfkc: true, lower: true };

    fn normalised(text: &str) -> Cow<'_, str> {
        Normaliser { plain_punctuation: false, ..ALL }.normalise(text)
    }

    fn by_characters(form: Normaliser, text: &str) -> String {
        let mut normal = String::new();
        form.push_by_characters(text, &mut normal);
        normal
    }

    #[test]
    fn normal_forms() {
        assert_eq!(normalised("Ｆｕｌｌ　Ｗｉｄｔｈ，中文。"), "full width,中文。");
        assert_eq!(normalised("cafe\u{301} CAFÉ ПРИВЕТ"), "café café привет");
        assert_eq!(normalised("\u{301}x中\u{301}"), "\u{301}x中\u{301}");
        assert_eq!(normalised("ﬁ ① ㎞ ΣΑΣ"), "fi 1 km σασ");
    }

    #[test]
    fn invisible_characters_and_apostrophes() {
        let text =
            "Don’t ‘hy\u{ad}phen\u{200b}ate’\u{feff} м\u{2bc}ята, cafe\u{200e}\u{301} co\u{2060}op\u{200f}";
        assert_eq!(ALL.normalise(text), "don't 'hyphenate' м'ята, café coop");
        assert_eq!(normalised("Don’t\u{200b}"), "don’t\u{200b}");
        assert_eq!(Normaliser { nfkc: false, lower: false, ..ALL }.normalise("A’\u{ad}ﬁ"), "A'ﬁ");
    }

    #[test]
    fn every_character_is_normalised_as_in_a_whole() {
        for c in (0..=0x10ffff).filter_map(char::from_u32) {
            for text in [format!("e{c}"), format!("{c}\u{301}"), format!("中{c}A"), format!("Й{c}")] {
                for form in [ALL, Normaliser { plain_punctuation: false, ..ALL }] {
                    assert_eq!(form.normalise(&text), by_characters(form, &text), "{c:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn runs_are_normalised_as_in_a_whole(
            text in "([a-zA-Z ]{1,40}|[中文，。　“”—’]|[\u{300}-\u{345}\u{ad}\u{200b}]|[가-각\u{1100}-\u{11ff}]|[Ａ-ｚｶ-ﾟ]|[Ææßİ\u{d7}Жы]|\\PC){0,40}",
        ) {
            for form in [ALL, Normaliser { plain_punctuation: false, ..ALL }] {
                prop_assert_eq!(form.normalise(&text), by_characters(form, &text));
            }
        }
    }
}
