//! Decodes bytes to text, as UTF-8 or in another encoding.

use simstore::error::did_you_mean;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding as Charset, GB18030, GBK, UTF_8, UTF_16BE, UTF_16LE};

use simstore::error::excerpt;
use simstore::{Error, Result};

/// Maximum number of bytes examined to detect an encoding.
const DETECTION_BYTES: usize = 1 << 20;
/// Lines count as UTF-8 if they have at most one malformed character in this many bytes. A single malformed
/// character is accepted even in fewer bytes.
const LINE_BYTES_PER_ERROR: u64 = 8192;
/// A text file or web page that declares no encoding counts as UTF-8 if it has at most one malformed character in
/// this many bytes. A single malformed character is accepted even in fewer bytes. If there are more, the encoding is
/// guessed.
const TEXT_BYTES_PER_ERROR: u64 = 256;
/// Number of bytes at the start of an HTML page that are searched for a declaration of the encoding. The HTML
/// standard allows 1,024 bytes, but many pages exceed this.
const DECLARATION_BYTES: usize = 4096;

/// Encoding of the input. Malformed bytes are replaced by U+FFFD and counted.
///
/// The name of an encoding is any label of the WHATWG Encoding Standard: `utf-8`, `gb18030` (also for GBK and
/// GB2312, which it contains), `big5`, `utf-16le`, `windows-1252`, ... A byte order mark at the start of a
/// file takes precedence over the requested encoding.
///
/// `auto` is UTF-8, unless most non-ASCII characters of a text file or web page are malformed. Then the
/// encoding declared by HTTP or by a `<meta>` tag is used. If none is declared, a few malformed bytes are
/// replaced and counted; if there are many malformed bytes, the encoding is guessed. In lines and tables, `auto` does
/// not guess: if they are not nearly UTF-8, reading ends with an error that names the likely encoding.
///
/// ```
/// use simstore_io::Encoding;
///
/// assert_eq!("gbk".parse::<Encoding>()?.to_string(), "GBK");
/// assert_eq!("auto".parse::<Encoding>()?, Encoding::AUTO);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(pub(crate) Option<&'static Charset>);

impl Encoding {
    /// The encoding `auto`, described at [`Encoding`]: UTF-8, unless most non-ASCII characters are malformed.
    pub const AUTO: Encoding = Encoding(None);
    /// UTF-8, without detection of other encodings.
    pub const UTF_8: Encoding = Encoding(Some(UTF_8));

    /// Name of the encoding in the WHATWG Encoding Standard, or `auto`.
    pub fn name(self) -> &'static str {
        self.0.map_or("auto", Charset::name)
    }
}

impl Default for Encoding {
    fn default() -> Self {
        Encoding::AUTO
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(label: &str) -> Result<Self> {
        if label == "auto" {
            return Ok(Encoding::AUTO);
        }
        Charset::for_label_no_replacement(label.as_bytes()).map(|charset| Encoding(Some(charset))).ok_or_else(
            || {
                Error::BadArgument(format!(
                    "unknown encoding `{}`{}: expected auto, utf-8, gb18030, big5, utf-16le or another label of the WHATWG Encoding \
                     Standard",
                    excerpt(label),
                    did_you_mean(label, ["auto", "utf-8", "gb18030", "big5", "utf-16le", "utf-16be", "shift_jis", "euc-kr", "windows-1252"])
                ))
            },
        )
    }
}

/// A decoded text, and the number of malformed byte sequences in the input, which became U+FFFD. Valid UTF-8 is
/// borrowed from the input.
pub(crate) type DecodedText<'b> = (Cow<'b, str>, u64);

/// Decodes a whole text, without its byte order mark. Also returns the encoding if it was guessed.
///
/// `declared` is the name of the encoding in the HTTP headers. It takes precedence over a declaration in the HTML.
pub(crate) fn decode_text<'b>(
    bytes: &'b [u8],
    encoding: Encoding,
    declared: Option<&str>,
) -> (DecodedText<'b>, Option<Encoding>) {
    let (charset, mark, is_guessed) = choose_charset(bytes, encoding, declared);
    let guessed = is_guessed.then_some(Encoding(Some(charset)));
    (decode(&bytes[mark..], charset), guessed)
}

