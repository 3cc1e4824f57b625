//! Documents from fields: an id, texts, and an extra value.

use std::borrow::Cow;

use crate::{DocumentId, DocumentOptions, Encoding};
use simstore::error::excerpt;

/// The most columns of a table; of an object with more fields, the first are named in messages.
pub(crate) const MAX_COLUMNS: usize = 100_000;
/// Names that a message shows, and characters of each.
const SHOWN_NAMES: usize = 30;
const SHOWN_CHARACTERS: usize = 100;

/// The fields of an object or a row that are asked for.
#[derive(Debug, Default)]
pub(crate) struct Fields<'t> {
    pub(crate) id: Option<DocumentId>,
    /// By the order of the options; `None` where one is missing.
    pub(crate) texts: Vec<Option<Cow<'t, str>>>,
    pub(crate) extra: Option<String>,
}

/// A parsed document, without its place. Its text may be a part of the record.
#[derive(Debug, PartialEq, Eq)]
pub struct Parsed<'t> {
    /// Id.
    pub id: DocumentId,
    /// Text, decoded and otherwise unchanged.
    pub text: Cow<'t, str>,
    /// Replacements of malformed bytes.
    pub replaced: u64,
    /// Value of the [extra field](crate::DocumentOptions::extra_field), if the document has it.
    pub extra: Option<String>,
    /// Whether the id is made from the path and the line, because the document has none.
    pub is_placed: bool,
    /// Encoding of the text, if it was guessed.
    pub guessed: Option<Encoding>,
}

impl<'t> Fields<'t> {
    /// A document, or the reason why there is none. Where no text is there, the text is empty: files that have none of the
    /// fields are refused as a whole. `position` names a document that has no id; `field` is the word for a field in this
    /// format.
    pub(crate) fn document(
        self,
        options: &DocumentOptions,
        field: &str,
        replaced: u64,
        position: impl FnOnce() -> String,
    ) -> Result<Parsed<'t>, String> {
        let is_placed = self.id.is_none();
        let id = match (self.id, &options.id_field) {
            (Some(id), _) => id,
            (None, Some(name)) => return Err(format!("no id {field} `{}`", excerpt(name))),
            (None, None) => DocumentId::name(position())?,
        };
        let mut texts = self.texts.into_iter().flatten();
        let mut text = texts.next().unwrap_or_default();
        for more in texts {
            let text = text.to_mut();
            text.push('\n');
            text.push_str(&more);
        }
        Ok(Parsed { id, text, replaced, extra: self.extra, is_placed, guessed: None })
    }
}

impl DocumentOptions {
    /// The name of the field that holds the id.
    pub(crate) fn id_name(&self) -> &str {
        self.id_field.as_deref().unwrap_or("id")
    }
}

/// The rest of a field's name below an object or struct: `b.c` for `a.b.c` in `a`.
pub(crate) fn below<'n>(name: &'n str, object: &str) -> Option<&'n str> {
    name.strip_prefix(object)?.strip_prefix('.')
}

/// Names for a message, in quotes: not all of very many, nor all of a very long one.
pub fn listed(names: &[String]) -> String {
    let short = |name: &String| match name.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.clone(),
    };
    let shown: Vec<String> = names.iter().take(SHOWN_NAMES).map(short).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("`{}`{more}", shown.join("`, `"))
}

/// A message whose quoted part, if it has one, is an [`excerpt`].
pub fn with_short_quote(message: &str) -> String {
    let quoted = message.find('"').zip(message.rfind('"'));
    let Some((start, end)) = quoted.map(|(start, end)| (start + 1, end)).filter(|(start, end)| start < end)
    else {
        return message.to_owned();
    };
    format!("{}{}{}", &message[..start], excerpt(&message[start..end]), &message[end..])
}

/// The reason why an annotation cannot have this name.
pub(crate) fn is_taken(field: &str, name: &str) -> String {
    format!("a {field} `{}` already exists; choose another name with option `cluster_field`", excerpt(name))
}
