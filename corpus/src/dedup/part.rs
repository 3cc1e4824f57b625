//! A part: the fingerprints of some files of a corpus, as a file of its own.
//!
//! The format is specified in `format-spec/part.md`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Take, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use simstore::{Error, Fingerprint};
use simstore_text::Sketched;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::output::{Output, Unfinished};
use crate::{DocumentId, Item};

pub(super) const VERSION: u32 = 2;
pub(super) const VERSION_WITH_SKETCHES: u32 = 3;
/// The longest line: a longer one is neither written nor read.
const MAX_LINE_BYTES: usize = 1 << 26;
/// What follows the frame: a frame of Zstandard that its readers skip, with 8 bytes in it.
const TRAILER: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0];
const TRAILER_BYTES: u64 = 16;

/// What a part holds: which files, and how they were read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Version of the format.
    pub(super) part: u32,
    pub(super) bits: u32,
    pub(super) profile: String,
    /// Sketches of a document, and up to how many features these are kept too.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sketches: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) few: Option<u32>,
    pub(super) id_field: Option<String>,
    pub(super) text_fields: Vec<String>,
    pub(super) extra_field: Option<String>,
    pub(super) format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) delimiter: Option<char>,
    pub(super) encoding: String,
    pub(super) max_bytes: usize,
    pub(super) skip_bad: bool,
    pub(super) files: Vec<PartFile>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartFile {
    pub(super) path: String,
    pub(super) bytes: u64,
    /// xxh3 of the first and the last 64 KiB, hexadecimal.
    pub(super) check: String,
}

/// The second line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Modified {
    /// When each file was modified last, in nanoseconds since 1970.
    modified: Vec<Option<u64>>,
}

/// A document of a part; `null` stands for a malformed one.
#[derive(Serialize, Deserialize)]
struct DocumentLine<'a> {
    /// The place of its file in the header.
    file: usize,
    line: u64,
    #[serde(borrow)]
    id: LineId<'a>,
    fingerprint: Option<String>,
    features: Option<u32>,
    /// All hexadecimal, 16 digits each: the sketches, the sum of the features, and the features where they are few.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sketches: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sum: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    members: Option<String>,
    text_bytes: u64,
    replaced: u64,
    /// The checksum of the document as it stood in its file, hexadecimal.
    check: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    extra: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum LineId<'a> {
    Number(u64),
    #[serde(borrow)]
    Name(Cow<'a, str>),
}

/// The last line: nothing is missing before it.
#[derive(Serialize, Deserialize)]
struct End {
    end: u64,
}

impl Header {
    /// A part is found by what it holds: of other files, or read in another way, it has another name.
    pub(super) fn path(&self, folder: &Path) -> simstore::Result<PathBuf> {
        Ok(folder.join(format!("{:016x}.part.zst", xxh3_64(&json(self)?))))
    }
}

fn json(value: &impl Serialize) -> simstore::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Refused(error.to_string()))
}

/// A part that is being written.
pub(super) struct Writer {
    path: PathBuf,
    frame: zstd::Encoder<'static, Hashed>,
    /// Lines of documents so far.
    count: u64,
}

/// An output, and the checksum of what it got.
struct Hashed {
    output: Output,
    hash: Xxh3,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Write::write(&mut self.output, bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.output)
    }
}

impl Writer {
    pub(super) fn create(
        path: &Path,
        header: &Header,
        modified: &[Option<u64>],
        unfinished: &Unfinished,
    ) -> simstore::Result<Writer> {
        let output = Hashed { output: Output::create_as_it_is(path, unfinished)?, hash: Xxh3::new() };
        let frame = zstd::Encoder::new(output, 1).map_err(Error::io(path, "write"))?;
        let mut writer = Writer { path: path.to_path_buf(), frame, count: 0 };
        writer.push(&json(header)?)?;
        writer.push(&json(&Modified { modified: modified.to_vec() })?)?;
        Ok(writer)
    }

    fn push(&mut self, line: &[u8]) -> simstore::Result<()> {
        let written = self.frame.write_all(line).and_then(|()| self.frame.write_all(b"\n"));
        written.map_err(Error::io(&self.path, "write"))
    }

