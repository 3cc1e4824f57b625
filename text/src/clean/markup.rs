//! Stripping HTML and Markdown markup.

/// The text without its markup; what is taken out leaves a space.
///
/// A single pass that knows these forms and no nesting:
///
/// - HTML comments, `<script>` and `<style>` elements with their content, and tags: `<`, then a
///   letter, `/`, `!` or `?`, up to the next `>`, if no other `<` comes first. This takes
///   Markdown's `<https://...>` links too;
/// - HTML character references: `&amp;`, `&#8217;`;
/// - the target of a Markdown link or image: `](`, up to `)` on the same line;
/// - Markdown code fences: a line that starts with three backquotes or tildes. The code stays.
///
/// Other Markdown signs (`#`, `*`, `|`, ...) are left: they are part of no word.
pub(crate) fn without_markup(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut unclosed = Unclosed::default();
    let mut line_start = true;
    while let Some(at) = rest.find(['<', '&', ']', '`', '~', '\n']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        line_start &= before.chars().all(|c| c == ' ' || c == '>');
        let length = match from.as_bytes()[0] {
            b'<' => html_length(from, &mut unclosed),
            b'&' => reference_length(from),
            b']' => link_target_length(from),
            b'`' | b'~' if line_start => fence_length(from),
            _ => None,
        };
        let kept = from.as_bytes()[0];
        if let Some(length) = length {
            plain.push(' ');
            rest = &from[length..];
        } else {
            plain.push(char::from(kept));
            rest = &from[1..];
        }
        line_start = kept == b'\n';
    }
    plain.push_str(rest);
    plain
}

/// Endings that were searched up to the end of the text and not found: they are not searched
/// again, which would take quadratic time.
#[derive(Default)]
struct Unclosed {
    comment: bool,
    script: bool,
    style: bool,
}

fn html_length(from: &str, unclosed: &mut Unclosed) -> Option<usize> {
    if from.starts_with("<!--") && !unclosed.comment {
        match from.find("-->") {
            Some(end) => return Some(end + 3),
            None => unclosed.comment = true,
        }
    }
    let bytes = from.as_bytes();
    if !bytes.get(1).is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'!' | b'?')) {
        return None;
    }
    for (name, close, unclosed) in
        [("<script", "</script", &mut unclosed.script), ("<style", "</style", &mut unclosed.style)]
    {
        let is_element = starts_with_ignoring_case(bytes, name)
            && bytes.get(name.len()).is_some_and(|b| b.is_ascii_whitespace() || *b == b'>');
        if is_element && !*unclosed {
            let end = (name.len()..bytes.len()).find(|&at| starts_with_ignoring_case(&bytes[at..], close));
            // The closing tag itself is taken out as any other.
            if end.is_some() {
                return end;
            }
            *unclosed = true;
        }
    }
    let end = 1 + from[1..].find(['<', '>'])?;
    (bytes[end] == b'>').then_some(end + 1)
}

fn starts_with_ignoring_case(bytes: &[u8], start: &str) -> bool {
    bytes.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

/// `&`, at most 32 letters and digits (`#` first in a number), `;`.
fn reference_length(from: &str) -> Option<usize> {
    let name = from[1..].strip_prefix('#').unwrap_or(&from[1..]);
    let length = name.bytes().take(33).take_while(u8::is_ascii_alphanumeric).count();
    let closed = (1..=32).contains(&length) && name.as_bytes().get(length) == Some(&b';');
    closed.then_some(from.len() - name.len() + length + 1)
}

fn link_target_length(from: &str) -> Option<usize> {
    let target = from.strip_prefix("](")?;
    let end = target.find([')', '(', '\n'])?;
    // Addresses hold pairs of brackets: (https://en.wikipedia.org/wiki/Hash_(food)).
    let end = match target.as_bytes()[end] {
        b'(' => {
            let inner = end + 1 + target[end + 1..].find([')', '(', '\n'])?;
            let outer = inner + 1 + target[inner + 1..].find([')', '(', '\n'])?;
            (target.as_bytes()[inner] == b')' && target.as_bytes()[outer] == b')').then_some(outer)?
        }
        b')' => end,
        _ => return None,
    };
    Some(2 + end + 1)
}

fn fence_length(from: &str) -> Option<usize> {
    let line = from.find('\n').unwrap_or(from.len());
    let info = from[..line].strip_prefix("```").or_else(|| from[..line].strip_prefix("~~~"))?;
    // Inline code between backquotes is no fence.
    (!info.trim_start_matches('`').contains('`')).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stripped(text: &str) -> String {
        without_markup(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn html() {
        assert_eq!(stripped("<p class=\"x\">one<br/>two</P> <!-- no <b>--> three"), "one two three");
        assert_eq!(stripped("a<script>var b = '<p>';</script>c<STYLE type=x>d</Style >e"), "a c e");
        assert_eq!(stripped("caf&eacute;&nbsp;&#8217;s AT&T &; & x;"), "caf s AT&T &; & x;");
        assert_eq!(stripped("1 < 2 <b <i>x</i> a<b <!-- <script> <scripts>"), "1 < 2 <b x a<b <!--");
    }

    #[test]
    fn markdown() {
        assert_eq!(stripped("see [the page](http://x.y/z) ![alt](a_(b).png)."), "see [the page ![alt .");
        assert_eq!(stripped("[a](unclosed\n[b] (c) [d](e(f"), "[a](unclosed [b] (c) [d](e(f");
        assert_eq!(stripped("x\n```rust\nlet a;\n```\n  ~~~\ny ```z``` `w`"), "x let a; y ```z``` `w`");
        assert_eq!(stripped("<https://example.org/a> rest"), "rest");
    }

    proptest! {
        #[test]
        fn text_without_signs_is_kept(text in "[^<&\\]`~]*") {
            prop_assert_eq!(without_markup(&text), text);
        }

        #[test]
        fn nothing_panics(text in "(<!--|-->|<script>|</script|<|>|&#?|;|\\]\\(|\\(|\\)|```|~~~|\n|\\PC){0,60}") {
            without_markup(&text);
        }
    }
}
