//! The fingerprints and the queries, the same for all indexes.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::random::random;

/// What SplitMix64 adds to its state for each number; lets one of them be made without those before it.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// The state that the random fingerprints start from.
const SEED: u64 = 1;
/// The state that the queries start from.
const QUERY_SEED: u64 = 99;

/// Where fingerprints come from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Source {
    /// SplitMix64, which never gives the same number twice.
    Random,
    /// A raw little-endian file.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Random => f.write_str("random"),
            Source::File(path) => write!(f, "{}", path.file_name().unwrap_or_default().display()),
        }
    }
}

impl Source {
    /// `count`, or as many as there are.
    pub(crate) fn limit(&self, count: usize) -> Result<usize> {
        let count = match self {
            Source::Random => count,
            Source::File(path) => {
                let bytes = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
                count.min((bytes / 8) as usize)
            }
        };
        ensure!(count > 0, "there are no fingerprints to compare on");
        Ok(count)
    }

    /// The first `count` fingerprints.
    pub(crate) fn iter(&self, count: usize) -> Result<Fingerprints> {
        let source = match self {
            Source::Random => Stream::Random(SEED),
            Source::File(path) => Stream::File(BufReader::with_capacity(1 << 20, open(path)?)),
        };
        Ok(Fingerprints { source, left: count })
    }

    /// The fingerprints at these positions.
    pub(crate) fn at(&self, positions: impl Iterator<Item = u64>) -> Result<Vec<u64>> {
        match self {
            Source::Random => {
                Ok(positions.map(|i| random(&mut SEED.wrapping_add(STEP.wrapping_mul(i)))).collect())
            }
            Source::File(path) => {
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

/// Iterates over fingerprints; made by [`Source::iter`].
#[derive(Debug)]
pub(crate) struct Fingerprints {
    source: Stream,
    left: usize,
}

#[derive(Debug)]
enum Stream {
    Random(u64),
    File(BufReader<File>),
}

impl Iterator for Fingerprints {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        match &mut self.source {
            Stream::Random(state) => Some(random(state)),
            Stream::File(file) => {
                let mut bytes = [0; 8];
                file.read_exact(&mut bytes).expect("a file that does not shrink while it is read");
                Some(u64::from_le_bytes(bytes))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fingerprints {}

/// Three sets of queries, all different: half are stored fingerprints with 0 to k bits flipped, half are
/// random, in turns.
#[derive(Debug)]
pub(crate) struct Queries {
    /// Asked before anything is timed.
    pub(crate) warm_up: Vec<u64>,
    /// Timed one by one.
    pub(crate) single: Vec<u64>,
    /// Timed as a whole, then asked from all cores.
    pub(crate) whole: Vec<u64>,
}

impl Queries {
    /// Twice `each` queries, and a fifth of it to warm up.
    pub(crate) fn generate(source: &Source, count: usize, distance: u32, each: usize) -> Result<Queries> {
        let mut state = QUERY_SEED;
        let warm_up = (each / 5).max(1);
        let needed = warm_up + 2 * each;
        let mut all = Vec::with_capacity(needed);
        let mut seen = HashSet::new();
        while all.len() < needed {
            let positions: Vec<u64> =
                (all.len()..needed).map(|_| random(&mut state) % count as u64).collect();
            for stored in source.at(positions.into_iter())? {
                let near = all.len() % 2 == 0;
                let query = if near { flip(stored, distance, &mut state) } else { random(&mut state) };
                if seen.insert(query) {
                    all.push(query);
                }
            }
        }
        let whole = all.split_off(warm_up + each);
        let single = all.split_off(warm_up);
        Ok(Queries { warm_up: all, single, whole })
    }
}

/// The fingerprint with 0 to `distance` of its bits flipped.
pub(crate) fn flip(fingerprint: u64, distance: u32, state: &mut u64) -> u64 {
    let flips = random(state) % u64::from(distance + 1);
    let mut mask = 0u64;
    while u64::from(mask.count_ones()) < flips {
        mask |= 1 << (random(state) % 64);
    }
    fingerprint ^ mask
}

/// Writes the fingerprints and the queries as `.u64` files, under the names that `faiss.py` reads.
pub(crate) fn write(
    folder: &Path,
    source: &Source,
    count: usize,
    distance: u32,
    queries: &Queries,
) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let queries_of = |set: &str| format!("queries-{count}-{distance}-{set}.u64");
    write_file(&folder.join(format!("fingerprints-{count}.u64")), source.iter(count)?)?;
    write_file(&folder.join(queries_of("warm-up")), queries.warm_up.iter().copied())?;
    write_file(&folder.join(queries_of("single")), queries.single.iter().copied())?;
    write_file(&folder.join(queries_of("whole")), queries.whole.iter().copied())?;
    Ok(())
}

fn write_file(path: &Path, numbers: impl Iterator<Item = u64>) -> io::Result<()> {
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
        let queries = Queries::generate(&Source::Random, 1000, 3, 500).unwrap();
        let fingerprints: Vec<u64> = Source::Random.iter(1000).unwrap().collect();
        let all: Vec<u64> = [&queries.warm_up[..], &queries.single, &queries.whole].concat();
        assert_eq!(all.len(), 1100);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 1100);
        let near = |query: &&u64| fingerprints.iter().any(|x| (x ^ **query).count_ones() <= 3);
        assert_eq!(all.iter().filter(near).count(), 550);
    }

    #[test]
    fn what_was_written_is_read_back_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let queries = Queries::generate(&Source::Random, 100, 3, 50).unwrap();
        write(folder.path(), &Source::Random, 100, 3, &queries).unwrap();
        let file = Source::File(folder.path().join("fingerprints-100.u64"));
        assert_eq!(file.limit(1000).unwrap(), 100);
        assert!(file.iter(100).unwrap().eq(Source::Random.iter(100).unwrap()));
        let again = Queries::generate(&file, 100, 3, 50).unwrap();
        assert_eq!(again.whole, queries.whole);
    }
}
