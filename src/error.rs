//! The one error type of the crate.

mod excerpt;
mod spelling;

pub use self::excerpt::excerpt;
pub use self::spelling::did_you_mean;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Result of the fallible functions of this crate, with [`Error`] as the default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of any operation. Its message names the file, the offset, the expected value, and a remedy, as far
/// as they apply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// The attempted operation, as a verb: "open", "write", ...
        action: &'static str,
        /// The reason given by the operating system.
        source: io::Error,
    },
    /// The operating system refused to start a thread.
    #[error(
        "cannot start a thread: {source}; raise the thread limit (`ulimit -u`, or the container's limit), or use fewer threads"
    )]
    Thread {
        /// The reason given by the operating system.
        source: io::Error,
    },
    /// The bytes of a store file do not follow its format.
    #[error(
        "{}: damaged at offset {offset}: {damage}; restore the file from a copy or build the store again",
        .path.display()
    )]
    Corrupt {
        /// Path of the damaged file.
        path: PathBuf,
        /// Offset of the damage from the start of the file, in bytes.
        offset: u64,
        /// The kind of damage.
        damage: Damage,
    },
    /// The newest log of a store has a torn tail: bytes after its last sound record. It is unknown whether
    /// they were synced.
    #[error(
        "{}: torn tail: the last {bytes} bytes, from offset {offset} on, are not a complete record. A crash leaves such bytes, but \
         damage looks the same. Check the store against its source; the next write to the store drops these bytes",
        .path.display()
    )]
    TornTail {
        /// Path of the log.
        path: PathBuf,
        /// Offset of the end of the log's last sound record, in bytes.
        offset: u64,
        /// Number of bytes of the log after its last sound record.
        bytes: u64,
    },
    /// The file has a format version that this version of simstore does not read: it was written by a newer version, or
    /// before the first release.
    #[error(
        "{}: format version {found}, this program reads {supported}; use a newer simstore, or build the store again if a version \
         before the first release wrote it",
        .path.display()
    )]
    UnsupportedVersion {
        /// Path of the file.
        path: PathBuf,
        /// Format version found in the file.
        found: u32,
        /// The format version that this program reads.
        supported: u32,
    },
    /// The path is not a store.
    #[error("{}: not a simstore store: {reason}", .path.display())]
    NotAStore {
        /// The path that was opened.
        path: PathBuf,
        /// Description of the file or folder at the path, which says why it is not a store.
        reason: String,
    },
    /// A requested setting differs from the store's setting.
    #[error(
        "{}: the store has {setting} {has}, not {requested}; leave the setting out, or create another store",
        .path.display()
    )]
    Setting {
        /// Path of the store.
        path: PathBuf,
        /// Name of the setting.
        setting: &'static str,
        /// The store's value of the setting.
        has: String,
        /// The requested value of the setting.
        requested: String,
    },
    /// A write failed earlier, so the contents of the disk are unknown. Nothing more is written.
    #[error(
        "{}: closed for writing after an error: {reason}; open the store again to recover all durable writes",
        .path.display()
    )]
    Poisoned {
        /// Path of the store.
        path: PathBuf,
        /// Message of the error of the first write that failed.
        reason: String,
    },
    /// A store, or something else, is already at the path where one should be created.
    #[error("{}: {reason}", .path.display())]
    AlreadyExists {
        /// The path that exists.
        path: PathBuf,
        /// Description of the existing file or folder, and a remedy.
        reason: &'static str,
    },
    /// The store is already open for writing, in this or another process.
    #[error("{}: {}", .path.display(), if *is_here {
        "this process already has the store open for writing: use that handle, or close it first"
    } else {
        "another process is writing to this store; wait until it has finished"
    })]
    Locked {
        /// Path of the store.
        path: PathBuf,
        /// Whether this process has the store open for writing.
        is_here: bool,
    },
    /// The store was opened before this process was forked. A forked process inherits the store's lock and
    /// log, but not its threads.
    #[error(
        "{}: opened before this process was forked: read it as a snapshot, or open it in one process alone, after the fork",
        .path.display()
    )]
    Forked {
        /// Path of the store.
        path: PathBuf,
    },
    /// The store holds fingerprints of another width.
    #[error("{}: the store holds {found}-bit fingerprints, not {expected}-bit ones", .path.display())]
    Width {
        /// Path of the store.
        path: PathBuf,
        /// The requested width, in bits.
        expected: u32,
        /// Width of the store's fingerprints, in bits.
        found: u32,
    },
    /// The distance of a query is larger than the store supports.
    #[error(
        "{}: distance {requested} is more than this store can answer ({supported}); \
         compact it with option `distance`",
        .path.display()
    )]
    Distance {
        /// Path of the store.
        path: PathBuf,
        /// Distance of the query, in bits.
        requested: u32,
        /// Largest distance that the store supports, in bits.
        supported: u32,
    },
    /// The values of an input were not in ascending order.
    #[error("{what} must be ascending, but {got} came after {previous}")]
    OutOfOrder {
        /// Kind of the values, as a plural: "fingerprints", "ids of named documents", ...
        what: &'static str,
        /// The value that came immediately before the value out of order.
        previous: String,
        /// The value out of order: it is not greater than the value before it.
        got: String,
    },
    /// A plan (a choice of tables for a store) is not complete: with its tables, queries would miss some stored
    /// fingerprints within the distance.
    #[error("plan `{}` is not complete for distance {distance}: {reason}", excerpt(.plan))]
    IncompletePlan {
        /// The name of the plan.
        plan: String,
        /// The distance that the plan was checked for, in bits.
        distance: u32,
        /// Why the plan is not complete: a set of bit positions such that no table finds a fingerprint that differs from
        /// the query exactly in these bits. If the check of the plan ended early, this is the limit that ended it.
        reason: String,
    },
    /// An argument is invalid. The string is the message.
    #[error("{0}")]
    BadArgument(String),
    /// The arguments are valid, but the current state does not allow the operation: an input has changed, a
    /// memory limit is too small, or another process writes the output. The string is the message.
    #[error("{0}")]
    Refused(String),
    /// All file numbers, sequence numbers or ids of a store are used up.
    #[error("{}: {reason}", .path.display())]
    Exhausted {
        /// Path of the store.
        path: PathBuf,
        /// The kind of number that is used up, and a remedy.
        reason: &'static str,
    },
    /// An internal invariant of simstore does not hold. Neither data nor arguments can cause this error.
    #[error("{0}: this is a bug of simstore; please report it")]
    Bug(String),
    /// A callback or a visitor cancelled the operation. No partial output is left.
    #[error("cancelled")]
    Cancelled,
    /// A line or document of an input file is malformed, or the file cannot be read.
    #[error("{}{}: {reason}", .path.display(), if *line > 0 { format!(":{line}") } else { String::new() })]
    BadInput {
        /// The input file; `-` for standard input.
        path: PathBuf,
        /// Line number, from 1. For binary files, the record number, from 1. 0 means the whole file.
        line: u64,
        /// Description of the problem.
        reason: String,
    },
}

