//! What is told on the way and is no error, in words that are the same in all interfaces. Options are named as the libraries have
//! them: option `text_field`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use simstore::Error;

use crate::numbers::{count_of, grouped};
use crate::progress::ReadNote;

/// What a person should know, and is no failure of the work.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A malformed document, or a file that cannot be read on, was skipped, as was asked for.
    Malformed(&'a Error),
    /// So many malformed ones were skipped in a reading that has ended.
    Skipped(u64),
    /// What was passed over or guessed in a reading, and how often.
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
    /// So many of what was read, "document" or "line", were malformed, or their files, and skipped.
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
    /// What may not be as it was meant.
    Warning(&'a str),
    /// What is good to know.
    Remark(&'a str),
}

impl Notice<'_> {
    /// Whether something may not be as it was meant. The others are good to know.
    pub fn is_warning(&self) -> bool {
        match self {
            Notice::Malformed(_)
            | Notice::Skipped(_)
            | Notice::Read(ReadNote::Encoding(_), _)
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
    /// Whether something that was named, or lies in what was named, has not been read: to be told even where nothing else is.
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
            Notice::Skipped(count) => write!(f, "{} malformed, skipped", count_of(count, "line")),
            Notice::Read(note, count) => fmt_note(note, count, f),
            Notice::Published(path) => write!(
                f,
                "{}: has its name now; an interrupted run had written it under another",
                path.display()
            ),
            Notice::Parts { found, made } => {
                let were = if found == 1 { "was" } else { "were" };
                write!(f, "{} {were} there, {made} made", count_of(found, "part"))
            }
            Notice::Bad(count, what) => {
                let files = if count == 1 { "file" } else { "files" };
                write!(f, "{} or {files} malformed, skipped", count_of(count, what))
            }
            Notice::Nothing => f.write_str("there is nothing in the inputs that could be read"),
            Notice::Empty(count) => {
                let match_nothing = if count == 1 { "it matches nothing" } else { "they match nothing" };
                write!(f, "{} without text: {match_nothing}", count_of(count, "document"))
            }
            Notice::Short(count) => {
                write!(f, "{} so short that the fingerprints are unreliable", count_of(count, "document"))
            }
            Notice::Replaced(count) => write!(
                f,
                "{} {} not in the encoding of the input, and replaced by U+FFFD; option `encoding` names another",
                count_of(count, "character"),
                if count == 1 { "was" } else { "were" }
            ),
            Notice::SameId(count) => write!(
                f,
                "{} have an id that another has: tables and lists tell them apart by FILE:LINE",
                count_of(count, "document")
            ),
            Notice::Warning(said) | Notice::Remark(said) => f.write_str(said),
        }
    }
}

/// What there is to say of a reading.
fn fmt_note(note: ReadNote, count: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match note {
        ReadNote::UnknownFile => write!(
            f,
            "{} passed over, by their names no documents; option `format` reads them",
            count_of(count, "file")
        ),
        ReadNote::OtherJson => write!(
            f,
            "{} of JSON without the text field passed over; option `text_field` names another field",
            count_of(count, "file")
        ),
        ReadNote::FingerprintFile => {
            write!(f, "{} of fingerprints passed over; name them to read them", count_of(count, "file"))
        }
        ReadNote::OtherName => {
            let names = count_of(count, "other name");
            write!(f, "{names} of the same files skipped: each file is read once")
        }
        ReadNote::DeadLink => write!(f, "{} to nothing passed over", count_of(count, "link")),
        ReadNote::NoFile => {
            let what = if count == 1 { "pipe or device" } else { "pipes or devices" };
            write!(f, "{} {what} passed over; name a pipe to read it", grouped(count))
        }
        ReadNote::Link => {
            let links = count_of(count, "link");
            write!(f, "{links} in archives passed over; unpack the archive to follow them")
        }
        ReadNote::WarcRecord(kind) => {
            write!(f, "{} of type {kind} without text passed over", count_of(count, "WARC record"))
        }
        ReadNote::Delimiter(delimiter) => {
            let tables = count_of(count, "table");
            write!(f, "{tables} with {delimiter:?} between the fields, as the columns show")
        }
        ReadNote::Encoding(name) => {
            write!(f, "{} not in UTF-8, read as {name} by what they look like", count_of(count, "text"))
        }
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
            (Notice::Skipped(1), "1 line malformed, skipped", true),
            (
                Notice::Read(ReadNote::UnknownFile, 2),
                "2 files passed over, by their names no documents; option `format` reads them",
                false,
            ),
            (
                Notice::Read(ReadNote::Encoding("gb18030"), 1),
                "1 text not in UTF-8, read as gb18030 by what they look like",
                true,
            ),
            (Notice::Bad(1, "document"), "1 document or file malformed, skipped", true),
            (Notice::Bad(2000, "line"), "2,000 lines or files malformed, skipped", true),
            (Notice::Empty(1), "1 document without text: it matches nothing", false),
            (Notice::Parts { found: 1, made: 2 }, "1 part was there, 2 made", false),
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
