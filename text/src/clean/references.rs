//! Character references of HTML: `&eacute;`, `&#233;` and `&#xe9;`.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// The longest name of a reference, `CounterClockwiseContourIntegral`, has 31 letters.
const NAME_MAX: usize = 31;

/// Appends the characters of the reference at the beginning of a text, and returns the length of the reference in bytes.
///
/// Returns `None` if the text begins with no reference. Unlike in HTML, a reference ends with a semicolon: `?a=1&copy=2` is text, as in
/// CommonMark.
pub(super) fn decode(text: &str, decoded: &mut String) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_number = bytes.get(1) == Some(&b'#');
    let start = if is_number { 2 } else { 1 };
    let length = bytes[start..].iter().take(NAME_MAX + 1).take_while(|b| b.is_ascii_alphanumeric()).count();
    let end = start + length;
    if length == 0 || bytes.get(end) != Some(&b';') {
        return None;
    }
    match &text[start..end] {
        "amp" => decoded.push('&'),
        "lt" => decoded.push('<'),
        "gt" => decoded.push('>'),
        "quot" => decoded.push('"'),
        "nbsp" => decoded.push('\u{a0}'),
        name if !is_number => push_named(name, &text[..=end], decoded)?,
        digits => decoded.push(numbered(digits, &text[..=end])?),
    }
    Some(end + 1)
}

/// Appends the characters of a named reference, if HTML defines the name.
fn push_named(name: &str, reference: &str, decoded: &mut String) -> Option<()> {
    if !name.as_bytes()[0].is_ascii_alphabetic() {
        return None;
    }
    let characters = by_tokenizer(reference);
    // An unknown name stays. Some names need no semicolon, and begin other names: `&notit;` is `¬it;` in HTML, and text here.
    if characters.ends_with(';') && characters.len() > 1 {
        return None;
    }
    decoded.push_str(&characters);
    Some(())
}

/// Returns the character of a numeric reference.
fn numbered(digits: &str, reference: &str) -> Option<char> {
    let number = match digits.strip_prefix(['x', 'X']) {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(hex, 16),
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse(),
        _ => return None,
    };
    let Ok(number) = number else {
        let is_empty = digits.len() == 1 && !digits.as_bytes()[0].is_ascii_digit();
        // A number beyond all characters.
        return (!is_empty).then_some(char::REPLACEMENT_CHARACTER);
    };
    match char::from_u32(number) {
        Some(c @ ('\u{a0}'..='\u{fdcf}' | '\u{20}'..='\u{7e}')) => Some(c),
        // Control characters are read as in windows-1252, and some numbers are replaced: the tokenizer knows the tables.
        _ => by_tokenizer(reference).chars().next(),
    }
}

fn by_tokenizer(reference: &str) -> String {
    let mut characters = String::new();
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        if let CallbackEvent::String { value } = event {
            characters.push_str(&String::from_utf8_lossy(value));
        }
        None
    });
    let Ok(()) = Tokenizer::new_with_emitter(reference, emitter).finish();
    characters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Option<(String, &str)> {
        let mut characters = String::new();
        decode(text, &mut characters).map(|length| (characters, &text[length..]))
    }

    #[test]
    fn names_and_numbers() {
        for (reference, characters) in [
            ("&amp;", "&"),
            ("&eacute;", "é"),
            ("&nbsp;", "\u{a0}"),
            ("&CounterClockwiseContourIntegral;", "∳"),
            ("&fjlig;", "fj"),
            ("&semi;", ";"),
            ("&#1044;", "Д"),
            ("&#x4E2D;", "中"),
            ("&#X41;", "A"),
            ("&#128512;", "😀"),
            ("&#146;", "’"),
            ("&#0;", "\u{fffd}"),
            ("&#xd800;", "\u{fffd}"),
            ("&#9999999999;", "\u{fffd}"),
            ("&#x110000;", "\u{fffd}"),
        ] {
            assert_eq!(
                decoded(&format!("{reference}amp;")),
                Some((characters.to_owned(), "amp;")),
                "{reference}"
            );
        }
    }

    #[test]
    fn other_signs_are_text() {
        for text in [
            "&", "&;", "&amp", "&amp ;", "&unknown;", "&notit;", "&copy=2;", "&#;", "&#x;", "&#12a;",
            "&#xg;", "&1;", "&é;", "&# 1;",
        ] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }

    /// Each number gives the character that the tokenizer gives.
    #[test]
    fn numbers_are_those_of_the_tokenizer() {
        for number in (0..0x3000).chain(0xd700..0xe100).chain(0xfd00..0x1_0100).chain(0x10_ff00..0x11_0010) {
            let reference = format!("&#{number};");
            assert_eq!(decoded(&reference), Some((by_tokenizer(&reference), "")), "{reference}");
        }
    }
}
