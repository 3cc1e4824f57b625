//! Text extraction from HTML documents.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use crate::clean::elements::{ELEMENTS, ElementKind, element_index};

/// Extracts the text of an HTML document or fragment, and appends it to `text`.
///
/// Character references are decoded. Elements that break lines leave line breaks; other tags and comments leave nothing. The
/// content of `script` and `style` is omitted.
///
/// With `main_only`, text around the main text is omitted too:
/// - elements for navigation and side notes, and form controls;
/// - headers and footers outside of an `article` or `main`;
/// - elements with one of the [`BOILERPLATE_ROLES`];
/// - hidden elements such as `template` and `noscript`.
///
/// A `form` itself stays, because some sites put whole pages into a form.
///
/// Tags are found by the tokenizer of the WHATWG's HTML standard (section 13.2.5). No tree is built. Instead, an end tag closes the
/// last open element of its name, and all elements that were opened inside this element.
pub(super) fn push(html: &str, main_only: bool, text: &mut String) {
    let mut reader = HtmlReader::new(main_only, text);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        reader.handle_event(&event);
        None
    });
    // The tokenizer then finds no tags inside scripts.
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
}

/// WAI-ARIA 1.2 roles of elements that surround the main text.
const BOILERPLATE_ROLES: &[&[u8]] = &[
    b"alert", b"alertdialog", b"banner", b"complementary", b"contentinfo", b"dialog", b"menu", b"menubar",
    b"navigation", b"search", b"tablist", b"toolbar",
];

struct HtmlReader<'a> {
    main_only: bool,
    text: &'a mut String,
    /// Stack of the open elements that may contain other elements: for each open element, its index in [`ELEMENTS`], and whether
    /// its content is omitted.
    open: Vec<(usize, bool)>,
    /// Number of elements in `open` whose content is omitted.
    omitted_count: usize,
    /// For each element in [`ELEMENTS`], how often it occurs in `open`. If the count is 0, an end tag of the element has no start
    /// tag, so `open` need not be searched.
    times_open: [u32; ELEMENTS.len()],
    /// Element of the start tag that is being read, as an index in [`ELEMENTS`]. `None` between start tags, and for an unknown
    /// element.
    start: Option<usize>,
    is_role_attribute: bool,
    has_boilerplate_role: bool,
}

impl<'a> HtmlReader<'a> {
    fn new(main_only: bool, text: &'a mut String) -> Self {
        HtmlReader {
            main_only,
            text,
            open: Vec::new(),
            omitted_count: 0,
            times_open: [0; ELEMENTS.len()],
            start: None,
            is_role_attribute: false,
            has_boilerplate_role: false,
        }
    }

    fn handle_event(&mut self, event: &CallbackEvent<'_>) {
        match *event {
            CallbackEvent::String { value } if self.omitted_count == 0 => {
                self.text.push_str(&String::from_utf8_lossy(value));
            }
            CallbackEvent::OpenStartTag { name } => {
                self.start = element_index(name);
                self.has_boilerplate_role = false;
            }
            CallbackEvent::AttributeName { name } => self.is_role_attribute = name == b"role",
            CallbackEvent::AttributeValue { value } if self.is_role_attribute => {
                self.has_boilerplate_role = BOILERPLATE_ROLES.contains(&value);
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                if let Some(start) = self.start.take() {
                    self.start_tag(start, self_closing);
                }
            }
            CallbackEvent::EndTag { name } => {
                if let Some(end) = element_index(name) {
                    self.end_tag(end);
                }
            }
            _ => {}
        }
    }

    fn start_tag(&mut self, element: usize, self_closing: bool) {
        let (name, kind) = ELEMENTS[element];
        self.break_line(kind);
        let stays_open = match kind {
            ElementKind::LineBreak | ElementKind::Block | ElementKind::Inline => false,
            ElementKind::Code => true,
            // Of these elements, only `svg` can be self-closing: it is a foreign element.
            ElementKind::Hidden => self.main_only && !(self_closing && name == "svg"),
            ElementKind::Boilerplate
            | ElementKind::HeaderFooter
            | ElementKind::Main
            | ElementKind::Container => true,
        };
        if !stays_open {
            return;
        }
        let is_omitted = match kind {
            ElementKind::Code => true,
            ElementKind::Boilerplate | ElementKind::Hidden => self.main_only,
            ElementKind::HeaderFooter => self.main_only && (self.has_boilerplate_role || !self.is_in_main()),
            _ => self.main_only && self.has_boilerplate_role,
        };
        self.open.push((element, is_omitted));
        self.omitted_count += usize::from(is_omitted);
        self.times_open[element] += 1;
    }

    fn end_tag(&mut self, element: usize) {
        if self.times_open[element] > 0 {
            while let Some((inner, is_omitted)) = self.open.pop() {
                self.omitted_count -= usize::from(is_omitted);
                self.times_open[inner] -= 1;
                if inner == element {
                    break;
                }
            }
        }
        self.break_line(ELEMENTS[element].1);
    }

    fn is_in_main(&self) -> bool {
        (0..ELEMENTS.len()).any(|i| ELEMENTS[i].1 == ElementKind::Main && self.times_open[i] > 0)
    }

