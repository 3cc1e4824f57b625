//! Cleaning drops only markup: after cleaning, a text has the words that other parsers of HTML and Markdown find in it.

use html5ever::tendril::TendrilSink;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use simstore_text::{DropReason, Profile};

fn words_by(profile: &str, text: &str) -> Vec<String> {
    let profile: Profile = profile.parse().unwrap();
    let mut words = Vec::new();
    profile.visit_features(text, |word, _| words.push(word.to_owned()));
    words
}

/// Returns the words of a text after the removal of HTML and Markdown markup (option `plain-text`).
fn words(text: &str) -> Vec<String> {
    words_by("words-1,plain-text", text)
}

/// Returns the words of a text from which neither front matter nor markup was removed.
fn raw_words(text: &str) -> Vec<String> {
    words_by("words-1,keep-front-matter", text)
}

#[test]
fn the_examples_of_the_page() {
    let page = include_str!("../../docs/similarity.md");
    let (_, table) = page.split_once("| text | words | why |\n|---|---|---|\n").unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 20, "{}", rows.len());
    let profile = Profile::shingles().to_string().replace("words-3", "words-1").replace(",weights=none", "");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [text, expected, _] = cells[..] else { panic!("{row}") };
        let expected = expected.trim_matches('`');
        assert_eq!(words_by(&profile, &example(text)).join(" "), expected, "{row}");
    }
}

/// Returns the text of an example, given a table cell that contains the example between backquotes. In the cell, `⏎` means a line
/// break, and `{U+XXXX}` means an invisible character.
fn example(cell: &str) -> String {
    let mut text = cell.trim_matches('`').trim().replace('⏎', "\n");
    while let Some(at) = text.find("{U+") {
        let character = u32::from_str_radix(&text[at + 3..at + 7], 16).ok().and_then(char::from_u32).unwrap();
        text.replace_range(at..at + 8, &character.to_string());
    }
    text
}

#[test]
fn reported_pages_keep_their_words() {
    let paragraphs = |words: &str| format!("{words} ").repeat(800);
    // A thematic break at the beginning is no front matter.
    let text = format!("---\n{}\n---\nthe end", paragraphs("many words"));
    assert_eq!(words(&text), raw_words(&text));
    // Comparison operators are no tag.
    let text = format!("if x <b and then {} c> d", paragraphs("five thousand words"));
    assert_eq!(words(&text), raw_words(&text));
    // Character references are decoded.
    let reference = |text: &str| text.chars().map(|c| format!("&#{};", u32::from(c))).collect::<String>();
    for text in ["Домашняя страница", "Другая страница", "caf\u{e9} cr\u{e8}me"]
    {
        assert_eq!(words(&reference(text)), raw_words(text));
    }
    assert_eq!(words("caf&eacute; cr&egrave;me"), ["café", "crème"]);
    assert_eq!(words("l’homme n‘est"), words("l'homme n'est"));
    assert_eq!(
        words("inter\u{ad}national&shy;ly co\u{200b}op su<wbr>per <b>w</b>ord"),
        ["internationally", "coop", "super", "word"]
    );
}

/// Cleaning loses no word of a text with any two ASCII punctuation characters around or between words.
#[test]
fn every_pair_of_signs() {
    let signs: Vec<char> = (' '..='~').filter(char::is_ascii_punctuation).collect();
    for a in &signs {
        for b in &signs {
            for text in [
                format!("eins {a}zwei{b} drei"),
                format!("{a}eins zwei{b} drei"),
                format!("eins{a}zwei{b}drei vier"),
                format!("eins {a}{b} zwei"),
                format!("eins{a}{b}zwei"),
                format!("{a}{b}{a} eins\nzwei {b}{a}{b}\n"),
                format!("{a}{a}{a}\neins{b}zwei\n{b}{b}{b}"),
                format!("eins {a}{b}zwei drei{b}{a} vier"),
                format!("C{a}{b} 3{a}4{b}5"),
            ] {
                assert_eq!(words(&text), raw_words(&text), "{text:?}");
            }
        }
    }
}

