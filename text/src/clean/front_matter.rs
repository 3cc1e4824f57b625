//! YAML front matter.

/// The most lines of front matter, without its first line.
const LINES_MAX: usize = 200;
/// The most bytes of front matter.
const BYTES_MAX: usize = 16 << 10;

/// Splits a text into its YAML front matter and the text after it.
///
/// The first line is `---`. Each line up to the next line `---` or `...` is a `key:`, a list item, an indented line, a comment or empty.
/// Anything else is text that begins with a rule. So is front matter of more than 200 lines or 16 KiB.
pub(super) fn split(text: &str) -> (&str, &str) {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return ("", text) };
    let mut end = first.len();
    for line in lines.take(LINES_MAX) {
        end += line.len();
        if end > BYTES_MAX {
            break;
        }
        match line.trim_end() {
            "---" | "..." => return text.split_at(end),
            line if is_yaml(line) => {}
            _ => break,
        }
    }
    ("", text)
}

/// Whether a line may stand in front matter. White space at its end was left out.
fn is_yaml(line: &str) -> bool {
    if line.is_empty() || line.starts_with([' ', '\t', '#']) || line == "-" || line.starts_with("- ") {
        return true;
    }
    // A key may hold colons: `ms:topic: reference`.
    let colon = line
        .match_indices(':')
        .find(|(at, _)| matches!(line.as_bytes().get(at + 1), None | Some(b' ' | b'\t')));
    let Some((key, _)) = colon.map(|(at, _)| line.split_at(at)) else { return false };
    let key = key.trim_end();
    let is_quoted = |quote: char| key.len() >= 2 && key.starts_with(quote) && key.ends_with(quote);
    let is_key = is_quoted('"') || is_quoted('\'') || !key.contains(char::is_whitespace);
    !key.is_empty() && is_key
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
