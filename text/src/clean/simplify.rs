//! Conversion of traditional Chinese to simplified Chinese.

use std::borrow::Cow;
use std::sync::LazyLock;

use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;

/// OpenCC's conversion tables, loaded when the first text needs them.
static OPENCC: LazyLock<OpenCC> =
    LazyLock::new(|| OpenCC::from_config(BuiltinConfig::T2s).expect("the tables are part of the crate"));

/// Code points of the characters that have an entry in [`MAY_CHANGE`].
const TABLE_RANGE: std::ops::Range<u32> = 0x3400..0xa000;
/// For each character of [`TABLE_RANGE`], whether OpenCC may change a text because of this character: OpenCC converts the character
/// alone, or the character is one of [`PHRASE_ONLY`]. The table is filled on first use, in some milliseconds.
static MAY_CHANGE: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let changes = |c: char| OPENCC.convert(c.encode_utf8(&mut [0; 4])) != String::from(c);
    let may_change = |c: char| PHRASE_ONLY.contains(&c) || changes(c);
    TABLE_RANGE.map(|c| char::from_u32(c).is_some_and(may_change)).collect()
});
/// Characters that OpenCC keeps when they are alone, but converts in some phrases. Every phrase that OpenCC converts contains one
/// of these characters, or a character that OpenCC converts alone.
const PHRASE_ONLY: [char; 6] = ['沈', '牴', '瞭', '藉', '衹', '覆'];
/// First UTF-8 byte of U+3000. A text whose bytes are all smaller than this byte contains no Han characters.
const FIRST_BYTE: u8 = 0xe3;

/// Replaces traditional characters and phrases with their simplified forms, as OpenCC does with its configuration `t2s`.
pub(crate) fn simplify(text: &str) -> Cow<'_, str> {
    if !may_change_text(text) {
        return text.into();
    }
    let mut simplified = String::with_capacity(text.len());
    // OpenCC's phrases consist of Han characters only, so a phrase never crosses another character.
    for run in text.split_inclusive(|c| !is_han(c)) {
        match may_change_text(run) {
            true => simplified.push_str(&OPENCC.convert(run)),
            false => simplified.push_str(run),
        }
    }
    simplified.into()
}

/// Whether a character may occur in OpenCC's tables, which hold only Han characters.
fn is_han(c: char) -> bool {
    c >= '\u{3400}' && (TABLE_RANGE.contains(&u32::from(c)) || c >= '\u{f900}')
}

/// Whether OpenCC may change a text, by [`MAY_CHANGE`]. Also true for a text with a character from U+20000 on, because the table
/// does not cover these characters.
fn may_change_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_first_byte = |chunk: &[u8]| chunk.iter().fold(0, |most, &byte| most.max(byte)) >= FIRST_BYTE;
    if !bytes.chunks(256).any(has_first_byte) {
        return false;
    }
    let changing = &MAY_CHANGE[..];
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        if first < FIRST_BYTE {
            at += 1;
            continue;
        }
        let Some(&[second, third]) = bytes[at + 1..].first_chunk() else { return false };
        let c = u32::from(first & 0x0f) << 12 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f);
        // Characters of four bytes begin with 0xf0 or more; U+20000 begins with 0xf0 0xa0.
        let changes = match first {
            0xf0.. => first > 0xf0 || second >= 0xa0,
            _ => changing.get(c.wrapping_sub(TABLE_RANGE.start) as usize) == Some(&true),
        };
        if changes {
            return true;
        }
        at += 3;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn characters_and_phrases() {
        assert_eq!(simplify("漢語的資料庫與搜尋引擎"), "汉语的资料库与搜寻引擎");
        // 乾 is kept in 乾坤 and becomes 干 elsewhere.
        assert_eq!(simplify("乾坤、乾燥、一目瞭然"), "乾坤、干燥、一目了然");
        for same in ["", "汉语的数据库，plain text。", "\u{0}\u{10ffff}"] {
            assert_eq!(simplify(same), same);
        }
    }

    /// Short phrases and single characters from which test texts are built. OpenCC converts some of them.
    const PHRASES: [&str; 16] = [
        "一目瞭然", "反反覆覆", "沈默", "牴牾", "以免藉口", "衹得", "彷徨", "有序", "乾坤", "漢", "𠁞", "中",
        "文", "a ", "，", "\u{f900}",
    ];

    proptest! {
        #[test]
        fn as_opencc_does(phrases in prop::collection::vec(prop::sample::select(&PHRASES[..]), 0..20), han in "[\u{3400}-\u{9fff}]{0,9}") {
            for text in [phrases.concat(), phrases.join(&han), han] {
                prop_assert_eq!(simplify(&text), OPENCC.convert(&text));
            }
        }
    }
}
