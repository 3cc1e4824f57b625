//! Reads web archives: WARC files, and WET files with the texts of pages.

use simstore::error::did_you_mean;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use crate::bytes::compression::Compression;
use crate::bytes::encoding::{self, Encoding};
use crate::bytes::input::Input;
use crate::bytes::length_limit::LengthLimit;
use crate::formats::detect::HEAD_BYTES;
use crate::formats::fields::{ParsedDocument, format_names};
use crate::formats::http::{self, HttpResponse};
use crate::formats::{archive, binary};
use crate::{DocumentId, DocumentOptions, ReadDiagnostic};
use simstore::error::excerpt;
use simstore::{Error, Result};

/// Maximum size of a record's header block, in bytes. Also the number of content bytes that are examined to decide
/// whether the record is a document.
const MAX_HEADER_BYTES: usize = 1 << 16;
const RECORD_END: &[u8] = b"\r\n\r\n";

/// Record types of the WARC standard.
const RECORD_TYPES: [&str; 8] =
    ["warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"];
/// Maximum length of the first line of a record, such as `WARC/1.0`, in bytes.
const MAX_FIRST_LINE_BYTES: usize = 16;

/// The headers of a WARC record.
struct WarcHeaders<'b>(http::HeaderFields<'b>);

impl<'b> WarcHeaders<'b> {
    /// Parses a header block, which ends with a blank line. Also returns the value of `Content-Length`: the length of
    /// the content after the header block, in bytes.
    fn parse(bytes: &'b [u8]) -> Result<(WarcHeaders<'b>, u64), String> {
        let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
        let (first, rest) = bytes.split_at(end);
        if !first.starts_with(b"WARC/") {
            return Err("expected the headers of a WARC record".to_owned());
        }
        let headers = WarcHeaders(http::HeaderFields::parse(rest).0);
        let length = headers.get("content-length").ok_or("a WARC record without Content-Length")?;
        let is_length = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|_| is_length);
        let length = length.ok_or("a WARC record whose Content-Length is not a number of bytes")?;
        Ok((headers, length))
    }

    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(name)
    }

    fn is_http(&self) -> bool {
        self.get("content-type").is_some_and(|value| http::media_type(&value).0 == "application/http")
    }

    /// Returns the type of the record, or `other` if the standard does not define it.
    fn record_type(&self) -> &'static str {
        let found = self.get("warc-type").unwrap_or_default();
        RECORD_TYPES.into_iter().find(|kind| *kind == found).unwrap_or("other")
    }

    /// Whether the record is a document, according to its headers and `block`, the start of its content.
    fn is_document(&self, block: &[u8]) -> bool {
        match self.get("warc-type").as_deref() {
            Some("conversion" | "resource") => {
                http::is_text(&http::media_type(&self.get("content-type").unwrap_or_default()).0)
            }
            Some("response") if self.is_http() => HttpResponse::parse(block).is_none_or(|response| {
                let content_type = response.header("content-type").unwrap_or_default();
                (200..300).contains(&response.status) && http::is_text(&http::media_type(&content_type).0)
            }),
            _ => false,
        }
    }
}

/// Parses the document in a WARC record, whose header block has `header_bytes` bytes. Returns the reason if the record
/// is malformed.
pub(crate) fn parse(
    bytes: &[u8],
    header_bytes: usize,
    options: &DocumentOptions,
) -> Result<ParsedDocument<'static>, String> {
    let (headers, _) = WarcHeaders::parse(&bytes[..header_bytes])?;
    let block = &bytes[header_bytes..bytes.len() - RECORD_END.len()];
    let id_field = options.id_field.as_deref().unwrap_or("WARC-Target-URI");
    let id = headers.get(id_field).ok_or_else(|| {
        let names = headers.0.names();
        let meant = did_you_mean(id_field, &names);
        format!("no id header `{}`{meant}; the record has {}", excerpt(id_field), format_names(&names))
    })?;
    // Some writers enclose the id in angle brackets.
    let id = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(&id);
    let (body, content_type) = if headers.is_http() {
        let response = HttpResponse::parse(block).ok_or("expected an HTTP response")?;
        (response.body(options)?, response.header("content-type").map(Cow::into_owned))
    } else {
        (block.to_vec(), headers.get("content-type").map(Cow::into_owned))
    };
    let charset = content_type.and_then(|content_type| http::media_type(&content_type).1);
    check_text(&body, options, charset.as_deref())?;
    let ((text, replacements), detected_encoding) =
        encoding::decode_text(&body, options.encoding, charset.as_deref());
    let extra = options.extra_field.as_deref().and_then(|name| headers.get(name)).map(Cow::into_owned);
    let text = text.into_owned().into();
    let id = DocumentId::from_name(id.to_owned())?;
    Ok(ParsedDocument { id, text, replacements, extra, has_position_id: false, detected_encoding })
}

