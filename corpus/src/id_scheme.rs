//! Assigns numeric ids and names in a store to documents, according to the ids of the documents.

use simstore::error::excerpt;
use simstore::{Fingerprint, Snapshot};
use simstore_io::DocumentId;

/// Error message for a document that cannot get a numeric id, because none is free.
pub(crate) const NO_FREE_ID: &str = "the greatest id, 2^64 - 1, is in use, so a document without an id cannot be numbered: build another \
                                     store";

/// Whether the documents of a store have only numeric ids, or names too. The id of the first document decides.
///
/// ```
/// use simstore_corpus::IdScheme;
/// use simstore_io::DocumentId;
///
/// let mut scheme = IdScheme::default();
/// let url = DocumentId::Name("https://example.org/".into());
/// assert_eq!(scheme.assign(url, Some(0)), Ok((0, Some("https://example.org/".into()))));
/// assert_eq!(scheme, IdScheme::Names);
/// assert_eq!(scheme.assign(DocumentId::Number(7), Some(1)), Ok((1, Some("7".into()))));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdScheme {
    /// The store is empty. Its first document will decide whether documents have numbers or names.
    #[default]
    Undecided,
    /// Document ids are numbers. Documents have no names.
    Numbers,
    /// Each document has a name, and an assigned numeric id.
    Names,
}

impl IdScheme {
    /// Returns the scheme of a store, and the next free numeric id for a document with a name. The second value is `None` if
    /// the greatest id, 2^64 - 1, is in use.
    pub fn from_store<F: Fingerprint>(store: &Snapshot<F>) -> (IdScheme, Option<u64>) {
        let scheme = if store.stats().names > 0 {
            IdScheme::Names
        } else if store.is_empty() {
            IdScheme::Undecided
        } else {
            IdScheme::Numbers
        };
        (scheme, store.highest_id().map_or(Some(0), |id| id.checked_add(1)))
    }

    /// Returns the numeric id under which the store keeps a new document, and the document's name if the scheme is
    /// [`IdScheme::Names`]. `next` is the next free numeric id, which a document with a name gets.
    ///
    /// # Errors
    /// A message why the document is malformed: its id is a name, but the scheme is [`IdScheme::Numbers`]; or the document
    /// needs a free id, but `next` is `None`.
    pub fn assign(&mut self, id: DocumentId, next: Option<u64>) -> Result<(u64, Option<String>), String> {
        if *self == IdScheme::Undecided {
            *self = if matches!(id, DocumentId::Number(_)) { IdScheme::Numbers } else { IdScheme::Names };
        }
        match (*self, id) {
            (IdScheme::Numbers, DocumentId::Number(number)) => Ok((number, None)),
            (IdScheme::Numbers, DocumentId::Name(name)) => Err(format!(
                "the id `{}` is a name, but the first id was a number; option `names` stores every id as a name",
                excerpt(&name).escape_debug()
            )),
            (_, id) => Ok((next.ok_or(NO_FREE_ID)?, Some(id.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> DocumentId {
        DocumentId::Name(name.to_owned())
    }

    #[test]
    fn the_first_decides() {
        let mut numbers = IdScheme::Undecided;
        assert_eq!(numbers.assign(DocumentId::Number(7), Some(0)), Ok((7, None)));
        assert!(numbers.assign(name("a"), Some(1)).unwrap_err().contains("option `names`"));
        let mut names = IdScheme::Undecided;
        assert_eq!(names.assign(name("a"), Some(0)), Ok((0, Some("a".to_owned()))));
        assert_eq!(names.assign(DocumentId::Number(7), Some(1)), Ok((1, Some("7".to_owned()))));
        let mut forced = IdScheme::Names;
        assert_eq!(forced.assign(DocumentId::Number(7), Some(3)), Ok((3, Some("7".to_owned()))));
        assert!(forced.assign(name("a"), None).unwrap_err().contains("cannot be numbered"));
    }
}
