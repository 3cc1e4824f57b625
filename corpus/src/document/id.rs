//! What documents are called.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The longest name of a document, in bytes.
pub const MAX_NAME_BYTES: usize = 65_536;

/// What a document is called in its corpus.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentId {
    /// A number.
    Number(u64),
    /// A name of at most [`MAX_NAME_BYTES`] bytes.
    Name(String),
}

impl DocumentId {
    /// The id as text, as every table and list has it.
    pub fn text(&self) -> Cow<'_, str> {
        IdRef::from(self).text()
    }

    /// A name, if it is not longer than [`MAX_NAME_BYTES`]; else the reason why not.
    pub(crate) fn name(name: String) -> Result<DocumentId, String> {
        if name.len() > MAX_NAME_BYTES {
            return Err(format!("an id of {} bytes: at most {MAX_NAME_BYTES} are allowed", name.len()));
        }
        Ok(DocumentId::Name(name))
    }

    /// The id of a document that has none itself: where it stands.
    pub(crate) fn of_place(path: &Path, line: u64) -> DocumentId {
        DocumentId::Name(place(path, line))
    }

    /// An id in a text column: a decimal `u64` without sign or leading zeros is a number.
    pub(crate) fn from_column(column: &str) -> Result<DocumentId, String> {
        match column.parse::<u64>() {
            Ok(number) if number.to_string() == column => Ok(DocumentId::Number(number)),
            _ => DocumentId::name(column.to_owned()),
        }
    }
}

/// Where a document stands, for people and as its id.
pub(crate) fn place(path: &Path, line: u64) -> String {
    format!("{}:{line}", path_text(path))
}

/// A path as text that no other path has, and [`path_of_text`] takes back: Unicode as it is, and each other byte as `\xHH`; then,
/// or where it holds such a sequence itself, a backslash is two.
pub(crate) fn path_text(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) if !is_escaped(text) => text.into(),
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

/// The path of such a text.
pub(crate) fn path_of_text(text: &str) -> PathBuf {
    #[cfg(unix)]
    if is_escaped(text) {
        use std::os::unix::ffi::OsStringExt;
        return std::ffi::OsString::from_vec(unescaped(text.as_bytes())).into();
    }
    PathBuf::from(text)
}

/// Whether there is a `\xHH`.
fn is_escaped(text: &str) -> bool {
    let is_escape = |at: &[u8]| at.starts_with(b"\\x") && at[2..].iter().all(u8::is_ascii_hexdigit);
    text.as_bytes().windows(4).any(is_escape)
}

#[cfg(unix)]
fn unescaped(mut text: &[u8]) -> Vec<u8> {
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

/// A [`DocumentId`], borrowed; numbers come before names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum IdRef<'a> {
    /// A number.
    Number(u64),
    /// A name.
    Name(&'a str),
}

impl<'a> IdRef<'a> {
    /// The id as text, as every table and list has it.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            IdRef::Number(number) => number.to_string().into(),
            IdRef::Name(name) => name.into(),
        }
    }
}

impl From<IdRef<'_>> for DocumentId {
    fn from(id: IdRef<'_>) -> Self {
        match id {
            IdRef::Number(number) => DocumentId::Number(number),
            IdRef::Name(name) => DocumentId::Name(name.to_owned()),
        }
    }
}

impl<'a> From<&'a DocumentId> for IdRef<'a> {
    fn from(id: &'a DocumentId) -> Self {
        match id {
            DocumentId::Number(number) => IdRef::Number(*number),
            DocumentId::Name(name) => IdRef::Name(name),
        }
    }
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DocumentId::Number(number) => write!(f, "{number}"),
            DocumentId::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_decimals_are_numbers() {
        for number in ["0", "7", "18446744073709551615"] {
            let id = DocumentId::from_column(number).unwrap();
            assert!(matches!(id, DocumentId::Number(_)), "{number}");
            assert_eq!(id.to_string(), number);
        }
        for name in ["007", "+7", "-7", "7 ", "18446744073709551616", "a", "一"] {
            assert_eq!(DocumentId::from_column(name), Ok(DocumentId::Name(name.to_owned())));
        }
    }

    #[test]
    #[cfg(unix)]
    fn paths_have_texts_of_their_own() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let path = |bytes: &'static [u8]| Path::new(OsStr::from_bytes(bytes));
        for (bytes, text) in [
            (&b"a/b.txt"[..], "a/b.txt"),
            ("caf\u{e9}".as_bytes(), "caf\u{e9}"),
            (b"caf\xe9", "caf\\xE9"),
            (b"caf\\xe9", "caf\\\\xe9"),
            (b"caf\\xE9", "caf\\\\xE9"),
            (b"a\\b", "a\\b"),
            (b"a\\b\xff", "a\\\\b\\xFF"),
            (b"\\\\x41", "\\\\\\\\x41"),
        ] {
            assert_eq!(path_text(path(bytes)), text);
            assert_eq!(path_of_text(text), path(bytes), "{text}");
        }
        // All of five signs, in every order.
        let signs = [b'\\', b'x', b'4', b'g', 0xff];
        let mut texts = std::collections::BTreeSet::new();
        for number in 0..5_usize.pow(6) {
            let bytes: Vec<u8> = (0..6).map(|at| signs[number / 5_usize.pow(at) % 5]).collect();
            let path = Path::new(OsStr::from_bytes(&bytes));
            assert_eq!(path_of_text(&path_text(path)), path);
            assert!(texts.insert(path_text(path).into_owned()));
        }
    }

    #[test]
    fn names_have_a_limit() {
        assert!(DocumentId::name("x".repeat(MAX_NAME_BYTES)).is_ok());
        assert!(DocumentId::name("x".repeat(MAX_NAME_BYTES + 1)).is_err());
    }
}