/// Returns the encoding of a text, the length of its byte order mark in bytes, and whether the encoding was
/// guessed.
fn choose_charset(
    bytes: &[u8],
    encoding: Encoding,
    declared: Option<&str>,
) -> (&'static Charset, usize, bool) {
    if let Some((charset, mark)) = Charset::for_bom(bytes) {
        return (charset, mark, false);
    }
    if let Some(charset) = encoding.0 {
        return (charset, 0, false);
    }
    let declared = declared.and_then(|label| Charset::for_label_no_replacement(label.as_bytes()));
    // Text in these encodings looks like UTF-8.
    if let Some(charset) = declared.filter(|charset| !charset.is_ascii_compatible()) {
        return (charset, 0, false);
    }
    if let Some(charset) = detect_utf16(&bytes[..bytes.len().min(DETECTION_BYTES)]) {
        return (charset, 0, true);
    }
    let (well_formed, malformed) = match std::str::from_utf8(bytes) {
        Ok(_) => return (UTF_8, 0, false),
        Err(_) => count_characters(bytes),
    };
    // Text in other encodings has hardly any well-formed characters.
    if well_formed > malformed {
        return (UTF_8, 0, false);
    }
    match declared.or_else(|| declared_by_html(bytes)) {
        Some(charset) => (charset, 0, false),
        None if are_rare(malformed, bytes.len() as u64, TEXT_BYTES_PER_ERROR) => (UTF_8, 0, false),
        None => (guess_charset(bytes), 0, true),
    }
}

/// Converts the first bytes of a file from UTF-16 to UTF-8. Returns `None` if the bytes are in another encoding or
/// binary.
pub fn utf16_head_to_utf8(head: &[u8]) -> Option<Vec<u8>> {
    let (charset, mark) = match Charset::for_bom(head) {
        Some((charset, mark)) => (charset, mark),
        None => (detect_utf16(head)?, 0),
    };
    // Zeros after the mark mean UTF-32.
    if charset == UTF_8 || head[mark..].starts_with(b"\0\0") {
        return None;
    }
    let whole = (head.len() - mark) / 2 * 2;
    Some(decode(&head[mark..mark + whole], charset).0.into_owned().into_bytes())
}

/// Detects UTF-16 without a byte order mark, and its byte order. Returns `None` if the bytes are not UTF-16. Also
/// returns `None` for UTF-16 without any ASCII character, because it has no zero bytes.
fn detect_utf16(bytes: &[u8]) -> Option<&'static Charset> {
    if !bytes.contains(&0) || is_utf8_with_zeros(bytes) {
        return None;
    }
    // Counts the ASCII characters; `None` if a character does not occur in texts.
    let count = |unit: fn([u8; 2]) -> u16| {
        let (mut all, mut ascii, mut broken) = (0_usize, 0_usize, 0_usize);
        for character in char::decode_utf16(bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]))) {
            match character {
                Ok('\t' | '\n' | '\r') => ascii += 1,
                Ok(character) if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                    return None;
                }
                Ok(character) => ascii += usize::from(character.is_ascii()),
                // The last character may be truncated.
                Err(_) => broken += 1,
            }
            all += 1;
        }
        (broken <= 1 && ascii > 0 && (all >= 16 || 2 * ascii >= all)).then_some(ascii)
    };
    match (count(u16::from_le_bytes), count(u16::from_be_bytes)) {
        (None, None) => None,
        (little, big) if little >= big => Some(UTF_16LE),
        _ => Some(UTF_16BE),
    }
}

/// Whether bytes with zeros among them are UTF-8, and not UTF-16. This is so if most characters are well-formed UTF-8,
/// and if less than one fifth of the bytes at even offsets, and less than one fifth at odd offsets, are zero.
fn is_utf8_with_zeros(bytes: &[u8]) -> bool {
    let zeros = |first| bytes.iter().skip(first).step_by(2).filter(|&&byte| byte == 0).count();
    let is_utf8 = || match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // The last character may be truncated.
        Err(error) if error.error_len().is_none() => true,
        Err(_) => {
            let (well_formed, malformed) = count_characters(bytes);
            well_formed > malformed
        }
    };
    10 * zeros(0).max(zeros(1)) < bytes.len() && is_utf8()
}

