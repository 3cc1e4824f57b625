//! Removal of markup from a text that may contain HTML, Markdown, both or none.

use crate::clean::drop_reason::DropReason;
use crate::clean::elements::ElementKind;
use crate::clean::markdown::{self, Brackets, CodeSpans, Fence};
use crate::clean::markup_positions::MarkupPositions;
use crate::clean::tags::Tag;
use crate::clean::{html, references, tags};

/// Appends `text` without its markup to `plain`, and returns `true`. If the text contains no markup, appends nothing and returns
/// `false`.
///
/// An HTML document, which begins with its document type or its `html` tag, is read as HTML. In any other text, markup is:
///
/// - Tags of known elements with well-formed attributes, and comments. They are dropped, and so is the content of `script` and
///   `style` elements. A tag that breaks lines leaves a line break; other tags leave nothing.
/// - Character references that end with a semicolon, also in code. A reference is decoded once.
/// - Inline links and images of Markdown. Their targets are dropped.
/// - Code of Markdown, in fences or between backquotes. Tags in code are kept. The info string of a fence is dropped.
///
/// Everything else is text. `dropped` is called for each dropped piece, unless the text is an HTML document.
pub(super) fn push<'a>(
    text: &'a str,
    markup: &mut MarkupPositions,
    plain: &mut String,
    dropped: &mut impl FnMut(DropReason, &'a str),
) -> bool {
    if !may_hold_markup(text) {
        return false;
    }
    if tags::is_html_document(text) {
        html::push(text, false, plain);
        return true;
    }
    plain.reserve(text.len());
    markup.find(text);
    let mut scanner = MarkupScanner {
        text,
        markup,
        plain,
        brackets: Brackets::default(),
        code_spans: CodeSpans::new(),
        paragraph_end: 0,
        is_paragraph_start: true,
        html_block: None,
        list_indent: 0,
        has_no_comment_end: false,
        has_no_code_end: [false; 2],
        dropped,
    };
    scanner.scan();
    true
}

/// Whether a text contains any character or marker that may begin markup.
fn may_hold_markup(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr2(b'<', b'&', bytes).is_some()
        || memchr::memchr3_iter(b']', b'`', b'~', bytes)
            .any(|at| [&b"]("[..], b"```", b"~~~"].iter().any(|start| bytes[at..].starts_with(start)))
}

/// Whether a line cannot start with markup because of its first byte, `byte`: an ASCII letter, or a byte outside ASCII.
fn begins_text(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

/// An HTML block of Markdown, classified by the condition that ends the block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HtmlBlock {
    /// A comment. The block ends with the line that contains `-->`.
    Comment,
    /// An element such as `pre`. The block ends with the line that contains the end tag.
    EndTag,
    /// Any other block. The block ends before the next empty line.
    EmptyLine,
}

struct MarkupScanner<'a, 'd, F> {
    text: &'a str,
    markup: &'d MarkupPositions,
    plain: &'d mut String,
    brackets: Brackets,
    code_spans: CodeSpans,
    /// Last result of [`paragraph_end`](Self::paragraph_end), an offset in bytes. The result is still valid as long as the
    /// scanner's position is before it.
    paragraph_end: usize,
    /// Whether the next line begins a paragraph.
    is_paragraph_start: bool,
    /// The HTML block that contains the current line, if any. In an HTML block, links and code spans of Markdown are not
    /// recognised.
    html_block: Option<HtmlBlock>,
    /// Indentation of the content of the current list item, in spaces.
    list_indent: usize,
    /// Whether the rest of the text is known to contain no `-->`. Without this flag, repeated searches take quadratic time.
    has_no_comment_end: bool,
    /// Whether the rest of the text is known to contain no end tag of `script` (index 0) or of `style` (index 1).
    has_no_code_end: [bool; 2],
    dropped: &'d mut F,
}

