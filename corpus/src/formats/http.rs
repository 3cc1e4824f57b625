//! Responses of HTTP, as web archives hold them.

use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::read::ZlibDecoder;

use crate::DocumentOptions;
use crate::bytes::compression::Compression;

/// How a stream of Brotli begins whose window may be a gigabyte; those of HTTP (RFC 7932) have 16 MiB at most.
const LARGE_WINDOW: u8 = 0x11;
const BROTLI_BUFFER: usize = 4096;

/// A response, its body not yet decoded.
#[derive(Debug)]
pub(crate) struct Response<'b> {
    pub(crate) status: u16,
    headers: Vec<(&'b [u8], &'b [u8])>,
    body: &'b [u8],
}

impl<'b> Response<'b> {
    /// Parses the status line and the headers; `None` if it does not start like a response. What is behind the
    /// end of the bytes counts as empty.
    pub(crate) fn parse(bytes: &'b [u8]) -> Option<Response<'b>> {
        let (first, mut rest) = line(bytes);
        let mut words = first.strip_prefix(b"HTTP/")?.split(|&byte| byte == b' ').skip(1);
        let status = std::str::from_utf8(words.find(|word| !word.is_empty())?).ok()?.parse().ok()?;
        let mut headers = Vec::new();
        while !rest.is_empty() {
            let (header, more) = line(rest);
            rest = more;
            if header.is_empty() {
                break;
            }
            if let Some(colon) = header.iter().position(|&byte| byte == b':') {
                headers.push((header[..colon].trim_ascii(), header[colon + 1..].trim_ascii()));
            }
        }
        Some(Response { status, headers, body: rest })
    }

    /// The value of a header, if it is there and text.
    pub(crate) fn header(&self, name: &str) -> Option<&'b str> {
        let (_, value) =
            self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))?;
        std::str::from_utf8(value).ok()
    }

    /// The body, out of its chunks and decompressed; a reason if it cannot be.
    ///
    /// Many archives hold bodies that were decoded before, under headers that still name the coding: a body that does
    /// not look coded is taken as it is.
    pub(crate) fn body(&self, options: &DocumentOptions) -> Result<Vec<u8>, String> {
        let has = |name: &str, coding: &str| {
            self.header(name).is_some_and(|value| value.to_ascii_lowercase().contains(coding))
        };
        let mut body = None;
        if has("transfer-encoding", "chunked") {
            body = without_chunks(self.body);
        }
        let body = body.unwrap_or_else(|| self.body.to_vec());
        let packed = Compression::of_head(&body);
        let reader = if has("content-encoding", "br") && std::str::from_utf8(&body).is_err() {
            if body[0] & 0x7f == LARGE_WINDOW {
                return Err("the page is compressed with a window that Brotli has not in HTTP".to_owned());
            }
            Ok(Box::new(Decompressor::new(&*body, BROTLI_BUFFER)) as Box<dyn Read + Send>)
        } else if has("content-encoding", "deflate") && body.first() == Some(&0x78) {
            Ok(Box::new(ZlibDecoder::new(&*body)) as _)
        } else if self.header("content-encoding").is_some() && packed != Compression::None {
            packed.reader(&*body, options.memory_of_unpacking())
        } else {
            return Ok(body);
        };
        let (mut unpacked, longest) = (Vec::new(), options.longest());
        let read = reader.and_then(|reader| reader.take(longest.bytes as u64 + 1).read_to_end(&mut unpacked));
        read.map_err(|error| format!("the page cannot be decompressed: {error}"))?;
        if unpacked.len() > longest.bytes {
            return Err(longest.to_string());
        }
        Ok(unpacked)
    }
}

/// The first line, without its end, and what follows it.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// A body without the lengths of its chunks, as far as it is there; `None` if it is not in chunks.
fn without_chunks(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = None;
    loop {
        let (length, rest) = line(bytes);
        let digits = length.split(|&byte| byte == b';').next()?.trim_ascii();
        let length =
            std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(length) = length else { return body };
        let body = body.get_or_insert_with(Vec::new);
        if length == 0 {
            return Some(std::mem::take(body));
        }
        let length = length.min(rest.len());
        body.extend_from_slice(&rest[..length]);
        bytes = line(&rest[length..]).1;
    }
}

/// The media type of a `Content-Type`, in lower case, and its `charset`.
pub(crate) fn media_type(value: &str) -> (String, Option<String>) {
    let mut parts = value.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (media_type, charset)
}

/// Whether a media type is that of a document.
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
        Response::parse(&response).unwrap().body(&options)
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
        let response = Response::parse(b"HTTP/1.0  404 Not Found\nContent-type : a\nX\n\nbody\n\nx").unwrap();
        assert_eq!((response.status, response.body), (404, &b"body\n\nx"[..]));
        assert_eq!((response.header("CONTENT-TYPE"), response.header("x")), (Some("a"), None));
        for bad in ["", "HTTP/1.1", "HTTP/1.1 x", "GET / HTTP/1.1"] {
            assert!(Response::parse(bad.as_bytes()).is_none(), "{bad}");
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
    fn media_types() {
        let of = |value| media_type(value);
        assert_eq!(of("Text/HTML; x=y; Charset=\"GBK\""), ("text/html".to_owned(), Some("GBK".to_owned())));
        assert_eq!(of(""), (String::new(), None));
        assert!(is_text("application/xhtml+xml") && !is_text("image/png"));
    }
}
