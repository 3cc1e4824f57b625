//! Messages that are not errors, with the same text in all interfaces. If a message mentions an option, it has the option's
//! name in the library, such as `text_field`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use simstore::Error;

use simstore_io::ReadDiagnostic;
use simstore_io::numbers::{format_count, format_count_of};

/// A message for the user that is not an error of the job.
#[derive(Debug)]
#[non_exhaustive]
pub enum Diagnostic<'a> {
    /// The error of a malformed document that was skipped, or of a file that was not read to its end. Reported instead of
    /// ending the job, because the caller requested it.
    Malformed(&'a Error),
    /// Number of malformed lines skipped while reading.
    SkippedLines(u64),
    /// Something that reading has skipped or guessed, and how many times it did so.
    Read(ReadDiagnostic, u64),
    /// An output file of an interrupted run was complete, so it has been renamed to its final name.
    CompletedOutput(&'a Path),
    /// Numbers of parts that a resumable run reused and processed. A part is an input file, or a section of a large file.
    Parts {
        /// Number of parts whose results from earlier runs were reused.
        reused: u64,
        /// Number of parts that this run processed.
        processed: u64,
    },
    /// Number of skipped malformed records and unreadable files, and the singular noun for the records (`document` or `line`).
    SkippedMalformed(u64, &'static str),
    /// The inputs have no readable records.
    NoInput,
    /// Number of documents without text.
    EmptyDocuments(u64),
    /// Number of documents that are too short for a reliable fingerprint.
    ShortDocuments(u64),
    /// Number of characters that were invalid in the encoding of their input.
    ReplacedCharacters(u64),
    /// Number of documents that share their id with another document.
    DuplicateIds(u64),
    /// Warning without a variant of its own.
    Warning(&'a str),
    /// Information without a variant of its own.
    Info(&'a str),
}

impl Diagnostic<'_> {
    /// Whether this is a warning, because the result may be unexpected. All other diagnostics are information.
    pub fn is_warning(&self) -> bool {
        match self {
            Diagnostic::Malformed(_)
            | Diagnostic::SkippedLines(_)
            | Diagnostic::Read(ReadDiagnostic::DetectedEncoding(_) | ReadDiagnostic::MostWordsRemoved, _)
            | Diagnostic::CompletedOutput(_)
            | Diagnostic::SkippedMalformed(..)
            | Diagnostic::NoInput
            | Diagnostic::ShortDocuments(_)
            | Diagnostic::ReplacedCharacters(_)
            | Diagnostic::DuplicateIds(_)
            | Diagnostic::Warning(_) => true,
            Diagnostic::Read(..)
            | Diagnostic::Parts { .. }
            | Diagnostic::EmptyDocuments(_)
            | Diagnostic::Info(_) => false,
        }
    }
}

impl Diagnostic<'_> {
    /// Whether the message says that an input file, or a file in an input folder, was not read. Such messages are shown even
    /// with `--quiet`.
    pub fn is_skipped_input(&self) -> bool {
        match self {
            Diagnostic::Read(
                ReadDiagnostic::UnknownExtension
                | ReadDiagnostic::FingerprintFile
                | ReadDiagnostic::ArchiveLink,
                _,
            ) => true,
            // Records of other types never hold documents.
            Diagnostic::Read(ReadDiagnostic::WarcRecordWithoutText(kind), _) => {
                matches!(*kind, "response" | "resource" | "conversion" | "continuation")
            }
            _ => false,
        }
    }
}

impl fmt::Display for Diagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Diagnostic::Malformed(error) => error.fmt(f),
            Diagnostic::SkippedLines(count) => {
                write!(f, "skipped {}", format_count_of(count, "invalid line"))
            }
            Diagnostic::Read(read, count) => fmt_read_diagnostic(read, count, f),
            Diagnostic::CompletedOutput(path) => write!(
                f,
                "{}: completed; an interrupted run had left it under a temporary name",
                path.display()
            ),
            Diagnostic::Parts { reused: found, processed: made } => {
                write!(f, "{} processed, {found} reused", format_count_of(made, "part"))
            }
            Diagnostic::SkippedMalformed(count, what) => {
                let files = if count == 1 { "file" } else { "files" };
                write!(
                    f,
                    "skipped {} or unreadable {files}",
                    format_count_of(count, &format!("invalid {what}"))
                )
            }
            Diagnostic::NoInput => f.write_str("the inputs hold nothing that can be read"),
            Diagnostic::EmptyDocuments(count) => {
                let have = if count == 1 { "has no text and matches" } else { "have no text and match" };
                write!(f, "{} {have} nothing", format_count_of(count, "document"))
            }
            Diagnostic::ShortDocuments(count) => {
                let are = if count == 1 {
                    "is too short for a reliable fingerprint"
                } else {
                    "are too short for reliable fingerprints"
                };
                write!(f, "{} {are}", format_count_of(count, "document"))
            }
            Diagnostic::ReplacedCharacters(count) => write!(
                f,
                "{} {} invalid in the encoding of the input and replaced by U+FFFD; select an encoding with option `encoding`",
                format_count_of(count, "character"),
                if count == 1 { "was" } else { "were" }
            ),
            Diagnostic::DuplicateIds(count) => write!(
                f,
                "{} have duplicate ids: tables and lists tell them apart by FILE:LINE",
                format_count_of(count, "document")
            ),
            Diagnostic::Warning(message) | Diagnostic::Info(message) => f.write_str(message),
        }
    }
}