    /// Writes malformed documents up to a position, counted from 0 in the part.
    pub(super) fn push_bad(&mut self, up_to: u64) -> simstore::Result<()> {
        while self.count < up_to {
            self.push(b"null")?;
            self.count += 1;
        }
        Ok(())
    }

    /// Writes a document, whose file has this place in the header.
    pub(super) fn push_document<F: Fingerprint>(
        &mut self,
        item: &Item<F>,
        file: usize,
    ) -> simstore::Result<()> {
        let line = DocumentLine {
            file,
            line: item.line,
            id: match &item.id {
                DocumentId::Number(number) => LineId::Number(*number),
                DocumentId::Name(name) => LineId::Name(name.into()),
            },
            fingerprint: item.fingerprint.map(|fingerprint| fingerprint.to_hex()),
            features: item.features,
            sketches: item.sketched.as_ref().map(|sketched| hex(&sketched.sketches)),
            sum: item.sketched.as_ref().map(|sketched| hex(&[sketched.sum])),
            members: item.sketched.as_ref().and_then(|sketched| Some(hex(sketched.members.as_deref()?))),
            text_bytes: item.text_bytes,
            replaced: item.replaced,
            check: format!("{:016x}", item.checksum),
            extra: item.extra.clone(),
        };
        let line = json(&line)?;
        if line.len() > MAX_LINE_BYTES {
            return Err(Error::Refused(format!(
                "{}:{}: the field of option `keep` is too long to be kept in a part: at most {MAX_LINE_BYTES} bytes",
                item.path.display(),
                item.line
            )));
        }
        self.push(&line)?;
        self.count += 1;
        Ok(())
    }

    pub(super) fn finish(mut self) -> simstore::Result<()> {
        let end = json(&End { end: self.count })?;
        self.push(&end)?;
        let Hashed { mut output, hash } = self.frame.finish().map_err(Error::io(&self.path, "write"))?;
        output.push(&TRAILER)?;
        output.push(&hash.digest().to_le_bytes())?;
        output.finish()
    }
}

/// A part that is there.
pub(super) struct Part {
    path: PathBuf,
    lines: Lines,
    files: Vec<Arc<Path>>,
    /// When each file was modified last, before it was read.
    pub(super) modified: Vec<Option<u64>>,
    /// Sketches of a document.
    sketches: Option<usize>,
    few: u32,
}

/// Lines of bounded length.
struct Lines {
    reader: BufReader<zstd::Decoder<'static, BufReader<Take<File>>>>,
    line: Vec<u8>,
}

impl Lines {
    fn next(&mut self) -> Result<&[u8], String> {
        self.line.clear();
        let read = (&mut self.reader).take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut self.line);
        read.map_err(|error| format!("cannot read: {error}"))?;
        match self.line.split_last() {
            Some((b'\n', line)) => Ok(line),
            _ if self.line.len() > MAX_LINE_BYTES => {
                Err(format!("a line is longer than {MAX_LINE_BYTES} bytes"))
            }
            _ => Err("the end is missing".to_owned()),
        }
    }
}

/// The frame of a part, if its checksum is right.
fn frame(path: &Path) -> Result<Take<File>, String> {
    let failed = |error: io::Error| format!("cannot read: {error}");
    let mut file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let Some(frame_bytes) = bytes.checked_sub(TRAILER_BYTES) else {
        return Err("damaged: it is too short".to_owned());
    };
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; 1 << 16]);
    let mut frame = (&mut file).take(frame_bytes);
    loop {
        match frame.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hash.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let mut trailer = [0; TRAILER_BYTES as usize];
    file.read_exact(&mut trailer).map_err(failed)?;
    if trailer[..8] != TRAILER || trailer[8..] != hash.digest().to_le_bytes() {
        return Err("damaged: its checksum is wrong".to_owned());
    }
    file.rewind().map_err(failed)?;
    Ok(file.take(frame_bytes))
}

