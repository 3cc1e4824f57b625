//! Traditional Chinese to simplified.

use std::borrow::Cow;
use std::sync::LazyLock;

use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;

/// OpenCC's tables, loaded once, when the first text needs them.
static OPENCC: LazyLock<OpenCC> =
    LazyLock::new(|| OpenCC::from_config(BuiltinConfig::T2s).expect("the tables are part of the crate"));

/// Range of the characters in [`CHANGING`].
const TABLE: std::ops::Range<u32> = 0x3400..0xa000;
/// For each character of [`TABLE`], whether OpenCC may change a text with this character. OpenCC changes the character alone, or in a
/// phrase whose other characters all stay. Filling the table takes some milliseconds, once.
static CHANGING: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let changes = |c: char| OPENCC.convert(c.encode_utf8(&mut [0; 4])) != String::from(c);
    let may_change = |c: char| CHANGING_IN_PHRASES.contains(&c) || changes(c);
    TABLE.map(|c| char::from_u32(c).is_some_and(may_change)).collect()
});
/// Characters that OpenCC changes in phrases only: each phrase whose other characters all stay has one of these.
const CHANGING_IN_PHRASES: [char; 6] = ['沈', '牴', '瞭', '藉', '衹', '覆'];
/// The first byte of all characters from U+3000.
const FIRST_BYTE: u8 = 0xe3;

/// Returns a text with traditional characters and phrases in their simplified forms, as OpenCC's configuration `t2s` has them.
pub(crate) fn simplified(text: &str) -> Cow<'_, str> {
    if !holds_changing(text) {
        return text.into();
    }
    let mut simplified = String::with_capacity(text.len());
    // All phrases consist of Han characters: no phrase extends over another character.
    for run in text.split_inclusive(|c| !is_han(c)) {
        match holds_changing(run) {
            true => simplified.push_str(&OPENCC.convert(run)),
            false => simplified.push_str(run),
        }
    }
    simplified.into()
}

/// Whether OpenCC's tables may hold a character: all their characters are Han.
fn is_han(c: char) -> bool {
    c >= '\u{3400}' && (TABLE.contains(&u32::from(c)) || c >= '\u{f900}')
}

/// Whether OpenCC may change a text. Rare characters beyond the table are not looked up.
fn holds_changing(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_first_byte = |chunk: &[u8]| chunk.iter().fold(0, |most, &byte| most.max(byte)) >= FIRST_BYTE;
    if !bytes.chunks(256).any(has_first_byte) {
        return false;
    }
    let changing = &CHANGING[..];
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        if first < FIRST_BYTE {
            at += 1;
            continue;
        }
        let Some(&[second, third]) = bytes[at + 1..].first_chunk() else { return false };
        let c = u32::from(first & 0x0f) << 12 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f);
        // Four bytes begin with 0xf0 or more, and U+20000 with 0xf0 0xa0.
        let changes = match first {
            0xf0.. => first > 0xf0 || second >= 0xa0,
            _ => changing.get(c.wrapping_sub(TABLE.start) as usize) == Some(&true),
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
        assert_eq!(simplified("漢語的資料庫與搜尋引擎"), "汉语的资料库与搜寻引擎");
        // 乾 is kept in 乾坤 and becomes 干 elsewhere.
        assert_eq!(simplified("乾坤、乾燥、一目瞭然"), "乾坤、干燥、一目了然");
        for same in ["", "汉语的数据库，plain text。", "\u{0}\u{10ffff}"] {
            assert_eq!(simplified(same), same);
        }
    }

    /// Phrases of a few characters, some with only one that changes; and single characters.
    const PHRASES: [&str; 16] = [
        "一目瞭然", "反反覆覆", "沈默", "牴牾", "以免藉口", "衹得", "彷徨", "有序", "乾坤", "漢", "𠁞", "中",
        "文", "a ", "，", "\u{f900}",
    ];

    proptest! {
        #[test]
        fn as_opencc_does(phrases in prop::collection::vec(prop::sample::select(&PHRASES[..]), 0..20), han in "[\u{3400}-\u{9fff}]{0,9}") {
            for text in [phrases.concat(), phrases.join(&han), han] {
                prop_assert_eq!(simplified(&text), OPENCC.convert(&text));
            }
        }
    }
}
