//! Compact columns for the ids, positions, files and lines of documents.

use std::borrow::Cow;
use std::ops::{Index, Range};
use std::path::Path;
use std::sync::Arc;

use bitvec::vec::BitVec;
use simstore::Result;

use simstore_corpus::spill::{SpillReader, SpillWriter};
use simstore_io::document::format_position;
use simstore_io::document::{name_to_path, path_to_name};
use simstore_io::{DocumentId, IdRef};

/// Table with the id, input position, file and line of each document: one row per document, in input order.
/// A column of consecutive numbers takes almost no memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdTable {
    count: usize,
    ids: IdValues,
    /// Input positions. They have gaps where malformed records were skipped.
    positions: NumberRuns,
    lines: NumberRuns,
    /// For each file: the row of its first document, and its path.
    files: Vec<(usize, Arc<Path>)>,
}

#[derive(Clone, Debug, Default)]
enum IdValues {
    /// Each id equals the input position of its document.
    #[default]
    Positions,
    Numbers(Vec<u64>),
    /// Ids as texts, and for each id a flag whether it is a number.
    Texts(StringColumn, BitVec<u64>),
}

/// Column of numbers, stored as runs. In a run, the numbers count up by one from row to row. Each run is stored as
/// (first row, number in that row).
#[derive(Clone, Debug, Default)]
struct NumberRuns(Vec<(u64, u64)>);

impl NumberRuns {
    /// Returns the number in row `at`, which must exist.
    fn get(&self, at: usize) -> u64 {
        let (from, first) = self.0[self.0.partition_point(|&(from, _)| from <= at as u64) - 1];
        first.wrapping_add(at as u64 - from)
    }

    /// Sets the number in row `at`, which must come after all rows set so far. Rows between the last set row and this
    /// row get consecutive numbers, which follow the number of the last set row.
    fn push(&mut self, at: usize, number: u64) {
        let next = self.0.last().map(|&(from, first)| first.wrapping_add(at as u64 - from));
        if next != Some(number) {
            self.0.push((at as u64, number));
        }
    }

    fn memory(&self) -> u64 {
        (self.0.len() * size_of::<(u64, u64)>()) as u64
    }
}

/// Column of strings or byte strings: the concatenation of all strings, and the offset at which each of them ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct StringColumn<T = String> {
    contents: T,
    ends: Vec<usize>,
}

impl<T: AsRef<[u8]> + Index<Range<usize>>> StringColumn<T> {
    /// Appends a string, given as an iterator over its parts or bytes.
    pub(crate) fn push<S>(&mut self, string: impl IntoIterator<Item = S>)
    where
        T: Extend<S>,
    {
        self.contents.extend(string);
        self.ends.push(self.contents.as_ref().len());
    }

    pub(crate) fn memory(&self) -> u64 {
        (self.contents.as_ref().len() + self.ends.len() * size_of::<usize>()) as u64
    }

    pub(crate) fn get(&self, at: usize) -> &T::Output {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.contents[start..self.ends[at]]
    }

    pub(crate) fn write(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record(self.contents.as_ref().len() as u64)?;
        file.push(self.contents.as_ref())?;
        file.push_records(self.ends.iter().map(|&end| end as u64))
    }

    /// Creates the column of `count` strings whose concatenation is `contents`. Reads their end offsets from
    /// `file`. Fails if the offsets are not ascending, or if `is_end` rejects an offset.
    pub(crate) fn read(
        contents: T,
        file: &mut SpillReader,
        count: usize,
        is_end: impl Fn(&T, usize) -> bool,
    ) -> Result<Self> {
        let ends: Vec<usize> = file.read_records::<u64>()?.into_iter().map(|end| end as usize).collect();
        let is_sound =
            ends.len() == count && ends.is_sorted() && ends.iter().all(|&end| is_end(&contents, end));
        if is_sound { Ok(StringColumn { contents, ends }) } else { Err(file.changed_error()) }
    }
}

// Tags of the variants of `IdValues` in temporary files.
const POSITION_IDS: u64 = 0;
const NUMBER_IDS: u64 = 1;
const TEXT_IDS: u64 = 2;