impl Part {
    /// Opens a part; a reason if it is damaged or another one.
    pub(super) fn open(path: &Path, expected: &Header) -> Result<Part, String> {
        let decoder = zstd::Decoder::new(frame(path)?).map_err(|error| format!("cannot read: {error}"))?;
        let mut lines = Lines { reader: BufReader::new(decoder), line: Vec::new() };
        let header: Header = serde_json::from_slice(lines.next()?)
            .map_err(|error| format!("line 1: no header of a part: {error}"))?;
        if header != *expected {
            return Err("not the part that its name tells".to_owned());
        }
        let Modified { modified } =
            serde_json::from_slice(lines.next()?).map_err(|error| format!("line 2: {error}"))?;
        if modified.len() != header.files.len() {
            return Err(format!("line 2: {} times of {} files", modified.len(), header.files.len()));
        }
        let files = header.files.iter().map(|file| Path::new(&file.path).into()).collect();
        let (sketches, few) = (header.sketches, header.few.unwrap_or_default());
        Ok(Part { path: path.to_path_buf(), lines, files, modified, sketches, few })
    }

    /// Visits the documents: `None` for a malformed one. Positions count from `first`.
    pub(super) fn visit<F: Fingerprint>(
        mut self,
        first: u64,
        mut visitor: impl FnMut(Option<Item<F>>) -> simstore::Result<()>,
    ) -> simstore::Result<()> {
        for number in 0.. {
            let parsed = |line| parse(line, number, &self.files, self.sketches, self.few);
            let item = match self.lines.next().and_then(parsed) {
                Ok(Parsed::End) => return Ok(()),
                Ok(Parsed::Bad) => None,
                Ok(Parsed::Item(item)) => Some(Item { position: first + number, ..item }),
                Err(reason) => {
                    return Err(Error::Refused(format!(
                        "{}: line {}: {reason}; remove this file, and it is made again",
                        self.path.display(),
                        number + 3
                    )));
                }
            };
            visitor(item)?;
        }
        Ok(())
    }
}

/// A line after the first two.
enum Parsed<F> {
    Item(Item<F>),
    Bad,
    End,
}

/// Numbers of 64 bits, one after the other.
fn hex(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number:016x}")).collect()
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
    /// The sketches of a document, where there have to be so many, and the features of those that have `few` at most.
    fn sketched(&self, count: usize, few: u32) -> Result<Option<Box<Sketched>>, String> {
        let Some(features) = self.features else { return Ok(None) };
        let number = |digits: &Option<String>| parse_hex(digits.as_deref().unwrap_or_default());
        let (sketches, sum) = (number(&self.sketches)?, number(&self.sum)?);
        let members = self.members.as_deref().map(parse_hex).transpose()?;
        let of_few = members
            .as_ref()
            .is_none_or(|members| members.len() == features as usize && members.is_sorted_by(|a, b| a < b));
        if sketches.len() != count || sum.len() != 1 || (features <= few) != members.is_some() || !of_few {
            return Err(format!(
                "expected {count} sketches, a sum, and the features where they are {few} or fewer"
            ));
        }
        Ok(Some(Box::new(Sketched { sketches, features, sum: sum[0], members })))
    }
}

fn parse<F: Fingerprint>(
    line: &[u8],
    number: u64,
    files: &[Arc<Path>],
    sketches: Option<usize>,
    few: u32,
) -> Result<Parsed<F>, String> {
    if line == b"null" {
        return Ok(Parsed::Bad);
    }
    if let Ok(End { end }) = serde_json::from_slice(line) {
        if end != number {
            return Err(format!("the end of {end} documents after {number}"));
        }
        return Ok(Parsed::End);
    }
    let line: DocumentLine<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let sketched = match sketches {
        Some(count) => line.sketched(count, few)?,
        None => None,
    };
    let fingerprint = line.fingerprint.as_deref().map(F::parse_hex).transpose();
    Ok(Parsed::Item(Item {
        id: match line.id {
            LineId::Number(number) => DocumentId::Number(number),
            LineId::Name(name) => DocumentId::Name(name.into_owned()),
        },
        fingerprint: fingerprint.map_err(|error| error.to_string())?,
        features: line.features,
        sketched,
        text_bytes: line.text_bytes,
        replaced: line.replaced,
        extra: line.extra,
        checksum: u64::from_str_radix(&line.check, 16).map_err(|error| format!("check: {error}"))?,
        position: 0,
        path: files.get(line.file).cloned().ok_or("no such file")?,
        line: line.line,
        has_id: true,
    }))
}
