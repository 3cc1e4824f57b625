//! Detects the formats of files by their names and their first bytes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::bytes::compression::{Compression, MAGIC_BYTES};
use crate::bytes::encoding::{self, Encoding};
use crate::bytes::input::BYTE_ORDER_MARK;
use crate::bytes::open_errors::cannot_open;
use crate::bytes::read_once::{ReadOnceInputs, is_stdin};
use crate::formats::{archive, binary};
use crate::read_progress::CountingReader;
use crate::{DocumentFormat, DocumentOptions};
use simstore::{Error, Result};

/// Number of bytes examined to detect the format of an input.
pub const HEAD_BYTES: usize = 64 * 1024;

/// Format of a file of documents or fingerprints, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A file of documents in this format.
    Documents(DocumentFormat),
    /// A file of lines, each with a fingerprint in hexadecimal.
    HexLines,
    /// A binary file of fingerprints in little-endian order, one directly after the other.
    Raw {
        /// Width of a fingerprint in bits: 64 or 128.
        bits: u32,
    },
}

/// Returns the extension of a file name in lower case, without the extension of a compression: `csv` for `a.CSV.gz`.
pub fn extension(path: &Path) -> Option<String> {
    let inner = match Compression::from_name(path) {
        Compression::None => path,
        _ => Path::new(path.file_stem().unwrap_or_default()),
    };
    Some(inner.extension()?.to_string_lossy().to_lowercase())
}

/// Returns the format that the extension of a file name implies; `None` if the extension is unknown. For `.tsv`, the
/// result is a table of documents, but some of these files are lines of fingerprints.
pub fn format_from_name(path: &Path) -> Option<Format> {
    if is_stdin(path) {
        return None;
    }
    Some(Format::Documents(match &*extension(path)? {
        "jsonl" | "ndjson" | "json" => DocumentFormat::Jsonl,
        "csv" => DocumentFormat::Csv,
        "tsv" => DocumentFormat::Tsv,
        "parquet" => DocumentFormat::Parquet,
        "warc" | "wet" => DocumentFormat::Warc,
        "txt" | "text" | "md" | "markdown" | "htm" | "html" => DocumentFormat::Text,
        "zip" | "tar" | "tgz" | "tbz" | "tbz2" | "txz" | "tzst" => DocumentFormat::Archive,
        "hex" => return Some(Format::HexLines),
        "u64" => return Some(Format::Raw { bits: 64 }),
        "u128" => return Some(Format::Raw { bits: 128 }),
        _ => return None,
    }))
}

/// Detects the format of an input; returns `None` if the format is unknown.
///
/// Binary content takes precedence over the file name, and the file name over text content. A table without a known
/// extension is recognized by its first row, if this row contains the name of a text field. `is_named` says whether
/// the user named the file. If the file was found in a folder instead, and is a JSON file without documents, such as
/// the settings of a program, `None` is returned.
///
/// # Errors
/// [`BadInput`](simstore::Error::BadInput) for a file that cannot be opened or has an unsupported format;
/// [`Io`](simstore::Error::Io) if it does not exist.
pub fn detect(
    path: &Path,
    is_named: bool,
    options: &DocumentOptions,
    read_once: &ReadOnceInputs,
) -> Result<Option<Format>> {
    // Raw fingerprints may begin with any bytes.
    if let (Some(Format::Raw { bits }), None) = (format_from_name(path), options.format) {
        return Ok(Some(Format::Raw { bits }));
    }
    let head = read_head(path, read_once)?;
    let format =
        if is_named { detect_from_head(path, &head, options) } else { detect_unnamed(path, &head, options) };
    format.map_err(|reason| Error::BadInput { path: path.to_path_buf(), line: 0, reason })
}

