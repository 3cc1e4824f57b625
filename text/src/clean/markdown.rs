//! Code and links of Markdown, by CommonMark 0.31.

use crate::clean::tags::run;

/// The largest run of backquotes that may enclose a code span here. A limit keeps the search linear.
const BACKQUOTES_MAX: usize = 32;
/// The deepest nesting of brackets in the target of a link.
const TARGET_DEPTH_MAX: usize = 32;

/// The first line of fenced code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    sign: u8,
    /// Number of signs, at least 3.
    length: usize,
    /// Where the info string starts in the line.
    pub(super) info: usize,
}

impl Fence {
    /// Reads a line that opens fenced code, also inside block quotes and lists.
    pub(super) fn parse(line: &str, list_indent: usize) -> Option<Fence> {
        let start = containers_length(line);
        let bytes = &line.as_bytes()[start..];
        let indent = run(bytes, |b| b == b' ');
        let sign = *bytes.get(indent).filter(|&&sign| sign == b'`' || sign == b'~')?;
        let length = run(&bytes[indent..], |b| b == sign);
        let info = start + indent + length;
        // The info string after backquotes has no backquote: otherwise the line has code spans. A line of tildes with more
        // tildes is a heading in some plain texts.
        let is_fence = length >= 3 && indent <= 3 + list_indent && !line.as_bytes()[info..].contains(&sign);
        is_fence.then_some(Fence { sign, length, info })
    }

    /// Returns the content up to the line that closes the code, and the lengths of both in bytes.
    pub(super) fn content<'a>(&self, after: &'a str) -> Option<(&'a str, usize)> {
        let mut end = 0;
        for line in after.split_inclusive('\n') {
            let signs = line.trim_start_matches([' ', '\t', '>']).trim_end();
            if signs.len() >= self.length && signs.bytes().all(|b| b == self.sign) {
                return Some((&after[..end], end + line.len()));
            }
            end += line.len();
        }
        None
    }
}

/// Returns the length of the signs of block quotes and lists at the beginning of a line.
fn containers_length(line: &str) -> usize {
    let bytes = line.as_bytes();
    let mut length = 0;
    loop {
        let at = length + run(&bytes[length..], |b| b == b' ');
        match marker_length(&bytes[at..]) {
            0 => return length,
            marker => length = at + marker,
        }
    }
}

/// Returns the length of the sign of a block quote, with one space after it, or of a list item, with all spaces up to four.
fn marker_length(bytes: &[u8]) -> usize {
    let sign = match bytes.first() {
        Some(b'>') => return 1 + usize::from(bytes.get(1) == Some(&b' ')),
        Some(b'-' | b'*' | b'+') => 1,
        Some(b'0'..=b'9') => {
            let digits = run(bytes, |b| b.is_ascii_digit());
            match bytes.get(digits) {
                Some(b'.' | b')') if digits <= 9 => digits + 1,
                _ => return 0,
            }
        }
        _ => return 0,
    };
    match run(&bytes[sign..], |b| b == b' ') {
        0 => 0,
        spaces @ 1..=4 => sign + spaces,
        _ => sign + 1,
    }
}

/// Returns the indentation of the content of a list item that begins in a line, or of the list item around it, in spaces.
pub(super) fn list_indent(line: &str, around: usize) -> usize {
    let containers = containers_length(line);
    let indent = run(line.as_bytes(), |b| b == b' ');
    match containers > indent && !line.trim_start().starts_with('>') {
        true => containers,
        false if indent >= around || line.trim_end().is_empty() => around,
        false => 0,
    }
}

/// The code spans of a paragraph.
pub(super) struct CodeSpans {
    /// For each length of a run of backquotes, the paragraph that has no further run of this length.
    searched: [usize; BACKQUOTES_MAX + 1],
}

impl CodeSpans {
    pub(super) fn new() -> CodeSpans {
        CodeSpans { searched: [0; BACKQUOTES_MAX + 1] }
    }

    /// Returns the length of the code span at the beginning of a text, with its backquotes, and the length of its first run of backquotes.
    ///
    /// `end` is the length of the rest of the paragraph, `paragraph` a number that no other paragraph has, at least 1.
    pub(super) fn length(&mut self, text: &str, end: usize, paragraph: usize) -> (Option<usize>, usize) {
        let bytes = &text.as_bytes()[..end];
        let opening = run(bytes, |b| b == b'`');
        if opening > BACKQUOTES_MAX || self.searched[opening] == paragraph {
            return (None, opening);
        }
        let mut at = opening;
        while let Some(distance) = memchr::memchr(b'`', &bytes[at..]) {
            at += distance;
            let closing = run(&bytes[at..], |b| b == b'`');
            at += closing;
            if closing == opening {
                return (Some(at), opening);
            }
        }
        self.searched[opening] = paragraph;
        (None, opening)
    }
}

/// The open brackets of a paragraph: `[` or `![`.
#[derive(Default)]
pub(super) struct Brackets {
    /// For each open bracket, whether the bracket belongs to an image.
    are_images: Vec<bool>,
    /// Brackets of links below this depth open no link: a link holds no links.
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

    /// Closes a bracket. Returns the length of the target if the text begins with the target of an inline link.
    ///
    /// The text starts after `]`, and ends with its paragraph.
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

/// Returns the length of the target of an inline link at the beginning of a text: `(address "title")`.
fn target_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'(') {
        return None;
    }
    let mut at = 1 + spaces(&bytes[1..])?;
    at += address_length(&bytes[at..])?;
    let space = spaces(&bytes[at..])?;
    at += space;
    if space > 0 && matches!(bytes.get(at), Some(b'"' | b'\'' | b'(')) {
        at += title_length(&bytes[at..])?;
        at += spaces(&bytes[at..])?;
    }
    (bytes.get(at) == Some(&b')')).then_some(at + 1)
}

/// Returns the length of white space with at most one line break.
fn spaces(bytes: &[u8]) -> Option<usize> {
    let length = run(bytes, |b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
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

/// Returns the length of a backslash with the sign that it makes literal, or of a lone backslash.
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
        // A link holds no link, but an image.
        assert_eq!(brackets.close("(a)"), None);
        brackets.open(false);
        brackets.open(true);
        assert_eq!((brackets.close("(a)"), brackets.close("(bc)")), (Some(3), Some(4)));
    }
}