/// Returns the likely encoding of lines that are not UTF-8. Returns `None` if the lines are UTF-8 with at most a
/// few malformed characters. `sample` starts at the first non-ASCII byte of the lines; `before` is the number of
/// ASCII bytes before it.
pub(crate) fn detect_non_utf8(sample: &[u8], before: u64) -> Option<Encoding> {
    let (well_formed, malformed) = count_characters(sample);
    let examined = before.min(DETECTION_BYTES as u64) + sample.len() as u64;
    let is_other = malformed > well_formed && !are_rare(malformed, examined, LINE_BYTES_PER_ERROR);
    // GB18030 contains GBK.
    let detected = || match guess_charset(sample) {
        charset if charset == GBK => GB18030,
        charset => charset,
    };
    is_other.then(|| Encoding(Some(detected())))
}

/// Detects UTF-16 without a byte order mark by the first bytes of a file. Returns `None` for all other files.
pub fn detect_unmarked_utf16(head: &[u8]) -> Option<Encoding> {
    let charset = if Charset::for_bom(head).is_none() { detect_utf16(head) } else { None };
    charset.map(|charset| Encoding(Some(charset)))
}

/// Decodes a line, or a part of a line. The encoding `auto` counts as UTF-8.
///
/// The encoding must be ASCII-compatible: a byte below 0x30 is always an ASCII character, in particular a
/// line end, a quote, a comma, or a tab. The second byte of a character is at least 0x40 in GBK and Big5, and
/// at least 0x30 in GB18030. [`line_reader`](crate::bytes::transcode::line_reader) converts all files in other
/// encodings to UTF-8.
pub(crate) fn decode_line(bytes: &[u8], encoding: Encoding) -> DecodedText<'_> {
    decode(bytes, encoding.0.unwrap_or(UTF_8))
}

/// Encodes a part of a line. Returns `None` if the encoding lacks one of the characters.
pub(crate) fn encode_line(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    let (bytes, _, is_unmappable) = encoding.0.unwrap_or(UTF_8).encode(text);
    (!is_unmappable).then(|| bytes.into_owned())
}

fn decode<'b>(bytes: &'b [u8], charset: &'static Charset) -> DecodedText<'b> {
    if charset == UTF_8 {
        return str::from_utf8(bytes).map_or_else(|_| decode_utf8_lossy(bytes), |text| (text.into(), 0));
    }
    let mut decoder = charset.new_decoder_without_bom_handling();
    let mut rest = bytes;
    let mut text = String::with_capacity(rest.len() + rest.len() / 2 + 16);
    let mut replaced = 0;
    loop {
        let (result, read) = decoder.decode_to_string_without_replacement(rest, &mut text, true);
        rest = &rest[read..];
        match result {
            DecoderResult::InputEmpty => return (text.into(), replaced),
            DecoderResult::OutputFull => text.reserve(rest.len() + 16),
            DecoderResult::Malformed(..) => {
                text.push(char::REPLACEMENT_CHARACTER);
                replaced += 1;
            }
        }
    }
}

fn decode_utf8_lossy(bytes: &[u8]) -> DecodedText<'static> {
    let mut text = String::with_capacity(bytes.len() + 16);
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            replaced += 1;
        }
    }
    (text.into(), replaced)
}

/// Whether malformed characters are rare: a single one, or at most one in `bytes_per_error` bytes.
fn are_rare(malformed: u64, bytes: u64, bytes_per_error: u64) -> bool {
    malformed <= 1 || malformed * bytes_per_error <= bytes
}

/// Reads the bytes as UTF-8. Returns the number of well-formed non-ASCII characters, and the number of malformed
/// byte sequences.
fn count_characters(bytes: &[u8]) -> (u64, u64) {
    let (mut well_formed, mut malformed) = (0_u64, 0_u64);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        if !valid.is_ascii() {
            well_formed += valid.chars().filter(|c| !c.is_ascii()).count() as u64;
        }
        malformed += u64::from(!chunk.invalid().is_empty());
    }
    (well_formed, malformed)
}

fn guess_charset(bytes: &[u8]) -> &'static Charset {
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let sample = &bytes[first..];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&sample[..sample.len().min(DETECTION_BYTES)], sample.len() <= DETECTION_BYTES);
    detector.guess(None, Utf8Detection::Deny)
}

