//! Prefix lines: the first bits of all fingerprints of a table, in cache lines that are addressed by arithmetic
//! (`format-spec/prefix-lines.md`).
//!
//! A *prefix* is the first q bits of a permuted fingerprint, as a number. The *rank* of a fingerprint is the number of
//! fingerprints before it in the table. One line tells whether the table has a prefix, and the ranks of the
//! fingerprints that have it.
//!
//! Prefixes that agree in all but their low bits (at most 8) form a *bucket*. A line has the keys of
//! several buckets, each in a *slot* of its own. A line whose keys do not fit is *divided*: its prefixes get lines of
//! their own, behind the *main lines*.

mod line;
mod load;
mod reader;
mod shape;
mod writer;

pub(crate) use self::line::{LINE_BYTES, PrefixLine, SlotKeys};
pub(crate) use self::reader::{KeyRun, LinePlace, PrefixLines};
pub(crate) use self::shape::{LineShape, MAX_LOW_BITS};
pub(crate) use self::writer::{LineBuffer, LineWriter};

/// Number of lines in a page: the unit that has a checksum.
pub(crate) const PAGE_LINES: u64 = 64;

/// Number of pages that `lines` lines take.
pub(crate) fn page_count(lines: u64) -> u64 {
    lines.div_ceil(PAGE_LINES)
}

/// Returns the checksum of a page of lines. It covers the number of the page, so that pages that were swapped are detected.
pub(crate) fn page_crc(page: u64, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&page.to_le_bytes());
    crc.update(bytes);
    crc.finalize()
}

#[cfg(test)]
mod tests;
