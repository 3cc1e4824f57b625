//! Parses HTTP responses in web archives, and decodes their bodies.

use std::borrow::Cow;
use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::DocumentOptions;
use crate::bytes::compression::Compression;

/// First byte of a Brotli stream whose window may be 1 GiB. HTTP (RFC 7932) allows windows of at most 16 MiB.
const BROTLI_LARGE_WINDOW_BYTE: u8 = 0x11;
const BROTLI_BUFFER_BYTES: usize = 4096;
/// Maximum length in bytes of the line that contains a chunk's length, before each chunk of a chunked body.
const MAX_CHUNK_LINE_BYTES: usize = 1024;

/// Headers of an HTTP response or of a WARC record: names and trimmed values.
#[derive(Debug)]
pub(crate) struct HeaderFields<'b>(Vec<(&'b [u8], Cow<'b, [u8]>)>);

impl<'b> HeaderFields<'b> {
    /// Parses header lines up to the first empty line. Also returns the bytes after the empty line. A line that begins
    /// with a blank continues the header on the previous line. A line without a colon is ignored, together with the
    /// lines that continue it.
    pub(crate) fn parse(mut bytes: &'b [u8]) -> (HeaderFields<'b>, &'b [u8]) {
        let mut headers: Vec<(&[u8], Cow<'_, [u8]>)> = Vec::new();
        let mut is_header = false;
        while !bytes.is_empty() {
            let (header, rest) = split_line(bytes);
            bytes = rest;
            if header.is_empty() {
                break;
            }
            if matches!(header[0], b' ' | b'\t') {
                if let Some((_, value)) = headers.last_mut().filter(|_| is_header) {
                    let value = value.to_mut();
                    value.push(b' ');
                    value.extend_from_slice(header.trim_ascii());
                }
                continue;
            }
            let colon = header.iter().position(|&byte| byte == b':');
            is_header = colon.is_some();
            if let Some(colon) = colon {
                headers.push((header[..colon].trim_ascii(), Cow::Borrowed(header[colon + 1..].trim_ascii())));
            }
        }
        (HeaderFields(headers), bytes)
    }

    /// Returns the value of the first header with this name, ignoring case. A value that is not UTF-8 is decoded
    /// as Latin-1.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.all(name).next()
    }

    /// Returns the values of all headers with this name, in order, decoded like [`get`](Self::get).
    fn all<'h>(&'h self, name: &str) -> impl Iterator<Item = Cow<'h, str>> {
        let has_name =
            move |(found, _): &&(&[u8], Cow<'_, [u8]>)| found.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().filter(has_name).map(|(_, value)| decode_header(value.trim_ascii()))
    }

    /// Returns the names of all headers in order, for an error message that lists the available fields.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| decode_header(name).into_owned()).collect()
    }
}

fn decode_header(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| encoding_rs::mem::decode_latin1(bytes), Cow::Borrowed)
}

/// An HTTP response whose body is not yet decoded.
#[derive(Debug)]
pub(crate) struct HttpResponse<'b> {
    pub(crate) status: u16,
    headers: HeaderFields<'b>,
    body: &'b [u8],
}

impl<'b> HttpResponse<'b> {
    /// Parses the status line and the headers of a response. Returns `None` if the bytes do not begin with a status
    /// line. A missing body counts as empty.
    pub(crate) fn parse(bytes: &'b [u8]) -> Option<HttpResponse<'b>> {
        let (first, rest) = split_line(bytes);
        let mut words = first.strip_prefix(b"HTTP/")?.split(|&byte| byte == b' ').skip(1);
        let status = std::str::from_utf8(words.find(|word| !word.is_empty())?).ok()?.parse().ok()?;
        let (headers, body) = HeaderFields::parse(rest);
        Some(HttpResponse { status, headers, body })
    }

    /// Returns the value of the first header with this name, ignoring case.
    pub(crate) fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        self.headers.get(name)
    }