/// Like [`detect`], given the first [`HEAD_BYTES`] bytes of the input after decompression. Returns the reason if the
/// input has an unsupported format.
fn detect_from_head(
    path: &Path,
    head: &[u8],
    options: &DocumentOptions,
) -> std::result::Result<Option<Format>, String> {
    let documents = |format| Ok(Some(Format::Documents(format)));
    if archive::is_zip(head) || archive::is_tar(head) {
        return documents(DocumentFormat::Archive);
    }
    let named = options.format.map(Format::Documents).or_else(|| format_from_name(path));
    match named {
        Some(Format::Raw { .. }) => return Ok(named),
        // Binary formats: their readers report files that have another format.
        Some(Format::Documents(DocumentFormat::Parquet | DocumentFormat::Archive)) => return Ok(named),
        _ => {}
    }
    if head.starts_with(b"filedesc://") {
        let reason = "a web archive in the old ARC format, which is not supported: convert it to WARC first, as with \
                      `warcio recompress`";
        return Err(reason.to_owned());
    }
    let is_text = options.format.is_some() || options.encoding != Encoding::AUTO;
    if head.starts_with(b"PAR1") && binary::refusal(head, false).is_some() {
        return documents(DocumentFormat::Parquet);
    }
    let is_archive = named == Some(Format::Documents(DocumentFormat::Warc)) || is_warc(head);
    let text = encoding::utf16_head_to_utf8(head);
    if !is_archive
        && text.is_none()
        && let Some(reason) = binary::refusal(head, is_text)
    {
        return Err(reason);
    }
    let by_head = |text_fields: &[String]| format_from_text(text.as_deref().unwrap_or(head), text_fields);
    Ok(match named {
        Some(Format::Documents(DocumentFormat::Tsv)) if options.format.is_none() => match by_head(&[]) {
            Some(Format::HexLines) => Some(Format::HexLines),
            _ => named,
        },
        Some(named) => Some(named),
        None => by_head(&options.text_fields),
    })
}

/// Like [`detect_from_head`], for a file that the user did not name: a file in a folder, or a member of an archive.
/// Also returns `None` for a JSON file without documents, such as the settings of a program.
pub(crate) fn detect_unnamed(
    path: &Path,
    head: &[u8],
    options: &DocumentOptions,
) -> std::result::Result<Option<Format>, String> {
    let format = detect_from_head(path, head, options)?;
    let may_be_other = format == Some(Format::Documents(DocumentFormat::Jsonl))
        && options.format.is_none()
        && extension(path).is_some_and(|extension| extension == "json");
    let is_other = may_be_other && {
        let text = encoding::utf16_head_to_utf8(head);
        is_other_json(text.as_deref().unwrap_or(head), head.len() < HEAD_BYTES, &options.text_fields)
    };
    Ok(format.filter(|_| !is_other))
}

