//! YAML front matter at the beginning of a text.

/// Maximum number of lines in front matter after its first line, which is `---`.
const LINES_MAX: usize = 200;
/// Maximum size of front matter in bytes.
const BYTES_MAX: usize = 16 << 10;

/// Splits a text into its YAML front matter, which is empty if there is none, and the rest of the text.
///
/// Front matter starts with a line `---` and ends with the next line `---` or `...`. Each line between them is a `key:`, a list
/// item, an indented line, a comment or empty. If any other line occurs, or the front matter would exceed 200 lines or 16 KiB, the
/// text has no front matter: its first line `---` is a thematic break of Markdown.
pub(super) fn split(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    if !bytes.starts_with(b"---") {
        return ("", text);
    }
    let mut end = line_end(bytes, 0);
    if bytes[..end].trim_ascii_end() != b"---" {
        return ("", text);
    }
    for _ in 0..LINES_MAX {
        let start = end;
        end = line_end(bytes, start);
        if start == end || end > BYTES_MAX {
            break;
        }
        match bytes[start..end].trim_ascii_end() {
            b"---" | b"..." => return text.split_at(end),
            line if is_front_matter_line(line) => {}
            _ => break,
        }
    }
    ("", text)
}

/// Returns the offset after the line that starts at offset `start`. The line includes its line feed.
fn line_end(bytes: &[u8], start: usize) -> usize {
    memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length + 1)
}

/// Whether front matter may contain a line: an empty or indented line, a comment, a list item, or a key with a colon. Trailing
/// white space was removed from `line`.
fn is_front_matter_line(line: &[u8]) -> bool {
    if matches!(line, [] | [b' ' | b'\t' | b'#', ..] | b"-" | [b'-', b' ', ..]) {
        return true;
    }
    // A key may hold colons: `ms:topic: reference`.
    let ends_key = |at: &usize| matches!(line.get(at + 1), None | Some(b' ' | b'\t'));
    let Some(colon) = memchr::memchr_iter(b':', line).find(ends_key) else { return false };
    let key = line[..colon].trim_ascii_end();
    let is_quoted = key.len() >= 2 && key[0] == key[key.len() - 1] && matches!(key[0], b'"' | b'\'');
    !key.is_empty() && (is_quoted || !key.iter().any(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_ends_at_its_closing_line() {
        for (text, rest) in [
            ("---\nid: 1\n---\ntext", "text"),
            ("---\r\nid: 1\r\n---\r\ntext", "text"),
            ("--- \nid: 1\n...\ntext\n---\n", "text\n---\n"),
            ("---\n---", ""),
            (
                "---\n# a comment\ntitle: >\n  two\n\n\tlines: x\nms:id: M:A.B(c)\ntags:\n- a\n-\n\"a key\": {}\nms.date: 1:2\n---\n\ntext",
                "\ntext",
            ),
        ] {
            assert_eq!(split(text).1, rest, "{text}");
            assert_eq!(split(text).0.len() + rest.len(), text.len());
        }
    }

    #[test]
    fn other_texts_begin_with_a_rule() {
        let (many_lines, many_bytes) = ("a: b\n".repeat(200), format!("a: {}\n", "b".repeat(BYTES_MAX)));
        for text in [
            "",
            "---",
            "---\nid: 1\ntext",
            "\n---\nid: 1\n---\n",
            "----\n---\n",
            "a\n---\nb\n---\n",
            "---\nA sentence of words.\n---\nb",
            "---\nThis note: it is text\n---\nb",
            "---\nid:1\n---\nb",
            "---\nhttp://example.org/\n---\n",
            "---\n: a\n---\n",
            "---\n-a\n---\n",
            &format!("---\n{many_lines}---\n"),
            &format!("---\n{many_bytes}---\n"),
        ] {
            assert_eq!(split(text), ("", text), "{text}");
        }
        assert_eq!(split(&format!("---\n{}---\nb", "a: b\n".repeat(199))).1, "b");
    }
}
