//! Finds code blocks, code spans and links in Markdown, by the rules of CommonMark 0.31.

use crate::clean::tags::prefix_length;

/// Maximum number of backquotes at each end of a code span. With this limit, the search for code spans takes time linear in the
/// text.
const BACKQUOTES_MAX: usize = 32;
/// Maximum nesting depth of parentheses in the address of a link.
const TARGET_DEPTH_MAX: usize = 32;

/// The opening line of a fenced code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// Character that the fence consists of: a backquote or a tilde.
    marker: u8,
    /// Length of the fence in marker characters, at least 3.
    length: usize,
    /// Offset in the line, in bytes, of the info string: the text after the fence, such as the code's language.
    pub(super) info: usize,
}

impl Fence {
    /// Parses a line that opens a fenced code block, also inside block quotes and lists. Returns `None` for any other line.
    /// `list_indent` is the indentation of the current list item's content, in spaces.
    pub(super) fn parse(line: &str, list_indent: usize) -> Option<Fence> {
        let start = container_prefix_length(line);
        let bytes = &line.as_bytes()[start..];
        let indent = prefix_length(bytes, |b| b == b' ');
        let marker = *bytes.get(indent).filter(|&&marker| marker == b'`' || marker == b'~')?;
        let length = prefix_length(&bytes[indent..], |b| b == marker);
        let info = start + indent + length;
        // An info string must not contain the marker. With further backquotes, the line contains code spans. With further
        // tildes, the line is a heading in some plain texts.
        let is_fence = length >= 3 && indent <= 3 + list_indent && !line.as_bytes()[info..].contains(&marker);
        is_fence.then_some(Fence { marker, length, info })
    }

    /// Finds the line that closes the code block. `after` is the text after the opening line. Returns the code, and the length in
    /// bytes of the code and the closing line together. Returns `None` if no line closes the block.
    pub(super) fn content<'a>(&self, after: &'a str) -> Option<(&'a str, usize)> {
        let mut end = 0;
        for line in after.split_inclusive('\n') {
            let markers = line.trim_start_matches([' ', '\t', '>']).trim_end();
            if markers.len() >= self.length && markers.bytes().all(|b| b == self.marker) {
                return Some((&after[..end], end + line.len()));
            }
            end += line.len();
        }
        None
    }
}

/// Returns the length in bytes of the block quote markers and list markers at the beginning of a line.
fn container_prefix_length(line: &str) -> usize {
    let bytes = line.as_bytes();
    let mut length = 0;
    loop {
        let at = length + prefix_length(&bytes[length..], |b| b == b' ');
        match marker_length(&bytes[at..]) {
            0 => return length,
            marker => length = at + marker,
        }
    }
}

/// Returns the length in bytes of the block quote marker or list marker at the beginning of a line, including the spaces after
/// it. At most one space counts after a block quote marker. If more than four spaces follow a list marker, only one of them
/// counts. Returns 0 if the line begins with no marker.
fn marker_length(bytes: &[u8]) -> usize {
    let marker = match bytes.first() {
        Some(b'>') => return 1 + usize::from(bytes.get(1) == Some(&b' ')),
        Some(b'-' | b'*' | b'+') => 1,
        Some(b'0'..=b'9') => {
            let digits = prefix_length(bytes, |b| b.is_ascii_digit());
            match bytes.get(digits) {
                Some(b'.' | b')') if digits <= 9 => digits + 1,
                _ => return 0,
            }
        }
        _ => return 0,
    };
    match prefix_length(&bytes[marker..], |b| b == b' ') {
        0 => 0,
        spaces @ 1..=4 => marker + spaces,
        _ => marker + 1,
    }
}

/// Returns the number of spaces before the content of the list item that contains `line`. The line may begin this list item.
/// Returns 0 if the line is outside of lists. `around` is the result for the line before.
pub(super) fn list_indent(line: &str, around: usize) -> usize {
    let containers = container_prefix_length(line);
    let indent = prefix_length(line.as_bytes(), |b| b == b' ');
    match containers > indent && !line.trim_start().starts_with('>') {
        true => containers,
        false if indent >= around || line.trim_end().is_empty() => around,
        false => 0,
    }
}

