//! Fingerprints and queries, the same for all indexes.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::random::random;

/// Increment of SplitMix64's state for each number. The state of number `i` is the seed plus `i` increments, so any number
/// is generated without the previous ones.
const SPLITMIX_INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;
/// Seed of the random fingerprints.
const SEED: u64 = 1;
/// Seed of the queries.
const QUERY_SEED: u64 = 99;

/// Source of fingerprints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FingerprintSource {
    /// SplitMix64, whose numbers are distinct.
    Random,
    /// File of little-endian 64-bit fingerprints.
    File(PathBuf),
}

impl fmt::Display for FingerprintSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FingerprintSource::Random => f.write_str("random"),
            FingerprintSource::File(path) => write!(f, "{}", path.file_name().unwrap_or_default().display()),
        }
    }
}

impl FingerprintSource {
    /// Returns `count`, or the number of fingerprints in the source if that is less.
    pub(crate) fn clamp_count(&self, count: usize) -> Result<usize> {
        let count = match self {
            FingerprintSource::Random => count,
            FingerprintSource::File(path) => {
                let bytes = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
                count.min((bytes / 8) as usize)
            }
        };
        ensure!(count > 0, "there are no fingerprints to compare on");
        Ok(count)
    }

    /// Iterates over the first `count` fingerprints.
    pub(crate) fn iter(&self, count: usize) -> Result<SourceIter> {
        let reader = match self {
            FingerprintSource::Random => SourceReader::Random(SEED),
            FingerprintSource::File(path) => {
                SourceReader::File(BufReader::with_capacity(1 << 20, open(path)?))
            }
        };
        Ok(SourceIter { reader, remaining: count })
    }

    /// Returns the fingerprints at the positions.
    pub(crate) fn get_all(&self, positions: impl Iterator<Item = u64>) -> Result<Vec<u64>> {
        match self {
            FingerprintSource::Random => Ok(positions
                .map(|i| random(&mut SEED.wrapping_add(SPLITMIX_INCREMENT.wrapping_mul(i))))
                .collect()),
            FingerprintSource::File(path) => {
                let mut file = open(path)?;
                positions
                    .map(|i| {
                        let mut bytes = [0; 8];
                        file.seek(SeekFrom::Start(i * 8))?;
                        file.read_exact(&mut bytes)?;
                        Ok(u64::from_le_bytes(bytes))
                    })
                    .collect()
            }
        }
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Iterator over the first fingerprints of a source; created by [`FingerprintSource::iter`].
#[derive(Debug)]
pub(crate) struct SourceIter {
    reader: SourceReader,
    remaining: usize,
}

#[derive(Debug)]
enum SourceReader {
    /// State of SplitMix64.
    Random(u64),
    File(BufReader<File>),
}

impl Iterator for SourceIter {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.remaining = self.remaining.checked_sub(1)?;
        match &mut self.reader {
            SourceReader::Random(state) => Some(random(state)),
            SourceReader::File(file) => {
                let mut bytes = [0; 8];
                file.read_exact(&mut bytes).expect("a file that does not shrink while it is read");
                Some(u64::from_le_bytes(bytes))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for SourceIter {}

/// Three sets of queries. All queries are distinct. Stored fingerprints with 0 to k bits flipped and random
/// fingerprints alternate.
#[derive(Debug)]
pub(crate) struct QuerySets {
    /// Queries that run before the measurement.
    pub(crate) warm_up: Vec<u64>,
    /// Queries that are timed one by one.
    pub(crate) single: Vec<u64>,
    /// Queries that are timed as a whole, first on one thread, then on all cores.
    pub(crate) whole: Vec<u64>,
}

impl QuerySets {
    /// Generates the two timed sets with `each` queries, and the warm-up set with a fifth as many.
    pub(crate) fn generate(
        source: &FingerprintSource,
        count: usize,
        distance: u32,
        each: usize,
    ) -> Result<QuerySets> {
        let mut state = QUERY_SEED;
        let warm_up = (each / 5).max(1);
        let needed = warm_up + 2 * each;
        let mut all = Vec::with_capacity(needed);
        let mut seen = HashSet::new();
        while all.len() < needed {
            let positions: Vec<u64> =
                (all.len()..needed).map(|_| random(&mut state) % count as u64).collect();
            for stored in source.get_all(positions.into_iter())? {
                let near = all.len() % 2 == 0;
                let query = if near { flip_bits(stored, distance, &mut state) } else { random(&mut state) };
                if seen.insert(query) {
                    all.push(query);
                }
            }
        }
        let whole = all.split_off(warm_up + each);
        let single = all.split_off(warm_up);
        Ok(QuerySets { warm_up: all, single, whole })
    }
}

/// Flips 0 to `distance` random bits of the fingerprint.
pub(crate) fn flip_bits(fingerprint: u64, distance: u32, state: &mut u64) -> u64 {
    let flips = random(state) % u64::from(distance + 1);
    let mut mask = 0u64;
    while u64::from(mask.count_ones()) < flips {
        mask |= 1 << (random(state) % 64);
    }
    fingerprint ^ mask
}

/// Writes the fingerprints and the queries as `.u64` files, with the file names that `faiss.py` expects.
pub(crate) fn write_files(
    folder: &Path,
    source: &FingerprintSource,
    count: usize,
    distance: u32,
    queries: &QuerySets,
) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let query_file = |set: &str| format!("queries-{count}-{distance}-{set}.u64");
    write_fingerprints(&folder.join(format!("fingerprints-{count}.u64")), source.iter(count)?)?;
    write_fingerprints(&folder.join(query_file("warm-up")), queries.warm_up.iter().copied())?;
    write_fingerprints(&folder.join(query_file("single")), queries.single.iter().copied())?;
    write_fingerprints(&folder.join(query_file("whole")), queries.whole.iter().copied())?;
    Ok(())
}

fn write_fingerprints(path: &Path, numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in numbers {
        file.write_all(&number.to_le_bytes())?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_different_and_half_of_them_near() {
        let queries = QuerySets::generate(&FingerprintSource::Random, 1000, 3, 500).unwrap();
        let fingerprints: Vec<u64> = FingerprintSource::Random.iter(1000).unwrap().collect();
        let all: Vec<u64> = [&queries.warm_up[..], &queries.single, &queries.whole].concat();
        assert_eq!(all.len(), 1100);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 1100);
        let near = |query: &&u64| fingerprints.iter().any(|x| (x ^ **query).count_ones() <= 3);
        assert_eq!(all.iter().filter(near).count(), 550);
    }

    #[test]
    fn what_was_written_is_read_back_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let queries = QuerySets::generate(&FingerprintSource::Random, 100, 3, 50).unwrap();
        write_files(folder.path(), &FingerprintSource::Random, 100, 3, &queries).unwrap();
        let file = FingerprintSource::File(folder.path().join("fingerprints-100.u64"));
        assert_eq!(file.clamp_count(1000).unwrap(), 100);
        assert!(file.iter(100).unwrap().eq(FingerprintSource::Random.iter(100).unwrap()));
        let again = QuerySets::generate(&file, 100, 3, 50).unwrap();
        assert_eq!(again.whole, queries.whole);
    }
}
