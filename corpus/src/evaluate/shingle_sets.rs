//! Keeps the shingle sets of texts in a temporary file, to compute exact Jaccard similarities of pairs.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use simstore::{Error, Result};
use simstore_text::{Profile, jaccard};

/// Shingle sets in the order of their texts. An unnamed file holds the shingles, 8 bytes each. Memory holds the positions in
/// the file at which each set starts and ends.
#[derive(Debug)]
pub(crate) struct ShingleSets {
    pub(crate) profile: Profile,
    file: File,
    /// For each set, the index of its first shingle among all shingles in the file. The last element is the number of all
    /// shingles.
    bounds: Vec<u64>,
    /// Index of the first text in the last comparison, and the set of this text. Kept because the next comparison often
    /// has the same first text.
    last: Option<(usize, Vec<u64>)>,
}

impl ShingleSets {
    pub(crate) fn new() -> Result<Self> {
        Ok(ShingleSets {
            profile: Profile::shingles(),
            file: tempfile::tempfile().map_err(|error| failed(&error))?,
            bounds: vec![0],
            last: None,
        })
    }

    /// Writes the shingle sets of more texts to the end of the file, in order.
    pub(crate) fn append(&mut self, sets: &[Vec<u64>]) -> Result<()> {
        for set in sets {
            let bytes: Vec<u8> = set.iter().flat_map(|shingle| shingle.to_le_bytes()).collect();
            self.file.write_all(&bytes).map_err(|error| failed(&error))?;
            self.bounds.push(self.end() + set.len() as u64);
        }
        Ok(())
    }

    fn end(&self) -> u64 {
        self.bounds.last().copied().unwrap_or_default()
    }

    /// Returns the Jaccard similarity of the shingle sets of two texts, given by index. `None` if one of the texts has no
    /// shingles.
    pub(crate) fn similarity(&mut self, a: usize, b: usize) -> Result<Option<f64>> {
        let (last, set) = match self.last.take() {
            Some(last) if last.0 == a => last,
            _ => (a, self.set(a)?),
        };
        let other = self.set(b)?;
        let are_empty = set.is_empty() || other.is_empty();
        let similarity = (!are_empty).then(|| jaccard(&set, &other));
        self.last = Some((last, set));
        Ok(similarity)
    }

    fn set(&mut self, text: usize) -> Result<Vec<u64>> {
        let (start, end) = (self.bounds[text], self.bounds[text + 1]);
        let mut bytes = vec![0; (end - start) as usize * 8];
        self.file
            .seek(SeekFrom::Start(start * 8))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| failed(&error))?;
        let values = bytes.chunks_exact(8).map(|value| <[u8; 8]>::try_from(value).unwrap_or_default());
        Ok(values.map(u64::from_le_bytes).collect())
    }
}

/// Error for a failed operation on the temporary file.
fn failed(error: &io::Error) -> Error {
    let folder = std::env::temp_dir();
    Error::Refused(format!(
        "{}: cannot write the temporary file of shingles: {error}; select another directory with the variable TMPDIR",
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_come_back_in_any_order() {
        let mut sets = ShingleSets::new().unwrap();
        sets.append(&[vec![1, 2, 3], vec![], vec![2, 3, u64::MAX - 1, u64::MAX]]).unwrap();
        sets.append(&[vec![1, 2, 3]]).unwrap();
        for (a, b, expected) in
            [(0, 2, Some(0.4)), (0, 3, Some(1.0)), (3, 2, Some(0.4)), (2, 1, None), (1, 1, None)]
        {
            assert_eq!(sets.similarity(a, b).unwrap(), expected, "{a} {b}");
        }
    }
}
