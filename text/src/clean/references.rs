//! HTML character references, such as `&eacute;`, `&#233;` and `&#xe9;`.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Length in bytes of the longest name of a character reference, `CounterClockwiseContourIntegral`.
const NAME_MAX: usize = 31;

/// Decodes the character reference at the beginning of a text. Appends its characters to `decoded`, and returns the length of the
/// reference in bytes.
///
/// Returns `None` if the text begins with no reference. As in CommonMark, and unlike in HTML, a reference must end with a
/// semicolon: `?a=1&copy=2` is text.
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
        digits => decoded.push(decode_number(digits, &text[..=end])?),
    }
    Some(end + 1)
}

/// Appends the characters of a named reference, or returns `None` if HTML does not define the name. `reference` is the name with
/// `&` and `;`.
fn push_named(name: &str, reference: &str, decoded: &mut String) -> Option<()> {
    if !name.as_bytes()[0].is_ascii_alphabetic() {
        return None;
    }
    let characters = decode_with_tokenizer(reference);
    // The tokenizer returns an unknown name unchanged. It also decodes a known name at the beginning of an unknown one:
    // `&notit;` is `¬it;` in HTML, but text here.
    if characters.ends_with(';') && characters.len() > 1 {
        return None;
    }
    decoded.push_str(&characters);
    Some(())
}

/// Returns the character of a numeric reference, or `None` if its digits are malformed. `reference` is the whole reference;
/// `digits` is its part after `#`, such as `233` or `xe9`.
fn decode_number(digits: &str, reference: &str) -> Option<char> {
    let number = match digits.strip_prefix(['x', 'X']) {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(hex, 16),
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse(),
        _ => return None,
    };
    let Ok(number) = number else {
        let is_empty = digits.len() == 1 && !digits.as_bytes()[0].is_ascii_digit();
        // The number overflows, so it is greater than any code point.
        return (!is_empty).then_some(char::REPLACEMENT_CHARACTER);
    };
    match char::from_u32(number) {
        Some(c @ ('\u{a0}'..='\u{fdcf}' | '\u{20}'..='\u{7e}')) => Some(c),
        // HTML maps control characters by windows-1252, and replaces some numbers. The tokenizer has these tables.
        _ => decode_with_tokenizer(reference).chars().next(),
    }
}

fn decode_with_tokenizer(reference: &str) -> String {
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

    /// Numeric references decode to the same characters as in the WHATWG's HTML tokenizer.
    #[test]
    fn numbers_are_those_of_the_tokenizer() {
        for number in (0..0x3000).chain(0xd700..0xe100).chain(0xfd00..0x1_0100).chain(0x10_ff00..0x11_0010) {
            let reference = format!("&#{number};");
            assert_eq!(decoded(&reference), Some((decode_with_tokenizer(&reference), "")), "{reference}");
        }
    }
}
