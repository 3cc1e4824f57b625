//! Reasons why cleaning drops a piece of a text.

/// The reason why cleaning drops a piece of a text: see [`Profile::visit_dropped`](crate::Profile::visit_dropped).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// YAML front matter.
    FrontMatter,
    /// An HTML tag with its attributes, or a document type declaration.
    Tag,
    /// An HTML comment.
    Comment,
    /// The content of a `script` or `style` element.
    Code,
    /// The address and title of a Markdown link or image.
    LinkTarget,
    /// The info string of a Markdown code fence, such as the language.
    FenceInfo,
}
