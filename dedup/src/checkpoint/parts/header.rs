//! The lines of a part file. A part has the fingerprints of one or several input files, or of a section of a
//! large file.
//!
//! The format is specified in `format-spec/part.md`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simstore::Result;

use crate::checkpoint::checksummed_file::path_from_header;
use simstore_io::bytes::Section;

/// Suffix of the names of part files.
pub(crate) const FILE_SUFFIX: &str = "part.zst";
/// Format version of a part of whole files.
pub(crate) const VERSION: u32 = 13;
/// Format version of a part of a section of a file.
pub(crate) const SECTION_VERSION: u32 = 14;
/// Format version of a part of whole files, with MinHash signatures.
pub(crate) const SIGNATURE_VERSION: u32 = 15;
/// Format version of a part of a section of a file, with MinHash signatures.
pub(crate) const SECTION_SIGNATURE_VERSION: u32 = 16;

/// First line of a part: the input files, and the options that affect how they are read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartHeader {
    /// Version of the format.
    pub(crate) part: u32,
    /// Width of the fingerprints.
    pub(crate) bits: u32,
    pub(crate) profile: String,
    /// Number of 64-bit bands of a MinHash signature; `None` if the part has no signatures.
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
    pub(crate) files: Vec<PartInputFile>,
    /// Start and end of the section of the single file, in bytes or row groups; `None` if whole files were
    /// read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) section: Option<[u64; 2]>,
}

/// Input file of a part. Size and checksum identify its content.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartInputFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// xxh3 hash of the first and the last 64 KiB, in hexadecimal.
    pub(crate) check: String,
}

/// Second line of a part.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModifiedLine {
    /// Modification time of each file, in nanoseconds since 1970; `None` if it is unknown.
    pub(crate) modified: Vec<Option<u64>>,
}

/// Line of a document. The line of a malformed document is `null` instead.
#[derive(Serialize, Deserialize)]
pub(crate) struct DocumentLine<'a> {
    /// Index of the document's file in the header.
    pub(crate) file: usize,
    /// Line in the file; of a section, counted from its start.
    pub(crate) line: u64,
    /// `None` if the id consists of path and line and the part is a section. The line in the file is unknown
    /// until all earlier sections are read.
    #[serde(borrow)]
    pub(crate) id: Option<DocumentLineId<'a>>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) features: Option<u32>,
    /// Bands of the MinHash signature, 16 hexadecimal digits each, without separators.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sketches: Option<String>,
    /// Wrapping sum of the feature hashes, 16 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sum: Option<String>,
    pub(crate) text_bytes: u64,
    pub(crate) replaced: u64,
    /// Checksum of the document's bytes in its file, in hexadecimal.
    pub(crate) check: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) extra: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum DocumentLineId<'a> {
    Number(u64),
    #[serde(borrow)]
    Name(Cow<'a, str>),
}

/// Last line of a complete part.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndLine {
    /// Number of documents, including malformed ones.
    pub(crate) end: u64,
    /// Number of lines or rows of a section; `None` for whole files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) lines: Option<u64>,
    /// Whether the section read the file to its end, so that later sections of the file are ignored; `None`
    /// for whole files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) rest: Option<bool>,
}

/// Length of a section that was read, and whether it reached the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionEnd {
    pub(crate) lines: u64,
    pub(crate) is_end_of_file: bool,
}

impl SectionEnd {
    pub(crate) fn from_section(section: &Section) -> SectionEnd {
        SectionEnd { lines: section.outcome.lines(), is_end_of_file: section.outcome.is_end_of_file() }
    }
}

impl PartHeader {
    /// Returns the path of the part. Parts of other files or with other options have other names.
    pub(crate) fn path(&self, folder: &Path) -> Result<PathBuf> {
        path_from_header(folder, self, FILE_SUFFIX)
    }
}