/// Returns the reason if a page is binary data, such as an image or an archive, according to its first bytes.
fn check_text(body: &[u8], options: &DocumentOptions, charset: Option<&str>) -> Result<(), String> {
    let head = &body[..body.len().min(HEAD_BYTES)];
    let packed = Compression::from_head(head);
    if packed != Compression::None {
        return Err(format!("the page is compressed by {packed}, but its headers do not say so"));
    }
    if archive::is_zip(head) {
        return Err(
            "the page looks like a ZIP archive, which is not supported in web archives: unpack it first"
                .to_owned(),
        );
    }
    let is_wide = charset.is_some_and(|charset| charset.to_ascii_lowercase().starts_with("utf-16"));
    let is_text = is_wide || options.encoding != Encoding::AUTO;
    if encoding::utf16_head_to_utf8(head).is_none()
        && let Some(reason) = binary::refusal(head, is_text)
    {
        return Err(format!("the page {reason}"));
    }
    Ok(())
}

/// Reader of the records of a web archive that are documents. It skips all other records.
#[derive(Debug)]
pub(crate) struct WarcPages {
    input: Input,
    /// Number of decompressed bytes read so far.
    offset: u64,
    /// Number of records read so far.
    records: u64,
    /// First line of the next record, if it was already read.
    first_line: Vec<u8>,
    limit: LengthLimit,
}

/// A WARC record with a document, as it is in the file.
#[derive(Debug)]
pub(crate) struct WarcPage {
    /// Number of the record in the file, from 1.
    pub(crate) number: u64,
    pub bytes: Vec<u8>,
    /// Length of the header block, in bytes.
    pub(crate) header_bytes: usize,
}

impl WarcPages {
    pub(crate) fn new(input: Input, limit: LengthLimit) -> WarcPages {
        WarcPages { input, offset: 0, records: 0, first_line: Vec::new(), limit }
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        self.input.path()
    }

