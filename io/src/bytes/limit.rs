//! Limits on the length of a document or a line, and the errors beyond them.

use std::fmt;

use crate::numbers;

/// The share of the memory that a document may be: while it is parsed and fingerprinted it takes several times its length. As much
/// as the least is in a batch anyway.
const SHARE_OF_DOCUMENT: u64 = 16;
const LEAST_LIMIT: u64 = 1 << 20;
/// The share of the memory that unpacking may take; every compression needs so much at its usual levels.
const SHARE_OF_UNPACKING: u64 = 4;
const MEMORY_OF_UNPACKING: u64 = 16 << 20;

/// How an error ends that another run with more memory would not have.
pub const MORE_MEMORY: &str = "raise option `memory`";

/// The longest allowed document or line. `Display` gives the error message for a longer one.
#[derive(Clone, Copy, Debug)]
pub struct Longest {
    /// Length in bytes.
    pub bytes: usize,
    of: LimitOf,
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug)]
enum LimitOf {
    Format,
    Header,
    MaxDocument,
    Memory(u64),
}

/// The most that unpacking a file may take, where the work may take so much.
pub(crate) fn memory_of_unpacking(memory: u64) -> u64 {
    (memory / SHARE_OF_UNPACKING).max(MEMORY_OF_UNPACKING)
}

impl Longest {
    /// The limit for a document: `most` bytes, or a share of `memory` if that is smaller.
    pub(crate) fn of_document(most: usize, memory: Option<u64>) -> Longest {
        let share = |memory: u64| usize::try_from((memory / SHARE_OF_DOCUMENT).max(LEAST_LIMIT));
        let of_memory = memory.map(|memory| (memory, share(memory).unwrap_or(usize::MAX)));
        match of_memory.filter(|&(_, bytes)| bytes < most) {
            Some((memory, bytes)) => Longest { bytes, of: LimitOf::Memory(memory) },
            None => Longest { bytes: most, of: LimitOf::MaxDocument },
        }
    }

    /// A limit that no option changes.
    pub fn of_format(bytes: usize) -> Longest {
        Longest { bytes, of: LimitOf::Format }
    }

    /// The shorter of this limit and a header's limit of `bytes`.
    pub(crate) fn of_header(self, bytes: usize) -> Longest {
        if bytes < self.bytes { Longest { bytes, of: LimitOf::Header } } else { self }
    }
}

impl fmt::Display for Longest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Longest { bytes, of } = self;
        match of {
            LimitOf::Format => write!(f, "longer than the limit of {bytes} bytes"),
            LimitOf::Header => write!(f, "a header longer than the limit of {bytes} bytes"),
            LimitOf::MaxDocument => {
                write!(f, "longer than the limit of {bytes} bytes; raise option `max_document`")
            }
            LimitOf::Memory(memory) => write!(
                f,
                "longer than the limit of {bytes} bytes for one document, with {} of memory; {MORE_MEMORY}",
                numbers::bytes(*memory)
            ),
        }
    }
}
