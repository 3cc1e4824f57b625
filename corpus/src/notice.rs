//! Messages that are no errors, in the same words in all interfaces. Options have their names in the library: option `text_field`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use simstore::Error;

use simstore_io::ReadNote;
use simstore_io::numbers::{count_of, grouped};

/// A message for a person that is no failure of the work.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A malformed document, or a file that cannot be read on, was skipped, as was asked for.
    Malformed(&'a Error),
    /// So many malformed ones were skipped in a reading that has ended.
    Skipped(u64),
    /// Something that was skipped or guessed in a reading, and how often.
    Read(ReadNote, u64),
    /// A file of a run that was cut off has got its name.
    Published(&'a Path),
    /// Work that is kept in parts was read.
    Parts {
        /// Parts that were there.
        found: u64,
        /// Parts that were made.
        made: u64,
    },
    /// Number of malformed documents or lines (`document` or `line`), or files, that were skipped.
    Bad(u64, &'static str),
    /// There is nothing in the inputs that could be read.
    Nothing,
    /// So many documents have no text.
    Empty(u64),
    /// So many are so short that their fingerprints are unreliable.
    Short(u64),
    /// So many characters were not in the encoding of their input.
    Replaced(u64),
    /// So many documents have an id that another has.
    SameId(u64),
    /// A warning: something may not be as it was meant.
    Warning(&'a str),
    /// Something good to know.
    Remark(&'a str),
}

impl Notice<'_> {
    /// Whether something may not be as it was meant. The others are good to know.
    pub fn is_warning(&self) -> bool {
        match self {
            Notice::Malformed(_)
            | Notice::Skipped(_)
            | Notice::Read(ReadNote::Encoding(_) | ReadNote::LostWords, _)
            | Notice::Published(_)
            | Notice::Bad(..)
            | Notice::Nothing
            | Notice::Short(_)
            | Notice::Replaced(_)
            | Notice::SameId(_)
            | Notice::Warning(_) => true,
            Notice::Read(..) | Notice::Parts { .. } | Notice::Empty(_) | Notice::Remark(_) => false,
        }
    }
}

impl Notice<'_> {
    /// Whether a named file, or a file in a named folder, has not been read. Such a message is shown even with `--quiet`.
    pub fn is_passed_over(&self) -> bool {
        match self {
            Notice::Read(ReadNote::UnknownFile | ReadNote::FingerprintFile | ReadNote::Link, _) => true,
            // The others are never documents.
            Notice::Read(ReadNote::WarcRecord(kind), _) => {
                matches!(*kind, "response" | "resource" | "conversion" | "continuation")
            }
            _ => false,
        }
    }
}

impl fmt::Display for Notice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Notice::Malformed(error) => error.fmt(f),
            Notice::Skipped(count) => write!(f, "skipped {}", count_of(count, "invalid line")),
            Notice::Read(note, count) => fmt_note(note, count, f),
            Notice::Published(path) => write!(
                f,
                "{}: completed; an interrupted run had left it under a temporary name",
                path.display()
            ),
            Notice::Parts { found, made } => {
                write!(f, "{} processed, {found} reused", count_of(made, "part"))
            }
            Notice::Bad(count, what) => {
                let files = if count == 1 { "file" } else { "files" };
                write!(f, "skipped {} or unreadable {files}", count_of(count, &format!("invalid {what}")))
            }
            Notice::Nothing => f.write_str("the inputs hold nothing that can be read"),
            Notice::Empty(count) => {
                let have = if count == 1 { "has no text and matches" } else { "have no text and match" };
                write!(f, "{} {have} nothing", count_of(count, "document"))
            }
            Notice::Short(count) => {
                let are = if count == 1 {
                    "is too short for a reliable fingerprint"
                } else {
                    "are too short for reliable fingerprints"
                };
                write!(f, "{} {are}", count_of(count, "document"))
            }
            Notice::Replaced(count) => write!(
                f,
                "{} {} invalid in the encoding of the input and replaced by U+FFFD; select an encoding with option `encoding`",
                count_of(count, "character"),
                if count == 1 { "was" } else { "were" }
            ),
            Notice::SameId(count) => write!(
                f,
                "{} have duplicate ids: tables and lists tell them apart by FILE:LINE",
                count_of(count, "document")
            ),
            Notice::Warning(said) | Notice::Remark(said) => f.write_str(said),
        }
    }
}

