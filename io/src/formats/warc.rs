//! Web archives: WARC, and WET with the texts of pages.

use simstore::error::did_you_mean;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use crate::bytes::compression::Compression;
use crate::bytes::encoding::{self, Encoding};
use crate::bytes::input::Input;
use crate::bytes::limit::Longest;
use crate::formats::detect::HEAD_BYTES;
use crate::formats::fields::{Parsed, listed};
use crate::formats::http::{self, Response};
use crate::formats::{archive, binary};
use crate::{DocumentId, DocumentOptions, ReadNote};
use simstore::error::excerpt;
use simstore::{Error, Result};

/// Largest header block of a record in bytes. As many bytes of its content are examined to detect a document.
const HEADER_BYTES: usize = 1 << 16;
const RECORD_END: &[u8] = b"\r\n\r\n";

/// Record types of the standard.
const KINDS: [&str; 8] =
    ["warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"];
/// Longest first line of a record, in bytes.
const FIRST_LINE_BYTES: usize = 16;

/// The headers of a record.
struct Headers<'b>(http::Headers<'b>);

impl<'b> Headers<'b> {
    /// Parses a header block with the blank line at its end. Also returns the length of the content that follows.
    fn parse(bytes: &'b [u8]) -> Result<(Headers<'b>, u64), String> {
        let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
        let (first, rest) = bytes.split_at(end);
        if !first.starts_with(b"WARC/") {
            return Err("expected the headers of a WARC record".to_owned());
        }
        let headers = Headers(http::Headers::parse(rest).0);
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

    /// Type of the record, or `other` if it is not in the standard.
    fn kind(&self) -> &'static str {
        let found = self.get("warc-type").unwrap_or_default();
        KINDS.into_iter().find(|kind| *kind == found).unwrap_or("other")
    }

    /// Whether the record is a document, by its headers and the start of its content.
    fn is_document(&self, block: &[u8]) -> bool {
        match self.get("warc-type").as_deref() {
            Some("conversion" | "resource") => {
                http::is_text(&http::media_type(&self.get("content-type").unwrap_or_default()).0)
            }
            Some("response") if self.is_http() => Response::parse(block).is_none_or(|response| {
                let content_type = response.header("content-type").unwrap_or_default();
                (200..300).contains(&response.status) && http::is_text(&http::media_type(&content_type).0)
            }),
            _ => false,
        }
    }
}

/// Parses a record. Returns the reason if it is malformed.
pub(crate) fn parse(
    bytes: &[u8],
    header_bytes: usize,
    options: &DocumentOptions,
) -> Result<Parsed<'static>, String> {
    let (headers, _) = Headers::parse(&bytes[..header_bytes])?;
    let block = &bytes[header_bytes..bytes.len() - RECORD_END.len()];
    let id_field = options.id_field.as_deref().unwrap_or("WARC-Target-URI");
    let id = headers.get(id_field).ok_or_else(|| {
        let names = headers.0.names();
        let meant = did_you_mean(id_field, &names);
        format!("no id header `{}`{meant}; the record has {}", excerpt(id_field), listed(&names))
    })?;
    // Some writers put the id in brackets.
    let id = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(&id);
    let (body, content_type) = if headers.is_http() {
        let response = Response::parse(block).ok_or("expected an HTTP response")?;
        (response.body(options)?, response.header("content-type").map(Cow::into_owned))
    } else {
        (block.to_vec(), headers.get("content-type").map(Cow::into_owned))
    };
    let charset = content_type.and_then(|content_type| http::media_type(&content_type).1);
    check_text(&body, options, charset.as_deref())?;
    let ((text, replaced), guessed) = encoding::decode_text(&body, options.encoding, charset.as_deref());
    let extra = options.extra_field.as_deref().and_then(|name| headers.get(name)).map(Cow::into_owned);
    let text = text.into_owned().into();
    Ok(Parsed { id: DocumentId::name(id.to_owned())?, text, replaced, extra, is_placed: false, guessed })
}

/// Refuses a page whose first bytes are binary data, such as a picture or an archive. Files are refused by the same
/// rules.
fn check_text(body: &[u8], options: &DocumentOptions, charset: Option<&str>) -> Result<(), String> {
    let head = &body[..body.len().min(HEAD_BYTES)];
    let packed = Compression::of_head(head);
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
    if encoding::utf8_head(head).is_none()
        && let Some(reason) = binary::refusal(head, is_text)
    {
        return Err(format!("the page {reason}"));
    }
    Ok(())
}

/// Reader of the documents in a web archive. It skips other records.
#[derive(Debug)]
pub(crate) struct Pages {
    input: Input,
    /// Bytes and records read so far.
    offset: u64,
    records: u64,
    /// First line of the next record, if already read.
    first_line: Vec<u8>,
    longest: Longest,
}

/// A record as in the file.
#[derive(Debug)]
pub(crate) struct Page {
    /// From 1.
    pub(crate) number: u64,
    pub bytes: Vec<u8>,
    /// Length of the headers, in bytes.
    pub(crate) header_bytes: usize,
}

