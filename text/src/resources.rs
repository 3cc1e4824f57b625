//! Files that a profile refers to by checksum.

use std::fmt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use simstore::Error;

/// The files that a profile may need in addition to its name, such as a dictionary.
///
/// The name contains the checksums of the files, so that files with other contents are refused.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// Words for jieba in addition to its own dictionary. Each line is `word`, `word frequency`, `word tag` or
    /// `word frequency tag`, as in jieba's user dictionaries. A word without a frequency gets a frequency high enough that jieba
    /// does not split the word. Tags are ignored.
    pub dictionary: Option<Resource>,
    /// Inverse document frequencies from 0 to 255. Each line is `feature<TAB>idf`, as [`IdfRow`](crate::IdfRow) writes it, or
    /// `word idf`, as in jieba's tables.
    pub idf: Option<Resource>,
    /// Stop words in addition to jieba's own, one per line.
    pub stop_words: Option<Resource>,
}

/// The contents and the path of a text file.
#[derive(Clone)]
pub struct Resource {
    path: PathBuf,
    text: String,
}

impl Resource {
    /// Creates a resource from contents in memory. Error messages mention `path`, but no file is read.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Resource { path: path.into(), text: text.into() }
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::BadInput`] if it is not UTF-8.
    pub fn read(path: impl Into<PathBuf>) -> simstore::Result<Self> {
        let path = path.into();
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(Error::Io { path, action: "read", source }),
        };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Resource { path, text }),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                Err(Error::BadInput { path, line: 0, reason: format!("not UTF-8 from byte {at} on") })
            }
        }
    }

    /// Returns the contents of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the checksum of the contents, as in the name of a profile: the 64-bit xxh3 with seed 0.
    ///
    /// ```
    /// use simstore_text::Resource;
    ///
    /// assert_eq!(Resource::new("words.txt", "").checksum().to_string(), "2d06800538d394c2");
    /// ```
    pub fn checksum(&self) -> Checksum {
        Checksum(xxh3_64(self.text.as_bytes()))
    }

    /// Returns the path of the file, which error messages mention.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Iterates over the lines that are not blank, each with its line number from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u64, &str)> {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
    }

    /// Returns the error for a malformed line, given the line's number from 1.
    pub(crate) fn line_error(&self, line: u64, reason: String) -> Error {
        Error::BadInput { path: self.path.clone(), line, reason }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checksum = self.checksum().to_string();
        f.debug_struct("Resource").field("path", &self.path).field("checksum", &checksum).finish()
    }
}

/// The 64-bit checksum of a [`Resource`]. `Display` writes it as 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checksum(u64);

impl Checksum {
    /// Parses a checksum of 16 lower-case hexadecimal digits; `None` for any other string.
    pub(crate) fn parse(digits: &str) -> Option<Self> {
        let canonical = digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        u64::from_str_radix(digits, 16).ok().filter(|_| canonical).map(Checksum)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