impl IdTable {
    /// Appends rows for documents at consecutive input positions. The ids of these documents count up from
    /// `first`, and their lines from `line`. If `first` is a name, there must be a single position.
    pub(crate) fn push(&mut self, positions: Range<u64>, first: &DocumentId, path: &Arc<Path>, line: u64) {
        let more = positions.end - positions.start;
        if matches!(self.ids, IdValues::Positions) && *first != DocumentId::Number(positions.start) {
            self.widen();
        }
        if matches!((&self.ids, first), (IdValues::Numbers(_), DocumentId::Name(_))) {
            self.widen();
        }
        // The id after `u64::MAX` wraps to 0.
        let numbers = |first: u64| (0..more).map(move |i| first.wrapping_add(i));
        match (&mut self.ids, first) {
            (IdValues::Positions, _) => {}
            (IdValues::Numbers(all), DocumentId::Number(first)) => all.extend(numbers(*first)),
            (IdValues::Texts(texts, is_number), DocumentId::Number(first)) => {
                for number in numbers(*first) {
                    texts.push([number.to_string()]);
                    is_number.push(true);
                }
            }
            (IdValues::Texts(texts, is_number), DocumentId::Name(name)) => {
                texts.push([&**name]);
                is_number.push(false);
            }
            (IdValues::Numbers(_), DocumentId::Name(_)) => unreachable!("widened above"),
        }
        let is_other = |last: &Arc<Path>| !Arc::ptr_eq(last, path) && last != path;
        if self.files.last().is_none_or(|(_, last)| is_other(last)) {
            self.files.push((self.count, Arc::clone(path)));
        }
        self.positions.push(self.count, positions.start);
        self.lines.push(self.count, line);
        self.count += more as usize;
    }

    /// Appends row `at` of `other`.
    pub(crate) fn push_from(&mut self, other: &IdTable, at: usize) {
        let position = other.position(at);
        self.push(position..position + 1, &other.id(at).into(), other.file(at), other.lines.get(at));
    }

    /// Converts the id column to the next more general representation: from positions to numbers, or from
    /// numbers to texts.
    fn widen(&mut self) {
        match &self.ids {
            IdValues::Positions => {
                self.ids =
                    IdValues::Numbers((0..self.count).map(|document| self.position(document)).collect());
            }
            IdValues::Numbers(numbers) => {
                let mut texts = StringColumn::default();
                numbers.iter().for_each(|number| texts.push([number.to_string()]));
                self.ids = IdValues::Texts(texts, BitVec::repeat(true, self.count));
            }
            IdValues::Texts(..) => {}
        }
    }

    pub(crate) fn memory(&self) -> u64 {
        let ids = match &self.ids {
            IdValues::Positions => 0,
            IdValues::Numbers(numbers) => (numbers.len() * size_of::<u64>()) as u64,
            IdValues::Texts(texts, is_number) => texts.memory() + is_number.len() as u64 / 8,
        };
        let files = (self.files.len() * size_of::<(usize, Arc<Path>)>()) as u64;
        ids + self.positions.memory() + self.lines.memory() + files
    }

    /// Returns the input position of the document in a row. Malformed records are counted, too.
    pub(crate) fn position(&self, document: usize) -> u64 {
        self.positions.get(document)
    }

    /// Returns the path of the input file of the document in a row.
    pub(crate) fn file(&self, document: usize) -> &Arc<Path> {
        // The first file starts at row 0, so the partition point is at least 1.
        &self.files[self.files.partition_point(|&(first, _)| first <= document) - 1].1
    }

    /// Returns the location of the document in a row as `FILE:LINE`.
    pub(crate) fn location(&self, document: usize) -> String {
        format_position(self.file(document), self.lines.get(document))
    }

