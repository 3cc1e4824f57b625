//! The lines of a part: a file of the fingerprints of some files, or of a section of one.
//!
//! The format is specified in `format-spec/part.md`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simstore::Result;

use crate::checkpoint::checksummed_file::path_of;
use simstore_io::bytes::Section;

/// The end of the name of a part.
pub(crate) const ENDING: &str = "part.zst";
pub(crate) const VERSION: u32 = 13;
pub(crate) const VERSION_OF_SECTIONS: u32 = 14;
pub(crate) const VERSION_WITH_SKETCHES: u32 = 15;
pub(crate) const VERSION_OF_SECTIONS_WITH_SKETCHES: u32 = 16;

/// The header of a part: its files, and how they were read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Version of the format.
    pub(crate) part: u32,
    pub(crate) bits: u32,
    pub(crate) profile: String,
    /// Sketches of a document.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sketches: Option<usize>,
    pub(crate) id_field: Option<String>,
    pub(crate) text_fields: Vec<String>,
    pub(crate) extra_field: Option<String>,
    pub(crate) format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) delimiter: Option<char>,
    pub(crate) encoding: String,
    pub(crate) max_bytes: usize,
    pub(crate) skip_bad: bool,
    pub(crate) files: Vec<PartFile>,
    /// From where to where the one file was read, in bytes or row groups, if not as a whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) section: Option<[u64; 2]>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// xxh3 of the first and the last 64 KiB, hexadecimal.
    pub(crate) check: String,
}

/// The second line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Modified {
    /// When each file was modified last, in nanoseconds since 1970.
    pub(crate) modified: Vec<Option<u64>>,
}

/// A document of a part; a malformed one is `null`.
#[derive(Serialize, Deserialize)]
pub(crate) struct DocumentLine<'a> {
    /// The place of its file in the header.
    pub(crate) file: usize,
    /// Counted from the start of the section.
    pub(crate) line: u64,
    /// `None` where it is made of path and line, and these are not known before all sections are.
    #[serde(borrow)]
    pub(crate) id: Option<LineId<'a>>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) features: Option<u32>,
    /// All hexadecimal, 16 digits each: the sketches, and the sum of the features.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sketches: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sum: Option<String>,
    pub(crate) text_bytes: u64,
    pub(crate) replaced: u64,
    /// The checksum of the document's bytes in its file, hexadecimal.
    pub(crate) check: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) extra: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum LineId<'a> {
    Number(u64),
    #[serde(borrow)]
    Name(Cow<'a, str>),
}

/// The last line: nothing is missing before it.
#[derive(Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) end: u64,
    /// Of a section: its lines, or rows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) lines: Option<u64>,
    /// Whether nothing of the file comes after it, though there are more sections.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) rest: Option<bool>,
}

/// The end of a section that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionEnd {
    pub(crate) lines: u64,
    pub(crate) is_rest: bool,
}

impl SectionEnd {
    pub(crate) fn of(section: &Section) -> SectionEnd {
        SectionEnd { lines: section.outcome.lines(), is_rest: section.outcome.is_end_of_file() }
    }
}

impl Header {
    /// The path of the part. Parts of other files, or with other options, have other names.
    pub(crate) fn path(&self, folder: &Path) -> Result<PathBuf> {
        path_of(folder, self, ENDING)
    }
}
