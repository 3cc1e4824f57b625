//! Escapes for names and paths, so that each can be a column of a tab-separated line. All names in such lines are
//! written and read by this module.
//!
//! - A path becomes a name by [`path_to_name`]. Valid UTF-8 is kept, and any other byte is written as `\xHH`.
//!   If the path contains such a byte, or a sequence that looks like `\xHH`, each backslash is doubled.
//! - A name becomes a column of a line by [`escape_name`]. A backslash is written `\\`, a tab `\t`, a line
//!   feed `\n`, a carriage return `\r`, any other control character `\u{HEX}`, and the empty name `\e`.
//!
//! Each function has an inverse, so every list that simstore writes can be read again. [`parse_listed_path`]
//! and [`parse_listed_name`] read an entry of a list.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Escaped form of the empty name. An empty column would mean that there is no name.
const EMPTY: &str = "\\e";

/// Escapes backslashes and control characters, so that the text can be a column of a tab-separated line. Unescaped
/// control characters would break the line or the terminal.
pub fn escape_text(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c.is_control() || c == '\\';
    if !text.contains(is_escaped) {
        return text.into();
    }
    let escape = |c: char| if is_escaped(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect::<String>().into()
}

/// Escapes a name like [`escape_text`], for a column of a tab-separated line. The empty name becomes `\e`.
pub fn escape_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() { EMPTY.into() } else { escape_text(name) }
}

/// Returns the text that [`escape_name`] or [`escape_text`] has converted to `column`.
///
/// # Errors
/// The reason, if a backslash does not begin an escape.
pub fn unescape(column: &str) -> Result<Cow<'_, str>, String> {
    if column == EMPTY {
        return Ok("".into());
    }
    let (mut text, mut left) = (String::new(), column);
    while let Some((before, after)) = left.split_once('\\') {
        let (c, rest) = parse_escape(after).ok_or_else(|| unknown_escape(after))?;
        text.push_str(before);
        text.push(c);
        left = rest;
    }
    if text.is_empty() {
        return Ok(column.into());
    }
    text.push_str(left);
    Ok(text.into())
}

/// Parses an escape, given the text after its backslash. Returns the character and the rest of the text; `None` if
/// there is no such escape.
fn parse_escape(after: &str) -> Option<(char, &str)> {
    if let Some(code) = after.strip_prefix("u{") {
        let (digits, rest) = code.split_once('}')?;
        let is_hex = (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        return Some((char::from_u32(number)?, rest));
    }
    let mut rest = after.chars();
    let c = match rest.next()? {
        '\\' => '\\',
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        _ => return None,
    };
    Some((c, rest.as_str()))
}

fn unknown_escape(after: &str) -> String {
    let shown: String = after.chars().take(1).collect();
    format!("unknown escape `\\{shown}`: write a backslash in a name as `\\\\`")
}

/// Converts the path of a file to a name in UTF-8, as described in [the module](self). Different paths get different
/// names. [`name_to_path`] is the inverse.
pub fn path_to_name(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) if !has_byte_escape(text) => text.into(),
        _ => {
            let mut text = String::new();
            for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
                text += &chunk.valid().replace('\\', "\\\\");
                chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02X}"));
            }
            text.into()
        }
    }
}

/// Returns the path that [`path_to_name`] has converted to the name `text`.
pub fn name_to_path(text: &str) -> PathBuf {
    #[cfg(unix)]
    if has_byte_escape(text) {
        return path_from_bytes(unescape_bytes(text.as_bytes()));
    }
    PathBuf::from(text)
}

#[cfg(unix)]
fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;

    std::ffi::OsString::from_vec(bytes).into()
}

/// Parses an entry of a list of paths. If the entries of the list end in zero bytes (`is_null_terminated`), each entry
/// is a path without escapes. Otherwise the list has one path per line, escaped as option `--keep-list` writes it; a
/// line that is not UTF-8 is a path without escapes.
///
/// # Errors
/// The reason, if the entry is not a path.
pub fn parse_listed_path(entry: &[u8], is_null_terminated: bool) -> Result<PathBuf, String> {
    match std::str::from_utf8(entry) {
        Ok(text) if is_null_terminated => Ok(PathBuf::from(text)),
        Ok(text) => Ok(name_to_path(&unescape(text)?)),
        #[cfg(unix)]
        Err(_) => Ok(path_from_bytes(entry.to_vec())),
        #[cfg(not(unix))]
        Err(_) => Err(NOT_UTF8.to_owned()),
    }
}

/// Parses a line of a list of documents: the name of a document, escaped by [`escape_name`].
///
/// # Errors
/// The reason, if the line is not UTF-8 or has an unknown escape.
pub fn parse_listed_name(entry: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(entry).map_err(|_| NOT_UTF8.to_owned())?;
    unescape(text).map(Cow::into_owned)
}

/// Returns the possible names of a document that is listed by `entry`, in a list whose entries end in zero bytes. An entry
/// in UTF-8 can be the name itself. Any entry can be the path of a file, which [`path_to_name`] converts to a name. If
/// both names are equal, only one is returned; they differ for an entry with a sequence such as `\x41`.
pub fn names_from_bytes(entry: &[u8]) -> Vec<String> {
    let of_path = parse_listed_path(entry, true).map(|path| path_to_name(&path).into_owned()).ok();
    let of_bytes = std::str::from_utf8(entry).map(str::to_owned).ok();
    let mut names: Vec<String> = of_bytes.into_iter().chain(of_path).collect();
    names.dedup();
    names
}

