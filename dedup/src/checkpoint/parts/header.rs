//! The lines of a part file. A part file has the documents, with fingerprints, of one or several whole input
//! files, or of one section of a large input file.
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
/// Format version of part files.
pub(crate) const VERSION: u32 = 1;

/// First line of a part file: the input files, and the options that affect how they are read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartHeader {
    /// Format version of the part file.
    pub(crate) part: u32,
    /// Width of the fingerprints, in bits.
    pub(crate) bits: u32,
    pub(crate) profile: String,
    /// Number of 64-bit bands of a MinHash signature; `None` if the part has no signatures.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) bands: Option<usize>,
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
    /// Start and end of the section of the only input file, in bytes or row groups; `None` if the part has whole
    /// files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) section: Option<[u64; 2]>,
}

/// Input file of a part. Its size and its checksum identify its content.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartInputFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// xxh3 hash of the first and the last 64 KiB of the file, in hexadecimal.
    pub(crate) check: String,
}

/// Second line of a part file: modification times of the input files.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModifiedLine {
    /// Modification time of each input file, in nanoseconds since 1970; `None` if it is unknown.
    pub(crate) modified: Vec<Option<u64>>,
}

/// Line of a document in a part file. For a malformed document, the line is `null`.
#[derive(Serialize, Deserialize)]
pub(crate) struct DocumentLine<'a> {
    /// Index of the document's input file in [`PartHeader::files`].
    pub(crate) file: usize,
    /// Line of the document in its input file. In a part for a section, lines count from the start of the section.
    pub(crate) line: u64,
    /// Id of the document. `None` in a part for a section if the id consists of the path and the line of the
    /// document, because its line in the file is unknown until all earlier sections are read.
    #[serde(borrow)]
    pub(crate) id: Option<DocumentLineId<'a>>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) features: Option<u32>,
    /// Bands of the MinHash signature, 16 hexadecimal digits each, without separators.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) bands: Option<String>,
    /// Wrapping sum of the hashes of all features of the text, such as shingles; 16 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sum: Option<String>,
    pub(crate) text_bytes: u64,
    pub(crate) replaced: u64,
    /// Checksum of the bytes of the document in its input file, in hexadecimal.
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

/// Last line of a complete part file.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndLine {
    /// Number of documents in the part file, including malformed ones.
    pub(crate) end: u64,
    /// Number of lines or rows, if the part is a section of an input file; `None` if the part has whole files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) lines: Option<u64>,
    /// Whether the end of the input file was reached when the section was read. If so, later sections of the
    /// file are ignored. `None` if the part has whole files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) rest: Option<bool>,
}

/// Outcome of reading a section: its number of lines, and whether the end of the input file was reached.
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
    /// Returns the path of the part file in `folder`. Different input files or options give different names.
    pub(crate) fn path(&self, folder: &Path) -> Result<PathBuf> {
        path_from_header(folder, self, FILE_SUFFIX)
    }
}
