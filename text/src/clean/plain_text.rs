//! The plain text of a document that may hold HTML, Markdown, both or none.

use crate::clean::dropped::Dropped;
use crate::clean::elements::Kind;
use crate::clean::markdown::{self, Brackets, CodeSpans, Fence};
use crate::clean::signs::Signs;
use crate::clean::tags::Tag;
use crate::clean::{html, references, tags};

/// Appends a text without its markup, if the text may hold markup, and returns `true`. Otherwise, appends nothing.
///
/// An HTML document, which begins with its document type or its `html` tag, is read as HTML. Any other text may hold:
///
/// - Tags of known elements with well-formed attributes, and comments. All of them are dropped, also `script` and `style` elements
///   with their content. A tag that breaks lines leaves a line break, other tags leave nothing.
/// - Character references that end with a semicolon, in code too. A reference is decoded once.
/// - Inline links and images of Markdown. Their targets are dropped.
/// - Code of Markdown, in fences or between backquotes. Tags in code stay. The info string after a fence is dropped.
///
/// Everything else is text. `dropped` gets each piece that is dropped from a text that is no HTML document.
pub(super) fn push<'a>(
    text: &'a str,
    signs: &mut Signs,
    plain: &mut String,
    dropped: &mut impl FnMut(Dropped, &'a str),
) -> bool {
    if !may_hold_markup(text) {
        return false;
    }
    if tags::is_html_document(text) {
        html::push(text, false, plain);
        return true;
    }
    plain.reserve(text.len());
    signs.find(text);
    let mut scanner = Scanner {
        text,
        signs,
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

/// Whether a text holds any sign that begins markup here.
fn may_hold_markup(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr2(b'<', b'&', bytes).is_some()
        || memchr::memchr3_iter(b']', b'`', b'~', bytes)
            .any(|at| [&b"]("[..], b"```", b"~~~"].iter().any(|sign| bytes[at..].starts_with(sign)))
}

/// Whether a line that begins with a byte begins with no markup.
fn begins_text(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

/// The end of an HTML block of Markdown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HtmlBlock {
    /// The line with the end of the comment.
    Comment,
    /// The line with the end tag.
    EndTag,
    EmptyLine,
}

struct Scanner<'a, 'd, F> {
    text: &'a str,
    signs: &'d Signs,
    plain: &'d mut String,
    brackets: Brackets,
    code_spans: CodeSpans,
    /// End of the current paragraph, at the next empty line, if already found.
    paragraph_end: usize,
    /// Whether the next line begins a paragraph.
    is_paragraph_start: bool,
    /// The HTML block of Markdown around the current line. An HTML block has no links and no code spans.
    html_block: Option<HtmlBlock>,
    /// Indentation of the content of the current list item, in spaces.
    list_indent: usize,
    /// Whether no `-->` is left. Repeating the search would take quadratic time.
    has_no_comment_end: bool,
    /// Whether no end tag of `script`, and of `style`, is left.
    has_no_code_end: [bool; 2],
    dropped: &'d mut F,
}

impl<'a, F: FnMut(Dropped, &'a str)> Scanner<'a, '_, F> {
    fn scan(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = self.start_line(0);
        while at < bytes.len() {
            let mut end = self.signs.next(at).min(bytes.len());
            // A line that begins with a letter begins no markup.
            while bytes.get(end) == Some(&b'\n') && bytes.get(end + 1).is_some_and(|&b| begins_text(b)) {
                self.start_plain_line(0);
                end = self.signs.next(end + 1).min(bytes.len());
            }
            self.plain.push_str(&self.text[at..end]);
            at = end;
            let Some(&sign) = bytes.get(at) else { return };
            let length = match sign {
                b'\n' => {
                    self.plain.push('\n');
                    at = self.start_line(at + 1);
                    continue;
                }
                b'<' => self.tag(at),
                b'&' => references::decode(&self.text[at..], self.plain),
                _ if self.html_block.is_some() => None,
                b'\\' => Some(self.keep(at, markdown::escape_length(&bytes[at..]))),
                b'`' => Some(self.code_span(at)),
                b'[' => {
                    self.brackets.open(at > 0 && bytes[at - 1] == b'!');
                    None
                }
                _ => self.link_target(at),
            };
            at += length.unwrap_or_else(|| self.keep(at, 1));
        }
    }

    /// Appends a piece unchanged.
    fn keep(&mut self, at: usize, length: usize) -> usize {
        self.plain.push_str(&self.text[at..at + length]);
        length
    }

    /// Ends a paragraph at an empty line. Returns where the line starts.
    fn end_paragraph(&mut self, at: usize) -> usize {
        self.brackets.clear();
        self.html_block = self.html_block.filter(|&end| end == HtmlBlock::EndTag);
        self.is_paragraph_start = true;
        at
    }

    /// Starts a line that begins with no markup, after an indentation.
    fn start_plain_line(&mut self, indent: usize) {
        self.is_paragraph_start = false;
        if indent < self.list_indent {
            self.list_indent = 0;
        }
        self.html_block = self.html_block.filter(|&end| end != HtmlBlock::Comment);
    }

    /// Takes a piece of code as it is, but for character references. Returns its length.
    fn keep_code(&mut self, start: usize, length: usize) -> usize {
        let (mut at, end) = (start, start + length);
        while let Some(distance) = memchr::memchr(b'&', &self.text.as_bytes()[at..end]) {
            self.keep(at, distance);
            at += distance;
            at += match references::decode(&self.text[at..end], self.plain) {
                Some(length) => length,
                None => self.keep(at, 1),
            };
        }
        self.keep(at, end - at);
        length
    }

    /// Takes markup at the start of a line, such as a fence. Returns the start of the text that remains.
    fn start_line(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let indent = tags::run(rest.as_bytes(), |b| b == b' ' || b == b'\t');
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
        // Comments are dropped as a whole: their block ends with this line feed.
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
            // Code that is never closed extends to the end of the text.
            return at + self.keep_code(at, self.text.len() - at);
        };
        (self.dropped)(Dropped::FenceInfo, line[fence.info..].trim());
        self.plain.push_str(&line[..fence.info]);
        self.plain.push('\n');
        self.keep_code(after, content.len());
        self.plain.push('\n');
        after + length
    }

    /// Returns where the current paragraph ends.
    fn paragraph_end(&mut self, at: usize) -> usize {
        if self.paragraph_end <= at {
            let bytes = self.text.as_bytes();
            let mut ends = memchr::memchr_iter(b'\n', &bytes[at..]).filter(|&end| {
                let next = &bytes[at + end + 1..];
                let spaces = tags::run(next, |b| matches!(b, b' ' | b'\t' | b'\r'));
                next.get(spaces) == Some(&b'\n')
            });
            self.paragraph_end = ends.next().map_or(bytes.len(), |end| at + end + 1);
        }
        self.paragraph_end
    }

    fn code_span(&mut self, at: usize) -> usize {
        let end = self.paragraph_end(at);
        let (span, backquotes) = self.code_spans.length(&self.text[at..], end - at, end);
        self.keep_code(at, span.unwrap_or(backquotes))
    }

    fn link_target(&mut self, at: usize) -> Option<usize> {
        let end = if self.text[at..].starts_with("](") { self.paragraph_end(at) } else { at + 1 };
        let target = self.brackets.close(&self.text[at + 1..end])?;
        (self.dropped)(Dropped::LinkTarget, &self.text[at + 1..at + 1 + target]);
        self.plain.push(']');
        Some(1 + target)
    }

    /// Drops the tag or comment at a position. Returns its length.
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
        (self.dropped)(Dropped::Tag, &rest[..tag.length]);
        self.plain.push_str(match tag.kind() {
            Kind::Code | Kind::Inline | Kind::Hidden => "",
            Kind::Break => "\n",
            _ => "\n\n",
        });
        if tag.is_end && self.html_block == Some(HtmlBlock::EndTag) && tags::RAW_BLOCKS.contains(&tag.name())
        {
            self.html_block = None;
        }
        let mut length = tag.length;
        let has_no_end = &mut self.has_no_code_end[usize::from(tag.name() == "style")];
        if tag.kind() == Kind::Code && !tag.is_end && !*has_no_end {
            match tags::code_length(&rest[length..], tag.name()) {
                Some(code) => {
                    (self.dropped)(Dropped::Code, &rest[length..length + code]);
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
            (self.dropped)(Dropped::Comment, &rest[..length?]);
            return length;
        }
        let length = tags::doctype_length(rest)?;
        (self.dropped)(Dropped::Tag, &rest[..length]);
        Some(length)
    }
}

/// Returns the HTML block that begins with a line.
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