fn reference_html(html: &str, is_document: bool) -> Vec<String> {
    let options = html5ever::ParseOpts {
        tree_builder: html5ever::tree_builder::TreeBuilderOpts {
            scripting_enabled: false,
            ..Default::default()
        },
        ..Default::default()
    };
    let dom = if is_document {
        html5ever::parse_document(RcDom::default(), options).one(html)
    } else {
        let body = html5ever::QualName::new(None, html5ever::ns!(html), html5ever::local_name!("body"));
        html5ever::parse_fragment(RcDom::default(), options, body, Vec::new(), false).one(html)
    };
    let mut text = String::new();
    push_text(&dom.document, &mut text);
    let text = text.replace(['\u{ad}', '\u{200b}'], "").replace('’', "'");
    raw_words(&text)
}

/// Names of the elements that break lines, each between spaces: elements that the HTML standard renders as blocks (`display:
/// block`), parts of tables, `br`, and form controls.
const BREAKING: &str = " address article aside blockquote body br button caption center datalist dd details dialog dir div dl dt \
    fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html label legend li listing main menu nav ol \
    optgroup option p plaintext pre search section select summary table tbody td textarea tfoot th thead title tr ul xmp ";

fn push_text(node: &Handle, text: &mut String) {
    let mut breaks = false;
    match &node.data {
        NodeData::Text { contents } => text.push_str(&contents.borrow()),
        NodeData::Element { name, template_contents, .. } => {
            let name = &*name.local;
            if name == "script" || name == "style" {
                return;
            }
            breaks = BREAKING.contains(&format!(" {name} "));
            if breaks {
                text.push('\n');
            }
            if let Some(contents) = &*template_contents.borrow() {
                push_text(contents, text);
            }
        }
        _ => {}
    }
    for child in node.children.borrow().iter() {
        push_text(child, text);
    }
    if breaks {
        text.push('\n');
    }
}

/// Generates HTML in which all parsers find the text in the same order, because tables contain text only in their cells.
fn html() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-zA-Z0-9 ]{1,8}",
        "[中文ДжéÉ ]{1,5}",
        prop::sample::select(vec![
            "&eacute;",
            "&#1044;",
            "&#x4e2d;",
            "&amp;lt;",
            "&lt;b&gt;",
            "&shy;",
            "&nbsp;",
            "’",
            "<wbr>",
            "<br>",
            "<hr/>",
            "a < b",
            "AT&T",
            "<img src=x alt='a > b'>",
            "<!-- a <p>b -->",
            "<script>if (a<b) c</script>",
            "<style>p {a: b}</style>",
            ", ",
            ". ",
            "--",
            "C++",
            "x=1&y=2",
            "don't",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 60, 6, |inner| {
        (0..12, prop::collection::vec(inner, 0..6)).prop_map(|(kind, pieces)| {
            let inner = pieces.concat();
            match kind {
                0 => format!("<b>{inner}</b>"),
                1 => format!("<span class=\"a &gt; b\" id=x>{inner}</span>"),
                2 => format!("<DIV data-x='1'>{inner}</DIV>"),
                3 => format!("<ul><li>{inner}</li><li>x</li></ul>"),
                4 => format!("<table><tr><td nowrap>{inner}</td><td>y</td></tr></table>"),
                5 => format!("<section hidden>{inner}</section>"),
                6 => format!("<h2 title=\"<p>\">{}</h2>", pieces.first().map_or("", |_| "title")),
                7 => format!("<blockquote cite='x'>{inner}</blockquote>"),
                8 => format!("<em>{inner}</em><sup>2</sup>"),
                9 => format!("<pre>{inner}</pre>"),
                _ => inner,
            }
        })
    })
}

