//! Recognizes files that are not text by their first bytes, and refuses them with advice.

/// Kinds of files, by the bytes at a place in them.
const KINDS: &[(usize, &[u8], &str, Advice)] = &[
    (0, b"%PDF-", "a PDF document", Advice::Text),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document (.doc, .xls, .ppt)", Advice::Text),
    (0, b"ARROW1", "an Arrow file", Advice::Table),
    (0, b"\xff\xff\xff\xff", "a stream of Arrow", Advice::Table),
    (0, b"Obj\x01", "an Avro file", Advice::Table),
    (0, b"ORC", "an ORC file", Advice::Table),
    (0, b"SQLite format 3\0", "an SQLite database", Advice::Table),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", Advice::Table),
    (0, b"\x93NUMPY", "a NumPy array", Advice::Table),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", Advice::Unpack),
    (0, b"Rar!\x1a\x07", "a RAR archive", Advice::Unpack),
    (0, b"MSCF\0", "a cabinet archive", Advice::Unpack),
    (0, b"\x04\x22\x4d\x18", "LZ4 data", Advice::Unpack),
    (0, b"\x1f\x9d", "data of `compress` (.Z)", Advice::Unpack),
    (0, b"LZIP", "lzip data", Advice::Unpack),
    (0, b"\xff\x06\0\0sNaPpY", "Snappy data", Advice::Unpack),
    (0, b"\xff\xfe\0\0", "text in UTF-32", Advice::Utf32),
    (0, b"\0\0\xfe\xff", "text in UTF-32", Advice::Utf32),
    (0, b"\x89PNG\r\n\x1a\n", "an image (PNG)", Advice::None),
    (0, b"\xff\xd8\xff", "an image (JPEG)", Advice::None),
    (0, b"GIF87a", "an image (GIF)", Advice::None),
    (0, b"GIF89a", "an image (GIF)", Advice::None),
    (0, b"II*\0", "an image (TIFF)", Advice::None),
    (0, b"MM\0*", "an image (TIFF)", Advice::None),
    (8, b"WEBP", "an image (WebP)", Advice::None),
    (8, b"WAVE", "sound (WAV)", Advice::None),
    (8, b"AVI ", "a film (AVI)", Advice::None),
    (4, b"ftyp", "a film, sound or image (MP4)", Advice::None),
    (0, b"ID3", "sound (MP3)", Advice::None),
    (0, b"OggS", "sound or a film (Ogg)", Advice::None),
    (0, b"fLaC", "sound (FLAC)", Advice::None),
    (0, b"\x1a\x45\xdf\xa3", "a film (Matroska)", Advice::None),
    (0, b"\x7fELF", "a program (ELF)", Advice::None),
    (0, b"MZ", "a program (Windows)", Advice::None),
    (0, b"\xca\xfe\xba\xbe", "a program (Java or Mach-O)", Advice::None),
    (0, b"\xcf\xfa\xed\xfe", "a program (Mach-O)", Advice::None),
    (0, b"\0asm", "a program (WebAssembly)", Advice::None),
    (0, b"wOF2", "a font", Advice::None),
    (0, b"wOFF", "a font", Advice::None),
];

/// Advice on a file that is not read.
#[derive(Clone, Copy, Debug)]
enum Advice {
    Text,
    Table,
    Unpack,
    Utf32,
    None,
}

/// Bytes of a thousand that may be control characters in a text.
const CONTROLS_OF_1000: usize = 20;

/// The reason why the first bytes of a file, after decompression, cannot begin a text; `None` if they can. Magic bytes alone
/// are no reason, except for PDF: they count together with control characters. Control characters alone are no reason if
/// `is_said_to_be_text`.
pub fn refusal(head: &[u8], is_said_to_be_text: bool) -> Option<String> {
    let controls = head.iter().filter(|byte| is_control(**byte)).count();
    let is_marked = |&&(at, magic, ..): &&(usize, &[u8], &str, Advice)| {
        head.get(at..).is_some_and(|bytes| bytes.starts_with(magic))
    };
    if let Some(&(_, _, what, advice)) = KINDS.iter().find(is_marked)
        && (controls > 0 || what == "a PDF document")
    {
        let advice = match advice {
            Advice::Text => ", which is not supported: save its text as .txt, .html or .csv first",
            Advice::Table => ", which is not supported: convert it to Parquet, CSV or JSON lines first",
            Advice::Unpack => ", which is not supported: unpack it first",
            Advice::Utf32 => {
                ", which is not supported: convert it to UTF-8 first, as with `iconv -f utf-32 -t utf-8`"
            }
            Advice::None => ", which holds no text",
        };
        return Some(format!("looks like {what}{advice}"));
    }
    // One alone, in a short text, is a slip.
    if is_said_to_be_text || controls <= 1 || controls * 1000 <= head.len() * CONTROLS_OF_1000 {
        return None;
    }
    Some(format!(
        "looks like binary data: {controls} of its first {} bytes are control characters; if it is text, give option `encoding` or \
         option `format`",
        head.len()
    ))
}

/// Control characters that no text has; line ends, tabs, page ends and escapes it may have.
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
        // A few that have come into a text by mistake.
        let text = format!("{}\0{}", "x".repeat(100), "y".repeat(100));
        assert_eq!(refusal(text.as_bytes(), false), None);
        assert_eq!(refusal(&encoding_rs::GB18030.encode("相似的文档").0, false), None);
    }

    #[test]
    fn what_is_no_text_is_named() {
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
