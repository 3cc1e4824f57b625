//! Normalisation form and lower case.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The text in normalisation form NFKC if `nfkc`, then in lower case, character by character, if
/// `lower`.
///
/// Unlike `str::to_lowercase`, a capital sigma is `σ` also at the end of a word.
pub(crate) fn normalise(text: &str, nfkc: bool, lower: bool) -> Cow<'_, str> {
    match (nfkc, lower) {
        (_, true) if text.is_ascii() => text.to_ascii_lowercase().into(),
        (true, false) if text.is_ascii() => text.into(),
        (true, true) => nfkc_lower_case(text).into(),
        (true, false) => text.nfkc().collect::<String>().into(),
        (false, true) => text.chars().flat_map(char::to_lowercase).collect::<String>().into(),
        (false, false) => text.into(),
    }
}

fn nfkc_lower_case(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut rest = text;
    // A run of stable characters is its own NFKC, except that a mark after it may combine with
    // its last character; no character combines with a stable one that follows it.
    while let Some(unstable) = rest.find(|c| !is_stable(c)) {
        let start = rest[..unstable].char_indices().next_back().map_or(0, |(at, _)| at);
        let end = rest[unstable..].find(is_stable).map_or(rest.len(), |length| unstable + length);
        push_lower_case(&mut normal, &rest[..start]);
        normal.extend(rest[start..end].nfkc().flat_map(char::to_lowercase));
        rest = &rest[end..];
    }
    push_lower_case(&mut normal, rest);
    normal
}

/// Characters that NFKC keeps and that combine with none before them.
fn is_stable(c: char) -> bool {
    c.is_ascii() || matches!(c, '\u{3001}'..='\u{3029}' | '\u{4e00}'..='\u{9fff}')
}

/// Appends stable characters: only the ASCII letters among them have a lower case.
fn push_lower_case(normal: &mut String, stable: &str) {
    let start = normal.len();
    normal.push_str(stable);
    normal[start..].make_ascii_lowercase();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normalised(text: &str) -> Cow<'_, str> {
        normalise(text, true, true)
    }

    fn plain(text: &str) -> String {
        text.nfkc().flat_map(char::to_lowercase).collect()
    }

    #[test]
    fn normal_forms() {
        assert_eq!(normalised("Ｆｕｌｌ　Ｗｉｄｔｈ，中文。"), "full width,中文。");
        assert_eq!(normalised("cafe\u{301} CAFÉ"), "café café");
        assert_eq!(normalised("\u{301}x中\u{301}"), "\u{301}x中\u{301}");
        assert_eq!(normalised("ﬁ ① ㎞ ΣΑΣ"), "fi 1 km σασ");
    }

    #[test]
    fn every_character_is_normalised_as_in_a_whole() {
        for c in (0..=0x10ffff).filter_map(char::from_u32) {
            for text in [format!("e{c}"), format!("{c}\u{301}"), format!("中{c}A")] {
                assert_eq!(normalised(&text), plain(&text), "{c:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn runs_are_normalised_as_in_a_whole(
            text in "([a-zA-Z ]|[中文，。　]|[\u{300}-\u{345}]|[가-각\u{1100}-\u{11ff}]|[Ａ-ｚｶ-ﾟ]|\\PC){0,40}",
        ) {
            prop_assert_eq!(normalised(&text), plain(&text));
        }
    }
}