impl<'a, F: FnMut(DropReason, &'a str)> MarkupScanner<'a, '_, F> {
    fn scan(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = self.start_line(0);
        while at < bytes.len() {
            let mut end = self.markup.next(at).min(bytes.len());
            // Lines that begin with a letter need no check for markup at their start.
            while bytes.get(end) == Some(&b'\n') && bytes.get(end + 1).is_some_and(|&b| begins_text(b)) {
                self.start_plain_line(0);
                end = self.markup.next(end + 1).min(bytes.len());
            }
            self.plain.push_str(&self.text[at..end]);
            at = end;
            let Some(&start) = bytes.get(at) else { return };
            let length = match start {
                b'\n' => {
                    self.plain.push('\n');
                    at = self.start_line(at + 1);
                    continue;
                }
                b'<' => self.tag(at),
                b'&' => references::decode(&self.text[at..], self.plain),
                _ if self.html_block.is_some() => None,
                b'\\' => Some(self.copy(at, markdown::escape_length(&bytes[at..]))),
                b'`' => Some(self.code_span(at)),
                b'[' => {
                    self.brackets.open(at > 0 && bytes[at - 1] == b'!');
                    None
                }
                _ => self.link_target(at),
            };
            at += length.unwrap_or_else(|| self.copy(at, 1));
        }
    }

    /// Appends `length` bytes of the text unchanged, from offset `at` on. Returns `length`.
    fn copy(&mut self, at: usize, length: usize) -> usize {
        self.plain.push_str(&self.text[at..at + length]);
        length
    }

    /// Ends the paragraph at the empty line that starts at offset `at`. Returns `at`, because scanning continues there.
    fn end_paragraph(&mut self, at: usize) -> usize {
        self.brackets.clear();
        self.html_block = self.html_block.filter(|&end| end == HtmlBlock::EndTag);
        self.is_paragraph_start = true;
        at
    }

    /// Updates the scanner for a new line without markup at its start. `indent` is the line's indentation in bytes.
    fn start_plain_line(&mut self, indent: usize) {
        self.is_paragraph_start = false;
        if indent < self.list_indent {
            self.list_indent = 0;
        }
        self.html_block = self.html_block.filter(|&end| end != HtmlBlock::Comment);
    }

    /// Appends `length` bytes of code, from offset `start` on, with decoded character references. Returns `length`.
    fn copy_code(&mut self, start: usize, length: usize) -> usize {
        let (mut at, end) = (start, start + length);
        while let Some(distance) = memchr::memchr(b'&', &self.text.as_bytes()[at..end]) {
            self.copy(at, distance);
            at += distance;
            at += match references::decode(&self.text[at..end], self.plain) {
                Some(length) => length,
                None => self.copy(at, 1),
            };
        }
        self.copy(at, end - at);
        length
    }