/// The message of a note.
fn fmt_note(note: ReadNote, count: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match note {
        ReadNote::UnknownFile => write!(
            f,
            "skipped {} with unknown {}: option `format` text reads {}",
            count_of(count, "file"),
            if count == 1 { "extension" } else { "extensions" },
            if count == 1 { "it" } else { "them" }
        ),
        ReadNote::OtherJson => write!(
            f,
            "skipped {} without the text field; select another field with option `text_field`",
            count_of(count, "JSON file")
        ),
        ReadNote::FingerprintFile => {
            let them = if count == 1 { "it" } else { "them" };
            write!(f, "skipped {}; give {them} as input to read {them}", count_of(count, "fingerprint file"))
        }
        ReadNote::OtherName => {
            let names = count_of(count, "other name");
            write!(f, "skipped {names} of the same files: each file is read once")
        }
        ReadNote::DeadLink => write!(f, "skipped {}", count_of(count, "dangling link")),
        ReadNote::NoFile => {
            let what = if count == 1 { "pipe or device" } else { "pipes or devices" };
            write!(f, "skipped {} {what}; give a pipe as an input to read it", grouped(count))
        }
        ReadNote::Link => {
            let them = if count == 1 { "it" } else { "them" };
            write!(f, "skipped {} in archives: unpack the archive to follow {them}", count_of(count, "link"))
        }
        ReadNote::WarcRecord(kind) => {
            write!(f, "skipped {} of type {kind} (without text)", count_of(count, "WARC record"))
        }
        ReadNote::Delimiter(delimiter) => {
            let tables = count_of(count, "table");
            write!(f, "{tables} with field separator {delimiter:?} (detected)")
        }
        ReadNote::Encoding(name) => {
            let (is, was) = if count == 1 { ("is", "was") } else { ("are", "were") };
            write!(f, "{} {is} not in UTF-8 and {was} read as {name} (detected)", count_of(count, "text"))
        }
        ReadNote::LostWords => write!(
            f,
            "cleaning removed more than half of the words of {} that {} not HTML, as tags or comments; a profile without `plain-text` \
             keeps them",
            count_of(count, "document"),
            if count == 1 { "is" } else { "are" }
        ),
    }
}

/// Notes of a reading, and how often each.
pub type ReadNotes = BTreeMap<ReadNote, u64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_which_of_them_warn() {
        let error = Error::BadInput { path: "a.jsonl".into(), line: 3, reason: "no JSON".to_owned() };
        for (notice, said, is_warning) in [
            (Notice::Malformed(&error), "a.jsonl:3: no JSON", true),
            (Notice::Skipped(1), "skipped 1 invalid line", true),
            (
                Notice::Read(ReadNote::UnknownFile, 2),
                "skipped 2 files with unknown extensions: option `format` text reads them",
                false,
            ),
            (
                Notice::Read(ReadNote::Encoding("gb18030"), 1),
                "1 text is not in UTF-8 and was read as gb18030 (detected)",
                true,
            ),
            (
                Notice::Read(ReadNote::LostWords, 2),
                "cleaning removed more than half of the words of 2 documents that are not HTML, as tags or comments; a profile without \
                 `plain-text` keeps them",
                true,
            ),
            (Notice::Bad(1, "document"), "skipped 1 invalid document or unreadable file", true),
            (Notice::Bad(2000, "line"), "skipped 2,000 invalid lines or unreadable files", true),
            (Notice::Empty(1), "1 document has no text and matches nothing", false),
            (Notice::Parts { found: 1, made: 2 }, "2 parts processed, 1 reused", false),
            (Notice::Remark("a word"), "a word", false),
        ] {
            assert_eq!((&*notice.to_string(), notice.is_warning()), (said, is_warning));
        }
        for (note, is_passed_over) in [
            (ReadNote::UnknownFile, true),
            (ReadNote::WarcRecord("response"), true),
            (ReadNote::WarcRecord("request"), false),
            (ReadNote::Delimiter(';'), false),
        ] {
            assert_eq!(Notice::Read(note, 1).is_passed_over(), is_passed_over);
        }
    }
}
