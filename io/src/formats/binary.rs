//! Recognizes binary files by their first bytes, and refuses them with advice.

/// Signatures by which unsupported file types are recognized: an offset in the file, the bytes at this offset, the
/// name of the type, and advice for the user.
const SIGNATURES: &[(usize, &[u8], &str, FileAdvice)] = &[
    (0, b"%PDF-", "a PDF document", FileAdvice::Text),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document (.doc, .xls, .ppt)", FileAdvice::Text),
    (0, b"ARROW1", "an Arrow file", FileAdvice::Table),
    (0, b"\xff\xff\xff\xff", "a stream of Arrow", FileAdvice::Table),
    (0, b"Obj\x01", "an Avro file", FileAdvice::Table),
    (0, b"ORC", "an ORC file", FileAdvice::Table),
    (0, b"SQLite format 3\0", "an SQLite database", FileAdvice::Table),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", FileAdvice::Table),
    (0, b"\x93NUMPY", "a NumPy array", FileAdvice::Table),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", FileAdvice::Unpack),
    (0, b"Rar!\x1a\x07", "a RAR archive", FileAdvice::Unpack),
    (0, b"MSCF\0", "a cabinet archive", FileAdvice::Unpack),
    (0, b"\x04\x22\x4d\x18", "LZ4 data", FileAdvice::Unpack),
    (0, b"\x1f\x9d", "data of `compress` (.Z)", FileAdvice::Unpack),
    (0, b"LZIP", "lzip data", FileAdvice::Unpack),
    (0, b"\xff\x06\0\0sNaPpY", "Snappy data", FileAdvice::Unpack),
    (0, b"\xff\xfe\0\0", "text in UTF-32", FileAdvice::Utf32),
    (0, b"\0\0\xfe\xff", "text in UTF-32", FileAdvice::Utf32),
    (0, b"\x89PNG\r\n\x1a\n", "an image (PNG)", FileAdvice::None),
    (0, b"\xff\xd8\xff", "an image (JPEG)", FileAdvice::None),
    (0, b"GIF87a", "an image (GIF)", FileAdvice::None),
    (0, b"GIF89a", "an image (GIF)", FileAdvice::None),
    (0, b"II*\0", "an image (TIFF)", FileAdvice::None),
    (0, b"MM\0*", "an image (TIFF)", FileAdvice::None),
    (8, b"WEBP", "an image (WebP)", FileAdvice::None),
    (8, b"WAVE", "sound (WAV)", FileAdvice::None),
    (8, b"AVI ", "a film (AVI)", FileAdvice::None),
    (4, b"ftyp", "a film, sound or image (MP4)", FileAdvice::None),
    (0, b"ID3", "sound (MP3)", FileAdvice::None),
    (0, b"OggS", "sound or a film (Ogg)", FileAdvice::None),
    (0, b"fLaC", "sound (FLAC)", FileAdvice::None),
    (0, b"\x1a\x45\xdf\xa3", "a film (Matroska)", FileAdvice::None),
    (0, b"\x7fELF", "a program (ELF)", FileAdvice::None),
    (0, b"MZ", "a program (Windows)", FileAdvice::None),
    (0, b"\xca\xfe\xba\xbe", "a program (Java or Mach-O)", FileAdvice::None),
    (0, b"\xcf\xfa\xed\xfe", "a program (Mach-O)", FileAdvice::None),
    (0, b"\0asm", "a program (WebAssembly)", FileAdvice::None),
    (0, b"wOF2", "a font", FileAdvice::None),
    (0, b"wOFF", "a font", FileAdvice::None),
];

/// Advice in the error message for an unsupported file, such as what to convert the file to.
#[derive(Clone, Copy, Debug)]
enum FileAdvice {
    Text,
    Table,
    Unpack,
    Utf32,
    None,
}

/// Maximum number of control characters per 1000 bytes of a text. A file with more is refused as binary data.
const MAX_CONTROLS_PER_1000: usize = 20;

/// Returns the reason why a file with these first bytes, after decompression, is not a text; `None` if it may
/// be one.
///
/// A file with the signature of a binary type is refused only if it also contains a control character; a PDF
/// document is always refused. A file with many control characters, but without a signature, is refused unless
/// it is declared to be a text by an option or an HTTP header (`is_declared_text`).
pub fn refusal(head: &[u8], is_declared_text: bool) -> Option<String> {
    let controls = head.iter().filter(|byte| is_control(**byte)).count();
    let is_marked = |&&(at, magic, ..): &&(usize, &[u8], &str, FileAdvice)| {
        head.get(at..).is_some_and(|bytes| bytes.starts_with(magic))
    };
    if let Some(&(_, _, what, advice)) = SIGNATURES.iter().find(is_marked)
        && (controls > 0 || what == "a PDF document")
    {
        let advice = match advice {
            FileAdvice::Text => ", which is not supported: save its text as .txt, .html or .csv first",
            FileAdvice::Table => ", which is not supported: convert it to Parquet, CSV or JSON lines first",
            FileAdvice::Unpack => ", which is not supported: unpack it first",
            FileAdvice::Utf32 => {
                ", which is not supported: convert it to UTF-8 first, as with `iconv -f utf-32 -t utf-8`"
            }
            FileAdvice::None => ", which holds no text",
        };
        return Some(format!("looks like {what}{advice}"));
    }
    // A single control character is allowed even in a short text: it is probably a mistake.
    if is_declared_text || controls <= 1 || controls * 1000 <= head.len() * MAX_CONTROLS_PER_1000 {
        return None;
    }
    Some(format!(
        "looks like binary data: {controls} of its first {} bytes are control characters; if it is text, give option `encoding` or \
         option `format`",
        head.len()
    ))
}

/// Whether a byte is a control character that texts do not contain. Line ends, tabs, form feeds, and escapes
/// are allowed.
fn is_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b) || byte == 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_not_refused() {
        for text in [
            "", "To be\r\n\t\u{c}", "中文", "MZ is a code", "ID3 and RIFF", "GIF89a", "ORC, the",
            "\u{1b}[1mbold",
        ] {
            assert_eq!(refusal(text.as_bytes(), false), None, "{text}");
        }
        // A few control characters do not make a text binary.
        let text = format!("{}\0{}", "x".repeat(100), "y".repeat(100));
        assert_eq!(refusal(text.as_bytes(), false), None);
        assert_eq!(refusal(&encoding_rs::GB18030.encode("相似的文档").0, false), None);
    }

    #[test]
    fn values_that_are_not_text_are_named() {
        for (head, what) in [
            (&b"%PDF-1.4\n"[..], "a PDF document, which is not supported: save its text"),
            (b"ARROW1\0\0", "an Arrow file, which is not supported: convert it to Parquet"),
            (b"\x7fELF\x02\x01\x01\0", "a program (ELF), which holds no text"),
            (b"SQLite format 3\0", "an SQLite database, which is not supported: convert"),
            (b"RIFF\x01\0\0\0WEBPVP8 ", "an image (WebP)"),
            (b"\xff\xfe\0\0a\0\0\0", "text in UTF-32, which is not supported: convert it to UTF-8 first"),
            (b"a\0\x01\x02\x03bcd", "binary data: 4 of its first 8 bytes are control characters"),
        ] {
            let refusal = refusal(head, false).unwrap();
            assert!(refusal.starts_with(&format!("looks like {what}")), "{refusal}");
        }
    }
}
