//! Finds HTML tags and comments in a text that may or may not be HTML.
//!
//! For the WHATWG's tokenizer, `<` and a letter open a tag that ends at the next `>`. In plain text, many words may lie between
//! such a `<` and the next `>`. So this module accepts a tag only if its element is known, its attributes are well-formed, and
//! it contains no empty line (as in CommonMark).

use crate::clean::elements::{self, ELEMENTS, ElementKind};

/// A parsed start tag or end tag of an HTML element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// Index of the element in [`ELEMENTS`].
    pub(super) element: usize,
    pub(super) is_end: bool,
    /// Length of the tag in bytes.
    pub(super) length: usize,
}

impl Tag {
    /// Parses the tag at the beginning of a text. Returns `None` if the text begins with no tag, or the tag does not end within the
    /// first `limit` bytes.
    pub(super) fn parse(text: &str, limit: usize) -> Option<Tag> {
        let bytes = &text.as_bytes()[..limit];
        let is_end = bytes.get(1) == Some(&b'/');
        let start = if is_end { 2 } else { 1 };
        let mut at = start + prefix_length(&bytes[start.min(bytes.len())..], |b| b.is_ascii_alphanumeric());
        let element = elements::element_index(bytes.get(start..at)?)?;
        loop {
            let spaces = prefix_length(&bytes[at..], is_space);
            let has_space = spaces > 0;
            at += spaces;
            match *bytes.get(at)? {
                b'>' => return Some(Tag { element, is_end, length: at + 1 }),
                b'/' if bytes.get(at + 1) == Some(&b'>') && !is_end => {
                    return Some(Tag { element, is_end, length: at + 2 });
                }
                // The space after a quoted value is optional, because some authors omit it.
                _ if !is_end && (has_space || matches!(bytes[at - 1], b'"' | b'\'')) => {
                    at += attribute_length(&text[at..limit])?;
                }
                _ => return None,
            }
        }
    }

    pub(super) fn kind(&self) -> ElementKind {
        ELEMENTS[self.element].1
    }

    pub(super) fn name(&self) -> &'static str {
        ELEMENTS[self.element].0
    }
}

/// Returns the length in bytes of the well-formed attribute at the beginning of a text, or `None` if there is none. An attribute is
/// well-formed if its name is known or its value is quoted.
fn attribute_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let name = prefix_length(bytes, |b| b.is_ascii_alphanumeric() || b"_:.@#*()[]-".contains(&b));
    if name == 0 {
        return None;
    }
    let lower = || text[..name].to_ascii_lowercase();
    let equals = name + prefix_length(&bytes[name..], is_space);
    if bytes.get(equals) != Some(&b'=') {
        return elements::is_boolean_attribute(&lower()).then_some(name);
    }
    let value = equals + 1 + prefix_length(&bytes[equals + 1..], is_space);
    match *bytes.get(value)? {
        quote @ (b'"' | b'\'') => {
            let length = memchr::memchr(quote, &bytes[value + 1..])?;
            Some(value + 1 + length + 1)
        }
        _ => {
            let length = prefix_length(&bytes[value..], |b| !is_space(b) && !b"\"'<>=`".contains(&b));
            (length > 0 && elements::is_attribute(&lower())).then_some(value + length)
        }
    }
}

/// Elements whose tags open an HTML block in Markdown (CommonMark 0.31, section 4.6, condition 6), in alphabetical order.
const BLOCK_ELEMENTS: &[&str] = &[
    "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col",
    "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr",
    "html", "iframe", "legend", "li", "link", "main", "menu", "menuitem", "nav", "noframes", "ol",
    "optgroup", "option", "p", "param", "search", "section", "summary", "table", "tbody", "td", "tfoot",
    "th", "thead", "title", "tr", "track", "ul",
];
/// Elements whose HTML block extends from the start tag to the end tag (CommonMark 0.31, section 4.6, condition 1).
pub(super) const RAW_BLOCK_ELEMENTS: &[&str] = &["pre", "script", "style", "textarea"];