    /// Decodes the body: joins its chunks, and decompresses it. Returns the reason if the body is damaged or too
    /// long.
    ///
    /// Many archives contain bodies that were already decoded, although the headers still name the coding. So a
    /// body is returned unchanged if it does not look chunked or compressed.
    pub(crate) fn body(&self, options: &DocumentOptions) -> Result<Vec<u8>, String> {
        let content = self.headers.all("content-encoding");
        let values: Vec<_> = content.chain(self.headers.all("transfer-encoding")).collect();
        let codings = values.iter().flat_map(|value| value.split(','));
        let mut body = Cow::Borrowed(self.body);
        // The last listed coding was applied last.
        for coding in codings.rev() {
            if let Some(decoded) = decode_coding(coding.trim(), &body, options)? {
                body = Cow::Owned(decoded);
            }
        }
        Ok(body.into_owned())
    }
}

/// Undoes one coding of a body, such as `chunked` or `gzip`. Returns `None` if the body does not look as if it had
/// this coding. Returns the reason if the body is damaged or too long.
fn decode_coding(coding: &str, body: &[u8], options: &DocumentOptions) -> Result<Option<Vec<u8>>, String> {
    let is = |name: &str| coding.eq_ignore_ascii_case(name);
    let packed = Compression::from_head(body);
    if is("chunked") {
        return Ok(decode_chunks(body));
    }
    if body.is_empty() || coding.is_empty() || is("identity") {
        return Ok(None);
    }
    let unpacked = if is("br") {
        if std::str::from_utf8(body).is_ok() {
            return Ok(None);
        }
        if body[0] & 0x7f == BROTLI_LARGE_WINDOW_BYTE {
            return Err(
                "the page is compressed with a Brotli window size that HTTP does not allow".to_owned()
            );
        }
        decompress(Ok(Box::new(Decompressor::new(body, BROTLI_BUFFER_BYTES))), options)
    } else if is("deflate") {
        if packed == Compression::None && is_plain_text(body) && !is_zlib(body) {
            return Ok(None);
        }
        let zlib = match is_zlib(body) {
            true => decompress(Ok(Box::new(ZlibDecoder::new(body))), options),
            false => Err(DecompressionError::Damaged(String::new())),
        };
        match zlib {
            Err(DecompressionError::Damaged(_)) if is_plain_text(body) => return Ok(None),
            // Some servers omit the zlib header.
            Err(DecompressionError::Damaged(_)) if !is_zlib(body) => {
                decompress(Ok(Box::new(DeflateDecoder::new(body))), options)
            }
            unpacked => unpacked,
        }
    } else if packed != Compression::None {
        decompress(packed.reader(body, options.decompression_memory()), options)
    } else {
        return Ok(None);
    };
    match unpacked {
        Ok(unpacked) => Ok(Some(unpacked)),
        Err(DecompressionError::Damaged(error)) => Err(format!("the page cannot be decompressed: {error}")),
        Err(DecompressionError::TooLong(reason)) => Err(reason),
    }
}

/// Reason why the body of a response cannot be decompressed.
enum DecompressionError {
    Damaged(String),
    TooLong(String),
}

fn decompress(
    reader: io::Result<Box<dyn Read + Send + '_>>,
    options: &DocumentOptions,
) -> Result<Vec<u8>, DecompressionError> {
    let (mut unpacked, limit) = (Vec::new(), options.length_limit());
    let read = reader.and_then(|reader| reader.take(limit.bytes as u64 + 1).read_to_end(&mut unpacked));
    read.map_err(|error| DecompressionError::Damaged(error.to_string()))?;
    if unpacked.len() > limit.bytes {
        return Err(DecompressionError::TooLong(limit.to_string()));
    }
    Ok(unpacked)
}

