//! Tables of the elements and attributes of the HTML standard, with look-up by name.

use crate::splitmix::GOLDEN_GAMMA;

/// Kind of an HTML element. The kind decides whether the element's tags break lines in the extracted text, and whether its content
/// belongs to the text and to the main text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// `script` and `style`: elements whose content is not text.
    Code,
    /// Elements whose tags add no space or line break to the text, such as `b`: a word may continue across the tags.
    Inline,
    /// `svg`, and elements that most browsers hide, such as `noscript`. Their content is text, but not main text.
    Hidden,
    /// Elements around the main text: navigation, side notes and form controls.
    Boilerplate,
    /// `header` and `footer`: main text inside of an `article` or `main`, boilerplate elsewhere.
    HeaderFooter,
    /// `article` and `main`: elements that contain the main text.
    Main,
    /// Elements whose tags break lines, and that may contain any other element, such as `div`.
    Container,
    /// Elements whose tags break lines, and whose end tag is often missing, such as `p`.
    Block,
    /// `br` and `hr`: elements that break a line and have no content.
    LineBreak,
}

/// All elements of the HTML standard, obsolete ones included, grouped by their kind.
const GROUPS: &[(ElementKind, &[&str])] = &[
    (ElementKind::Code, &["script", "style"]),
    (
        ElementKind::Inline,
        &[
            "a", "abbr", "acronym", "applet", "area", "audio", "b", "base", "basefont", "bdi", "bdo",
            "bgsound", "big", "blink", "canvas", "cite", "code", "col", "colgroup", "data", "del", "dfn",
            "em", "embed", "font", "frame", "i", "image", "img", "input", "ins", "isindex", "kbd", "keygen",
            "link", "map", "mark", "marquee", "math", "menuitem", "meta", "meter", "nextid", "nobr",
            "object", "output", "param", "picture", "progress", "q", "rb", "rbc", "rp", "rt", "rtc", "ruby",
            "s", "samp", "slot", "small", "source", "spacer", "span", "strike", "strong", "sub", "sup",
            "time", "track", "tt", "u", "var", "video", "wbr",
        ],
    ),
    (ElementKind::Hidden, &["iframe", "noembed", "noframes", "noscript", "svg", "template"]),
    (
        ElementKind::Boilerplate,
        &[
            "aside", "button", "datalist", "dialog", "label", "legend", "menu", "nav", "search", "select",
            "textarea",
        ],
    ),
    (ElementKind::HeaderFooter, &["footer", "header"]),
    (ElementKind::Main, &["article", "main"]),
    (
        ElementKind::Container,
        &[
            "address", "blockquote", "body", "caption", "center", "details", "dir", "div", "dl", "fieldset",
            "figcaption", "figure", "form", "frameset", "hgroup", "html", "listing", "multicol", "ol",
            "plaintext", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
            "ul", "xmp",
        ],
    ),
    (
        ElementKind::Block,
        &["dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "head", "li", "optgroup", "option", "p", "title"],
    ),
    (ElementKind::LineBreak, &["br", "hr"]),
];

const ELEMENT_COUNT: usize = {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].1.len();
        group += 1;
    }
    count
};

/// The names of all elements in [`GROUPS`], each with its kind. Other code identifies an element by its index in this array.
pub(super) const ELEMENTS: &[(&str, ElementKind); ELEMENT_COUNT] = &{
    let mut elements = [("", ElementKind::Inline); ELEMENT_COUNT];
    let (mut at, mut group) = (0, 0);
    while group < GROUPS.len() {
        let (kind, names) = GROUPS[group];
        let mut name = 0;
        while name < names.len() {
            elements[at] = (names[name], kind);
            at += 1;
            name += 1;
        }
        group += 1;
    }
    elements
};

/// HTML attributes that need no value, in alphabetical order.
const BOOLEAN_ATTRIBUTES: &[&str] = &[
    "allowfullscreen", "async", "autofocus", "autoplay", "checked", "compact", "controls", "declare",
    "default", "defer", "disabled", "download", "formnovalidate", "hidden", "inert", "ismap", "itemscope",
    "loop", "multiple", "muted", "nohref", "nomodule", "noresize", "noshade", "novalidate", "nowrap", "open",
    "playsinline", "readonly", "required", "reversed", "selected",
];

