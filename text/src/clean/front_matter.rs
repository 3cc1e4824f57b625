//! YAML front matter.

/// The text after its YAML front matter: a first line `---`, up to the next line `---` or `...`.
///
/// Front matter that is never closed is text.
pub(crate) fn without_front_matter(text: &str) -> &str {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return text };
    let mut end = first.len();
    for line in lines {
        end += line.len();
        if matches!(line.trim_end(), "---" | "...") {
            return &text[end..];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_ends_at_its_closing_line() {
        assert_eq!(without_front_matter("---\nid: 1\n---\ntext"), "text");
        assert_eq!(without_front_matter("---\r\nid: 1\r\n---\r\ntext"), "text");
        assert_eq!(without_front_matter("--- \nid: 1\n...\ntext\n---\n"), "text\n---\n");
        assert_eq!(without_front_matter("---\n---"), "");
        for text in ["", "---", "---\nid: 1\ntext", "\n---\nid: 1\n---\n", "----\n---\n", "a\n---\nb\n---\n"]
        {
            assert_eq!(without_front_matter(text), text);
        }
    }
}