/// Whether a line that begins with `<` opens an HTML block that may interrupt a paragraph of Markdown.
pub(super) fn opens_block(line: &str) -> bool {
    let rest = line.strip_prefix("</").unwrap_or(&line[1..]);
    opens_raw_block(line)
        || name_at_start(rest).is_some_and(|name| BLOCK_ELEMENTS.binary_search(&&*name).is_ok())
}

/// Whether a line begins with the start tag of one of the [`RAW_BLOCK_ELEMENTS`], which opens an HTML block. The line must begin
/// with `<`.
pub(super) fn opens_raw_block(line: &str) -> bool {
    name_at_start(&line[1..]).is_some_and(|name| RAW_BLOCK_ELEMENTS.contains(&&*name))
}

/// Whether a line consists of a single tag.
pub(super) fn is_only_tag(line: &str) -> bool {
    Tag::parse(line, line.len()).is_some_and(|tag| line[tag.length..].trim().is_empty())
}

fn name_at_start(text: &str) -> Option<String> {
    let name = prefix_length(text.as_bytes(), |b| b.is_ascii_alphanumeric());
    let rest = &text[name..];
    let ends = rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n', '>']) || rest.starts_with("/>");
    ends.then(|| text[..name].to_ascii_lowercase())
}

/// Returns the length in bytes of the comment at the beginning of a text that starts with `<!--`; `None` if it has no end.
pub(super) fn comment_length(text: &str) -> Option<usize> {
    // `<!-->` and `<!--->` are empty comments.
    let empty = ["<!-->", "<!--->"].into_iter().find(|comment| text.starts_with(comment));
    empty.map(str::len).or_else(|| text[4..].find("-->").map(|length| 4 + length + 3))
}

/// Returns the length in bytes of the document type declaration at the beginning of a text, if the text begins with one.
pub(super) fn doctype_length(text: &str) -> Option<usize> {
    const START: &str = "<!doctype html";
    let (head, rest) = text.as_bytes().split_at_checked(START.len())?;
    let is_doctype = head.eq_ignore_ascii_case(START.as_bytes())
        && rest.first().is_some_and(|&b| is_space(b) || b == b'>');
    let end = if is_doctype { prefix_length(rest, |b| b != b'<' && b != b'>') } else { return None };
    (rest.get(end) == Some(&b'>')).then_some(START.len() + end + 1)
}

/// Returns the length in bytes of the content of a `script` or `style` element, or `None` if it has no end tag. `name` is the name
/// of the element. `text` begins after its start tag.
pub(super) fn code_length(text: &str, name: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memmem::find_iter(bytes, b"</").find(|&at| {
        let rest = &bytes[at + 2..];
        rest.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes()))
            && rest.get(name.len()).is_some_and(|&b| is_space(b) || b == b'>' || b == b'/')
    })
}

