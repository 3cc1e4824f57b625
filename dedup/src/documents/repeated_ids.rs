//! Counts the documents whose id is also the id of another document.

use std::sync::Arc;

use rayon::prelude::*;
use simstore::Result;
use xxhash_rust::xxh3::xxh3_128;

use crate::documents::Corpus;
use simstore_corpus::Observer;
use simstore_corpus::Stage;
use simstore_corpus::spill::{FixedSize, Sorter, TemporaryFolder};
use simstore_io::IdRef;

/// Number of ids that are hashed together, in parallel on all cores.
const HASH_BATCH: usize = 1 << 16;

/// Counts the documents whose id is also the id of another document. Sorting the ids takes about `memory`
/// bytes; if that is not enough, the ids spill to disk.
pub(crate) fn count_repeated_ids(
    corpus: &Corpus,
    temporary: &Arc<TemporaryFolder>,
    memory: u64,
    observer: &dyn Observer,
) -> Result<usize> {
    let stage = Stage::new(observer, "ids compared");
    stage.add(0)?;
    if corpus.ids_are_numbers {
        return count_repeated_keys(corpus, temporary, memory, &stage, |id| match id {
            IdRef::Number(number) => number,
            IdRef::Name(_) => 0,
        });
    }
    // As in the output tables, a number and a name with the same text are the same id. Collisions of 128-bit
    // hashes are negligible.
    count_repeated_keys(corpus, temporary, memory, &stage, |id| xxh3_128(id.text().as_bytes()))
}

fn count_repeated_keys<K: FixedSize>(
    corpus: &Corpus,
    temporary: &Arc<TemporaryFolder>,
    memory: u64,
    stage: &Stage<'_>,
    key: impl Fn(IdRef<'_>) -> K + Sync,
) -> Result<usize> {
    let mut keys = Sorter::new(temporary.clone(), memory);
    for numbered in corpus.blocks() {
        let block = numbered?.block;
        let ids = &block.ids;
        for start in (0..block.len()).step_by(HASH_BATCH) {
            let batch = (start..block.len().min(start + HASH_BATCH)).into_par_iter();
            let hashed: Vec<K> = batch.map(|at| key(ids.id(at))).collect();
            hashed.into_iter().try_for_each(|key| keys.push(key))?;
            stage.add(0)?;
        }
    }
    let (mut repeated, mut last, mut run) = (0, None, 0);
    for (at, key) in (1..).zip(keys.finish()?) {
        let key = key?;
        if usize::is_multiple_of(at, HASH_BATCH) {
            stage.add(HASH_BATCH as u64)?;
        }
        run = if last == Some(key) { run + 1 } else { 1 };
        last = Some(key);
        // The second document with a key also counts the first one.
        repeated += match run {
            1 => 0,
            2 => 2,
            _ => 1,
        };
    }
    Ok(repeated)
}
