//! Elements and attributes of HTML.

use crate::splitmix::STEP;

/// The effect of an element's tags on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its content is not text: `script` and `style`.
    Code,
    /// Inside a word or between words; breaks nothing.
    Inline,
    /// Hidden in most browsers, or drawn: text, but not main text.
    Hidden,
    /// Surrounds the main text.
    Around,
    /// Surrounds the main text, or is the head or foot of an article.
    Edge,
    /// Holds main text.
    Main,
    /// Breaks lines, and may hold any other element.
    Container,
    /// Breaks lines. Its end tag is often missing.
    Line,
    /// Breaks a line and has no content.
    Break,
}

/// All elements of the HTML standard, obsolete ones included, by the effect of their tags.
const GROUPS: &[(Kind, &[&str])] = &[
    (Kind::Code, &["script", "style"]),
    (
        Kind::Inline,
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
    (Kind::Hidden, &["iframe", "noembed", "noframes", "noscript", "svg", "template"]),
    (
        Kind::Around,
        &[
            "aside", "button", "datalist", "dialog", "label", "legend", "menu", "nav", "search", "select",
            "textarea",
        ],
    ),
    (Kind::Edge, &["footer", "header"]),
    (Kind::Main, &["article", "main"]),
    (
        Kind::Container,
        &[
            "address", "blockquote", "body", "caption", "center", "details", "dir", "div", "dl", "fieldset",
            "figcaption", "figure", "form", "frameset", "hgroup", "html", "listing", "multicol", "ol",
            "plaintext", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
            "ul", "xmp",
        ],
    ),
    (
        Kind::Line,
        &["dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "head", "li", "optgroup", "option", "p", "title"],
    ),
    (Kind::Break, &["br", "hr"]),
];

const COUNT: usize = {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].1.len();
        group += 1;
    }
    count
};

/// All elements, each with the effect of its tags.
pub(super) const ELEMENTS: &[(&str, Kind); COUNT] = &{
    let mut elements = [("", Kind::Inline); COUNT];
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

/// Attributes that may stand without a value, in alphabetical order.
const BOOLEAN_ATTRIBUTES: &[&str] = &[
    "allowfullscreen", "async", "autofocus", "autoplay", "checked", "compact", "controls", "declare",
    "default", "defer", "disabled", "download", "formnovalidate", "hidden", "inert", "ismap", "itemscope",
    "loop", "multiple", "muted", "nohref", "nomodule", "noresize", "noshade", "novalidate", "nowrap", "open",
    "playsinline", "readonly", "required", "reversed", "selected",
];

/// Attributes of the HTML standard that have a value, obsolete ones included, in alphabetical order. Those that begin with `aria-`,
/// `data-` or `on` are not listed.
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

/// The longest name of an element in bytes: `blockquote` and `figcaption`.
const NAME_MAX: usize = 10;

/// Names of [`ELEMENTS`] as numbers, which are compared faster.
static NAMES: [u128; COUNT] = {
    let mut names = [0; COUNT];
    let mut at = 0;
    while at < names.len() {
        names[at] = number(ELEMENTS[at].0.as_bytes());
        at += 1;
    }
    names
};

/// An open table of the positions of [`ELEMENTS`], by the hashes of their names; `FREE` is a free slot.
static SLOTS: [u8; 1 << SLOT_BITS] = {
    let mut slots = [FREE; 1 << SLOT_BITS];
    let mut at = 0;
    while at < NAMES.len() {
        let mut slot = slot(NAMES[at]);
        while slots[slot] != FREE {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = at as u8;
        at += 1;
    }
    slots
};
const SLOT_BITS: u32 = 9;
const FREE: u8 = u8::MAX;

/// Returns the first slot of a name.
const fn slot(number: u128) -> usize {
    let folded = number as u64 ^ ((number >> 64) as u64).rotate_left(48);
    (folded.wrapping_mul(STEP) >> (u64::BITS - SLOT_BITS)) as usize
}

/// Returns a name as a number.
const fn number(name: &[u8]) -> u128 {
    let (mut number, mut at) = (0, 0);
    while at < name.len() {
        number = number << 8 | name[at].to_ascii_lowercase() as u128;
        at += 1;
    }
    number
}

/// Returns the position in [`ELEMENTS`] of an element. Upper and lower case are equal.
pub(super) fn position(name: &[u8]) -> Option<usize> {
    if name.len() > NAME_MAX {
        return None;
    }
    let number = number(name);
    let mut slot = slot(number);
    loop {
        match SLOTS[slot] {
            FREE => return None,
            at if NAMES[usize::from(at)] == number => return Some(at.into()),
            _ => slot = (slot + 1) % SLOTS.len(),
        }
    }
}

/// Whether an attribute may stand without a value, by its name in lower case.
pub(super) fn is_boolean_attribute(name: &str) -> bool {
    BOOLEAN_ATTRIBUTES.binary_search(&name).is_ok()
}

/// Whether the HTML standard defines an attribute, by its name in lower case.
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
        assert!(GROUPS.iter().all(|(_, names)| names.is_sorted_by(|a, b| a < b)) && COUNT < FREE.into());
        assert_eq!(ELEMENTS.iter().map(|(name, _)| name.len()).max(), Some(NAME_MAX));
        for (at, (name, _)) in ELEMENTS.iter().enumerate() {
            assert_eq!(
                (position(name.as_bytes()), position(name.to_uppercase().as_bytes())),
                (Some(at), Some(at))
            );
        }
        assert_eq!((position(b"x"), position(b""), position(b"blockquotes")), (None, None, None));
        assert!(BOOLEAN_ATTRIBUTES.is_sorted_by(|a, b| a < b));
        assert!(ATTRIBUTES.is_sorted_by(|a, b| a < b));
    }
}
