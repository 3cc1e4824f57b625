//! Segmentation of Thai, Lao, Khmer and Burmese texts, which have no spaces between words, into words.

use std::borrow::Cow;
use std::sync::LazyLock;

use icu_segmenter::options::LineBreakOptions;
use icu_segmenter::{LineSegmenter, LineSegmenterBorrowed};
use unicode_segmentation::UnicodeSegmentation;

/// ICU's line segmenter, which serves to find words: in Thai, Lao, Khmer and Burmese, lines may break between any two words.
/// ICU's word segmenter would add 2 MB of dictionaries for Chinese and Japanese.
static SEGMENTER: LazyLock<LineSegmenterBorrowed<'static>> =
    LazyLock::new(|| LineSegmenter::new_dictionary(LineBreakOptions::default()));

/// Visits the words of a text. Segments Thai, Lao, Khmer and Burmese by ICU's dictionaries, and other scripts by UAX #29. A word
/// missing from the dictionaries, such as a word of a minority language in one of the four scripts, is split into characters with
/// their combining marks.
pub(super) fn visit_words(text: &str, mut visit: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(start) = rest.find(is_unspaced_script) {
        rest[..start].unicode_words().for_each(&mut visit);
        let from = &rest[start..];
        let length = from.find(|c| !is_unspaced_script(c)).unwrap_or(from.len());
        let run = compose(&from[..length]);
        let mut start = 0;
        for end in SEGMENTER.segment_str(&run) {
            let word = &run[start..end];
            if word.contains(char::is_alphanumeric) {
                visit(word);
            }
            start = end;
        }
        rest = &from[length..];
    }
    rest.unicode_words().for_each(visit);
}

/// Whether a character is a letter or mark of Thai, Lao, Burmese or Khmer. These are the characters of Unicode's line breaking
/// class SA whose scripts have a dictionary.
fn is_unspaced_script(c: char) -> bool {
    matches!(
        c,
        '\u{e01}'..='\u{e3a}'
            | '\u{e40}'..='\u{e4e}'
            | '\u{e81}'..='\u{ece}'
            | '\u{edc}'..='\u{edf}'
            | '\u{1000}'..='\u{103f}'
            | '\u{1050}'..='\u{108f}'
            | '\u{109a}'..='\u{109f}'
            | '\u{1780}'..='\u{17d3}'
            | '\u{17d7}'
            | '\u{17dc}'
            | '\u{17dd}'
            | '\u{a9e0}'..='\u{a9ef}'
            | '\u{a9fa}'..='\u{a9fe}'
            | '\u{aa60}'..='\u{aa7f}'
    )
}

/// Composes characters that the dictionaries contain in composed form, but that NFKC decomposes: the vowel sign AM of Thai and
/// Lao, and two ligatures of Lao.
fn compose(run: &str) -> Cow<'_, str> {
    let mut composed = Cow::Borrowed(run);
    for (parts, whole) in [
        ("\u{e4d}\u{e32}", "\u{e33}"),
        ("\u{ecd}\u{eb2}", "\u{eb3}"),
        ("\u{eab}\u{e99}", "\u{edc}"),
        ("\u{eab}\u{ea1}", "\u{edd}"),
    ] {
        if composed.contains(parts) {
            composed = composed.replace(parts, whole).into();
        }
    }
    composed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        visit_words(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_of_dictionaries() {
        for (text, expected) in [
            ("คำสั่งนี้เป็นอีกชื่อหนึ่งของคำสั่ง", "คำ สั่ง นี้ เป็น อีก ชื่อ หนึ่ง ของ คำ สั่ง"),
            ("ຄຳສັ່ງນີ້ເປັນອີກຊື່ໜຶ່ງຂອງຄຳສັ່ງ", "ຄຳສັ່ງ ນີ້ ເປັນ ອີກ ຊື່ ໜຶ່ງ ຂອງ ຄຳສັ່ງ"),
            ("ពាក្យបញ្ជានេះគឺជាឈ្មោះហៅក្រៅនៃ", "ពាក្យ បញ្ជា នេះ គឺជា ឈ្មោះ ហៅក្រៅ នៃ"),
            ("ဤအမိန့်သည်အခြားအမိန့်၏အမည်ဖြစ်သည်။", "ဤ အမိန့် သည် အခြား အမိန့် အမည် ဖြစ်သည်"),
            // Shan, in Burmese script.
            ("ပဵၼ်ၶေႃႈသင်ႇ", "ပဵ ၼ် ၶေ ႃ ႈ သင် ႇ"),
            ("the คำ, 中文 かな l’été", "the คำ 中 文 か な l’été"),
        ] {
            assert_eq!(words(text).join(" "), expected);
            let normal: String = text.nfkc().collect();
            assert_eq!(words(&normal).join(" "), expected, "NFKC");
        }
    }

    #[test]
    fn long_stretches_take_linear_time() {
        // Each takes about 20 ms. Quadratic time would be hours.
        for part in ["คำสั่ง", "ก", "\u{1019}\u{103a}", "\u{e48}"] {
            assert!(words(&part.repeat(200_000)).len() <= 400_000);
        }
    }

    proptest! {
        #[test]
        fn other_scripts_are_cut_as_before(text in "([a-z ]|[é中’かカ한д\u{301}\u{5d0}\u{628}न_.0-9]){0,40}") {
            let whole: Vec<_> = text.unicode_words().collect();
            prop_assert_eq!(words(&text), whole);
        }

        #[test]
        fn nothing_is_lost(text in "([ก-๎]|[\u{e81}-\u{edf}]|[\u{1000}-\u{109f}]|[\u{1780}-\u{17ff}]|[a ,]){0,40}") {
            // Letters are sorted, because concatenating two words may change the canonical order of their combining marks.
            let letters = |text: &str| {
                let mut letters: Vec<char> = text.nfkd().filter(|c| c.is_alphabetic()).collect();
                letters.sort_unstable();
                letters
            };
            prop_assert_eq!(letters(&words(&text).concat()), letters(&text.unicode_words().collect::<String>()));
        }
    }
}