/// Finds code spans of Markdown, in time linear in the length of a text, because it remembers which searches found nothing.
pub(super) struct CodeSpans {
    /// For each n, the identifier of the last paragraph in which a search found no closing run of exactly n backquotes. The rest of
    /// this paragraph is not searched for such a run again. 0 if no search was in vain.
    exhausted_in: [usize; BACKQUOTES_MAX + 1],
}

impl CodeSpans {
    pub(super) fn new() -> CodeSpans {
        CodeSpans { exhausted_in: [0; BACKQUOTES_MAX + 1] }
    }

    /// Returns two lengths in bytes for the backquotes at the beginning of a text: first the length of the code span that they
    /// open, including all its backquotes, then the number of opening backquotes. The first is `None` if no equally long run of
    /// backquotes in the paragraph closes the span.
    ///
    /// The paragraph ends after the first `end` bytes of the text. `paragraph` is an identifier of the paragraph, at least 1.
    pub(super) fn length(&mut self, text: &str, end: usize, paragraph: usize) -> (Option<usize>, usize) {
        let bytes = &text.as_bytes()[..end];
        let opening = prefix_length(bytes, |b| b == b'`');
        if opening > BACKQUOTES_MAX || self.exhausted_in[opening] == paragraph {
            return (None, opening);
        }
        let mut at = opening;
        while let Some(distance) = memchr::memchr(b'`', &bytes[at..]) {
            at += distance;
            let closing = prefix_length(&bytes[at..], |b| b == b'`');
            at += closing;
            if closing == opening {
                return (Some(at), opening);
            }
        }
        self.exhausted_in[opening] = paragraph;
        (None, opening)
    }
}

/// The stack of open brackets, `[` or `![`, in a paragraph.
#[derive(Default)]
pub(super) struct Brackets {
    /// For each open bracket, whether it begins an image.
    are_images: Vec<bool>,
    /// Number of open brackets, counted from the outermost, that cannot begin a link because they already enclose a link.
    inactive: usize,
}

impl Brackets {
    pub(super) fn clear(&mut self) {
        self.are_images.clear();
        self.inactive = 0;
    }

    pub(super) fn open(&mut self, is_image: bool) {
        self.are_images.push(is_image);
    }

    /// Closes the innermost open bracket. `text` is the rest of the paragraph after the closing `]`. If the brackets enclose the
    /// text of an inline link or image, returns the length in bytes of the link target, which follows the `]`. Otherwise returns
    /// `None`.
    pub(super) fn close(&mut self, text: &str) -> Option<usize> {
        let is_image = self.are_images.pop()?;
        let depth = self.are_images.len();
        let is_active = is_image || depth >= self.inactive;
        self.inactive = self.inactive.min(depth);
        let length = if is_active { target_length(text) } else { None };
        if length.is_some() && !is_image {
            self.inactive = depth;
        }
        length
    }
}

/// Returns the length in bytes of the link target, `(address "title")`, at the beginning of a text, or `None` if there is none.
fn target_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'(') {
        return None;
    }
    let mut at = 1 + white_space_length(&bytes[1..])?;
    at += address_length(&bytes[at..])?;
    let space = white_space_length(&bytes[at..])?;
    at += space;
    if space > 0 && matches!(bytes.get(at), Some(b'"' | b'\'' | b'(')) {
        at += title_length(&bytes[at..])?;
        at += white_space_length(&bytes[at..])?;
    }
    (bytes.get(at) == Some(&b')')).then_some(at + 1)
}

