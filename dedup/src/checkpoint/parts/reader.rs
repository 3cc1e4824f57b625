//! Reading a part.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::{Error, Fingerprint, Result};
use simstore_text::{BANDS, Signature};

use crate::checkpoint::checksummed_file::SealedLines;
use crate::checkpoint::parts::header::{DocumentLine, End, Header, LineId, Modified, SectionEnd};
use simstore_corpus::Item;
use simstore_io::DocumentId;
use simstore_io::document::name_to_path;

/// The offsets of a part: documents in all inputs, and lines in the file of a section.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct First {
    pub(crate) position: u64,
    pub(crate) lines: u64,
}

/// A part that is there.
pub(crate) struct Part {
    path: PathBuf,
    lines: SealedLines,
    /// When each file was modified last, before it was read.
    pub(crate) modified: Vec<Option<u64>>,
    documents: Documents,
}

/// How the documents of a part are written.
struct Documents {
    files: Vec<Arc<Path>>,
    with_sketches: bool,
    is_section: bool,
}

impl Part {
    /// Opens a part; a reason if it is damaged or another one.
    pub(crate) fn open(path: &Path, expected: &Header) -> Result<Part, String> {
        let mut lines = SealedLines::open(path)?;
        let header: Header = serde_json::from_slice(lines.next()?)
            .map_err(|error| format!("line 1: invalid part header: {error}"))?;
        if header != *expected {
            return Err("its header does not match its name".to_owned());
        }
        let Modified { modified } =
            serde_json::from_slice(lines.next()?).map_err(|error| format!("line 2: {error}"))?;
        if modified.len() != header.files.len() {
            return Err(format!("line 2: {} times of {} files", modified.len(), header.files.len()));
        }
        let files = header.files.iter().map(|file| name_to_path(&file.path).into()).collect();
        let is_section = header.section.is_some();
        let documents = Documents { files, with_sketches: header.sketches.is_some(), is_section };
        Ok(Part { path: path.to_path_buf(), lines, modified, documents })
    }

    /// Visits the documents: `None` for a malformed one. Positions count from `first.position`, and lines of a section from
    /// `first.lines`. Returns what is known of a section.
    pub(crate) fn visit<F: Fingerprint>(
        mut self,
        first: First,
        mut visitor: impl FnMut(Option<Item<F>>) -> Result<()>,
    ) -> Result<Option<SectionEnd>> {
        for number in 0.. {
            let parsed = |line| self.documents.parse(line, number, first);
            let item = match self.lines.next().and_then(parsed) {
                Ok(Parsed::End(end)) => return Ok(end),
                Ok(Parsed::Bad) => None,
                Ok(Parsed::Item(item)) => Some(item),
                Err(reason) => {
                    return Err(Error::Refused(format!(
                        "{}: line {}: {reason}; remove this file and run again",
                        self.path.display(),
                        number + 3
                    )));
                }
            };
            visitor(item)?;
        }
        Err(Error::Bug("a part without an end".to_owned()))
    }
}

impl Documents {
    fn parse<F: Fingerprint>(&self, line: &[u8], number: u64, first: First) -> Result<Parsed<F>, String> {
        if line == b"null" {
            return Ok(Parsed::Bad);
        }
        if let Ok(End { end, lines, rest }) = serde_json::from_slice(line) {
            if end != number {
                return Err(format!("expected {end} documents, found {number}"));
            }
            return match (lines, rest) {
                (Some(lines), Some(is_rest))
                    if self.is_section && lines.checked_add(first.lines).is_some() =>
                {
                    Ok(Parsed::End(Some(SectionEnd { lines, is_rest })))
                }
                (None, None) if !self.is_section => Ok(Parsed::End(None)),
                _ => Err("expected the lines of a section at its end, and only there".to_owned()),
            };
        }
        let line: DocumentLine<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let sketched = if self.with_sketches { line.sketched()? } else { None };
        let path = self.files.get(line.file).cloned().ok_or("no such file")?;
        let number_in_file = match self.is_section {
            true => line.line.checked_add(first.lines).ok_or("no such line")?,
            false => line.line,
        };
        let fingerprint = line.fingerprint.as_deref().map(F::parse_hex).transpose();
        Ok(Parsed::Item(Item {
            has_position_id: line.id.is_none(),
            id: match line.id {
                Some(LineId::Number(number)) => DocumentId::Number(number),
                Some(LineId::Name(name)) => DocumentId::Name(name.into_owned()),
                None if self.is_section => DocumentId::from_position(&path, number_in_file),
                None => return Err("no id".to_owned()),
            },
            fingerprint: fingerprint.map_err(|error| error.to_string())?,
            feature_count: line.features,
            signature: sketched,
            text: None,
            text_bytes: line.text_bytes,
            replacements: line.replaced,
            extra: line.extra,
            checksum: u64::from_str_radix(&line.check, 16).map_err(|error| format!("check: {error}"))?,
            position: first.position + number,
            path,
            line: number_in_file,
            has_id: true,
        }))
    }
}

/// A line after the first two.
#[expect(clippy::large_enum_variant, reason = "nearly all lines are items")]
enum Parsed<F> {
    Item(Item<F>),
    Bad,
    End(Option<SectionEnd>),
}

fn parse_hex(digits: &str) -> Result<Box<[u64]>, String> {
    let number = |digits: &[u8]| {
        let digits = str::from_utf8(digits).ok()?;
        u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)
    };
    let numbers: Option<Box<[u64]>> = digits.as_bytes().chunks(16).map(number).collect();
    numbers.ok_or_else(|| "expected 16 hexadecimal digits for each number".to_owned())
}

impl DocumentLine<'_> {
    /// The sketches of a document.
    fn sketched(&self) -> Result<Option<Signature>, String> {
        let Some(features) = self.features else { return Ok(None) };
        let number = |digits: &Option<String>| parse_hex(digits.as_deref().unwrap_or_default());
        let (sketches, sum) = (number(&self.sketches)?, number(&self.sum)?);
        match (<[u64; BANDS]>::try_from(&*sketches), &*sum) {
            (Ok(sketches), &[sum]) => Ok(Some(Signature { bands: sketches, features, sum })),
            _ => Err(format!("expected {BANDS} bands and a checksum of the features")),
        }
    }
}