/// Writes the message of a diagnostic that occurred `count` times while reading.
fn fmt_read_diagnostic(diagnostic: ReadDiagnostic, count: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match diagnostic {
        ReadDiagnostic::UnknownExtension => write!(
            f,
            "skipped {} with unknown {}: option `format` text reads {}",
            format_count_of(count, "file"),
            if count == 1 { "extension" } else { "extensions" },
            if count == 1 { "it" } else { "them" }
        ),
        ReadDiagnostic::JsonWithoutText => write!(
            f,
            "skipped {} without the text field; select another field with option `text_field`",
            format_count_of(count, "JSON file")
        ),
        ReadDiagnostic::FingerprintFile => {
            let them = if count == 1 { "it" } else { "them" };
            write!(
                f,
                "skipped {}; give {them} as input to read {them}",
                format_count_of(count, "fingerprint file")
            )
        }
        ReadDiagnostic::DuplicatePath => {
            let names = format_count_of(count, "other name");
            write!(f, "skipped {names} of the same files: each file is read once")
        }
        ReadDiagnostic::DanglingLink => write!(f, "skipped {}", format_count_of(count, "dangling link")),
        ReadDiagnostic::SpecialFile => {
            let what = if count == 1 { "pipe or device" } else { "pipes or devices" };
            write!(f, "skipped {} {what}; give a pipe as an input to read it", format_count(count))
        }
        ReadDiagnostic::ArchiveLink => {
            let them = if count == 1 { "it" } else { "them" };
            write!(
                f,
                "skipped {} in archives: unpack the archive to follow {them}",
                format_count_of(count, "link")
            )
        }
        ReadDiagnostic::WarcRecordWithoutText(kind) => {
            write!(f, "skipped {} of type {kind} (without text)", format_count_of(count, "WARC record"))
        }
        ReadDiagnostic::DetectedDelimiter(delimiter) => {
            let tables = format_count_of(count, "table");
            write!(f, "{tables} with field separator {delimiter:?} (detected)")
        }
        ReadDiagnostic::DetectedEncoding(name) => {
            let (is, was) = if count == 1 { ("is", "was") } else { ("are", "were") };
            write!(
                f,
                "{} {is} not in UTF-8 and {was} read as {name} (detected)",
                format_count_of(count, "text")
            )
        }
        ReadDiagnostic::MostWordsRemoved => write!(
            f,
            "cleaning removed more than half of the words of {} that {} not HTML, as tags or comments; a profile without `plain-text` \
             keeps them",
            format_count_of(count, "document"),
            if count == 1 { "is" } else { "are" }
        ),
    }
}

/// Diagnostics of reading, and the number of times that each occurred.
pub type ReadDiagnosticCounts = BTreeMap<ReadDiagnostic, u64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_which_of_them_warn() {
        let error = Error::BadInput { path: "a.jsonl".into(), line: 3, reason: "no JSON".to_owned() };
        for (diagnostic, message, is_warning) in [
            (Diagnostic::Malformed(&error), "a.jsonl:3: no JSON", true),
            (Diagnostic::SkippedLines(1), "skipped 1 invalid line", true),
            (
                Diagnostic::Read(ReadDiagnostic::UnknownExtension, 2),
                "skipped 2 files with unknown extensions: option `format` text reads them",
                false,
            ),
            (
                Diagnostic::Read(ReadDiagnostic::DetectedEncoding("gb18030"), 1),
                "1 text is not in UTF-8 and was read as gb18030 (detected)",
                true,
            ),
            (
                Diagnostic::Read(ReadDiagnostic::MostWordsRemoved, 2),
                "cleaning removed more than half of the words of 2 documents that are not HTML, as tags or comments; a profile without \
                 `plain-text` keeps them",
                true,
            ),
            (
                Diagnostic::SkippedMalformed(1, "document"),
                "skipped 1 invalid document or unreadable file",
                true,
            ),
            (
                Diagnostic::SkippedMalformed(2000, "line"),
                "skipped 2,000 invalid lines or unreadable files",
                true,
            ),
            (Diagnostic::EmptyDocuments(1), "1 document has no text and matches nothing", false),
            (Diagnostic::Parts { reused: 1, processed: 2 }, "2 parts processed, 1 reused", false),
            (Diagnostic::Info("a word"), "a word", false),
        ] {
            assert_eq!((&*diagnostic.to_string(), diagnostic.is_warning()), (message, is_warning));
        }
        for (read, is_skipped_input) in [
            (ReadDiagnostic::UnknownExtension, true),
            (ReadDiagnostic::WarcRecordWithoutText("response"), true),
            (ReadDiagnostic::WarcRecordWithoutText("request"), false),
            (ReadDiagnostic::DetectedDelimiter(';'), false),
        ] {
            assert_eq!(Diagnostic::Read(read, 1).is_skipped_input(), is_skipped_input);
        }
    }
}