    /// Handles markup at the start of the line at offset `at`, such as a code fence. Returns the offset at which scanning
    /// continues.
    fn start_line(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let indent = tags::prefix_length(rest.as_bytes(), |b| b == b' ' || b == b'\t');
        let is_paragraph_start = std::mem::replace(&mut self.is_paragraph_start, false);
        match rest.as_bytes().get(indent) {
            None | Some(b'\n') => return self.end_paragraph(at),
            Some(b'\r') if matches!(rest.as_bytes().get(indent + 1), None | Some(b'\n')) => {
                return self.end_paragraph(at);
            }
            Some(b'<' | b'`' | b'~' | b'-' | b'*' | b'+' | b'>' | b'0'..=b'9') => {}
            Some(_) => {
                self.start_plain_line(indent);
                return at;
            }
        }
        let line = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest, |end| &rest[..=end]);
        let first = &line[indent..];
        self.list_indent = markdown::list_indent(line, self.list_indent);
        // A comment is dropped as a whole, so its block has ended before this line.
        self.html_block = self.html_block.filter(|&end| end != HtmlBlock::Comment);
        if self.html_block.is_none() && first.starts_with('<') {
            self.html_block = html_block(first, is_paragraph_start);
        }
        if self.html_block.is_some() {
            return at;
        }
        match Fence::parse(line.trim_end(), self.list_indent) {
            Some(fence) => self.fenced_code(at, fence, line),
            None => at,
        }
    }

    fn fenced_code(&mut self, at: usize, fence: Fence, line: &'a str) -> usize {
        self.brackets.clear();
        let after = at + line.len();
        let Some((content, length)) = fence.content(&self.text[after..]) else {
            // Unclosed code extends to the end of the text.
            return at + self.copy_code(at, self.text.len() - at);
        };
        (self.dropped)(DropReason::FenceInfo, line[fence.info..].trim());
        self.plain.push_str(&line[..fence.info]);
        self.plain.push('\n');
        self.copy_code(after, content.len());
        self.plain.push('\n');
        after + length
    }

    /// Returns the offset of the end of the paragraph that contains the byte at offset `at`.
    fn paragraph_end(&mut self, at: usize) -> usize {
        if self.paragraph_end <= at {
            let bytes = self.text.as_bytes();
            let mut ends = memchr::memchr_iter(b'\n', &bytes[at..]).filter(|&end| {
                let next = &bytes[at + end + 1..];
                let spaces = tags::prefix_length(next, |b| matches!(b, b' ' | b'\t' | b'\r'));
                next.get(spaces) == Some(&b'\n')
            });
            self.paragraph_end = ends.next().map_or(bytes.len(), |end| at + end + 1);
        }
        self.paragraph_end
    }

    fn code_span(&mut self, at: usize) -> usize {
        let end = self.paragraph_end(at);
        let (span, backquotes) = self.code_spans.length(&self.text[at..], end - at, end);
        self.copy_code(at, span.unwrap_or(backquotes))
    }

    fn link_target(&mut self, at: usize) -> Option<usize> {
        let end = if self.text[at..].starts_with("](") { self.paragraph_end(at) } else { at + 1 };
        let target = self.brackets.close(&self.text[at + 1..end])?;
        (self.dropped)(DropReason::LinkTarget, &self.text[at + 1..at + 1 + target]);
        self.plain.push(']');
        Some(1 + target)
    }

    /// Drops the tag or comment that begins with the `<` at offset `at`, and the content of a `script` or `style` element. Returns
    /// the length of the dropped text in bytes, or `None` if the `<` is not markup.
    fn tag(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        if rest.starts_with("<!") {
            return self.comment(rest);
        }
        if !rest.as_bytes().get(1).is_some_and(|&b| b == b'/' || b.is_ascii_alphabetic()) {
            return None;
        }
        let limit = self.paragraph_end(at) - at;
        let tag = Tag::parse(rest, limit)?;
        (self.dropped)(DropReason::Tag, &rest[..tag.length]);
        self.plain.push_str(match tag.kind() {
            ElementKind::Code | ElementKind::Inline | ElementKind::Hidden => "",
            ElementKind::LineBreak => "\n",
            _ => "\n\n",
        });
        if tag.is_end
            && self.html_block == Some(HtmlBlock::EndTag)
            && tags::RAW_BLOCK_ELEMENTS.contains(&tag.name())
        {
            self.html_block = None;
        }
        let mut length = tag.length;
        let has_no_end = &mut self.has_no_code_end[usize::from(tag.name() == "style")];
        if tag.kind() == ElementKind::Code && !tag.is_end && !*has_no_end {
            match tags::code_length(&rest[length..], tag.name()) {
                Some(code) => {
                    (self.dropped)(DropReason::Code, &rest[length..length + code]);
                    length += code;
                }
                None => *has_no_end = true,
            }
        }
        Some(length)
    }

    fn comment(&mut self, rest: &'a str) -> Option<usize> {
        if rest.starts_with("<!--") && !self.has_no_comment_end {
            let length = tags::comment_length(rest);
            self.has_no_comment_end = length.is_none();
            (self.dropped)(DropReason::Comment, &rest[..length?]);
            return length;
        }
        let length = tags::doctype_length(rest)?;
        (self.dropped)(DropReason::Tag, &rest[..length]);
        Some(length)
    }
}

/// Returns the HTML block that a line starting with `<` opens, if any. Some lines open a block only at the start of a paragraph,
/// where `is_paragraph_start` is true.
fn html_block(line: &str, is_paragraph_start: bool) -> Option<HtmlBlock> {
    if line.starts_with("<!--") {
        return Some(HtmlBlock::Comment);
    }
    if tags::opens_raw_block(line) {
        return Some(HtmlBlock::EndTag);
    }
    let is_block = tags::opens_block(line) || is_paragraph_start && tags::is_only_tag(line);
    is_block.then_some(HtmlBlock::EmptyLine)
}
