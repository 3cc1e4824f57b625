//! Pieces of a text that cleaning drops.

/// The reason why a piece of a text is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dropped {
    /// YAML front matter.
    FrontMatter,
    /// A tag of HTML with its attributes, or a document type.
    Tag,
    /// A comment of HTML.
    Comment,
    /// The content of a `script` or `style` element.
    Code,
    /// The address and the title of a link or an image of Markdown.
    LinkTarget,
    /// The text after the signs that open fenced code of Markdown.
    FenceInfo,
}
