//! Limits on the length of a document or a line, and the errors for longer ones.

use std::fmt;

use crate::numbers;

/// The length limit of a document is the memory budget divided by this number, because parsing and fingerprinting
/// a document takes several times its length.
const DOCUMENT_MEMORY_DIVISOR: u64 = 16;
/// Minimum for the length limit of a document, in bytes. A smaller limit would save little memory, because documents
/// are processed in batches of at least this size.
const MIN_DOCUMENT_LIMIT_BYTES: u64 = 1 << 20;
/// Decompressing a file may take the memory budget divided by this number.
const DECOMPRESSION_MEMORY_DIVISOR: u64 = 4;
/// Minimum for the memory limit of decompression, in bytes. At their usual levels, all compressions need less than
/// this minimum.
const MIN_DECOMPRESSION_BYTES: u64 = 16 << 20;

/// Advice at the end of the message for an error that a larger memory budget would avoid.
pub const MORE_MEMORY_ADVICE: &str = "raise option `memory`";

/// Maximum length of a document or line. `Display` gives the error message for a longer one.
#[derive(Clone, Copy, Debug)]
pub struct LengthLimit {
    /// Maximum length in bytes.
    pub bytes: usize,
    source: LimitSource,
}

/// The option or rule that a length limit is from. The error message for a longer document names it.
#[derive(Clone, Copy, Debug)]
enum LimitSource {
    Format,
    Header,
    MaxDocument,
    Memory(u64),
}

/// Returns the number of bytes that decompressing one file may take, given the memory budget in bytes.
pub(crate) fn decompression_memory(memory: u64) -> u64 {
    (memory / DECOMPRESSION_MEMORY_DIVISOR).max(MIN_DECOMPRESSION_BYTES)
}

impl LengthLimit {
    /// Returns the limit for a document: `max_bytes`, or a share of the `memory` budget if that is smaller.
    pub(crate) fn from_options(max_bytes: usize, memory: Option<u64>) -> LengthLimit {
        let share =
            |memory: u64| usize::try_from((memory / DOCUMENT_MEMORY_DIVISOR).max(MIN_DOCUMENT_LIMIT_BYTES));
        let from_memory = memory.map(|memory| (memory, share(memory).unwrap_or(usize::MAX)));
        match from_memory.filter(|&(_, bytes)| bytes < max_bytes) {
            Some((memory, bytes)) => LengthLimit { bytes, source: LimitSource::Memory(memory) },
            None => LengthLimit { bytes: max_bytes, source: LimitSource::MaxDocument },
        }
    }

    /// Returns a limit of `bytes` bytes that no option changes.
    pub fn fixed(bytes: usize) -> LengthLimit {
        LengthLimit { bytes, source: LimitSource::Format }
    }

    /// Returns the limit for the header of a table: `bytes` bytes, or this limit if it is smaller.
    pub(crate) fn with_header_limit(self, bytes: usize) -> LengthLimit {
        if bytes < self.bytes { LengthLimit { bytes, source: LimitSource::Header } } else { self }
    }
}

impl fmt::Display for LengthLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LengthLimit { bytes, source } = self;
        match source {
            LimitSource::Format => write!(f, "longer than the limit of {bytes} bytes"),
            LimitSource::Header => write!(f, "a header longer than the limit of {bytes} bytes"),
            LimitSource::MaxDocument => {
                write!(f, "longer than the limit of {bytes} bytes; raise option `max_document`")
            }
            LimitSource::Memory(memory) => write!(
                f,
                "longer than the limit of {bytes} bytes for one document, with {} of memory; {MORE_MEMORY_ADVICE}",
                numbers::format_bytes(*memory)
            ),
        }
    }
}