/// Returns the length in bytes of the leading white space, or `None` if it contains more than one line break.
fn white_space_length(bytes: &[u8]) -> Option<usize> {
    let length = prefix_length(bytes, |b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
    (bytes[..length].iter().filter(|&&b| b == b'\n').count() <= 1).then_some(length)
}

fn address_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    if bytes.first() == Some(&b'<') {
        at = 1;
        loop {
            match *bytes.get(at)? {
                b'>' => return Some(at + 1),
                b'<' | b'\n' | b'\r' => return None,
                b'\\' => at += escape_length(&bytes[at..]),
                _ => at += 1,
            }
        }
    }
    let mut depth = 0;
    loop {
        match bytes.get(at) {
            Some(b'(') if depth < TARGET_DEPTH_MAX => (depth, at) = (depth + 1, at + 1),
            Some(b'(') => return None,
            Some(b')') if depth > 0 => (depth, at) = (depth - 1, at + 1),
            Some(b'\\') => at += escape_length(&bytes[at..]),
            Some(&byte) if byte != b')' && byte > b' ' && byte != 0x7f => at += 1,
            _ => return (depth == 0).then_some(at),
        }
    }
}

fn title_length(bytes: &[u8]) -> Option<usize> {
    let close = if bytes[0] == b'(' { b')' } else { bytes[0] };
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            byte if byte == close => return Some(at + 1),
            b'(' if close == b')' => return None,
            b'\\' => at += escape_length(&bytes[at..]),
            _ => at += 1,
        }
    }
}

/// Returns the length in bytes of a backslash escape: 2 if ASCII punctuation follows the backslash, otherwise 1.
pub(super) fn escape_length(bytes: &[u8]) -> usize {
    1 + usize::from(bytes.get(1).is_some_and(u8::is_ascii_punctuation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences() {
        let info = |line: &str| Fence::parse(line, 0).map(|fence| line[fence.info..].to_owned());
        for (line, expected) in
            [("```", ""), ("   ~~~~ rust", " rust"), ("> ```c", "c"), ("- ```c", "c"), ("12. > * ~~~", "")]
        {
            assert_eq!(info(line).as_deref(), Some(expected), "{line}");
        }
        for line in ["``", "    ```", "``` a `b`", "~~~ title ~~~", "a ```", "-```", "1234567890. ```"] {
            assert_eq!(info(line), None, "{line}");
        }
        assert!(Fence::parse("     ```", 2).is_some());
        let fence = Fence::parse("~~~~", 0).unwrap();
        assert_eq!(fence.content("a\n~~~\n  ~~~~~ \nb"), Some(("a\n~~~\n", 15)));
        assert_eq!(fence.content("~~~~ x\n````\n"), None);
    }

    #[test]
    fn lists() {
        assert_eq!((list_indent("- a", 0), list_indent("10. a", 0), list_indent("  *  a", 0)), (2, 4, 5));
        assert_eq!((list_indent("  a", 2), list_indent(" a", 2), list_indent(" \n", 2)), (2, 0, 2));
        assert_eq!(list_indent("> a", 0), 0);
    }

    #[test]
    fn targets_of_links() {
        for (target, length) in [
            ("()", 2),
            ("(a)b", 3),
            ("(a_(b)_c)", 9),
            ("( <a b> \"t)\" )", 14),
            ("(a\n 'it\\'s')", 12),
            ("(a (b))", 7),
            ("(a\\)b)", 6),
        ] {
            assert_eq!(target_length(target), Some(length), "{target}");
        }
        for text in [
            "", "a", "(", "(a b)", "(a\"", "(a \"b)", "(<a\n>)", "(a(b)", "(\n\na)", "(a (b(c)))", "(a 'b'c)",
        ] {
            assert_eq!(target_length(text), None, "{text}");
        }
    }

    #[test]
    fn brackets_of_links() {
        let mut brackets = Brackets::default();
        assert_eq!(brackets.close("(a)"), None);
        brackets.open(false);
        brackets.open(false);
        assert_eq!(brackets.close("(a)"), Some(3));
        // A link may contain an image, but no link.
        assert_eq!(brackets.close("(a)"), None);
        brackets.open(false);
        brackets.open(true);
        assert_eq!((brackets.close("(a)"), brackets.close("(bc)")), (Some(3), Some(4)));
    }
}
