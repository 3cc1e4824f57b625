//! The lines of a part: a file of the fingerprints of some files, or of a section of one.
//!
//! The format is specified in `format-spec/part.md`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simstore::Result;

use super::super::sealed::path_of;
use simstore_io::bytes::Section;

/// The end of the name of a part.
pub(super) const ENDING: &str = "part.zst";
pub(super) const VERSION: u32 = 13;
pub(super) const VERSION_OF_SECTIONS: u32 = 14;
pub(super) const VERSION_WITH_SKETCHES: u32 = 15;
pub(super) const VERSION_OF_SECTIONS_WITH_SKETCHES: u32 = 16;

/// The header of a part: its files, and how they were read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Version of the format.
    pub(super) part: u32,
    pub(super) bits: u32,
    pub(super) profile: String,
    /// Sketches of a document.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sketches: Option<usize>,
    pub(super) id_field: Option<String>,
    pub(super) text_fields: Vec<String>,
    pub(super) extra_field: Option<String>,
    pub(super) format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) delimiter: Option<char>,
    pub(super) encoding: String,
    pub(super) max_bytes: usize,
    pub(super) skip_bad: bool,
    pub(super) files: Vec<PartFile>,
    /// From where to where the one file was read, in bytes or row groups, if not as a whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) section: Option<[u64; 2]>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartFile {
    pub(super) path: String,
    pub(super) bytes: u64,
    /// xxh3 of the first and the last 64 KiB, hexadecimal.
    pub(super) check: String,
}

/// The second line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Modified {
    /// When each file was modified last, in nanoseconds since 1970.
    pub(super) modified: Vec<Option<u64>>,
}

/// A document of a part; a malformed one is `null`.
#[derive(Serialize, Deserialize)]
pub(super) struct DocumentLine<'a> {
    /// The place of its file in the header.
    pub(super) file: usize,
    /// Counted from the start of the section.
    pub(super) line: u64,
    /// `None` where it is made of path and line, and these are not known before all sections are.
    #[serde(borrow)]
    pub(super) id: Option<LineId<'a>>,
    pub(super) fingerprint: Option<String>,
    pub(super) features: Option<u32>,
    /// All hexadecimal, 16 digits each: the sketches, and the sum of the features.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sketches: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sum: Option<String>,
    pub(super) text_bytes: u64,
    pub(super) replaced: u64,
    /// The checksum of the document's bytes in its file, hexadecimal.
    pub(super) check: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) extra: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum LineId<'a> {
    Number(u64),
    #[serde(borrow)]
    Name(Cow<'a, str>),
}

/// The last line: nothing is missing before it.
#[derive(Serialize, Deserialize)]
pub(super) struct End {
    pub(super) end: u64,
    /// Of a section: its lines, or rows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) lines: Option<u64>,
    /// Whether nothing of the file comes after it, though there are more sections.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) rest: Option<bool>,
}

/// The end of a section that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectionEnd {
    pub(super) lines: u64,
    pub(super) is_rest: bool,
}

impl SectionEnd {
    pub(super) fn of(section: &Section) -> SectionEnd {
        SectionEnd { lines: section.reached.lines(), is_rest: section.reached.is_rest() }
    }
}

impl Header {
    /// The path of the part. Parts of other files, or with other options, have other names.
    pub(super) fn path(&self, folder: &Path) -> Result<PathBuf> {
        path_of(folder, self, ENDING)
    }
}
