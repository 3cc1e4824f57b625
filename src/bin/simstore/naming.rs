//! From what documents are called to the ids and names of a store.

use simstore::corpus::DocumentId;

/// The rule: the first document decides whether ids are numbers, or names beside positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Undecided,
    Numbers,
    Names,
}

impl Naming {
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