proptest! {
    /// Texts without markup keep all their words, in order.
    #[test]
    fn texts_without_markup_keep_their_words(
        text in "([a-zA-Z]{1,9}|[0-9]{1,3}|[ \n]|[ -%'-;=-@\\[-_{-}]|[éßÉÑ]|[中文漢字]|[かナ]|[한국]|[дЖё]|[αΩ]|[אב]|[عرب]|[नमते]|[คำสั]|[。，！？「」…—“”]|\u{301}|\u{1f600}|< |& |`){0,60}",
    ) {
        prop_assume!(!text.contains("](") && !text.contains("```") && !text.contains("~~~") && !text.starts_with("---"));
        let raw = raw_words(&text);
        prop_assert_eq!(words(&text), &raw[..]);
        for profile in ["words-1,html-text", "words-1,main-text"] {
            prop_assert_eq!(words_by(profile, &text), &raw[..]);
        }
    }

    #[test]
    fn words_of_html_documents(html in html()) {
        let page = format!("<!DOCTYPE html>\n<html><head><title>A title</title></head><body>{html}</body></html>");
        prop_assert_eq!(words(&page), reference_html(&page, true), "{}", page);
    }

    #[test]
    fn words_of_parts_of_html(html in html()) {
        // In a fragment, a reference without a semicolon is text.
        prop_assert_eq!(words(&format!("<div>{html}</div>")), reference_html(&format!("<div>{html}</div>"), false), "{}", html);
        prop_assert_eq!(words_by("words-1,html-text", &html), reference_html(&html, false), "{}", html);
    }

    #[test]
    fn words_of_markdown(markdown in markdown()) {
        prop_assert_eq!(words(&markdown), reference_markdown(&markdown), "{}", markdown);
    }

    #[test]
    fn nothing_panics(text in "(<|>|/|div|<p>|pre|script|style|!--|--|-->|&|#|x|;|=|\"|'|`|```|~~~|\\[|!\\[|\\]\\(|\\)|\\\\|\n|\n\n|- |> |---\n|: | |é|\u{ad}|’|\\PC){0,60}") {
        for profile in ["words-1,plain-text", "words-1,html-text", "words-1,main-text", "by-script,plain-text,simplified"] {
            words_by(profile, &text);
        }
    }
}

/// Returns the words of the text and code that pulldown-cmark finds in Markdown, without tags.
fn reference_markdown(markdown: &str) -> Vec<String> {
    let (mut text, mut is_code) = (String::new(), false);
    // Unlike in CommonMark, cleaning decodes references in code too.
    let decoded = |code: &str| {
        let characters = [("&amp;", "&"), ("&eacute;", "é"), ("&#1044;", "Д")];
        characters.iter().fold(code.to_owned(), |code, (reference, c)| code.replace(reference, c))
    };
    for event in Parser::new(markdown) {
        match &event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            _ => {}
        }
        match event {
            Event::Text(piece) if is_code => text.push_str(&decoded(&piece)),
            Event::Text(piece) => text.push_str(&piece),
            // Cleaning keeps the delimiters of code and links, which separate words.
            Event::Code(code) => text.push_str(&format!(" {} ", decoded(&code))),
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image) => {
                text.push(' ');
            }
            Event::SoftBreak | Event::HardBreak => text.push('\n'),
            // The grammar has only inline tags, which leave no break.
            Event::InlineHtml(_) => {}
            Event::Html(html) => {
                // Unlike in HTML, references must end with a semicolon.
                let html = html.replace("&copy=", "&amp;copy=").replace("&notit;", "&amp;notit;");
                text.push_str(&reference_html(&html, false).join(" "));
                text.push('\n');
            }
            _ => text.push('\n'),
        }
    }
    raw_words(&text.replace('\u{ad}', ""))
}

