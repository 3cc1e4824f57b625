//! Traditional Chinese to simplified.

use std::sync::LazyLock;

use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;

/// OpenCC's tables, loaded once, when the first text needs them.
static OPENCC: LazyLock<OpenCC> =
    LazyLock::new(|| OpenCC::from_config(BuiltinConfig::T2s).expect("the tables are part of the crate"));

/// The text with traditional characters and phrases in their simplified forms, as by OpenCC's
/// configuration `t2s`.
pub(crate) fn simplified(text: &str) -> String {
    OPENCC.convert(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_phrases() {
        assert_eq!(simplified("漢語的資料庫與搜尋引擎"), "汉语的资料库与搜寻引擎");
        // 乾 is kept in 乾坤 and becomes 干 elsewhere.
        assert_eq!(simplified("乾坤、乾燥、一目瞭然"), "乾坤、干燥、一目了然");
        for same in ["", "汉语的数据库，plain text。", "\u{0}\u{10ffff}"] {
            assert_eq!(simplified(same), same);
        }
    }
}