    /// Appends the line breaks for a tag of an element of the kind `kind`: one for [`ElementKind::LineBreak`], none for inline,
    /// code and hidden elements, and two for all other kinds. Appends none inside omitted elements.
    fn break_line(&mut self, kind: ElementKind) {
        if self.omitted_count == 0
            && !matches!(kind, ElementKind::Code | ElementKind::Hidden | ElementKind::Inline)
        {
            self.text.push_str(if kind == ElementKind::LineBreak { "\n" } else { "\n\n" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(html: &str, main_only: bool) -> String {
        let mut text = String::new();
        push(html, main_only, &mut text);
        text
    }

    fn words(html: &str, main_only: bool) -> String {
        text_of(html, main_only).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn all(html: &str) -> String {
        words(html, false)
    }

    fn main(html: &str) -> String {
        words(html, true)
    }

    #[test]
    fn text_and_breaks() {
        assert_eq!(
            all("<!DOCTYPE html><title>A &lt;title&gt;</title><p>One<b>word</b>, t<!-- x -->wo<p>three"),
            "A <title> Oneword, two three"
        );
        assert_eq!(all("<table><tr><td>1<td>2</table>x<br>y<hr/>z<img alt=a>w"), "1 2 x y zw");
        assert_eq!(text_of("a<p>b<br>c", false), "a\n\nb\nc");
        assert_eq!(
            all("caf&eacute; &#20013;&#x6587; &amp;amp; &unknown; AT&T 1 < 2 <3"),
            "café 中文 &amp; &unknown; AT&T 1 < 2 <3"
        );
        assert_eq!(all("no tags, 纯文本"), "no tags, 纯文本");
    }

    #[test]
    fn code_is_left_out() {
        assert_eq!(all("a<script>if (a<b) '</p>'</script>b<STYLE>p {}</STYLE >c"), "abc");
        assert_eq!(all("a<script src=x/>b</script>c<!-- <p>no -->d"), "acd");
        // A script that is never closed hides all text after it, as in a browser.
        assert_eq!(all("a<script>b"), "a");
    }

    #[test]
    fn hidden_text_is_no_main_text() {
        let page = "a<template><p>1</template>b<noscript>2</noscript>c<svg><text>3</text></svg>d<svg/>e<iframe>4</iframe>f";
        assert_eq!(main(page), "abcdef");
        assert_eq!(all(page), "a 1b2c3de4f");
        assert_eq!(main("<div><template>a</div>b"), "b");
    }

    #[test]
    fn navigation_headers_and_footers_are_not_main_text() {
        let page = "<header>Site</header><nav><ul><li>Home<li><p>Up</ul></nav><main><header><h1>Title</h1></header>\
            <p>Text<aside>Advert</aside> goes on<form><label>Name</label><select><option>x</select>on</form>\
            <div role=navigation>Next<div>page</div></div><footer>Author</footer></main><footer>(c)</footer>";
        assert_eq!(main(page), "Title Text goes on on Author");
        assert!(all(page).starts_with("Site Home Up Title"));
        // An end tag closes the open elements inside.
        assert_eq!(main("<div><nav>a</div>b<nav>c</p>d</nav>e"), "b e");
        assert_eq!(main("<p>a<nav>b</p>c</nav>d</nav>e"), "a d e");
        assert_eq!(main("<span role=banner>a</span>b <div class=role x=banner>c"), "ab c");
    }

    #[test]
    fn hostile_markup_takes_linear_time() {
        for part in
            ["<div>", "</div>", "<nav>", "<p>", "<a b=c ", "<", "<!--", "&", "<script>", "<svg><div></p>"]
        {
            let html = part.repeat(200_000);
            let start = std::time::Instant::now();
            text_of(&html, true);
            // This takes some milliseconds. A search of all open elements would take minutes.
            assert!(start.elapsed().as_secs() < 10, "{part}");
        }
    }

    /// Generates a fragment of an HTML document, together with the text that should be extracted from it.
    fn piece() -> impl Strategy<Value = (String, String)> {
        let leaf = "[a-z]{1,5}|[中文]{1,3}|[<>&\"]{1,2}".prop_map(|text: String| {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            (escaped, text)
        });
        leaf.prop_recursive(4, 40, 5, |inner| {
            (0..7, prop::collection::vec(inner, 0..5)).prop_map(|(kind, pieces)| {
                let html: String = pieces.iter().map(|piece| &piece.0[..]).collect();
                let text: String = pieces.iter().map(|piece| &piece.1[..]).collect();
                match kind {
                    0 => (format!("<b class='x>'>{html}</b>"), text),
                    1 => (format!("<A href=\"</p>\">{html}</A>"), text),
                    2 => (format!("<div>{html}</div>"), format!(" {text} ")),
                    3 => (format!("<td ID=q>{html}</td>"), format!(" {text} ")),
                    4 => (format!("<p>{html}</p>"), format!(" {text} ")),
                    5 => (format!("{html}<script>{text}</script>"), text),
                    _ => (format!("{html}<!--{}-->", text.replace(['-', '>'], "")), text),
                }
            })
        })
    }

    proptest! {
        #[test]
        fn text_by_construction((html, text) in piece()) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Scripts in the fragment hold the unescaped text. The tokenizer finds no tags there.
            prop_assert_eq!(all(&html), text.clone());
            prop_assert_eq!(main(&html), text);
        }

        #[test]
        fn nothing_panics(text in "(<|>|/|div|nav|p|script|!--|--|&|#|x|;|=|\"|role|banner| |\\PC){0,60}") {
            text_of(&text, false);
            text_of(&text, true);
        }
    }
}
