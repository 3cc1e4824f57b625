//! Sections: ranges of a large file that are read each by itself, by one machine or another.
//!
//! A section of lines has the lines that begin behind its start, up to its end: the line that begins where a section
//! starts is the last of the section before, and the first section has the very first line. So a
//! section can be read without the bytes before it, and each line is in just one section. Values that depend on the whole file,
//! such as the numbers of lines, are known when all sections are put together.

mod beginning;
mod borders;
mod read;
mod stream;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use self::borders::borders;
pub(crate) use self::read::SectionRead;
pub(crate) use self::stream::Stream;
use crate::bytes::compression::Compression;
use crate::bytes::encoding::Encoding;

/// A range of a file.
#[derive(Clone, Debug)]
pub struct Section {
    /// Path of the file.
    pub path: Arc<Path>,
    pub(crate) compression: Compression,
    /// The most that unpacking it may take.
    pub(crate) memory: Option<u64>,
    /// Start of the section, in bytes of the file on disk; in row groups for Parquet.
    pub from: u64,
    /// End of the section, in the same unit.
    pub to: u64,
    /// Bytes of it on disk.
    pub bytes: u64,
    /// Whether the file ends with it.
    pub(crate) is_last: bool,
    /// `None` for Parquet.
    pub(crate) lines: Option<Lines>,
    /// How far it has been read.
    pub reached: Arc<Reached>,
}

/// How the lines of a file are read, which its start tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// An encoding of lines.
    pub(crate) encoding: Encoding,
    /// Bytes of a byte order mark before the first line.
    pub(crate) mark: u64,
    /// Whether no encoding was given. Then the first characters that are not ASCII decide.
    pub(crate) is_judged: bool,
}

/// Results of reading a section, known at its end.
#[derive(Debug, Default)]
pub struct Reached {
    lines: AtomicU64,
    skipped: AtomicU64,
    rows_before: AtomicU64,
    is_rest: AtomicBool,
}

impl Reached {
    /// Its lines, or rows.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    pub(crate) fn set_lines(&self, lines: u64) {
        self.lines.store(lines, Ordering::Relaxed);
    }

    /// Bytes at its start that belong to a line of the section before.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    pub(crate) fn set_skipped(&self, bytes: u64) {
        self.skipped.store(bytes, Ordering::Relaxed);
    }

    /// Rows of the row groups before it.
    pub(crate) fn rows_before(&self) -> u64 {
        self.rows_before.load(Ordering::Relaxed)
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn set_rows_before(&self, rows: u64) {
        self.rows_before.store(rows, Ordering::Relaxed);
    }

    /// Whether nothing comes after it: the file could not be read on, or is one where this section should have ended.
    pub fn is_rest(&self) -> bool {
        self.is_rest.load(Ordering::Relaxed)
    }

    pub(crate) fn set_rest(&self) {
        self.is_rest.store(true, Ordering::Relaxed);
    }
}

impl Section {
    /// The same section, unread.
    pub fn unread(&self) -> Section {
        Section { reached: Arc::default(), ..self.clone() }
    }
}