/// Generates Markdown without emphasis inside words and without numbered lists. In such Markdown, this crate and CommonMark find
/// the same words.
fn markdown() -> impl Strategy<Value = String> {
    let inline = prop_oneof![
        4 => "[a-z]{1,6}( [a-z]{1,6}){0,3}",
        1 => prop::sample::select(vec![
            "[link](https://example.org/a_(b)?c=d \"a title\")", "![image](<1 b.png> 'title')", "[not a link] (x)", "[a](b c)",
            "[out [in](x) side](y)", "[![alt](i.png)](l.html)", "`code <b>x</b> &amp;`", "``a ` [b](c)``", "` lone", "<b>bold</b>",
            "<span title=\"a > b\">s</span>", "&eacute;t&eacute;", "&#1044;", "&copy=2", "&notit;", "a < b", "\\[a](b)", "\\`a <b>b</b>",
            "\\<b>", "[a](b\nc)", "[a](b\n\"c\")", "[a](\\(b)", "[](empty)", "[a]()", "<!-- a comment -->", "中文[链接](x)",
        ])
        .prop_map(str::to_owned),
    ];
    let paragraph = prop::collection::vec(inline, 1..6).prop_map(|pieces| pieces.join(" "));
    let block = (0..10, paragraph, "[a-z]{1,5}").prop_map(|(kind, text, word)| match kind {
        0 => format!("```{word}\n{text}\n\n<b>{word}</b>\n```"),
        1 => format!("~~~~ {word} info\n{text}\n~~~\n~~~~"),
        2 => format!("> {word}"),
        3 => format!("- {word}\n  ```{word}\n  <p>{word}\n  ```"),
        4 => format!("# {word}"),
        5 => format!("<div>\n{word} [a](b) `c`\n</div>"),
        6 => format!("<pre>\n{word}\n\n[a](b) `c` {word}\n</pre>"),
        _ => text,
    });
    // Paragraphs are separated, so that an unmatched delimiter has no effect on the next one.
    prop::collection::vec(block, 1..5).prop_map(|blocks| blocks.join("\n\n"))
}

/// `visit_dropped` reports every dropped piece of a text, with the reason, in the order of the text.
#[test]
fn dropped_pieces_are_reported() {
    let profile: Profile = "words-1,plain-text".parse().unwrap();
    let text =
        "---\nid: 1\n---\n<p class=x>a<!-- b --><script>c()</script></p>\n\n[d](e)\n\n```rust\nf\n```\n";
    let mut pieces = Vec::new();
    profile.visit_dropped(text, |rule, piece| pieces.push((rule, piece.to_owned())));
    let expected = [
        (DropReason::FrontMatter, "---\nid: 1\n---\n"),
        (DropReason::Tag, "<p class=x>"),
        (DropReason::Comment, "<!-- b -->"),
        (DropReason::Tag, "<script>"),
        (DropReason::Code, "c()"),
        (DropReason::Tag, "</script>"),
        (DropReason::Tag, "</p>"),
        (DropReason::LinkTarget, "(e)"),
        (DropReason::FenceInfo, "rust"),
    ];
    assert_eq!(pieces, expected.map(|(rule, piece)| (rule, piece.to_owned())));
}

/// Texts of many repeated delimiters are cleaned in linear time, because no search scans the same text again and again. In
/// quadratic time, the test would not end.
#[test]
fn hostile_markup_takes_linear_time() {
    for part in [
        "<div>", "</div>", "<a b=\"", "<a b='", "<b ", "<", "<!--", "<!-", "&", "&#", "<script>", "<style>",
        "`", "`` ` ", "[", "](", "[](", "[a](b", "![", "[a](<", "[a](b \"", "[[a](b)", "```\n", "~~~\n",
        "> ", "- ", "1. ", "\\", "<pre>", "(", "\n", "---\n", "a: b\n", "<b b b b", "&amp;", "<a href=x>",
    ] {
        let mut repeated = part.repeat(200_000);
        words(&repeated);
        repeated.insert_str(0, "[a](");
        words(&repeated);
    }
}
