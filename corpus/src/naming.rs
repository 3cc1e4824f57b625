//! Ids and names in a store, from the ids of documents.

use simstore::error::excerpt;
use simstore::{Fingerprint, Snapshot};
use simstore_io::DocumentId;

/// Why a document cannot be numbered.
pub(crate) const NO_ID_LEFT: &str = "the greatest id, 2^64 - 1, is in use, so a document without an id cannot be numbered: build another \
                                     store";

/// How the documents of a store are called: the first decides whether ids are numbers, or names beside numbers.
///
/// ```
/// use simstore_corpus::Naming;
/// use simstore_io::DocumentId;
///
/// let mut naming = Naming::default();
/// let url = DocumentId::Name("https://example.org/".into());
/// assert_eq!(naming.assign(url, Some(0)), Ok((0, Some("https://example.org/".into()))));
/// assert_eq!(naming, Naming::Names);
/// assert_eq!(naming.assign(DocumentId::Number(7), Some(1)), Ok((1, Some("7".into()))));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// There is no document yet.
    #[default]
    Undecided,
    /// Ids are numbers, and there are no names.
    Numbers,
    /// All documents have names, and ids that are given to them.
    Names,
}

impl Naming {
    /// The rule of a store that takes more, and the number of the next document with a name, if any is left.
    pub fn of_store<F: Fingerprint>(store: &Snapshot<F>) -> (Naming, Option<u64>) {
        let naming = if store.stats().names > 0 {
            Naming::Names
        } else if store.is_empty() {
            Naming::Undecided
        } else {
            Naming::Numbers
        };
        (naming, store.highest_id().map_or(Some(0), |id| id.checked_add(1)))
    }

    /// The id of a document in the store, and its name if it has one. `next` is the id of one that has a name.
    ///
    /// # Errors
    /// The reason why the document is malformed: its id is a name where ids are numbers, or it needs an id and `next` is
    /// `None`.
    pub fn assign(&mut self, id: DocumentId, next: Option<u64>) -> Result<(u64, Option<String>), String> {
        if *self == Naming::Undecided {
            *self = if matches!(id, DocumentId::Number(_)) { Naming::Numbers } else { Naming::Names };
        }
        match (*self, id) {
            (Naming::Numbers, DocumentId::Number(number)) => Ok((number, None)),
            (Naming::Numbers, DocumentId::Name(name)) => Err(format!(
                "the id `{}` is a name, but the first id was a number; option `names` stores every id as a name",
                excerpt(&name).escape_debug()
            )),
            (_, id) => Ok((next.ok_or(NO_ID_LEFT)?, Some(id.to_string()))),
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
        let mut numbers = Naming::Undecided;
        assert_eq!(numbers.assign(DocumentId::Number(7), Some(0)), Ok((7, None)));
        assert!(numbers.assign(name("a"), Some(1)).unwrap_err().contains("option `names`"));
        let mut names = Naming::Undecided;
        assert_eq!(names.assign(name("a"), Some(0)), Ok((0, Some("a".to_owned()))));
        assert_eq!(names.assign(DocumentId::Number(7), Some(1)), Ok((1, Some("7".to_owned()))));
        let mut forced = Naming::Names;
        assert_eq!(forced.assign(DocumentId::Number(7), Some(3)), Ok((3, Some("7".to_owned()))));
        assert!(forced.assign(name("a"), None).unwrap_err().contains("cannot be numbered"));
    }
}
