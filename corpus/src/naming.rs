//! From what documents are called to the ids and names of a store.

use simstore::{Fingerprint, Snapshot};

use crate::DocumentId;

/// Why a document cannot be numbered.
pub const NO_ID_LEFT: &str = "there is a document with the greatest id, 2^64 - 1, and so no id is left for one \
                                     that has none: build another store";

/// The rule: the first document decides whether ids are numbers, or names beside positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// There is no document yet.
    Undecided,
    /// Ids are numbers.
    Numbers,
    /// Documents have names; their ids are given.
    Names,
}

impl Naming {
    /// The rule of a store that takes more, and the id of the next document that has a name, if there is one left.
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

    /// The id, and the name if it has one, of a document; a reason if it breaks the rule. `next` is the id of one that
    /// has a name.
    ///
    /// # Errors
    /// The reason, for a name where ids are numbers, and where no id is left.
    pub fn assign(&mut self, id: DocumentId, next: Option<u64>) -> Result<(u64, Option<String>), String> {
        if *self == Naming::Undecided {
            *self = if matches!(id, DocumentId::Number(_)) { Naming::Numbers } else { Naming::Names };
        }
        match (*self, id) {
            (Naming::Numbers, DocumentId::Number(number)) => Ok((number, None)),
            (Naming::Numbers, DocumentId::Name(name)) => Err(format!(
                "the id `{}` is a name, but the first id was a number; option `names` takes every id as a name",
                name.chars().take(100).collect::<String>().escape_debug()
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
        assert!(numbers.assign(name("a"), Some(1)).unwrap_err().contains("`names`"));
        let mut names = Naming::Undecided;
        assert_eq!(names.assign(name("a"), Some(0)), Ok((0, Some("a".to_owned()))));
        assert_eq!(names.assign(DocumentId::Number(7), Some(1)), Ok((1, Some("7".to_owned()))));
        let mut forced = Naming::Names;
        assert_eq!(forced.assign(DocumentId::Number(7), Some(3)), Ok((3, Some("7".to_owned()))));
        assert!(forced.assign(name("a"), None).unwrap_err().contains("no id is left"));
    }
}