    /// Reads the next record that is a document; returns `None` at the end of the file.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a document that is too long, and for a record that is malformed, damaged, or
    /// truncated. After the error, reading continues with the next record that is found.
    pub(crate) fn read(&mut self) -> Result<Option<WarcPage>> {
        loop {
            // Errors report the number of the next record.
            self.input.set_line(self.records + 1);
            let start = self.offset;
            match self.is_at_end() {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error) => return Err(self.skip_record(start, &error, true)),
            }
            let page = self.read_record()?;
            self.records += 1;
            let Some((bytes, header_bytes)) = page else { continue };
            return Ok(Some(WarcPage { number: self.records, bytes, header_bytes }));
        }
    }

    fn is_at_end(&mut self) -> Result<bool> {
        if !self.first_line.is_empty() {
            return Ok(false);
        }
        while self.fill()?.first().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
            self.consume(1);
        }
        Ok(self.fill()?.is_empty())
    }

    /// Reads a record. Returns the record's bytes, and the length of its header block; `None` if the record is not a
    /// document.
    fn read_record(&mut self) -> Result<Option<(Vec<u8>, usize)>> {
        let mut bytes = std::mem::take(&mut self.first_line);
        let start = self.offset - bytes.len() as u64;
        while !bytes.ends_with(b"\n\r\n") && !bytes.ends_with(b"\n\n") {
            let buffer = match self.fill() {
                Ok(buffer) => buffer,
                Err(error) => return Err(self.skip_record(start, &error, true)),
            };
            let line = buffer.iter().position(|&byte| byte == b'\n').map_or(buffer.len(), |end| end + 1);
            bytes.extend_from_slice(&buffer[..line]);
            self.consume(line);
            if line == 0 {
                return Err(self.malformed(start, "the file ends within the headers of this record", false));
            }
            if bytes.len() > MAX_HEADER_BYTES {
                let is_at_line = bytes.ends_with(b"\n");
                return Err(self.malformed(start, "expected the headers of a WARC record", is_at_line));
            }
        }
        let header_bytes = bytes.len();
        let length = match WarcHeaders::parse(&bytes) {
            Ok((_, length)) => length,
            Err(reason) => return Err(self.malformed(start, &reason, true)),
        };
        let mut read_rest = || {
            let mut missing = self.read_block(length.min(MAX_HEADER_BYTES as u64), Some(&mut bytes))?;
            let headers = WarcHeaders::parse(&bytes[..header_bytes]).map(|(headers, _)| headers).ok();
            let is_document =
                headers.as_ref().is_some_and(|headers| headers.is_document(&bytes[header_bytes..]));
            let kind = headers.map_or("other", |headers| headers.record_type());
            let is_too_long = length > self.limit.bytes as u64;
            let kept = if is_document && !is_too_long { Some(&mut bytes) } else { None };
            missing += self.read_block(length.saturating_sub(MAX_HEADER_BYTES as u64), kept)?;
            Ok((missing, (!is_document).then_some(kind), is_too_long))
        };
        let (missing, other_kind, is_too_long) = match read_rest() {
            Ok(read) => read,
            Err(error) => return Err(self.skip_record(start, &error, true)),
        };
        if missing > 0 {
            let reason = format!("the file ends within this record, which lacks {missing} of {length} bytes");
            return Err(self.malformed(start, &reason, false));
        }
        if let Some(kind) = other_kind {
            self.input.add_diagnostic(ReadDiagnostic::WarcRecordWithoutText(kind));
            return Ok(None);
        }
        if is_too_long {
            self.records += 1;
            return Err(self.input.too_long(self.limit));
        }
        bytes.extend_from_slice(RECORD_END);
        Ok(Some((bytes, header_bytes)))
    }

    /// Reads `length` bytes. Appends them to `kept`, or drops them if `kept` is `None`. Returns the number of bytes
    /// that are missing because the file ends.
    fn read_block(&mut self, length: u64, mut kept: Option<&mut Vec<u8>>) -> Result<u64> {
        let mut missing = length;
        while missing > 0 {
            let buffer = self.fill()?;
            let read = buffer.len().min(usize::try_from(missing).unwrap_or(usize::MAX));
            if read == 0 {
                break;
            }
            if let Some(bytes) = &mut kept {
                bytes.extend_from_slice(&buffer[..read]);
            }
            self.consume(read);
            missing -= read as u64;
        }
        Ok(missing)
    }

    fn fill(&mut self) -> Result<&[u8]> {
        self.input.fill_resuming()
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.offset += bytes as u64;
    }

    /// Skips the rest of a malformed record, which begins at offset `start`. Returns the error for the record, with
    /// this `reason`. `is_at_line` says whether the input is at the start of a line.
    fn malformed(&mut self, start: u64, reason: &str, is_at_line: bool) -> Error {
        let error = self.input.line_error(reason.to_owned());
        self.skip_record(start, &error, is_at_line)
    }

    /// Skips the rest of a record that begins at offset `start`. Returns `error` with the number of skipped bytes
    /// added to its message. `is_at_line` says whether the input is at the start of a line.
    fn skip_record(&mut self, start: u64, error: &Error, is_at_line: bool) -> Error {
        let Error::BadInput { reason, .. } = error else { return self.input.line_error(error.to_string()) };
        let is_found = self.find_record(is_at_line);
        self.records += 1;
        let skipped = self.offset - self.first_line.len() as u64 - start;
        let until = if is_found { "up to the next record" } else { "up to the end of the file" };
        self.input.line_error(format!(
            "{reason}; the record starts at byte {start} of the decompressed file; skipped {skipped} bytes, {until}"
        ))
    }

    /// Skips to the next line that begins a record, and reads this line. Returns false at the end of the file.
    /// `is_at_line` says whether the input is at the start of a line.
    fn find_record(&mut self, mut is_at_line: bool) -> bool {
        let mut line = Vec::new();
        loop {
            let (read, is_end_of_line) = match self.fill() {
                Ok([]) => return false,
                Ok(buffer) => {
                    let end = buffer.iter().position(|&byte| byte == b'\n');
                    let read = end.map_or(buffer.len(), |end| end + 1);
                    if line.len() < MAX_FIRST_LINE_BYTES {
                        line.extend_from_slice(&buffer[..read.min(MAX_FIRST_LINE_BYTES)]);
                    }
                    (read, end.is_some())
                }
                // The next member usually begins with a record.
                Err(_) => {
                    line.clear();
                    is_at_line = true;
                    continue;
                }
            };
            self.consume(read);
            if !is_end_of_line {
                continue;
            }
            if is_at_line
                && line.ends_with(b"\n")
                && (line.starts_with(b"WARC/1.") || line.starts_with(b"WARC/0."))
            {
                self.first_line = line;
                return true;
            }
            line.clear();
            is_at_line = true;
        }
    }
}