const NOT_UTF8: &str = "not UTF-8";

/// Whether a text contains a sequence `\xHH` with two hexadecimal digits.
fn has_byte_escape(text: &str) -> bool {
    let is_escape = |at: &[u8]| at.starts_with(b"\\x") && at[2..].iter().all(u8::is_ascii_hexdigit);
    text.as_bytes().windows(4).any(is_escape)
}

#[cfg(unix)]
fn unescape_bytes(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&first, rest)) = text.split_first() {
        let (byte, length) = match rest {
            [b'x', high, low, ..] if first == b'\\' => {
                let digits = [*high, *low];
                let byte =
                    std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
                byte.map_or((first, 1), |byte| (byte, 4))
            }
            [b'\\', ..] if first == b'\\' => (first, 2),
            _ => (first, 1),
        };
        bytes.push(byte);
        text = &text[length..];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns texts to escape. For each character below U+0300, there are texts with it alone and next to others.
    /// Further texts are random sequences of characters that occur in escapes.
    fn texts() -> Vec<String> {
        let mut texts: Vec<String> = ["", "\\e", "e", "\\\\e", "\u{2028}", "\u{feff}a", "\u{10ffff}", "一\\"]
            .map(str::to_owned)
            .into();
        for c in (0..0x300).filter_map(char::from_u32) {
            texts.extend([c.to_string(), format!("a{c}b"), format!("\\{c}"), format!("{c}\\")]);
        }
        let signs: Vec<char> = "\\xtnrue{}04fF\t\n\r\u{1b}\u{85}é".chars().collect();
        // A linear congruential generator (D. E. Knuth, MMIX); its low bits are not used.
        let mut state = 43_u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        texts.extend((0..20_000).map(|_| {
            let length = below(9);
            (0..length).map(|_| signs[below(signs.len())]).collect()
        }));
        texts
    }

    #[test]
    fn names_come_back_from_lines() {
        for text in texts() {
            let line = escape_name(&text);
            assert!(!line.is_empty() && !line.contains(char::is_control), "{text:?}: {line:?}");
            assert_eq!(unescape(&line).as_deref(), Ok(&*text), "{line:?}");
            assert_eq!(parse_listed_name(line.as_bytes()).as_ref(), Ok(&text), "{line:?}");
        }
        assert_eq!(escape_text("a b 一"), "a b 一");
        assert_eq!(escape_text("a\tb\\\n"), "a\\tb\\\\\\n");
    }

    #[test]
    fn text_that_is_no_escape_is_refused() {
        for line in [
            "\\", "a\\", "\\d", "C:\\docs", "\\x41", "\\u", "\\u{}", "\\u{g}", "\\u{+1}", "\\u{d800}",
            "\\u{110000}", "\\e\\e", "\\é",
        ] {
            let reason = unescape(line).unwrap_err();
            assert!(reason.contains("unknown escape"), "{line}: {reason}");
        }
        assert!(parse_listed_name(b"\xff").unwrap_err().contains("not UTF-8"));
    }

    #[test]
    #[cfg(unix)]
    fn paths_come_back_from_names_and_from_lists() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        for (bytes, text) in [
            (&b"a/b.txt"[..], "a/b.txt"),
            ("caf\u{e9}".as_bytes(), "caf\u{e9}"),
            (b"caf\xe9", "caf\\xE9"),
            (b"caf\\xe9", "caf\\\\xe9"),
            (b"a\\b", "a\\b"),
            (b"a\\b\xff", "a\\\\b\\xFF"),
            (b"\\\\x41", "\\\\\\\\x41"),
        ] {
            assert_eq!(path_to_name(&path(bytes)), text);
        }
        let mut all: Vec<Vec<u8>> =
            (1..=u8::MAX).flat_map(|byte| [vec![byte], vec![b'a', byte, b'b']]).collect();
        all.extend(
            texts()
                .into_iter()
                .filter(|text| !text.is_empty() && !text.contains('\0'))
                .map(String::into_bytes),
        );
        // All sequences of length 6 over five bytes.
        let signs = [b'\\', b'x', b'4', b'g', 0xff];
        all.extend(
            (0..5_usize.pow(6)).map(|number| (0..6).map(|at| signs[number / 5_usize.pow(at) % 5]).collect()),
        );
        let mut names = std::collections::BTreeMap::new();
        for bytes in all {
            let path = path(&bytes);
            let name = path_to_name(&path).into_owned();
            assert_eq!(name_to_path(&name), path);
            assert_eq!(parse_listed_path(escape_name(&name).as_bytes(), false), Ok(path.clone()), "{name}");
            assert_eq!(parse_listed_path(&bytes, true), Ok(path), "{name}");
            assert!(names_from_bytes(&bytes).contains(&name), "{name}");
            // No two paths have one name.
            assert_eq!(*names.entry(name).or_insert(bytes.clone()), bytes);
        }
    }
}
