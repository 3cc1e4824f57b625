//! Sections: ranges of a large file that can be read independently, also on different machines.
//!
//! A line belongs to the section that contains its first byte. There is one exception: a line that begins exactly
//! at the start of a section belongs to the preceding section, unless it is the first line of the file. So a section
//! can be read without the bytes before it, and each line belongs to exactly one section. Values that depend on the
//! whole file, such as line numbers, are known when the results of all sections are combined.

mod boundaries;
mod cursor;
mod prefix;
mod stream;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use self::boundaries::section_boundaries;
pub(crate) use self::cursor::SectionCursor;
pub(crate) use self::stream::SectionStream;
use crate::bytes::compression::Compression;
use crate::bytes::encoding::Encoding;

/// A range of a large file that can be read independently: bytes of a file of lines, or row groups of a Parquet file.
#[derive(Clone, Debug)]
pub struct Section {
    /// Path of the file.
    pub path: Arc<Path>,
    pub(crate) compression: Compression,
    /// Limit in bytes on the memory for decompression; `None` for no limit.
    pub(crate) memory: Option<u64>,
    /// Start of the section: an offset in bytes on disk, or the index of a row group for Parquet.
    pub from: u64,
    /// End of the section (exclusive), in the same unit as `from`.
    pub to: u64,
    /// Size of the section on disk, in bytes.
    pub bytes: u64,
    /// Whether the section ends at the end of the file.
    pub(crate) is_last: bool,
    /// Properties of the file that are needed to read its lines; `None` for Parquet.
    pub(crate) line_format: Option<LineFormat>,
    /// Results of reading the section, such as its number of lines.
    pub outcome: Arc<SectionOutcome>,
}

/// Properties of a file of lines that are detected at its start, and that readers of its sections need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineFormat {
    /// Encoding of the lines, which is ASCII-compatible.
    pub(crate) encoding: Encoding,
    /// Length in bytes of the byte order mark; 0 if the file has none.
    pub(crate) bom_bytes: u64,
    /// Whether the encoding is neither requested nor given by a byte order mark. Then reading fails if the first
    /// non-ASCII characters are not UTF-8.
    pub(crate) detects_encoding: bool,
}

/// Results of reading a section, such as its number of lines. A reader of the section sets them.
#[derive(Debug, Default)]
pub struct SectionOutcome {
    lines: AtomicU64,
    skipped: AtomicU64,
    rows_before: AtomicU64,
    is_end_of_file: AtomicBool,
}

impl SectionOutcome {
    /// Number of lines or rows in the section.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    pub(crate) fn set_lines(&self, lines: u64) {
        self.lines.store(lines, Ordering::Relaxed);
    }

    /// Number of decompressed bytes at the start of the section that belong to a line of the preceding section.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    pub(crate) fn set_skipped(&self, bytes: u64) {
        self.skipped.store(bytes, Ordering::Relaxed);
    }

    /// In a Parquet file, the number of rows in the row groups before the section.
    pub(crate) fn rows_before(&self) -> u64 {
        self.rows_before.load(Ordering::Relaxed)
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn set_rows_before(&self, rows: u64) {
        self.rows_before.store(rows, Ordering::Relaxed);
    }

    /// Whether the file ends with this section, so that later sections have no documents. There are two reasons:
    /// the file could not be read further; or no gzip member or zstd frame begins at the intended end of the section,
    /// and so the section was read up to the end of the file.
    pub fn is_end_of_file(&self) -> bool {
        self.is_end_of_file.load(Ordering::Relaxed)
    }

    pub(crate) fn set_end_of_file(&self) {
        self.is_end_of_file.store(true, Ordering::Relaxed);
    }
}

impl Section {
    /// Returns a copy of the section with a new, empty outcome, as if the section were not yet read.
    pub fn unread(&self) -> Section {
        Section { outcome: Arc::default(), ..self.clone() }
    }
}
