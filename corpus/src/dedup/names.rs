//! What the documents of a corpus are called, and where they stand.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bitvec::vec::BitVec;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::{DocumentId, IdRef};

/// Ids, positions and places of documents, in order of input.
#[derive(Debug, Default)]
pub(super) struct Names {
    count: usize,
    ids: Ids,
    /// For each malformed record that was skipped, the number of documents before it.
    skipped: Vec<usize>,
    /// The first document of each file.
    files: Vec<(usize, Arc<Path>)>,
    /// The documents whose line does not follow that of the one before, with their lines.
    lines: Vec<(usize, u64)>,
    /// Documents that have an id which another has: see [`Names::find_repeated`].
    repeated: usize,
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

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }
}

impl Names {
    /// Adds documents at these positions, with ids that count up from `first`, on the lines from `line` on of a file.
    pub(super) fn push(&mut self, positions: Range<u64>, first: &DocumentId, path: &Arc<Path>, line: u64) {
        let more = positions.end - positions.start;
        if matches!(self.ids, Ids::Positions) && *first != DocumentId::Number(positions.start) {
            self.widen();
        }
        if matches!((&self.ids, first), (Ids::Numbers(_), DocumentId::Name(_))) {
            self.widen();
        }
        for _ in self.count + self.skipped.len()..positions.start as usize {
            self.skipped.push(self.count);
        }
        // The last of 2^64 numbers has none after it.
        let numbers = |first: u64| (0..more).map(move |i| first.wrapping_add(i));
        match (&mut self.ids, first) {
            (Ids::Positions, _) => {}
            (Ids::Numbers(all), DocumentId::Number(first)) => all.extend(numbers(*first)),
            (Ids::Texts(texts, is_number), DocumentId::Number(first)) => {
                for number in numbers(*first) {
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
        let is_other = |last: &Arc<Path>| !Arc::ptr_eq(last, path) && last != path;
        let is_next_file = self.files.last().is_none_or(|(_, last)| is_other(last));
        if is_next_file {
            self.files.push((self.count, Arc::clone(path)));
        }
        if is_next_file || self.next_line() != Some(line) {
            self.lines.push((self.count, line));
        }
        self.count += more as usize;
    }

    /// The line after that of the last document.
    fn next_line(&self) -> Option<u64> {
        self.lines.last().map(|&(from, line)| line + (self.count - from) as u64)
    }

    /// Holds the same ids so that more are possible.
    fn widen(&mut self) {
        match &self.ids {
            Ids::Positions => {
                self.ids = Ids::Numbers((0..self.count).map(|document| self.position(document)).collect());
            }
            Ids::Numbers(numbers) => {
                let mut texts = Strings::default();
                numbers.iter().for_each(|number| texts.push(&number.to_string()));
                self.ids = Ids::Texts(texts, BitVec::repeat(true, self.count));
            }
            Ids::Texts(..) => {}
        }
    }

    pub(super) fn memory(&self) -> u64 {
        let ids = match &self.ids {
            Ids::Positions => 0,
            Ids::Numbers(numbers) => (numbers.len() * size_of::<u64>()) as u64,
            Ids::Texts(texts, is_number) => texts.memory() + is_number.len() as u64 / 8,
        };
        ids + (self.lines.len() * size_of::<(usize, u64)>()) as u64
    }

    /// Finds out how many documents have an id that another has, when all are there.
    pub(super) fn find_repeated(&mut self) {
        let mut hashes: Vec<u64> = match &self.ids {
            Ids::Positions => return,
            Ids::Numbers(numbers) => numbers.clone(),
            Ids::Texts(texts, _) => (0..texts.len()).into_par_iter().map(|at| hash(texts.get(at))).collect(),
        };
        hashes.par_sort_unstable();
        let repeated: BTreeSet<u64> =
            hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        drop(hashes);
        self.repeated = match &self.ids {
            Ids::Positions => 0,
            Ids::Numbers(numbers) => numbers.par_iter().filter(|number| repeated.contains(number)).count(),
            Ids::Texts(texts, _) => {
                // Other texts may have the same hash.
                let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
                let all = (0..texts.len()).map(|at| texts.get(at));
                for text in all.filter(|text| repeated.contains(&hash(text))) {
                    *counts.entry(text).or_default() += 1;
                }
                counts.into_values().filter(|&count| count > 1).sum()
            }
        };
    }

    /// How many documents have an id that another has.
    pub(super) fn repeated(&self) -> usize {
        self.repeated
    }

    /// A document's position in the input: malformed records have one too.
    pub(super) fn position(&self, document: usize) -> u64 {
        (document + self.skipped.partition_point(|&before| before <= document)) as u64
    }

    /// Where a document stands: `FILE:LINE`.
    pub(super) fn place(&self, document: usize) -> String {
        let file = self.files.partition_point(|&(first, _)| first <= document);
        let lines = self.lines.partition_point(|&(first, _)| first <= document);
        // The first document has a file and a line.
        let (_, path) = &self.files[file - 1];
        let (first, line) = self.lines[lines - 1];
        format!("{}:{}", path.display(), line + (document - first) as u64)
    }

    pub(super) fn id(&self, document: usize) -> IdRef<'_> {
        match &self.ids {
            Ids::Positions => IdRef::Number(self.position(document)),
            Ids::Numbers(numbers) => IdRef::Number(numbers[document]),
            Ids::Texts(texts, is_number) => {
                let name = texts.get(document);
                match name.parse() {
                    Ok(number) if is_number[document] => IdRef::Number(number),
                    _ => IdRef::Name(name),
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

fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: u64) -> DocumentId {
        DocumentId::Number(number)
    }

    fn name(text: &str) -> DocumentId {
        DocumentId::Name(text.to_owned())
    }

    fn file(name: &str) -> Arc<Path> {
        Arc::from(Path::new(name))
    }

    #[test]
    fn ids_come_back() {
        let cases: [&[(Range<u64>, DocumentId)]; 6] = [
            &[(0..3, number(0)), (5..6, number(5)), (7..9, number(7))],
            &[(0..2, number(0)), (2..4, number(7)), (6..7, number(6))],
            &[(1..2, name("007")), (2..3, number(7)), (3..6, number(8)), (6..7, name(""))],
            &[(0..2, number(0)), (3..4, number(9)), (4..5, name("07")), (9..10, name("一"))],
            &[(0..2, number(0)), (2..3, name("a"))],
            &[(0..1, number(u64::MAX)), (1..2, name("a")), (2..3, number(u64::MAX))],
        ];
        for case in cases {
            let mut names = Names::default();
            let mut expected = Vec::new();
            for (positions, id) in case {
                names.push(positions.clone(), id, &file("a"), positions.start + 1);
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
                assert_eq!(names.place(document), format!("a:{}", position + 1), "{case:?}");
                let is_number = matches!(names.id(document), IdRef::Number(_));
                assert_eq!(is_number, matches!(id, DocumentId::Number(_)), "{case:?}");
            }
        }
    }

    #[test]
    fn repeated_ids_are_counted_and_told_apart_by_place() {
        let mut names = Names::default();
        let repeated = |names: &mut Names| {
            names.find_repeated();
            names.repeated()
        };
        names.push(0..3, &number(0), &file("a"), 1);
        assert_eq!(repeated(&mut names), 0);
        names.push(3..4, &number(1), &file("a"), 9);
        assert_eq!(repeated(&mut names), 2);
        names.push(4..6, &number(1), &file("b"), 1);
        assert_eq!(repeated(&mut names), 5);
        // As in every table, a number and a name that look alike are one id.
        names.push(6..7, &name("0"), &file("b"), 3);
        names.push(7..8, &name("x"), &file("b"), 4);
        assert_eq!(repeated(&mut names), 7);
        let places: Vec<String> = (0..8).map(|document| names.place(document)).collect();
        assert_eq!(places, ["a:1", "a:2", "a:3", "a:9", "b:1", "b:2", "b:3", "b:4"]);
    }
}
