//! How many documents have an id that another has.

use std::sync::Arc;

use rayon::prelude::*;
use simstore::Result;
use xxhash_rust::xxh3::xxh3_128;

use crate::corpus::Corpus;
use simstore_corpus::Observer;
use simstore_corpus::Stage;
use simstore_corpus::spill::{FixedSize, Sorter, TemporaryFolder};
use simstore_io::IdRef;

/// Ids that are hashed at once, on all cores.
const BATCH: usize = 1 << 16;

/// Counts documents with repeated ids in about this many bytes of memory, and beyond it on disk.
pub(crate) fn count(
    corpus: &Corpus,
    temporary: &Arc<TemporaryFolder>,
    memory: u64,
    observer: &dyn Observer,
) -> Result<usize> {
    let stage = Stage::new(observer, "ids compared");
    stage.add(0)?;
    if corpus.are_numbers {
        return repeated(corpus, temporary, memory, &stage, |id| match id {
            IdRef::Number(number) => number,
            IdRef::Name(_) => 0,
        });
    }
    // As in every table, a number and a name that look alike are one id. Nobody sees two texts of one such hash.
    repeated(corpus, temporary, memory, &stage, |id| xxh3_128(id.text().as_bytes()))
}

fn repeated<K: FixedSize>(
    corpus: &Corpus,
    temporary: &Arc<TemporaryFolder>,
    memory: u64,
    stage: &Stage<'_>,
    key: impl Fn(IdRef<'_>) -> K + Sync,
) -> Result<usize> {
    let mut keys = Sorter::new(temporary.clone(), memory);
    for piece in corpus.pieces() {
        let stretch = piece?.stretch;
        let ids = &stretch.names;
        for start in (0..stretch.len()).step_by(BATCH) {
            let batch = (start..stretch.len().min(start + BATCH)).into_par_iter();
            let hashed: Vec<K> = batch.map(|at| key(ids.id(at))).collect();
            hashed.into_iter().try_for_each(|key| keys.push(key))?;
            stage.add(0)?;
        }
    }
    let (mut repeated, mut last, mut run) = (0, None, 0);
    for (at, key) in (1..).zip(keys.finish()?) {
        let key = key?;
        if usize::is_multiple_of(at, BATCH) {
            stage.add(BATCH as u64)?;
        }
        run = if last == Some(key) { run + 1 } else { 1 };
        last = Some(key);
        // The second tells of the first, too.
        repeated += match run {
            1 => 0,
            2 => 2,
            _ => 1,
        };
    }
    Ok(repeated)
}