/// Kind of an [`Error`]. It determines the Python exception, the exit code of the command line, and the HTTP status of the
/// server. Later versions may add kinds, but do not change the [names](ErrorCode::name) of existing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the variant of `Error` of the same name")]
pub enum ErrorCode {
    Io,
    Thread,
    Corrupt,
    TornTail,
    UnsupportedVersion,
    NotAStore,
    Setting,
    Poisoned,
    AlreadyExists,
    Locked,
    Forked,
    Width,
    Distance,
    OutOfOrder,
    IncompletePlan,
    BadArgument,
    Refused,
    Exhausted,
    Bug,
    Cancelled,
    BadInput,
}

/// Names of the kinds of errors, in the order of the variants of [`ErrorCode`].
const NAMES: [&str; 21] = [
    "io", "thread", "corrupt", "torn-tail", "unsupported-version", "not-a-store", "setting", "poisoned",
    "already-exists", "locked", "forked", "width", "distance", "out-of-order", "incomplete-plan",
    "bad-argument", "refused", "exhausted", "bug", "cancelled", "bad-input",
];

impl ErrorCode {
    /// Name of this kind of error in JSON answers and logs, such as `not-a-store`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Error {
    /// Returns the kind of the error.
    pub fn code(&self) -> ErrorCode {
        macro_rules! code_among {
            ($($kind:ident),*) => {{
                const { assert!([$(ErrorCode::$kind),*].len() == NAMES.len()) };
                match self {
                    $(Error::$kind { .. } => ErrorCode::$kind,)*
                }
            }};
        }
        code_among!(
            Io, Thread, Corrupt, TornTail, UnsupportedVersion, NotAStore, Setting, Poisoned, AlreadyExists,
            Locked, Forked, Width, Distance, OutOfOrder, IncompletePlan, BadArgument, Refused, Exhausted,
            Bug, Cancelled, BadInput
        )
    }

