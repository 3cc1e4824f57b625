//! Web archives: WARC, and WET, which holds the texts of pages.

use std::path::Path;
use std::sync::Arc;

use crate::corpus::encoding;
use crate::corpus::fields::Parsed;
use crate::corpus::http::{self, Response};
use crate::corpus::input::Input;
use crate::corpus::{DocumentId, DocumentOptions};
use crate::error::{Error, Result};

/// The longest header block of a record, and what is looked at of a block to tell whether it is a document.
const HEADER_BYTES: usize = 1 << 16;
const RECORD_END: &[u8] = b"\r\n\r\n";

/// The headers of a record.
struct Headers<'b>(Vec<(&'b str, &'b [u8])>);

impl<'b> Headers<'b> {
    /// Parses a header block, with the blank line at its end; with it the length of what follows.
    fn parse(bytes: &'b [u8]) -> Result<(Headers<'b>, u64), String> {
        let Ok((_, (_, headers, length))) = warc::parser::headers(bytes) else {
            return Err("expected the headers of a WARC record".to_owned());
        };
        let headers = Headers(headers);
        headers.get("content-length").ok_or("a WARC record without Content-Length")?;
        Ok((headers, length as u64))
    }

    fn get(&self, name: &str) -> Option<&'b str> {
        let (_, value) = self.0.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok().map(str::trim)
    }

    fn is_http(&self) -> bool {
        self.get("content-type").is_some_and(|value| http::media_type(value).0 == "application/http")
    }

    /// Whether it is the record of a document, by its headers and the start of its block.
    fn is_document(&self, block: &[u8]) -> bool {
        match self.get("warc-type") {
            Some("conversion" | "resource") => {
                http::is_text(&http::media_type(self.get("content-type").unwrap_or_default()).0)
            }
            Some("response") if self.is_http() => Response::parse(block).is_none_or(|response| {
                let content_type = response.header("content-type").unwrap_or_default();
                (200..300).contains(&response.status) && http::is_text(&http::media_type(content_type).0)
            }),
            _ => false,
        }
    }
}

/// Parses a record; a reason if it is malformed.
pub(crate) fn parse(bytes: &[u8], header_bytes: usize, options: &DocumentOptions) -> Result<Parsed, String> {
    let (headers, _) = Headers::parse(&bytes[..header_bytes])?;
    let block = &bytes[header_bytes..bytes.len() - RECORD_END.len()];
    let id_field = options.id_field.as_deref().unwrap_or("WARC-Target-URI");
    let id = headers.get(id_field).ok_or_else(|| format!("no id header `{id_field}`"))?;
    // Some writers put it between brackets.
    let id = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id);
    let (body, content_type) = if headers.is_http() {
        let response = Response::parse(block).ok_or("expected a response of HTTP")?;
        (response.body(options.max_bytes)?, response.header("content-type"))
    } else {
        (block.to_vec(), headers.get("content-type"))
    };
    let charset = content_type.and_then(|content_type| http::media_type(content_type).1);
    let (text, replaced) = encoding::decode_text(body, options.encoding, charset.as_deref());
    let extra = options.extra_field.as_deref().and_then(|name| headers.get(name)).map(str::to_owned);
    Ok(Parsed { id: DocumentId::name(id.to_owned())?, text, replaced, extra })
}

/// The documents of a web archive, one after the other; other records are passed over.
#[derive(Debug)]
pub(crate) struct Pages {
    input: Input,
    /// Bytes and records read so far.
    offset: u64,
    records: u64,
    max_bytes: usize,
}

/// A record as it stands.
#[derive(Debug)]
pub(crate) struct Page {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    /// How many of them are headers.
    pub(crate) header_bytes: usize,
}

impl Pages {
    pub(crate) fn new(input: Input, max_bytes: usize) -> Pages {
        Pages { input, offset: 0, records: 0, max_bytes }
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        self.input.path()
    }

    /// Reads the next document.
    ///
    /// # Errors
    /// [`Error::BadInput`] for one that is too long; and, after which there is nothing more, for
    /// a record that is malformed or cut off, and for what cannot be read.
    pub(crate) fn read(&mut self) -> Result<Option<Page>> {
        loop {
            // What cannot be read is in the next record.
            self.input.set_line(self.records);
            while self.fill()?.first().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
                self.consume(1);
            }
            if self.fill()?.is_empty() {
                return Ok(None);
            }
            let page = self.read_record()?;
            self.records += 1;
            let Some((bytes, header_bytes)) = page else { continue };
            return Ok(Some(Page { number: self.records, bytes, header_bytes }));
        }
    }

    /// Reads a record, and says how many of its bytes are headers; `None` if it is no document.
    fn read_record(&mut self) -> Result<Option<(Vec<u8>, usize)>> {
        let start = self.offset;
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\n\r\n") && !bytes.ends_with(b"\n\n") {
            let buffer = self.fill()?;
            let line = buffer.iter().position(|&byte| byte == b'\n').map_or(buffer.len(), |end| end + 1);
            bytes.extend_from_slice(&buffer[..line]);
            self.consume(line);
            if line == 0 {
                return Err(self.end(start, "the file ends within the headers of this record"));
            }
            if bytes.len() > HEADER_BYTES {
                return Err(self.end(start, "expected the headers of a WARC record"));
            }
        }
        let header_bytes = bytes.len();
        let length = match Headers::parse(&bytes) {
            Ok((_, length)) => length,
            Err(reason) => return Err(self.end(start, &reason)),
        };
        let mut missing = self.read_block(length.min(HEADER_BYTES as u64), Some(&mut bytes))?;
        let is_document = Headers::parse(&bytes[..header_bytes])
            .is_ok_and(|(headers, _)| headers.is_document(&bytes[header_bytes..]));
        let is_too_long = length > self.max_bytes as u64;
        let kept = if is_document && !is_too_long { Some(&mut bytes) } else { None };
        missing += self.read_block(length.saturating_sub(HEADER_BYTES as u64), kept)?;
        if missing > 0 {
            let reason = format!("the file ends within this record, which lacks {missing} of {length} bytes");
            return Err(self.end(start, &reason));
        }
        if !is_document {
            return Ok(None);
        }
        if is_too_long {
            self.records += 1;
            self.input.set_line(self.records);
            return Err(self.input.too_long(self.max_bytes));
        }
        bytes.extend_from_slice(RECORD_END);
        Ok(Some((bytes, header_bytes)))
    }

    /// Reads or skips bytes, and returns how many are not there.
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
        self.input.fill()
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.offset += bytes as u64;
    }

    /// The error of a record after which nothing can be found.
    fn end(&mut self, start: u64, reason: &str) -> Error {
        self.input.end();
        self.input.set_line(self.records + 1);
        self.input.bad(format!("{reason}; it starts at byte {start}, after decompression"))
    }
}