impl Pages {
    pub(crate) fn new(input: Input, longest: Longest) -> Pages {
        Pages { input, offset: 0, records: 0, first_line: Vec::new(), longest }
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        self.input.path()
    }

    /// Reads the next document.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a document that is too long, and for a record that is malformed, damaged or cut off.
    /// After the error, reading continues with the next record found.
    pub(crate) fn read(&mut self) -> Result<Option<Page>> {
        loop {
            // Errors have the number of the next record.
            self.input.set_line(self.records + 1);
            let start = self.offset;
            match self.is_at_end() {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error) => return Err(self.pass_over(start, &error, true)),
            }
            let page = self.read_record()?;
            self.records += 1;
            let Some((bytes, header_bytes)) = page else { continue };
            return Ok(Some(Page { number: self.records, bytes, header_bytes }));
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

    /// Reads a record. Returns its bytes and the length of its headers; `None` if it is not a document.
    fn read_record(&mut self) -> Result<Option<(Vec<u8>, usize)>> {
        let mut bytes = std::mem::take(&mut self.first_line);
        let start = self.offset - bytes.len() as u64;
        while !bytes.ends_with(b"\n\r\n") && !bytes.ends_with(b"\n\n") {
            let buffer = match self.fill() {
                Ok(buffer) => buffer,
                Err(error) => return Err(self.pass_over(start, &error, true)),
            };
            let line = buffer.iter().position(|&byte| byte == b'\n').map_or(buffer.len(), |end| end + 1);
            bytes.extend_from_slice(&buffer[..line]);
            self.consume(line);
            if line == 0 {
                return Err(self.malformed(start, "the file ends within the headers of this record", false));
            }
            if bytes.len() > HEADER_BYTES {
                let is_at_line = bytes.ends_with(b"\n");
                return Err(self.malformed(start, "expected the headers of a WARC record", is_at_line));
            }
        }
        let header_bytes = bytes.len();
        let length = match Headers::parse(&bytes) {
            Ok((_, length)) => length,
            Err(reason) => return Err(self.malformed(start, &reason, true)),
        };
        let mut read_rest = || {
            let mut missing = self.read_block(length.min(HEADER_BYTES as u64), Some(&mut bytes))?;
            let headers = Headers::parse(&bytes[..header_bytes]).map(|(headers, _)| headers).ok();
            let is_document =
                headers.as_ref().is_some_and(|headers| headers.is_document(&bytes[header_bytes..]));
            let kind = headers.map_or("other", |headers| headers.kind());
            let is_too_long = length > self.longest.bytes as u64;
            let kept = if is_document && !is_too_long { Some(&mut bytes) } else { None };
            missing += self.read_block(length.saturating_sub(HEADER_BYTES as u64), kept)?;
            Ok((missing, (!is_document).then_some(kind), is_too_long))
        };
        let (missing, other_kind, is_too_long) = match read_rest() {
            Ok(read) => read,
            Err(error) => return Err(self.pass_over(start, &error, true)),
        };
        if missing > 0 {
            let reason = format!("the file ends within this record, which lacks {missing} of {length} bytes");
            return Err(self.malformed(start, &reason, false));
        }
        if let Some(kind) = other_kind {
            self.input.note(ReadNote::WarcRecord(kind));
            return Ok(None);
        }
        if is_too_long {
            self.records += 1;
            return Err(self.input.too_long(self.longest));
        }
        bytes.extend_from_slice(RECORD_END);
        Ok(Some((bytes, header_bytes)))
    }

    /// Reads or skips bytes. Returns the number of missing bytes.
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
        self.input.fill_on()
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.offset += bytes as u64;
    }

    /// Error for a malformed record. Skips to the next record.
    fn malformed(&mut self, start: u64, reason: &str, is_at_line: bool) -> Error {
        let error = self.input.bad(reason.to_owned());
        self.pass_over(start, &error, is_at_line)
    }

    /// Skips to the next record, and adds the number of skipped bytes to an error.
    fn pass_over(&mut self, start: u64, error: &Error, is_at_line: bool) -> Error {
        let Error::BadInput { reason, .. } = error else { return self.input.bad(error.to_string()) };
        let is_found = self.find_record(is_at_line);
        self.records += 1;
        let passed = self.offset - self.first_line.len() as u64 - start;
        let until = if is_found { "up to the next record" } else { "up to the end of the file" };
        self.input.bad(format!(
            "{reason}; the record starts at byte {start} of the decompressed file; skipped {passed} bytes, {until}"
        ))
    }

    /// Finds the next line that begins a record. `is_at_line` says whether the input is at the start of a line.
    fn find_record(&mut self, mut is_at_line: bool) -> bool {
        let mut line = Vec::new();
        loop {
            let (read, is_end_of_line) = match self.fill() {
                Ok([]) => return false,
                Ok(buffer) => {
                    let end = buffer.iter().position(|&byte| byte == b'\n');
                    let read = end.map_or(buffer.len(), |end| end + 1);
                    if line.len() < FIRST_LINE_BYTES {
                        line.extend_from_slice(&buffer[..read.min(FIRST_LINE_BYTES)]);
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
