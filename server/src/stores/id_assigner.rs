//! Numeric ids and names of new documents, by the rules of `simstore add`.

use std::sync::{Mutex, PoisonError};

use simstore::{Fingerprint, Snapshot};
use simstore_corpus::IdScheme;
use simstore_io::DocumentId;

use crate::messages::{GREATEST_EXACT_INTEGER, JsonId};
use crate::service_error::{ServiceError, ServiceResult};

/// Decides whether an id is a number or a name, and assigns free numeric ids. The id of the first document decides for the store.
pub(super) struct IdAssigner(Mutex<AssignerState>);

struct AssignerState {
    scheme: IdScheme,
    /// Next free numeric id; `None` if the greatest id, 2^64 - 1, is in use.
    next: Option<u64>,
}

/// Numeric id of a document to store.
pub(super) struct AssignedNumber {
    pub(super) number: u64,
    /// Whether no document had this id before, because it is above all earlier ids.
    pub(super) is_fresh: bool,
}

impl IdAssigner {
    pub(super) fn new<F: Fingerprint>(store: &Snapshot<F>) -> IdAssigner {
        let (scheme, next) = IdScheme::from_store(store);
        IdAssigner(Mutex::new(AssignerState { scheme, next }))
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut AssignerState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Converts the id of a request to the id of a document. Decides between numbers and names if no document has been stored yet.
    ///
    /// # Errors
    /// The status 422 if the id is a name, but the store has numbers.
    pub(super) fn identify(&self, id: &JsonId) -> ServiceResult<DocumentId> {
        self.with_state(|state| {
            if state.scheme == IdScheme::Undecided {
                let is_number = matches!(id, JsonId::Number(_)) || great_number(id).is_some();
                state.scheme = if is_number { IdScheme::Numbers } else { IdScheme::Names };
            }
            match (state.scheme, id) {
                (IdScheme::Names, id) => Ok(DocumentId::Name(id.to_string())),
                (_, JsonId::Number(number)) => Ok(DocumentId::Number(*number)),
                (_, JsonId::Text(text)) => match DocumentId::from_text(text) {
                    Ok(DocumentId::Number(number)) => Ok(DocumentId::Number(number)),
                    _ => Err(ServiceError::unusable(
                        "id-kind",
                        "the id is a name, but the ids of this store are numbers, as its first id was",
                    )),
                },
            }
        })
    }

    /// Whether new documents get names. A document without an id then has its numeric id as its name.
    pub(super) fn has_names(&self) -> bool {
        self.with_state(|state| state.scheme == IdScheme::Names)
    }

    /// Returns the id that a text in an address means: a number if documents have numbers and the text is one, else a name.
    pub(super) fn sought(&self, text: &str) -> DocumentId {
        match DocumentId::from_text(text) {
            Ok(DocumentId::Number(number)) if !self.has_names() => DocumentId::Number(number),
            _ => DocumentId::Name(text.to_owned()),
        }
    }

    /// Marks a numeric id of a request as used.
    pub(super) fn reserve(&self, number: u64) -> AssignedNumber {
        self.with_state(|state| {
            let is_fresh = state.next.is_some_and(|next| number >= next);
            if is_fresh {
                state.next = number.checked_add(1);
            }
            AssignedNumber { number, is_fresh }
        })
    }

    /// Returns the next free numeric id, without marking it as used.
    ///
    /// # Errors
    /// The status 507 if the greatest id is in use.
    pub(super) fn next(&self) -> ServiceResult<u64> {
        self.with_state(|state| {
            if state.scheme == IdScheme::Undecided {
                state.scheme = IdScheme::Numbers;
            }
            state.next.ok_or_else(|| {
                let message = "the greatest id, 2^64 - 1, is in use, so no other document can be numbered";
                ServiceError::new(axum::http::StatusCode::INSUFFICIENT_STORAGE, "exhausted", message)
            })
        })
    }

    /// Marks a numeric id as used if it is still the next free one. Returns whether it was.
    pub(super) fn reserve_next(&self, number: u64) -> bool {
        self.with_state(|state| {
            let is_next = state.next == Some(number);
            if is_next {
                state.next = number.checked_add(1);
            }
            is_next
        })
    }
}

/// Returns the number that a text has to be, because it is too great for a JSON number.
fn great_number(id: &JsonId) -> Option<u64> {
    let JsonId::Text(text) = id else { return None };
    match DocumentId::from_text(text) {
        Ok(DocumentId::Number(number)) if number > GREATEST_EXACT_INTEGER => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigner(scheme: IdScheme, next: Option<u64>) -> IdAssigner {
        IdAssigner(Mutex::new(AssignerState { scheme, next }))
    }

    #[test]
    fn the_first_id_decides() {
        let text = |text: &str| JsonId::Text(text.to_owned());
        let name = |name: &str| DocumentId::Name(name.to_owned());
        let numbers = assigner(IdScheme::Undecided, Some(0));
        assert_eq!(numbers.identify(&JsonId::Number(7)).unwrap(), DocumentId::Number(7));
        assert_eq!(numbers.identify(&text("8")).unwrap(), DocumentId::Number(8));
        assert_eq!(numbers.identify(&text("a")).unwrap_err().status.as_u16(), 422);
        let names = assigner(IdScheme::Undecided, Some(0));
        assert_eq!(names.identify(&text("7")).unwrap(), name("7"));
        assert_eq!(names.identify(&JsonId::Number(8)).unwrap(), name("8"));
        let great = assigner(IdScheme::Undecided, Some(0));
        assert_eq!(great.identify(&text("18446744073709551615")).unwrap(), DocumentId::Number(u64::MAX));
    }

    #[test]
    fn numbers_are_assigned_once() {
        let ids = assigner(IdScheme::Numbers, Some(3));
        assert!(ids.reserve(9).is_fresh && !ids.reserve(9).is_fresh && !ids.reserve(4).is_fresh);
        assert_eq!(ids.next().unwrap(), 10);
        assert!(ids.reserve_next(10) && !ids.reserve_next(10));
        assert!(ids.reserve(u64::MAX).is_fresh);
        assert_eq!(ids.next().unwrap_err().status.as_u16(), 507);
    }
}
