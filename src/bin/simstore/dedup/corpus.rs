//! All documents of a corpus in memory: their fingerprints, and what they are called.

use std::borrow::Cow;
use std::ops::Range;

use bitvec::vec::BitVec;
use hashbrown::HashTable;
use simstore::Fingerprint;
use simstore::corpus::DocumentId;
use xxhash_rust::xxh3::xxh3_64;

use super::preference::{Rule, Values};
use crate::failure::{Failure, Outcome};
use crate::inputs::Item;
use crate::naming::Id;

/// All that was read, in order of input. Takes the bytes of a fingerprint for each document, and what the ids
/// need: nothing where they are positions.
#[derive(Debug)]
pub(super) struct Corpus<F> {
    /// Zero for a document without text.
    pub(super) fingerprints: Vec<F>,
    /// The documents without text, ascending.
    empty: Vec<usize>,
    pub(super) names: Names,
    /// What decides which document of a cluster is kept.
    pub(super) values: Values,
}

/// Ids and positions of documents.
#[derive(Debug, Default)]
pub(super) struct Names {
    count: usize,
    ids: Ids,
    /// For each malformed record that was skipped, the number of documents before it.
    skipped: Vec<usize>,
    /// The documents by their ids, where these are no positions.
    by_id: HashTable<u32>,
}

#[derive(Debug, Default)]
enum Ids {
    /// Each is the document's position.
    #[default]
    Positions,
    Numbers(Vec<u64>),
    /// Each with whether it is a number.
    Texts(Strings, BitVec),
}

/// Texts, one after the other.
#[derive(Debug, Default)]
pub(super) struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub(super) fn memory(&self) -> u64 {
        (self.text.len() + self.ends.len() * size_of::<usize>()) as u64
    }

    pub(super) fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }
}

impl<F: Fingerprint> Corpus<F> {
    pub(super) fn new(rule: &Rule) -> Self {
        Corpus {
            fingerprints: Vec::new(),
            empty: Vec::new(),
            names: Names::default(),
            values: Values::new(rule),
        }
    }

    /// Adds a document. One with the id of an earlier one is malformed.
    pub(super) fn push(&mut self, item: &Item<F>) -> Outcome {
        self.names.push(item.position..item.position + 1, &item.id).map_err(|earlier| {
            let id = item.id.to_string();
            let id: String = id.chars().take(100).collect();
            item.bad(format!(
                "the id `{}` is that of document {} too, counted from 1",
                id.escape_debug(),
                earlier + 1
            ))
        })?;
        self.values.push(item.text_bytes, item.extra.as_deref());
        if item.fingerprint.is_none() {
            self.empty.push(self.fingerprints.len());
        }
        self.fingerprints.push(item.fingerprint.unwrap_or_default());
        Ok(())
    }

    /// Adds fingerprints whose ids count up from the position of the first.
    pub(super) fn push_block(&mut self, fingerprints: &[F], position: u64) -> Outcome {
        let positions = position..position + fingerprints.len() as u64;
        self.names.push(positions, &DocumentId::Number(position)).map_err(|earlier| {
            Failure::Failed(format!(
                "a fingerprint without an id is called by its position, counted from 0: one from {position} on has the \
                 id of fingerprint {earlier}"
            ))
        })?;
        self.fingerprints.extend_from_slice(fingerprints);
        Ok(())
    }

    /// The memory that it takes to compare all that has been read, and to hold what it is called. A fingerprint stands
    /// in the corpus, among the sorted ones and in the space of the join; with its place among the clusters, that
    /// is three and a half times its size.
    pub(super) fn memory(&self) -> u64 {
        let fingerprints = self.fingerprints.len() as u64 * F::BYTES as u64 * 7 / 2;
        fingerprints + self.names.memory() + self.values.memory()
    }

    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// The fingerprint, if the document has one.
    pub(super) fn fingerprint(&self, document: usize) -> Option<F> {
        self.empty.binary_search(&document).is_err().then(|| self.fingerprints[document])
    }