    /// Returns the id of the document in a row as bytes. If the id is the path of the file, returns the
    /// original bytes of the path, which may be invalid UTF-8.
    pub(crate) fn id_bytes(&self, document: usize) -> Cow<'_, [u8]> {
        let path = self.file(document);
        match self.id(document) {
            IdRef::Name(name) if path_to_name(path) == name => path.as_os_str().as_encoded_bytes().into(),
            IdRef::Name(name) => name.as_bytes().into(),
            IdRef::Number(number) => number.to_string().into_bytes().into(),
        }
    }

    pub(crate) fn id(&self, document: usize) -> IdRef<'_> {
        match &self.ids {
            IdValues::Positions => IdRef::Number(self.position(document)),
            IdValues::Numbers(numbers) => IdRef::Number(numbers[document]),
            IdValues::Texts(texts, is_number) => {
                let name = texts.get(document);
                match name.parse() {
                    Ok(number) if is_number[document] => IdRef::Number(number),
                    _ => IdRef::Name(name),
                }
            }
        }
    }

    /// Whether each id equals the input position of its document, so that no id repeats.
    pub(crate) fn are_positions(&self) -> bool {
        matches!(self.ids, IdValues::Positions)
    }

    /// Whether all ids are numbers.
    pub(crate) fn are_numbers(&self) -> bool {
        match &self.ids {
            IdValues::Positions | IdValues::Numbers(_) => true,
            IdValues::Texts(_, is_number) => is_number.all(),
        }
    }

    /// Writes all columns, in the format of [`IdTable::read`].
    pub(crate) fn write(&self, file: &mut SpillWriter) -> Result<()> {
        let kind = match self.ids {
            IdValues::Positions => POSITION_IDS,
            IdValues::Numbers(_) => NUMBER_IDS,
            IdValues::Texts(..) => TEXT_IDS,
        };
        file.push_records([kind].into_iter())?;
        match &self.ids {
            IdValues::Positions => {}
            IdValues::Numbers(numbers) => file.push_records(numbers.iter().copied())?,
            IdValues::Texts(texts, is_number) => {
                texts.write(file)?;
                file.push_records(is_number.as_raw_slice().iter().copied())?;
            }
        }
        file.push_records(self.positions.0.iter().copied())?;
        file.push_records(self.lines.0.iter().copied())?;
        file.push_records(self.files.iter().map(|&(first, _)| first as u64))?;
        self.files.iter().try_for_each(|(_, path)| file.push_text(&path_to_name(path)))
    }

    /// Reads the columns of `count` documents.
    pub(crate) fn read(file: &mut SpillReader, count: usize) -> Result<IdTable> {
        let ids = match file.read_records::<u64>()?[..] {
            [POSITION_IDS] => IdValues::Positions,
            [NUMBER_IDS] => IdValues::Numbers(file.read_records()?),
            [TEXT_IDS] => {
                let texts = StringColumn::read(file.read_text()?, file, count, |text, end| {
                    text.is_char_boundary(end)
                })?;
                let mut is_number = BitVec::from_vec(file.read_records()?);
                is_number.resize(count, false);
                IdValues::Texts(texts, is_number)
            }
            _ => return Err(file.changed_error()),
        };
        let (positions, lines) = (NumberRuns(file.read_records()?), NumberRuns(file.read_records()?));
        let firsts: Vec<u64> = file.read_records()?;
        let path = |first: u64| Ok((first as usize, Arc::from(name_to_path(&file.read_text()?))));
        let files: Vec<(usize, Arc<Path>)> = firsts.into_iter().map(path).collect::<Result<_>>()?;
        let starts = |first: Option<u64>| count == 0 || first == Some(0);
        let is_sound = starts(positions.0.first().map(|&(from, _)| from))
            && starts(lines.0.first().map(|&(from, _)| from))
            && starts(files.first().map(|&(from, _)| from as u64))
            && !matches!(&ids, IdValues::Numbers(numbers) if numbers.len() != count);
        if !is_sound {
            return Err(file.changed_error());
        }
        Ok(IdTable { count, ids, positions, lines, files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simstore_corpus::spill::TemporaryFolder;
    use simstore_io::output::UnfinishedOutputs;

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
        let folder = tempfile::tempdir().unwrap();
        let temporary =
            TemporaryFolder::new(Some(folder.path()), &UnfinishedOutputs::default(), &()).unwrap();
        for case in cases {
            let mut names = IdTable::default();
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
            let check = |names: &IdTable, expected: &[(u64, DocumentId)]| {
                for (document, (position, id)) in expected.iter().enumerate() {
                    assert_eq!(names.position(document), *position, "{case:?}");
                    assert_eq!(names.id(document).text(), id.to_string(), "{case:?}");
                    assert_eq!(names.location(document), format!("a:{}", position + 1), "{case:?}");
                    let is_number = matches!(names.id(document), IdRef::Number(_));
                    assert_eq!(is_number, matches!(id, DocumentId::Number(_)), "{case:?}");
                }
            };
            check(&names, &expected);
            // Also after a round trip through a file, and for a selection of rows.
            let mut file = SpillWriter::create(temporary.clone()).unwrap();
            names.write(&mut file).unwrap();
            let read = IdTable::read(&mut file.finish().unwrap().open().unwrap(), expected.len()).unwrap();
            check(&read, &expected);
            let mut some = IdTable::default();
            (0..expected.len()).step_by(2).for_each(|document| some.push_from(&read, document));
            check(&some, &expected.iter().step_by(2).cloned().collect::<Vec<_>>());
        }
    }
}