/// Whether bytes begin with a zlib header, for any window size (RFC 1950).
fn is_zlib(bytes: &[u8]) -> bool {
    let [first, second, ..] = *bytes else { return false };
    first & 0x0f == 8 && first >> 4 <= 7 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

/// Whether bytes are UTF-8 without control characters. This is hardly ever true for compressed data.
fn is_plain_text(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < 0x20 && !byte.is_ascii_whitespace();
    std::str::from_utf8(bytes).is_ok() && !bytes.iter().any(is_control)
}

/// Returns the first line, without its line end, and the bytes after it.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// Parses the line before a chunk, and returns the chunk's length in bytes; `None` if the line is malformed.
fn parse_chunk_length(line: &[u8]) -> Option<usize> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    is_hex.then(|| usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

/// Joins the chunks of a chunked body. Returns `None` if the body does not consist of chunks. The last chunk may be
/// truncated.
fn decode_chunks(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let mut is_first = true;
    while !bytes.is_empty() {
        let head = &bytes[..bytes.len().min(MAX_CHUNK_LINE_BYTES)];
        let Some(end) = head.windows(2).position(|pair| pair == b"\r\n") else {
            // The line with the length may be truncated.
            let is_truncated = !is_first && head.len() == bytes.len() && parse_chunk_length(head).is_some();
            return is_truncated.then_some(body);
        };
        let length = parse_chunk_length(&bytes[..end])?;
        let rest = &bytes[end + 2..];
        if length == 0 {
            let (_, behind) = HeaderFields::parse(rest);
            return behind.trim_ascii().is_empty().then_some(body);
        }
        if length > rest.len() && is_first {
            return None;
        }
        let (chunk, rest) = rest.split_at(length.min(rest.len()));
        body.extend_from_slice(chunk);
        bytes = match rest {
            [] | [b'\r'] => &[],
            _ => rest.strip_prefix(b"\r\n")?,
        };
        is_first = false;
    }
    (!is_first).then_some(body)
}

/// Parses the value of a `Content-Type` header. Returns the media type in lower case, and the value of the parameter
/// `charset`, if there is one.
pub(crate) fn media_type(value: &str) -> (String, Option<String>) {
    let mut parts = value.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (media_type, charset)
}

/// Whether pages of this media type are read as documents: text, HTML, XML, or an empty media type.
pub(crate) fn is_text(media_type: &str) -> bool {
    media_type.is_empty()
        || media_type.starts_with("text/")
        || media_type.ends_with("+xml")
        || matches!(media_type, "application/xml" | "application/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(headers: &str, body: &[u8]) -> Result<Vec<u8>, String> {
        let response = [format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").as_bytes(), body].concat();
        let options = DocumentOptions { max_bytes: 100, ..DocumentOptions::default() };
        HttpResponse::parse(&response).unwrap().body(&options)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        flate2::read::GzEncoder::new(bytes, flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
        packed
    }

    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        ::brotli::CompressorReader::new(bytes, 4096, 5, 22).read_to_end(&mut packed).unwrap();
        packed
    }

    #[test]
    fn heads() {
        let response =
            HttpResponse::parse(b"HTTP/1.0  404 Not Found\nContent-type : a\nX\n\nbody\n\nx").unwrap();
        assert_eq!((response.status, response.body), (404, &b"body\n\nx"[..]));
        assert_eq!(
            (response.header("CONTENT-TYPE").as_deref(), response.header("x").as_deref()),
            (Some("a"), None)
        );
        for bad in ["", "HTTP/1.1", "HTTP/1.1 x", "GET / HTTP/1.1"] {
            assert!(HttpResponse::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn bodies() {
        assert_eq!(body("A: b", b"plain").unwrap(), b"plain");
        let chunks = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        assert_eq!(body("Transfer-Encoding: chunked", chunks).unwrap(), b"abcde");
        assert_eq!(body("Transfer-Encoding: chunked", &chunks[..6]).unwrap(), b"abc");
        assert_eq!(body("Transfer-Encoding: chunked", b"no chunk").unwrap(), b"no chunk");
        assert_eq!(body("Content-Encoding: gzip", &gzip(b"page")).unwrap(), b"page");
        assert_eq!(body("Content-Encoding: gzip", b"page").unwrap(), b"page");
        let mut zlib = Vec::new();
        flate2::read::ZlibEncoder::new(&b"page"[..], flate2::Compression::fast())
            .read_to_end(&mut zlib)
            .unwrap();
        assert_eq!(body("Content-Encoding: deflate", &zlib).unwrap(), b"page");
        let packed = brotli(b"page");
        assert_eq!(body("Content-Encoding: br", &packed).unwrap(), b"page");
        assert_eq!(body("Content-Encoding: br", b"page").unwrap(), b"page");
        assert!(body("Content-Encoding: br", &brotli(&[b'x'; 101])).unwrap_err().contains("limit of 100"));
        for damaged in [&packed[..packed.len() - 2], b"\x80"] {
            let error = body("Content-Encoding: br", damaged).unwrap_err();
            assert!(error.contains("cannot be decompressed"), "{error}");
        }
        assert!(body("Content-Encoding: br", b"\x11\x1e\xff").unwrap_err().contains("window"));
        assert!(body("Content-Encoding: gzip", &gzip(&[b'x'; 101])).unwrap_err().contains("limit of 100"));
        let cut = &gzip(b"page")[..12];
        assert!(body("Content-Encoding: gzip", cut).unwrap_err().contains("cannot be decompressed"));
    }

    #[test]
    fn lines_that_are_folded_or_malformed_hide_no_header() {
        let bytes =
            b"A: b\r\n c\r\n\td\r\nno header\r\n of it\r\n: x\r\nE f: g\r\nUri: \xe9\r\nB:c\r\n\r\nbody";
        let (headers, rest) = HeaderFields::parse(bytes);
        let get = |name: &str| headers.get(name).map(Cow::into_owned);
        assert_eq!((get("a").as_deref(), get("b").as_deref()), (Some("b c d"), Some("c")));
        assert_eq!((get("uri").as_deref(), rest), (Some("\u{e9}"), &b"body"[..]));
    }

    #[test]
    fn bodies_that_only_look_chunked_are_whole() {
        for plain in [
            "5\r\nabc\r\n12\r\nmore\r\n",
            "0\r\n\r\nmore",
            "0\nmore\n",
            "1000\r\na price list\r\n",
            "3\r\nabcdef",
            "3\r\nabc\r\nno length\r\n",
            "+3\r\nabc\r\n0\r\n\r\n",
            "beef\r\nwith rice",
            "fffffffffffffffffffff\r\nx",
        ] {
            assert_eq!(body("Transfer-Encoding: chunked", plain.as_bytes()).unwrap(), plain.as_bytes());
        }
        let trailer = b"3\r\na\r\n\r\n1\r\nb\r\n0\r\nX: y\r\n\r\n";
        assert_eq!(body("Transfer-Encoding: chunked", trailer).unwrap(), b"a\r\nb");
        assert_eq!(body("Transfer-Encoding: chunked", b"1\r\na\r\n5\r\nbc").unwrap(), b"abc");
    }

    #[test]
    fn codings_of_every_kind() {
        let deflate = |bytes: &[u8]| {
            let mut packed = Vec::new();
            flate2::read::DeflateEncoder::new(bytes, flate2::Compression::best())
                .read_to_end(&mut packed)
                .unwrap();
            packed
        };
        let raw = deflate(b"page page page");
        assert_eq!(body("Content-Encoding: deflate", &raw).unwrap(), b"page page page");
        assert!(body("Content-Encoding: deflate", &raw[..raw.len() - 2]).is_err());
        assert_eq!(body("Content-Encoding: deflate", b"page").unwrap(), b"page");
        // Looks like the header of zlib.
        assert_eq!(body("Content-Encoding: deflate", b"8O, page").unwrap(), b"8O, page");
        let mut small = Vec::new();
        flate2::read::ZlibEncoder::new(&b"page"[..], flate2::Compression::best())
            .read_to_end(&mut small)
            .unwrap();
        for window in 0..7_u16 {
            let first = (window << 12) | 0x0800;
            let header = (first..first + 32).find(|header| header % 31 == 0).unwrap();
            small[..2].copy_from_slice(&header.to_be_bytes());
            assert_eq!(body("Content-Encoding: deflate", &small).unwrap(), b"page", "{window}");
        }
        let twice = gzip(&gzip(b"page"));
        assert_eq!(body("Content-Encoding: gzip, gzip", &twice).unwrap(), b"page");
        assert_eq!(body("Content-Encoding: gzip\r\ncontent-encoding: x-gzip", &twice).unwrap(), b"page");
        assert_eq!(body("Transfer-Encoding: gzip", &gzip(b"page")).unwrap(), b"page");
        let packed = gzip(&brotli(b"page"));
        let chunked = [format!("{:x}\r\n", packed.len()).as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat();
        let headers = "Transfer-Encoding: gzip, chunked\r\nContent-Encoding: br";
        assert_eq!(body(headers, &chunked).unwrap(), b"page");
    }

    #[test]
    fn media_types() {
        let of = |value| media_type(value);
        assert_eq!(of("Text/HTML; x=y; Charset=\"GBK\""), ("text/html".to_owned(), Some("GBK".to_owned())));
        assert_eq!(of(""), (String::new(), None));
        assert!(is_text("application/xhtml+xml") && !is_text("image/png"));
    }
}
