//! Makes documents from the values of their fields: id, texts, and extra value.

use std::borrow::Cow;

use crate::{DocumentId, DocumentOptions, Encoding};
use simstore::error::excerpt;

/// Maximum number of columns of a table. If a JSON object has more fields, messages name only this many.
pub(crate) const MAX_COLUMNS: usize = 100_000;
/// Maximum number of names in a message.
const MAX_SHOWN_NAMES: usize = 30;
/// Maximum number of characters of a name in a message.
const MAX_SHOWN_CHARACTERS: usize = 100;

/// Values of the fields that the options request, for one document.
#[derive(Debug, Default)]
pub(crate) struct RequestedFields<'t> {
    pub(crate) id: Option<DocumentId>,
    /// Value of each text field, in the order of the options; `None` for a missing field.
    pub(crate) texts: Vec<Option<Cow<'t, str>>>,
    pub(crate) extra: Option<String>,
}

/// A parsed document without its position. Its text may be borrowed from the record.
#[derive(Debug, PartialEq, Eq)]
pub struct ParsedDocument<'t> {
    /// Id of the document.
    pub id: DocumentId,
    /// Text of the document, decoded and otherwise unchanged.
    pub text: Cow<'t, str>,
    /// Number of malformed byte sequences that were replaced by U+FFFD.
    pub replacements: u64,
    /// Value of the [extra field](crate::DocumentOptions::extra_field); `None` if the document lacks it.
    pub extra: Option<String>,
    /// Whether the id was made from the path and the line, because the document has no id field.
    pub has_position_id: bool,
    /// Encoding of the text, if it was guessed.
    pub detected_encoding: Option<Encoding>,
}

impl<'t> RequestedFields<'t> {
    /// Makes a document from the values. Returns the reason if it is malformed.
    ///
    /// If all text fields are missing, the text is empty: the caller has refused files that lack these fields.
    /// A document without an id gets the id that `position` returns. `field` is `field` or `column`, the word
    /// for error messages.
    pub(crate) fn into_document(
        self,
        options: &DocumentOptions,
        field: &str,
        replacements: u64,
        position: impl FnOnce() -> String,
    ) -> Result<ParsedDocument<'t>, String> {
        let has_position_id = self.id.is_none();
        let id = match (self.id, &options.id_field) {
            (Some(id), _) => id,
            (None, Some(name)) => return Err(format!("no id {field} `{}`", excerpt(name))),
            (None, None) => DocumentId::from_name(position())?,
        };
        let mut texts = self.texts.into_iter().flatten();
        let mut text = texts.next().unwrap_or_default();
        for more in texts {
            let text = text.to_mut();
            text.push('\n');
            text.push_str(&more);
        }
        Ok(ParsedDocument {
            id,
            text,
            replacements,
            extra: self.extra,
            has_position_id,
            detected_encoding: None,
        })
    }
}

impl DocumentOptions {
    /// Name of the field that holds the id.
    pub(crate) fn id_name(&self) -> &str {
        self.id_field.as_deref().unwrap_or("id")
    }
}

/// Removes the name of an object and a dot from the name of a field: `b.c` for `a.b.c` in `a`. Returns `None`
/// if the field is not in the object.
pub(crate) fn strip_object_name<'n>(name: &'n str, object: &str) -> Option<&'n str> {
    name.strip_prefix(object)?.strip_prefix('.')
}

/// Formats names for a message, in code marks. Long names are shortened, and only the first names are listed.
pub fn format_names(names: &[String]) -> String {
    let short = |name: &String| match name.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.clone(),
    };
    let shown: Vec<String> = names.iter().take(MAX_SHOWN_NAMES).map(short).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("`{}`{more}", shown.join("`, `"))
}

/// Shortens the quoted part of a message, if it has one, by [`excerpt`].
pub fn shorten_quote(message: &str) -> String {
    let quoted = message.find('"').zip(message.rfind('"'));
    let Some((start, end)) = quoted.map(|(start, end)| (start + 1, end)).filter(|(start, end)| start < end)
    else {
        return message.to_owned();
    };
    format!("{}{}{}", &message[..start], excerpt(&message[start..end]), &message[end..])
}

/// Returns the error message for an annotation whose name is already the name of a field. `field` is `field` or
/// `column`.
pub(crate) fn name_taken_reason(field: &str, name: &str) -> String {
    format!("a {field} `{}` already exists; choose another name with option `cluster_field`", excerpt(name))
}
