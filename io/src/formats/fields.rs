//! Makes documents from the values of their fields: the id, the texts, and an extra field if requested.

use std::borrow::Cow;

use crate::{DocumentId, DocumentOptions, Encoding};
use simstore::error::excerpt;

/// Maximum number of columns of a table, and of names in a list of the fields of a JSON object.
pub(crate) const MAX_COLUMNS: usize = 100_000;
/// Maximum number of field names in an error message.
const MAX_SHOWN_NAMES: usize = 30;
/// Maximum number of characters of a field name in an error message.
const MAX_SHOWN_CHARACTERS: usize = 100;

/// The values of one document's id field, text fields, and extra field.
#[derive(Debug, Default)]
pub(crate) struct RequestedFields<'t> {
    pub(crate) id: Option<DocumentId>,
    /// Value of each text field, in the order of the options; `None` for a missing field.
    pub(crate) texts: Vec<Option<Cow<'t, str>>>,
    pub(crate) extra: Option<String>,
}

/// A parsed document without its position. The text may be borrowed from the [`Record`](crate::Record).
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
    /// Whether the id is `PATH:LINE`, because the document has no id field.
    pub has_position_id: bool,
    /// Encoding that was guessed, because the text is not UTF-8 and declares no encoding; `None` for other texts.
    pub detected_encoding: Option<Encoding>,
}

impl<'t> RequestedFields<'t> {
    /// Makes a document from the values. Returns the reason if the document is malformed.
    ///
    /// A missing text field counts as empty: the caller has already refused a JSON object or a table that has none of
    /// the text fields. A document without an id gets the id that `position` returns. `field` is the word for error
    /// messages: `field` or `column`.
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
    /// Name of the field that holds the id: the option [`id_field`](Self::id_field), or `id`.
    pub(crate) fn id_name(&self) -> &str {
        self.id_field.as_deref().unwrap_or("id")
    }
}

/// Removes the name of an object, and the dot after it, from the name of a field: `a.b.c` in the object `a` becomes
/// `b.c`. Returns `None` if the field is not in the object.
pub(crate) fn strip_object_name<'n>(name: &'n str, object: &str) -> Option<&'n str> {
    name.strip_prefix(object)?.strip_prefix('.')
}

/// Formats names for a message, in backquotes. Long names are shortened. If there are many names, only the first ones
/// are listed.
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

/// Applies [`excerpt`], which shortens long texts, to the quotation in a message. A message without quotation marks is
/// not changed.
pub fn shorten_quote(message: &str) -> String {
    let quoted = message.find('"').zip(message.rfind('"'));
    let Some((start, end)) = quoted.map(|(start, end)| (start + 1, end)).filter(|(start, end)| start < end)
    else {
        return message.to_owned();
    };
    format!("{}{}{}", &message[..start], excerpt(&message[start..end]), &message[end..])
}

/// Returns the error message for a [cluster annotation](crate::ClusterAnnotation) whose name is already the name of a
/// field or column. `field` is the word for the message: `field` or `column`.
pub(crate) fn name_taken_reason(field: &str, name: &str) -> String {
    format!("a {field} `{}` already exists; choose another name with option `cluster_field`", excerpt(name))
}