/// Whether a text is an HTML document: it begins with a document type declaration or an `html` tag. An XML declaration and
/// comments may come before.
pub(super) fn is_html_document(text: &str) -> bool {
    let mut rest = text.trim_start();
    if rest.starts_with("<?xml") {
        rest = rest.split_once("?>").map_or("", |(_, rest)| rest).trim_start();
    }
    while rest.starts_with("<!--") {
        let Some(length) = comment_length(rest) else { return false };
        rest = rest[length..].trim_start();
    }
    doctype_length(rest).is_some()
        || Tag::parse(rest, rest.len()).is_some_and(|tag| !tag.is_end && tag.name() == "html")
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

/// Returns the length in bytes of the leading run of bytes that satisfy `is_in`.
pub(super) fn prefix_length(bytes: &[u8], is_in: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&b| !is_in(b)).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
    use html5gum::{Span, Tokenizer};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_of_markdown() {
        assert!(BLOCK_ELEMENTS.is_sorted());
        for line in ["<div>", "<DIV class=x", "</p>", "<hr/>", "<pre>a", "<script"] {
            assert!(opens_block(line), "{line}");
        }
        for line in ["<", "</", "<b>", "<divx>", "</pre>", "<div:"] {
            assert!(!opens_block(line), "{line}");
        }
        assert!(opens_raw_block("<PRE>") && !opens_raw_block("<p>"));
        assert!(is_only_tag("<a href=x> \n") && !is_only_tag("<a href=x>a"));
    }

    fn parsed(text: &str) -> Option<(&str, &str)> {
        Tag::parse(text, text.len()).map(|tag| (tag.name(), &text[tag.length..]))
    }

    #[test]
    fn tags_of_known_elements() {
        for (text, name) in [
            ("<p>", "p"),
            ("</P \n>", "p"),
            ("<br/>", "br"),
            ("<br />", "br"),
            ("<A HREF=\"x > y\" class='a' id=b>", "a"),
            ("<td nowrap colspan = 2>", "td"),
            ("<div v-if=\"a\" @click='b'data-x=1>", "div"),
            ("<input disabled>", "input"),
            ("<h1 onclick=f()>", "h1"),
        ] {
            assert_eq!(parsed(&format!("{text}rest")), Some((name, "rest")), "{text}");
        }
    }

    #[test]
    fn other_signs_are_text() {
        for text in [
            "<", "</", "<>", "< p>", "<p", "<p ", "<b and then c>", "<b x=1>", "<b =>", "<p class=\"a",
            "<p class=a<b>", "</p class=\"a\">", "</br/>", "<name>", "<paragraph>", "<blockquoteblockquote>",
            "<p\u{e9}>", "<https://example.org/>", "<a@example.org>", "<b,c>",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(Tag::parse("<p >", 3), None);
    }

    #[test]
    fn comments_documents_and_scripts() {
        assert_eq!(comment_length("<!-- a <p> -- > -->b-->"), Some(19));
        assert_eq!((comment_length("<!-->"), comment_length("<!--->x")), (Some(5), Some(6)));
        assert_eq!(comment_length("<!-- a"), None);
        assert_eq!(doctype_length("<!DOCTYPE html PUBLIC \"x\">a"), Some(26));
        assert_eq!((doctype_length("<!doctype htmlx>"), doctype_length("<!doctype html <p>")), (None, None));
        assert_eq!(code_length("if (a</scripts>b) </SCRIPT >", "script"), Some(18));
        assert_eq!(code_length("a</scrip", "script"), None);
        for html in [
            "<html>",
            " \n<!-- a --><HTML lang=en>",
            "<?xml version=\"1.0\"?>\n<!DOCTYPE html>",
            "<!doctype html>",
        ] {
            assert!(is_html_document(html), "{html}");
        }
        for other in
            ["", "<p>", "a <html>", "<html", "</html>", "<?xml version=\"1.0\"?><feed>", "<!-- <html>"]
        {
            assert!(!is_html_document(other), "{other}");
        }
    }

    /// Returns the tags that the WHATWG's tokenizer finds in `html`, as `name` or `/name`, each with the offset of its end.
    fn tokens(html: &str) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        let mut name = String::new();
        let emitter =
            CallbackEmitter::new(|event: CallbackEvent<'_>, span: Span<usize>| -> Option<Infallible> {
                match event {
                    CallbackEvent::OpenStartTag { name: start } => {
                        name = String::from_utf8_lossy(start).into_owned();
                    }
                    CallbackEvent::CloseStartTag { .. } => found.push((name.clone(), span.end)),
                    CallbackEvent::EndTag { name } => {
                        found.push((format!("/{}", String::from_utf8_lossy(name)), span.end));
                    }
                    _ => {}
                }
                None
            });
        let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
        found
    }

    proptest! {
        /// A tag parsed by [`Tag::parse`] has the same name and end as the first tag that the WHATWG's tokenizer finds.
        #[test]
        fn tags_are_those_of_the_tokenizer(
            rest in "(/)?(a|b|p|br|IMG|td|x)(( |\n)?(class|href|id|hidden|x|and)?( |=|='a'|=\"b>\"|=1|/|\"|')?){0,4}(/)?(>|<)?[a-z<>\"'/= ]{0,8}",
        ) {
            let text = format!("<{rest}");
            if let Some(tag) = Tag::parse(&text, text.len()) {
                let name = format!("{}{}", if tag.is_end { "/" } else { "" }, tag.name());
                let first = tokens(&text[..tag.length]);
                prop_assert_eq!(first.len(), 1, "{}", text);
                prop_assert_eq!(&first[0].0, &name);
                let all = tokens(&text);
                prop_assert_eq!(&all[0], &first[0]);
            }
        }
    }
}
