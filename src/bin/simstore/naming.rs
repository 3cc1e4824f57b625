//! From what documents are called to the ids and names of a store.

use std::borrow::Cow;

use serde::Serialize;
use simstore::corpus::DocumentId;
use simstore::{Fingerprint, Snapshot};

/// What a document is called; numbers come before names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub(crate) enum Id<'a> {
    Number(u64),
    Name(&'a str),
}

impl<'a> Id<'a> {
    pub(crate) fn text(self) -> Cow<'a, str> {
        match self {
            Id::Number(number) => number.to_string().into(),
            Id::Name(name) => name.into(),
        }
    }
}

impl From<Id<'_>> for DocumentId {
    fn from(id: Id) -> Self {
        match id {
            Id::Number(number) => DocumentId::Number(number),
            Id::Name(name) => DocumentId::Name(name.to_owned()),
        }
    }
}

impl<'a> From<&'a DocumentId> for Id<'a> {
    fn from(id: &'a DocumentId) -> Self {
        match id {
            DocumentId::Number(number) => Id::Number(*number),
            DocumentId::Name(name) => Id::Name(name),
        }
    }
}

/// The rule: the first document decides whether ids are numbers, or names beside positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Undecided,
    Numbers,
    Names,
}

impl Naming {
    /// The rule of a store that takes more, and the id of the next document that has a name.
    pub(crate) fn of_store<F: Fingerprint>(store: &Snapshot<F>) -> (Naming, u64) {
        let naming = if store.stats().names > 0 {
            Naming::Names
        } else if store.is_empty() {
            Naming::Undecided
        } else {
            Naming::Numbers
        };
        (naming, store.highest_id().map_or(0, |id| id.saturating_add(1)))
    }

    /// The id, and the name if it has one, of the document at a position; a reason if it breaks the rule.
    pub(crate) fn assign(&mut self, id: DocumentId, position: u64) -> Result<(u64, Option<String>), String> {
        if *self == Naming::Undecided {
            *self = if matches!(id, DocumentId::Number(_)) { Naming::Numbers } else { Naming::Names };
        }
        match (*self, id) {
            (Naming::Numbers, DocumentId::Number(number)) => Ok((number, None)),
            (Naming::Numbers, DocumentId::Name(name)) => Err(format!(
                "the id `{}` is a name, but the first id was a number; `--names` takes every id as a name",
                name.chars().take(100).collect::<String>().escape_debug()
            )),
            (_, id) => Ok((position, Some(id.to_string()))),
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
        assert_eq!(numbers.assign(DocumentId::Number(7), 0), Ok((7, None)));
        assert!(numbers.assign(name("a"), 1).unwrap_err().contains("--names"));
        let mut names = Naming::Undecided;
        assert_eq!(names.assign(name("a"), 0), Ok((0, Some("a".to_owned()))));
        assert_eq!(names.assign(DocumentId::Number(7), 1), Ok((1, Some("7".to_owned()))));
        let mut forced = Naming::Names;
        assert_eq!(forced.assign(DocumentId::Number(7), 3), Ok((3, Some("7".to_owned()))));
    }
}