/// Whether a JSON file is not a list of documents, because none of its objects has a text field. `is_whole` says
/// whether `head` is the whole file.
///
/// Truncated or damaged JSON may hold documents, so the result is false. There is one exception: the result is true for
/// an object over several lines that does not contain the name of a text field.
fn is_other_json(head: &[u8], is_whole: bool, text_fields: &[String]) -> bool {
    let json = trim_start(head);
    // `a.b` is the field `b` of `a`, or a field named `a.b`.
    let names =
        || text_fields.iter().flat_map(|field| [&**field, field.split('.').next().unwrap_or_default()]);
    let has_text =
        |value: &Value| value.as_object().is_some_and(|object| names().any(|name| object.contains_key(name)));
    for value in serde_json::Deserializer::from_slice(json).into_iter::<Value>() {
        match value {
            Ok(Value::Array(values)) if values.is_empty() || values.iter().any(has_text) => return false,
            Ok(value) if has_text(&value) => return false,
            Ok(_) => {}
            Err(_) => {
                let first = json.split(|&byte| byte == b'\n').next().unwrap_or_default();
                let is_object = first.first() == Some(&b'{');
                let goes_on = first.len() < json.len() && !first.trim_ascii_end().ends_with(b"}");
                let named = |name: &str| contains(json, format!("\"{name}\"").as_bytes());
                return is_object && goes_on && !names().any(named);
            }
        }
    }
    is_whole && !json.is_empty()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn is_warc(head: &[u8]) -> bool {
    matches!(head, [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', ..])
}

/// Detects the compression of an input by its file name. If the name implies no compression, the first bytes decide.
///
/// # Errors
/// See [`detect`].
pub fn detect_compression(path: &Path, read_once: &ReadOnceInputs) -> Result<Compression> {
    match (Compression::from_name(path), format_from_name(path)) {
        // Parquet is compressed inside, and raw fingerprints may begin with any bytes.
        (Compression::None, Some(Format::Raw { .. } | Format::Documents(DocumentFormat::Parquet))) => {
            Ok(Compression::None)
        }
        (Compression::None, _) if read_once.is_read_once(path)? => {
            Ok(Compression::from_head(&read_once.peek(path, MAGIC_BYTES, |head| head.len() >= MAGIC_BYTES)?))
        }
        (Compression::None, _) => Ok(Compression::from_head(&read_raw_head(path, MAGIC_BYTES)?)),
        (compression, _) => Ok(compression),
    }
}

/// Returns the first [`HEAD_BYTES`] bytes of an input, after decompression. The result may be shorter for a pipe.
fn read_head(path: &Path, read_once: &ReadOnceInputs) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    if read_once.is_read_once(path)? {
        let raw = read_once.peek(path, HEAD_BYTES, has_first_line)?;
        unpack(compression_from_head(path, &raw), &*raw, &mut head);
        return Ok(head);
    }
    let file = CountingReader::new(File::open(path).map_err(cannot_open(path))?, &Arc::default());
    let mut file = BufReader::with_capacity(HEAD_BYTES, file);
    let compression = compression_from_head(path, file.fill_buf().map_err(cannot_open(path))?);
    if compression == Compression::None {
        file.take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(cannot_open(path))?;
    } else {
        unpack(compression, file, &mut head);
    }
    Ok(head)
}

fn compression_from_head(path: &Path, head: &[u8]) -> Compression {
    match Compression::from_name(path) {
        Compression::None => Compression::from_head(head),
        compression => compression,
    }
}

/// Decompresses up to [`HEAD_BYTES`] bytes of `raw` into `head`. If the data are damaged or truncated, `head` gets the
/// bytes before the damage.
fn unpack(compression: Compression, raw: impl BufRead + Send, head: &mut Vec<u8>) {
    if let Ok(reader) = compression.reader(raw, None) {
        let _ = reader.take(HEAD_BYTES as u64).read_to_end(head);
    }
}

fn read_raw_head(path: &Path, bytes: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(cannot_open(path))?;
    file.take(bytes as u64).read_to_end(&mut head).map_err(cannot_open(path))?;
    Ok(head)
}

/// Whether `head`, the bytes that a pipe has returned so far, suffices to detect the format. This is so if `head`
/// is not compressed, and contains a whole line that is not blank.
fn has_first_line(head: &[u8]) -> bool {
    Compression::from_head(head) == Compression::None && trim_start(head).contains(&b'\n')
}

fn trim_start(head: &[u8]) -> &[u8] {
    head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start()
}

fn format_from_text(head: &[u8], text_fields: &[String]) -> Option<Format> {
    let first = trim_start(head).split(|&b| b == b'\n').next().unwrap_or_default();
    let hex = first.split(|&b| b == b'\t').next().unwrap_or_default().trim_ascii_end();
    let names_text = |delimiter: u8| {
        let mut names = first.trim_ascii_end().split(|&b| b == delimiter);
        first.contains(&delimiter)
            && names.any(|name| {
                let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
                text_fields.iter().any(|field| field.as_bytes() == name)
            })
    };
    if matches!(hex.len(), 16 | 32) && hex.iter().all(u8::is_ascii_hexdigit) {
        return Some(Format::HexLines);
    }
    let format = match first {
        [b'{', ..] => DocumentFormat::Jsonl,
        [b'P', b'A', b'R', b'1', ..] => DocumentFormat::Parquet,
        _ if is_warc(first) => DocumentFormat::Warc,
        _ if names_text(b',') => DocumentFormat::Csv,
        _ if names_text(b'\t') => DocumentFormat::Tsv,
        _ if names_text(b';') || names_text(b'|') => DocumentFormat::Csv,
        [b'[', ..] if begins_array(head) => DocumentFormat::Jsonl,
        _ => return None,
    };
    Some(Format::Documents(format))
}

/// Whether a file that starts with `[` is JSON: an array of objects, or an empty array. Any other file is a text.
fn begins_array(head: &[u8]) -> bool {
    let first = trim_start(head).get(1..).unwrap_or_default().trim_ascii_start().first();
    matches!(first, Some(b'{' | b']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let documents = |format| Some(Format::Documents(format));
        for (name, expected) in [
            ("a.jsonl", documents(DocumentFormat::Jsonl)),
            ("a.JSON.GZ", documents(DocumentFormat::Jsonl)),
            ("x.y/a.ndjson.zst", documents(DocumentFormat::Jsonl)),
            ("a.md", documents(DocumentFormat::Text)),
            ("a.csv.bz2", documents(DocumentFormat::Csv)),
            ("a.tsv.gz", documents(DocumentFormat::Tsv)),
            ("a.parquet", documents(DocumentFormat::Parquet)),
            ("a.warc.wet.gz", documents(DocumentFormat::Warc)),
            ("a.warc.xz", documents(DocumentFormat::Warc)),
            ("a.ZIP", documents(DocumentFormat::Archive)),
            ("a.tar.gz", documents(DocumentFormat::Archive)),
            ("a.tgz", documents(DocumentFormat::Archive)),
            ("a.hex", Some(Format::HexLines)),
            ("a.u64", Some(Format::Raw { bits: 64 })),
            ("a.u128.zst", Some(Format::Raw { bits: 128 })),
            ("jsonl", None),
            ("a.gz", None),
            ("a.dat", None),
            ("-", None),
        ] {
            assert_eq!(format_from_name(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn json_that_is_no_documents() {
        let is_other = |head: &str, fields: &[&str]| {
            let fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
            is_other_json(head.as_bytes(), true, &fields)
        };
        for other in [
            "{\n  \"name\": \"a\",\n  \"keywords\": [\"text\"]\n}\n",
            "{\"name\": \"a\"}",
            "{\n  // a comment\n  \"a\": 1\n}",
            "[1, 2]",
            "[{\"a\": {\"text\": 1}}]",
            "7",
        ] {
            assert!(is_other(other, &["text"]), "{other}");
        }
        for documents in [
            "",
            "[]",
            "{\"text\": \"a\"}\n",
            "{\"id\": 1}\n{\"id\": 2, \"text\": null}",
            "{\n  \"text\": \"a\"\n}",
            "[{\"id\": 1}, {\"text\": \"a\"}]",
            // Damaged or truncated: the reader reports it.
            "{\"text\": \"a\",\n",
            "{\"id\": 1\n{\"text\": \"a\"}",
            "{\"id\": x}\n{\"id\": 1}",
            "[{\"id\": 1",
        ] {
            assert!(!is_other(documents, &["text"]), "{documents}");
        }
        assert!(!is_other("{\"a\": {\"b\": \"x\"}}", &["a.b"]) && !is_other("{\"a.b\": \"x\"}", &["a.b"]));
        assert!(!is_other("{\"body\": \"x\"}", &["title", "body"]));
        // Only the beginning of a long file is known.
        assert!(!is_other_json(b"{\"id\": 1}\n{\"id\": 2}\n", false, &["text".to_owned()]));
    }

    #[test]
    fn heads_tell_formats() {
        let documents = |format| Some(Format::Documents(format));
        for (head, expected) in [
            (&b"\xef\xbb\xbf\r\n {\"id\": 1}"[..], documents(DocumentFormat::Jsonl)),
            (b"0123456789abcdef", Some(Format::HexLines)),
            (b"0123456789ABCDEF\tname\r\nx", Some(Format::HexLines)),
            (b"0123456789abcdef0123456789abcdef\r\n", Some(Format::HexLines)),
            (b"PAR1\x15\x04", documents(DocumentFormat::Parquet)),
            (b"WARC/1.0\r\nWARC-Type: x", documents(DocumentFormat::Warc)),
            (b"id,text\r\n1,a\r\n", documents(DocumentFormat::Csv)),
            (b"\"text\",\"id\"\n", documents(DocumentFormat::Csv)),
            (b"id\ttext\n", documents(DocumentFormat::Tsv)),
            (b"text\n", None),
            (b"id,texts\n", None),
            (b"0123456789abcde\n", None),
            (b"0123456789abcdefg\n", None),
            (b"", None),
            (b"\x1f\x8b\x08", None),
            (b"[\r\n {", documents(DocumentFormat::Jsonl)),
            (b"[]", documents(DocumentFormat::Jsonl)),
            (b"[a](b)", None),
            (b"id;text\n", documents(DocumentFormat::Csv)),
        ] {
            assert_eq!(format_from_text(head, &["text".to_owned()]), expected, "{}", head.escape_ascii());
        }
    }
}