/// Attributes of the HTML standard that have a value, obsolete ones included, in alphabetical order. Attributes that begin with
/// `aria-`, `data-` or `on` are not listed, because [`is_attribute`] accepts them all.
const ATTRIBUTES: &[&str] = &[
    "abbr", "accept", "accept-charset", "accesskey", "action", "align", "alink", "allow", "alt", "archive",
    "as", "autocapitalize", "autocomplete", "axis", "background", "bgcolor", "border", "bordercolor",
    "cellpadding", "cellspacing", "char", "charoff", "charset", "cite", "class", "classid", "clear", "code",
    "codebase", "codetype", "color", "cols", "colspan", "content", "contenteditable", "coords",
    "crossorigin", "data", "datetime", "decoding", "dir", "dirname", "draggable", "enctype", "enterkeyhint",
    "face", "fetchpriority", "for", "form", "formaction", "formenctype", "formmethod", "formtarget", "frame",
    "frameborder", "headers", "height", "high", "href", "hreflang", "hspace", "http-equiv", "id",
    "imagesizes", "imagesrcset", "inputmode", "integrity", "is", "itemid", "itemprop", "itemref", "itemtype",
    "kind", "label", "lang", "language", "leftmargin", "link", "list", "loading", "longdesc", "low",
    "lowsrc", "marginheight", "marginwidth", "max", "maxlength", "media", "method", "min", "minlength",
    "name", "nonce", "object", "optimum", "part", "pattern", "ping", "placeholder", "popover", "poster",
    "preload", "profile", "prompt", "property", "referrerpolicy", "rel", "rev", "role", "rows", "rowspan",
    "rules", "sandbox", "scheme", "scope", "scrolling", "shape", "size", "sizes", "slot", "span",
    "spellcheck", "src", "srcdoc", "srclang", "srcset", "standby", "start", "step", "style", "summary",
    "tabindex", "target", "text", "title", "topmargin", "translate", "type", "usemap", "valign", "value",
    "valuetype", "vlink", "vspace", "width", "wrap", "xmlns",
];

/// Length in bytes of the longest element names, `blockquote` and `figcaption`.
const NAME_MAX: usize = 10;

/// For each element in [`ELEMENTS`], its name as an integer, computed by [`name_number`]. Integers compare faster than strings.
static NAME_NUMBERS: [u128; ELEMENT_COUNT] = {
    let mut names = [0; ELEMENT_COUNT];
    let mut at = 0;
    while at < names.len() {
        names[at] = name_number(ELEMENTS[at].0.as_bytes());
        at += 1;
    }
    names
};

/// A hash table with open addressing. It maps the name of an element to its index in [`ELEMENTS`]. A free slot has the value
/// [`FREE_SLOT`].
static SLOTS: [u8; 1 << SLOT_BITS] = {
    let mut slots = [FREE_SLOT; 1 << SLOT_BITS];
    let mut at = 0;
    while at < NAME_NUMBERS.len() {
        let mut slot = first_slot(NAME_NUMBERS[at]);
        while slots[slot] != FREE_SLOT {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = at as u8;
        at += 1;
    }
    slots
};
const SLOT_BITS: u32 = 9;
const FREE_SLOT: u8 = u8::MAX;

/// Returns the slot of [`SLOTS`] at which the search for an element's name starts. `number` is the name as an integer, computed by
/// [`name_number`].
const fn first_slot(number: u128) -> usize {
    let folded = number as u64 ^ ((number >> 64) as u64).rotate_left(48);
    (folded.wrapping_mul(GOLDEN_GAMMA) >> (u64::BITS - SLOT_BITS)) as usize
}

/// Converts the name of an element, of at most 16 bytes, to lower case, and returns its bytes as a big-endian integer.
const fn name_number(name: &[u8]) -> u128 {
    let (mut number, mut at) = (0, 0);
    while at < name.len() {
        number = number << 8 | name[at].to_ascii_lowercase() as u128;
        at += 1;
    }
    number
}

/// Returns the index in [`ELEMENTS`] of the element with this name in any letter case, or `None` for an unknown element.
pub(super) fn element_index(name: &[u8]) -> Option<usize> {
    if name.len() > NAME_MAX {
        return None;
    }
    let number = name_number(name);
    let mut slot = first_slot(number);
    loop {
        match SLOTS[slot] {
            FREE_SLOT => return None,
            at if NAME_NUMBERS[usize::from(at)] == number => return Some(at.into()),
            _ => slot = (slot + 1) % SLOTS.len(),
        }
    }
}

/// Whether the HTML attribute with this name needs no value. `name` must be in lower case.
pub(super) fn is_boolean_attribute(name: &str) -> bool {
    BOOLEAN_ATTRIBUTES.binary_search(&name).is_ok()
}

/// Whether the HTML standard defines an attribute with this name. `name` must be in lower case.
pub(super) fn is_attribute(name: &str) -> bool {
    ["aria-", "data-", "on"].iter().any(|start| name.starts_with(start))
        || ATTRIBUTES.binary_search(&name).is_ok()
        || is_boolean_attribute(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_elements_found() {
        assert!(
            GROUPS.iter().all(|(_, names)| names.is_sorted_by(|a, b| a < b))
                && ELEMENT_COUNT < FREE_SLOT.into()
        );
        assert_eq!(ELEMENTS.iter().map(|(name, _)| name.len()).max(), Some(NAME_MAX));
        for (at, (name, _)) in ELEMENTS.iter().enumerate() {
            assert_eq!(
                (element_index(name.as_bytes()), element_index(name.to_uppercase().as_bytes())),
                (Some(at), Some(at))
            );
        }
        assert_eq!(
            (element_index(b"x"), element_index(b""), element_index(b"blockquotes")),
            (None, None, None)
        );
        assert!(BOOLEAN_ATTRIBUTES.is_sorted_by(|a, b| a < b));
        assert!(ATTRIBUTES.is_sorted_by(|a, b| a < b));
    }
}