    /// All fingerprints.
    pub(super) fn all(&self) -> Vec<F> {
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
    /// Adds documents at these positions, with ids that count up from `first`. If an earlier document has such an id,
    /// adds nothing and tells which.
    pub(super) fn push(&mut self, positions: Range<u64>, first: &DocumentId) -> Result<(), usize> {
        let more = positions.end - positions.start;
        if matches!(self.ids, Ids::Positions) && *first != DocumentId::Number(positions.start) {
            self.widen();
        }
        if matches!((&self.ids, first), (Ids::Numbers(_), DocumentId::Name(_))) {
            self.widen();
        }
        if let Some(earlier) = self.earlier(first, more) {
            return Err(earlier);
        }
        for _ in self.count + self.skipped.len()..positions.start as usize {
            self.skipped.push(self.count);
        }
        match (&mut self.ids, first) {
            (Ids::Positions, _) => {}
            (Ids::Numbers(numbers), DocumentId::Number(first)) => numbers.extend(*first..first + more),
            (Ids::Texts(texts, is_number), DocumentId::Number(first)) => {
                for number in *first..first + more {
                    texts.push(&number.to_string());
                    is_number.push(true);
                }
            }
            (Ids::Texts(texts, is_number), DocumentId::Name(name)) => {
                texts.push(name);
                is_number.push(false);
            }
            (Ids::Numbers(_), DocumentId::Name(_)) => unreachable!("widened above"),
        }
        self.count += more as usize;
        for document in self.count - more as usize..self.count {
            self.enter(document);
        }
        Ok(())
    }

    /// The earlier document that has one of `count` ids from `first` on.
    fn earlier(&self, first: &DocumentId, count: u64) -> Option<usize> {
        if matches!(self.ids, Ids::Positions) {
            return None;
        }
        let find = |text: &str| {
            let found = self.by_id.find(xxh3_64(text.as_bytes()), |&other| self.text(other as usize) == text);
            found.map(|&document| document as usize)
        };
        match first {
            DocumentId::Name(name) => find(name),
            DocumentId::Number(first) => (*first..first + count).find_map(|number| find(&number.to_string())),
        }
    }

    /// Enters a document under its id, where these are no positions.
    fn enter(&mut self, document: usize) {
        if matches!(self.ids, Ids::Positions) {
            return;
        }
        let mut by_id = std::mem::take(&mut self.by_id);
        let hash = |document: usize| xxh3_64(self.text(document).as_bytes());
        by_id.insert_unique(hash(document), document as u32, |&other| hash(other as usize));
        self.by_id = by_id;
    }

    /// Holds the same ids so that more are possible.
    fn widen(&mut self) {
        match &self.ids {
            Ids::Positions => {
                self.ids = Ids::Numbers((0..self.count).map(|document| self.position(document)).collect());
                (0..self.count).for_each(|document| self.enter(document));
            }
            Ids::Numbers(numbers) => {
                let mut texts = Strings::default();
                numbers.iter().for_each(|number| texts.push(&number.to_string()));
                self.ids = Ids::Texts(texts, BitVec::repeat(true, self.count));
            }
            Ids::Texts(..) => {}
        }
    }

    fn memory(&self) -> u64 {
        let ids = match &self.ids {
            Ids::Positions => 0,
            Ids::Numbers(numbers) => (numbers.len() * size_of::<u64>()) as u64,
            Ids::Texts(texts, is_number) => texts.memory() + is_number.len() as u64 / 8,
        };
        // A place of the table has a document and a byte.
        ids + (self.by_id.capacity() * (size_of::<u32>() + 1)) as u64
    }

    /// A document's position in the input: malformed records have one too.
    pub(super) fn position(&self, document: usize) -> u64 {
        (document + self.skipped.partition_point(|&before| before <= document)) as u64
    }

    pub(super) fn id(&self, document: usize) -> Id<'_> {
        match &self.ids {
            Ids::Positions => Id::Number(self.position(document)),
            Ids::Numbers(numbers) => Id::Number(numbers[document]),
            Ids::Texts(texts, is_number) => {
                let name = texts.get(document);
                match name.parse() {
                    Ok(number) if is_number[document] => Id::Number(number),
                    _ => Id::Name(name),
                }
            }
        }
    }

    /// A document's id as text.
    pub(super) fn text(&self, document: usize) -> Cow<'_, str> {
        self.id(document).text()
    }

    /// Whether all ids are numbers.
    pub(super) fn are_numbers(&self) -> bool {
        match &self.ids {
            Ids::Positions | Ids::Numbers(_) => true,
            Ids::Texts(_, is_number) => is_number.all(),
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
            &[(0..2, number(0)), (3..4, number(9)), (4..5, name("07")), (9..10, name("一"))],
            &[(0..2, number(0)), (2..3, name("a"))],
        ];
        for case in cases {
            let mut names = Names::default();
            let mut expected = Vec::new();
            for (positions, id) in case {
                names.push(positions.clone(), id).unwrap();
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
                let is_number = matches!(names.id(document), Id::Number(_));
                assert_eq!(is_number, matches!(id, DocumentId::Number(_)), "{case:?}");
            }
        }
    }

    #[test]
    fn an_id_comes_once() {
        let number = DocumentId::Number;
        let name = |text: &str| DocumentId::Name(text.to_owned());
        let mut names = Names::default();
        names.push(0..3, &number(0)).unwrap();
        assert_eq!(names.push(3..4, &number(1)), Err(1));
        names.push(4..6, &number(7)).unwrap();
        assert_eq!(names.push(6..8, &number(6)), Err(3));
        assert_eq!(names.push(8..9, &name("8")), Err(4));
        names.push(9..10, &name("a")).unwrap();
        assert_eq!(names.push(10..11, &name("a")), Err(5));
        names.push(11..12, &name("b")).unwrap();
        let all: Vec<_> = (0..7).map(|document| names.text(document).into_owned()).collect();
        assert_eq!(all, ["0", "1", "2", "7", "8", "a", "b"]);
        let positions: Vec<_> = (0..7).map(|document| names.position(document)).collect();
        assert_eq!(positions, [0, 1, 2, 4, 5, 9, 11]);
    }
}