    /// Returns a function that converts an [`io::Error`] to an [`Error::Io`], for `map_err`:
    /// `file.read(..).map_err(Error::io(path, "read"))`.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { path, action, source }
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, damage: Damage) -> Error {
        Error::Corrupt { path: path.to_path_buf(), offset, damage }
    }
}

/// Finds a value by its name in a list of values with their names. If the name is unknown, the error lists
/// all names. `kind` is the noun for the value in the error message.
pub(crate) fn find_by_name<T: Copy>(kind: &str, all: &[(T, &str)], name: &str) -> Result<T> {
    all.iter().find(|(_, other)| *other == name).map(|&(value, _)| value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&(_, name)| name).collect();
        let (first, last) = names.split_at(names.len() - 1);
        let expected = format!("{} or {}", first.join(", "), last.concat());
        Error::BadArgument(format!("unknown {kind} `{}`; expected {expected}", excerpt(name)))
    })
}

/// Kind of damage to the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Fewer bytes than the format requires.
    Truncated {
        /// Number of bytes that the format requires.
        expected: u64,
        /// Number of bytes found.
        found: u64,
    },
    /// The file does not start with the magic bytes of the expected kind of file.
    Magic {
        /// Magic bytes of the expected kind of file.
        expected: [u8; 8],
        /// First 8 bytes of the file.
        found: [u8; 8],
    },
    /// The file does not end with the magic bytes of its kind. It was truncated, or bytes were appended.
    Ending {
        /// Magic bytes at the end of this kind of file.
        expected: [u8; 8],
        /// Last 8 bytes of the file.
        found: [u8; 8],
    },
    /// A CRC-32 does not match the bytes that it covers.
    Checksum {
        /// Name of the part of the file that the checksum covers.
        part: &'static str,
        /// The checksum stored in the file.
        expected: u32,
        /// The checksum computed from the bytes.
        found: u32,
    },
    /// The checksum of a page of prefix lines does not match its bytes.
    LinePage {
        /// Offset of the page in the file, in bytes.
        offset: u64,
        /// The checksum stored in the file.
        expected: u32,
        /// The checksum computed from the bytes.
        found: u32,
    },
    /// A field holds a value that the format does not allow.
    Field {
        /// Name of the invalid field in the format specification.
        name: &'static str,
        /// Value of the invalid field in the file.
        found: u64,
        /// The values that the field may have, in words.
        expected: &'static str,
    },
    /// A member of a JSON file has a value that the format does not allow.
    Malformed {
        /// Name of the JSON member in the format specification.
        name: &'static str,
        /// The values that the member may have, in words.
        expected: &'static str,
    },
    /// Some bits of a table are not a code word of the table's Huffman code.
    CodeWord,
    /// The code lengths of a Huffman code leave code words unused, or use them twice.
    IncompleteCode,
    /// Values are not ascending where the format requires it.
    Order {
        /// The values that are not ascending, such as "the ids of a fingerprint".
        what: &'static str,
    },
    /// Two parts of a store contradict each other.
    Mismatch {
        /// Names of the two parts of the store that contradict each other.
        what: &'static str,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Damage::Truncated { expected, found } => {
                write!(f, "cut short: {expected} bytes expected, {found} found")
            }
            Damage::Magic { expected, found } => write!(
                f,
                "another kind of file: expected the bytes \"{}\", found \"{}\"",
                expected.escape_ascii(),
                found.escape_ascii()
            ),
            Damage::Ending { expected, found } => write!(
                f,
                "cut short, or something was appended: expected the file to end with the bytes \"{}\", found \"{}\"",
                expected.escape_ascii(),
                found.escape_ascii()
            ),
            Damage::Checksum { part, expected, found } => {
                write!(f, "checksum of the {part} is {found:08x}, expected {expected:08x}")
            }
            Damage::LinePage { offset, expected, found } => {
                write!(
                    f,
                    "checksum of the prefix lines from byte {offset} on is {found:08x}, expected {expected:08x}"
                )
            }
            Damage::Field { name, found, expected } => {
                write!(f, "field `{name}` is {found}, expected {expected}")
            }
            Damage::Malformed { name, expected } => write!(f, "`{name}` is not {expected}"),
            Damage::CodeWord => write!(f, "invalid code word"),
            Damage::IncompleteCode => write!(f, "invalid code lengths"),
            Damage::Order { what } => write!(f, "{what} are not ascending"),
            Damage::Mismatch { what } => write!(f, "{what} do not agree"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// One error of each kind. The test `each_kind_has_a_code_of_its_own` fails if a kind is missing in this list.
    fn one_of_each() -> Vec<Error> {
        let path = || PathBuf::from("store");
        let source = || io::Error::other("on fire");
        let (reason, text) = ("why", || "why".to_string());
        vec![
            Error::Io { path: path(), action: "open", source: source() },
            Error::Thread { source: source() },
            Error::Corrupt { path: path(), offset: 7, damage: Damage::CodeWord },
            Error::TornTail { path: path(), offset: 7, bytes: 8 },
            Error::UnsupportedVersion { path: path(), found: 9, supported: 3 },
            Error::NotAStore { path: path(), reason: text() },
            Error::Setting { path: path(), setting: "codec", has: text(), requested: text() },
            Error::Poisoned { path: path(), reason: text() },
            Error::AlreadyExists { path: path(), reason },
            Error::Locked { path: path(), is_here: true },
            Error::Forked { path: path() },
            Error::Width { path: path(), expected: 64, found: 128 },
            Error::Distance { path: path(), requested: 4, supported: 3 },
            Error::OutOfOrder { what: "ids", previous: text(), got: text() },
            Error::IncompletePlan { plan: text(), distance: 3, reason: text() },
            Error::BadArgument(text()),
            Error::Refused(text()),
            Error::Exhausted { path: path(), reason },
            Error::Bug(text()),
            Error::Cancelled,
            Error::BadInput { path: path(), line: 7, reason: text() },
        ]
    }

    #[test]
    fn each_kind_has_a_code_of_its_own() {
        let errors = one_of_each();
        assert_eq!(errors.len(), NAMES.len(), "an error is missing in this test");
        let mut names = HashSet::new();
        for error in errors {
            let (code, name) = (error.code(), error.code().name());
            // The name of the variant in kebab case.
            let variant: String = format!("{code:?}")
                .chars()
                .flat_map(|c| c.is_uppercase().then_some('-').into_iter().chain(c.to_lowercase()))
                .collect();
            assert_eq!(name, variant.trim_start_matches('-'));
            assert_eq!(name, code.to_string());
            assert!(format!("{error:?}").starts_with(&format!("{code:?}")), "{error:?}");
            assert!(names.insert(name), "{name} twice");
        }
    }

    /// Error messages must not mention flags of the command line, because callers of the library have no command line.
    #[test]
    fn messages_name_no_flags() {
        for error in one_of_each() {
            let message = error.to_string();
            assert!(!message.contains("--") && !message.contains("`simstore "), "{message}");
        }
    }
}
