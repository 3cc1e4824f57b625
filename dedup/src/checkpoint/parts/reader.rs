//! Reader of part files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::{Error, Fingerprint, Result};
use simstore_text::{BANDS, Signature};

use crate::checkpoint::checksummed_file::ChecksummedReader;
use crate::checkpoint::parts::header::{
    DocumentLine, DocumentLineId, EndLine, ModifiedLine, PartHeader, SectionEnd,
};
use simstore_corpus::Item;
use simstore_io::DocumentId;
use simstore_io::document::name_to_path;

/// Offsets that convert positions and line numbers within a part to positions in the input and line numbers in the
/// file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartOffsets {
    /// Input position of the first document of the part.
    pub(crate) position: u64,
    /// Number of lines that precede the section in its input file; 0 if the part has whole files.
    pub(crate) lines: u64,
}

/// Reads the documents of a part file.
pub(crate) struct PartFileReader {
    path: PathBuf,
    lines: ChecksummedReader,
    /// Modification time of each input file when the part file was made, in nanoseconds since 1970; `None` if
    /// it is unknown.
    pub(crate) modified: Vec<Option<u64>>,
    decoder: DocumentDecoder,
}

/// Decodes the lines of documents in a part file.
struct DocumentDecoder {
    files: Vec<Arc<Path>>,
    has_signatures: bool,
    is_section: bool,
}

impl PartFileReader {
    /// Opens a part file. If it is damaged, or its header is not `expected`, returns a message for users as the
    /// error.
    pub(crate) fn open(path: &Path, expected: &PartHeader) -> Result<PartFileReader, String> {
        let mut lines = ChecksummedReader::open(path)?;
        let header: PartHeader = serde_json::from_slice(lines.next_line()?)
            .map_err(|error| format!("line 1: invalid part header: {error}"))?;
        if header != *expected {
            return Err("its header does not match its name".to_owned());
        }
        let ModifiedLine { modified } =
            serde_json::from_slice(lines.next_line()?).map_err(|error| format!("line 2: {error}"))?;
        if modified.len() != header.files.len() {
            return Err(format!("line 2: {} times of {} files", modified.len(), header.files.len()));
        }
        let files = header.files.iter().map(|file| name_to_path(&file.path).into()).collect();
        let is_section = header.section.is_some();
        let decoder = DocumentDecoder { files, has_signatures: header.bands.is_some(), is_section };
        Ok(PartFileReader { path: path.to_path_buf(), lines, modified, decoder })
    }

    /// Visits the documents of the part file; a malformed document is `None`. Adds the offsets in `first` to
    /// the positions and, for a section, to the line numbers. Returns the outcome of reading the section; `None`
    /// if the part has whole files.
    pub(crate) fn visit<F: Fingerprint>(
        mut self,
        first: PartOffsets,
        mut visitor: impl FnMut(Option<Item<F>>) -> Result<()>,
    ) -> Result<Option<SectionEnd>> {
        for number in 0.. {
            let decode = |line| self.decoder.decode(line, number, first);
            let item = match self.lines.next_line().and_then(decode) {
                Ok(DecodedLine::End(end)) => return Ok(end),
                Ok(DecodedLine::Malformed) => None,
                Ok(DecodedLine::Item(item)) => Some(item),
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

impl DocumentDecoder {
    fn decode<F: Fingerprint>(
        &self,
        line: &[u8],
        number: u64,
        first: PartOffsets,
    ) -> Result<DecodedLine<F>, String> {
        if line == b"null" {
            return Ok(DecodedLine::Malformed);
        }
        if let Ok(EndLine { end, lines, rest }) = serde_json::from_slice(line) {
            if end != number {
                return Err(format!("expected {end} documents, found {number}"));
            }
            return match (lines, rest) {
                (Some(lines), Some(is_end_of_file))
                    if self.is_section && lines.checked_add(first.lines).is_some() =>
                {
                    Ok(DecodedLine::End(Some(SectionEnd { lines, is_end_of_file })))
                }
                (None, None) if !self.is_section => Ok(DecodedLine::End(None)),
                _ => Err("expected the lines of a section at its end, and only there".to_owned()),
            };
        }
        let line: DocumentLine<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let signature = if self.has_signatures { line.signature()? } else { None };
        let path = self.files.get(line.file).cloned().ok_or("no such file")?;
        let number_in_file = match self.is_section {
            true => line.line.checked_add(first.lines).ok_or("no such line")?,
            false => line.line,
        };
        let fingerprint = line.fingerprint.as_deref().map(F::parse_hex).transpose();
        Ok(DecodedLine::Item(Item {
            has_position_id: line.id.is_none(),
            id: match line.id {
                Some(DocumentLineId::Number(number)) => DocumentId::Number(number),
                Some(DocumentLineId::Name(name)) => DocumentId::Name(name.into_owned()),
                None if self.is_section => DocumentId::from_position(&path, number_in_file),
                None => return Err("no id".to_owned()),
            },
            fingerprint: fingerprint.map_err(|error| error.to_string())?,
            feature_count: line.features,
            signature,
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

/// Content of a line after the first two lines of a part file.
#[expect(clippy::large_enum_variant, reason = "nearly all lines are items")]
enum DecodedLine<F> {
    Item(Item<F>),
    Malformed,
    End(Option<SectionEnd>),
}

fn parse_hex_numbers(digits: &str) -> Result<Box<[u64]>, String> {
    let number = |digits: &[u8]| {
        let digits = str::from_utf8(digits).ok()?;
        u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)
    };
    let numbers: Option<Box<[u64]>> = digits.as_bytes().chunks(16).map(number).collect();
    numbers.ok_or_else(|| "expected 16 hexadecimal digits for each number".to_owned())
}

impl DocumentLine<'_> {
    /// Returns the MinHash signature; `None` for a document without text.
    fn signature(&self) -> Result<Option<Signature>, String> {
        let Some(features) = self.features else { return Ok(None) };
        let number = |digits: &Option<String>| parse_hex_numbers(digits.as_deref().unwrap_or_default());
        let (bands, sum) = (number(&self.bands)?, number(&self.sum)?);
        match (<[u64; BANDS]>::try_from(&*bands), &*sum) {
            (Ok(bands), &[sum]) => Ok(Some(Signature { bands, features, sum })),
            _ => Err(format!("expected {BANDS} bands and a checksum of the features")),
        }
    }
}