/// Returns the encoding that a `<meta>` tag or an XML declaration near the start of a text declares; `None` if there
/// is no declaration.
fn declared_by_html(bytes: &[u8]) -> Option<&'static Charset> {
    let head = bytes[..bytes.len().min(DECLARATION_BYTES)].to_ascii_lowercase();
    let tags = head.split(|&byte| byte == b'<').filter_map(|tag| tag.split(|&byte| byte == b'>').next());
    let label = tags.filter_map(|tag| {
        let attribute = if tag.starts_with(b"meta") {
            &b"charset"[..]
        } else if tag.starts_with(b"?xml") {
            b"encoding"
        } else {
            return None;
        };
        let at = tag.windows(attribute.len()).position(|window| window == attribute)?;
        let value = tag[at + attribute.len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
        value.split(|byte| b"\"'; /?\t\r\n".contains(byte)).next()
    });
    let charset = label.filter_map(Charset::for_label_no_replacement).next()?;
    // The tag is readable as ASCII, so the text is not UTF-16.
    Some(if charset == UTF_16LE || charset == UTF_16BE { UTF_8 } else { charset })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::bytes) fn encoding(label: &str) -> Encoding {
        label.parse().unwrap()
    }

    /// Encodes a text in the encoding with this label.
    pub(in crate::bytes) fn encoded(text: &str, label: &str) -> Vec<u8> {
        match label {
            "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            _ => Charset::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned(),
        }
    }

    const CHINESE: &str = "相似的文档具有相似的指纹，功能的许多差异在这里都会被发现。近似重复的网页很常见。";

    #[test]
    fn labels() {
        for label in ["gb18030", "GBK", "gb2312", "big5", "UTF-8", "utf-16le", "latin1"] {
            let parsed = encoding(label);
            assert_eq!(encoding(&parsed.to_string()), parsed);
        }
        for label in ["", "utf-9", "replacement"] {
            assert!(matches!(label.parse::<Encoding>(), Err(Error::BadArgument(_))), "{label}");
        }
    }

    #[test]
    fn texts_that_tell_their_encoding() {
        let html = |label: &str, meta: &str| encoded(&format!("<html><head>{meta}</head>{CHINESE}"), label);
        let of_http = |label: &str| Some(label.to_owned());
        for (bytes, declared) in [
            (CHINESE.as_bytes().to_vec(), None),
            (CHINESE.as_bytes().to_vec(), of_http("gb2312")),
            (format!("\u{feff}{CHINESE}").into_bytes(), of_http("big5")),
            (encoded(&format!("\u{feff}{CHINESE}"), "utf-16le"), None),
            (encoded(&format!("\u{feff}{CHINESE}"), "utf-16be"), None),
            (encoded(CHINESE, "utf-16be"), of_http("utf-16be")),
            (encoded(CHINESE, "gb18030"), None),
            (encoded(CHINESE, "gb18030"), of_http("GB2312")),
            (html("gbk", "<META http-equiv=x content='text/html; charset=gb2312'>"), None),
            (html("gbk", "<meta charset = \"gbk\" />"), None),
            (html("gbk", "<?xml version='1.0' encoding='gb18030'?>"), None),
            (encoded("Ελληνικά", "iso-8859-7"), of_http("iso-8859-7")),
            (encoded("日本", "iso-2022-jp"), of_http("iso-2022-jp")),
        ] {
            let ((text, replaced), _) = decode_text(&bytes, Encoding::AUTO, declared.as_deref());
            assert_eq!(replaced, 0, "{declared:?} {text}");
            let known = [CHINESE, "Ελληνικά", "日本"];
            assert!(known.iter().any(|known| text.ends_with(known)), "{declared:?} {text}");
        }
    }

    #[test]
    fn texts_that_are_guessed() {
        for (text, label, guessed) in [
            (CHINESE, "gb18030", "GBK"),
            (CHINESE, "utf-16le", "UTF-16LE"),
            (&*format!("一{CHINESE}\n"), "utf-16le", "UTF-16LE"),
            (&*format!("\n{CHINESE}"), "utf-16be", "UTF-16BE"),
            ("To be, or not to be", "utf-16le", "UTF-16LE"),
            ("a", "utf-16be", "UTF-16BE"),
        ] {
            let text = if label == "gb18030" { text.to_owned() } else { format!("{text} x") };
            let encoded = encoded(&text, label);
            let ((decoded, replaced), found) = decode_text(&encoded, Encoding::AUTO, None);
            assert_eq!((decoded, replaced, found), (text.into(), 0, Some(encoding(guessed))), "{label}");
        }
        for binary in [&b"\0\0\0\0"[..], b"a\0\x01\x02\x03bcd", b"\x7fELF\x02\x01\x01\0\0\0\0\0"] {
            assert_eq!(detect_utf16(binary), None, "{}", binary.escape_ascii());
        }
    }

    #[test]
    fn lines_that_are_not_utf8() {
        let other =
            |bytes: &[u8], before| detect_non_utf8(bytes, before).map(|encoding| encoding.to_string());
        assert_eq!(other(&encoded(CHINESE, "gb18030"), 0).as_deref(), Some("gb18030"));
        assert_eq!(other(&encoded(CHINESE, "big5"), 1 << 40).as_deref(), None);
        assert_eq!(other(&encoded(CHINESE, "big5").repeat(1000), 1 << 40).as_deref(), Some("Big5"));
        assert_eq!(other(b"\xe9t\xe9 \xe0 la plage", 0).as_deref(), Some("windows-1252"));
        assert_eq!(other(CHINESE.as_bytes(), 0), None);
        assert_eq!(other(b"\xff", 10_000), None);
        assert_eq!(other(b"\xe9", 0), None);
        assert_eq!(other("\u{e9}".as_bytes(), 0), None);
    }

    #[test]
    fn a_broken_character_makes_no_other_encoding() {
        let mut bytes = CHINESE.as_bytes().to_vec();
        bytes.pop();
        bytes.splice(3..3, [0xff, 0xff]);
        let ((text, replaced), guessed) = decode_text(&bytes, Encoding::AUTO, Some("gbk"));
        assert_eq!(guessed, None);
        let expected = String::from_utf8_lossy(&bytes);
        assert_eq!((&*text, replaced), (&*expected, 3));
        // Nor does one malformed character in ASCII, at any place, nor a few in a long text.
        for bad in 0..=255_u8 {
            for at in [0, 7, 19] {
                let mut bytes = b"To be, or not to be".to_vec();
                bytes.insert(at, bad);
                let is_malformed = u64::from(bad >= 0x80);
                if bad > 0 {
                    let ((_, replaced), guessed) = decode_text(&bytes, Encoding::AUTO, None);
                    assert_eq!((replaced, guessed), (is_malformed, None), "{bad}");
                }
            }
        }
        let few = [b"\xe9 ".to_vec(), b"to be or not ".repeat(60), b"\xe9 \xe8".to_vec()].concat();
        assert_eq!(decode_text(&few, Encoding::AUTO, None).1, None);
        // A declared encoding takes precedence.
        let ((latin, replaced), _) = decode_text(&few, Encoding::AUTO, Some("latin1"));
        assert!(replaced == 0 && latin.starts_with('\u{e9}'), "{latin}");
        let french = b"\xe9t\xe9 \xe0 la plage".to_vec();
        assert_eq!(decode_text(&french, Encoding::AUTO, None).1, Some(encoding("windows-1252")));
        assert_eq!(decode_line(&bytes, Encoding::AUTO), (text, 3));
        // A requested encoding is not checked.
        let ((text, replaced), _) = decode_text(CHINESE.as_bytes(), encoding("big5"), None);
        assert!(replaced > 0 && text.contains('\u{fffd}'));
    }

    #[test]
    fn malformed_bytes_of_other_encodings() {
        for (label, bytes) in
            [("gb18030", &b"a\xb0\xa1\xff\xffb\xb0"[..]), ("big5", b"a\xa4\x40\xff\xffb\xa4")]
        {
            let (text, replaced) = decode_line(bytes, encoding(label));
            assert_eq!(replaced, 3, "{label}");
            assert_eq!(text.matches('\u{fffd}').count(), 3);
            assert!(text.starts_with('a') && text.contains('b'));
        }
    }

    #[test]
    fn no_second_byte_is_a_line_end_or_a_quote() {
        for charset in ["gb18030", "gbk", "big5", "euc-kr", "shift_jis", "euc-jp"] {
            let charset = Charset::for_label(charset.as_bytes()).unwrap();
            for character in '\u{80}'..='\u{2ffff}' {
                let text = character.to_string();
                let (bytes, _, unmappable) = charset.encode(&text);
                assert!(unmappable || bytes.iter().all(|&byte| byte >= 0x30), "{charset:?} {character}");
            }
        }
    }
}
