//! All documents of a corpus in memory: their fingerprints, and what they are called.

use std::borrow::Cow;
use std::ops::Range;

use bitvec::vec::BitVec;
use simstore::Fingerprint;
use simstore::corpus::DocumentId;

use crate::fingerprint::JsonId;
use crate::inputs::Item;

/// All that was read, in order of input. Takes the bytes of a fingerprint for each document, and what the ids
/// need: nothing where they are positions.
#[derive(Debug, Default)]
pub(crate) struct Corpus<F> {
    /// Zero for a document without text.
    pub(crate) fingerprints: Vec<F>,
    /// The documents without text, ascending.
    empty: Vec<usize>,
    pub(crate) names: Names,
}

/// Ids and positions of documents.
#[derive(Debug, Default)]
pub(crate) struct Names {
    count: usize,
    ids: Ids,
    /// For each malformed record that was skipped, the number of documents before it.
    skipped: Vec<usize>,
}

#[derive(Debug, Default)]
enum Ids {
    /// Each is the document's position.
    #[default]
    Positions,
    Numbers(Vec<u64>),
    /// In one text, with where each ends, and whether it is a number.
    Texts {
        text: String,
        ends: Vec<usize>,
        is_number: BitVec,
    },
}

impl<F: Fingerprint> Corpus<F> {
    pub(crate) fn push(&mut self, item: Item<F>) {
        if item.fingerprint.is_none() {
            self.empty.push(self.fingerprints.len());
        }
        self.fingerprints.push(item.fingerprint.unwrap_or_default());
        self.names.push(item.position..item.position + 1, item.id);
    }

    /// Number of documents.
    pub(crate) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// The fingerprint, if the document has one.
    pub(crate) fn fingerprint(&self, document: usize) -> Option<F> {
        self.empty.binary_search(&document).is_err().then(|| self.fingerprints[document])
    }

    /// All fingerprints.
    pub(crate) fn all(&self) -> Vec<F> {
        let (mut all, mut start) = (Vec::with_capacity(self.len() - self.empty.len()), 0);
        for &empty in &self.empty {
            all.extend_from_slice(&self.fingerprints[start..empty]);
            start = empty + 1;
        }
        all.extend_from_slice(&self.fingerprints[start..]);
        all
    }
}

impl Names {
    /// Adds documents at these positions, with ids that count up from `first`.
    pub(crate) fn push(&mut self, positions: Range<u64>, first: DocumentId) {
        for _ in self.count + self.skipped.len()..positions.start as usize {
            self.skipped.push(self.count);
        }
        let more = positions.end - positions.start;
        match (&mut self.ids, first) {
            (Ids::Positions, DocumentId::Number(first)) if first == positions.start => {}
            (Ids::Numbers(numbers), DocumentId::Number(first)) => numbers.extend(first..first + more),
            (Ids::Texts { text, ends, is_number }, first) => {
                is_number.push(matches!(first, DocumentId::Number(_)));
                text.push_str(&first.to_string());
                ends.push(text.len());
                if let DocumentId::Number(first) = first {
                    for number in first + 1..first + more {
                        text.push_str(&number.to_string());
                        ends.push(text.len());
                        is_number.push(true);
                    }
                }
            }
            (_, first) => {
                self.widen();
                return self.push(positions, first);
            }
        }
        self.count += more as usize;
    }

    /// Holds the same ids so that more are possible.
    fn widen(&mut self) {
        let numbers = match &self.ids {
            Ids::Positions => {
                self.ids = Ids::Numbers((0..self.count).map(|document| self.position(document)).collect());
                return;
            }
            Ids::Numbers(numbers) => numbers,
            Ids::Texts { .. } => return,
        };
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(numbers.len()));
        for number in numbers {
            text.push_str(&number.to_string());
            ends.push(text.len());
        }
        self.ids = Ids::Texts { text, is_number: BitVec::repeat(true, ends.len()), ends };
    }

    /// A document's position in the input: malformed records have one too.
    pub(crate) fn position(&self, document: usize) -> u64 {
        (document + self.skipped.partition_point(|&before| before <= document)) as u64
    }

    pub(crate) fn id(&self, document: usize) -> JsonId<'_> {
        match &self.ids {
            Ids::Positions => JsonId::Number(self.position(document)),
            Ids::Numbers(numbers) => JsonId::Number(numbers[document]),
            Ids::Texts { text, ends, is_number } => {
                let start = if document == 0 { 0 } else { ends[document - 1] };
                let name = &text[start..ends[document]];
                match name.parse() {
                    Ok(number) if is_number[document] => JsonId::Number(number),
                    _ => JsonId::Name(name),
                }
            }
        }
    }

    /// A document's id as text.
    pub(crate) fn text(&self, document: usize) -> Cow<'_, str> {
        match self.id(document) {
            JsonId::Number(number) => number.to_string().into(),
            JsonId::Name(name) => name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        let number = DocumentId::Number;
        let name = |text: &str| DocumentId::Name(text.to_owned());
        let cases: [&[(Range<u64>, DocumentId)]; 5] = [
            &[(0..3, number(0)), (5..6, number(5)), (7..9, number(7))],
            &[(0..2, number(0)), (2..4, number(7)), (6..7, number(6))],
            &[(1..2, name("007")), (2..3, number(7)), (3..6, number(8)), (6..7, name(""))],
            &[(0..2, number(0)), (3..4, number(9)), (4..5, name("7")), (9..10, name("一"))],
            &[(0..2, number(0)), (2..3, name("a"))],
        ];
        for case in cases {
            let mut names = Names::default();
            let mut expected = Vec::new();
            for (positions, id) in case {
                names.push(positions.clone(), id.clone());
                for (i, position) in positions.clone().enumerate() {
                    let id = match id {
                        DocumentId::Number(first) => DocumentId::Number(first + i as u64),
                        DocumentId::Name(_) => id.clone(),
                    };
                    expected.push((position, id));
                }
            }
            for (document, (position, id)) in expected.iter().enumerate() {
                assert_eq!(names.position(document), *position, "{case:?}");
                assert_eq!(names.text(document), id.to_string(), "{case:?}");
                let is_number = matches!(names.id(document), JsonId::Number(_));
                assert_eq!(is_number, matches!(id, DocumentId::Number(_)), "{case:?}");
            }
        }
    }
}
