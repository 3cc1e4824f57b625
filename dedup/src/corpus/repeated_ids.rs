//! How many documents have an id that another has.

use std::sync::Arc;

use rayon::prelude::*;
use simstore::Result;
use xxhash_rust::xxh3::xxh3_128;

use crate::corpus::Corpus;
use simstore_corpus::Step;
use simstore_corpus::Watch;
use simstore_corpus::spill::{Fixed, Sorter, Temporary};
use simstore_io::IdRef;

/// Ids that are hashed at once, on all cores.
const BATCH: usize = 1 << 16;

/// Counts documents with repeated ids in about this many bytes of memory, and beyond it on disk.
pub(crate) fn count(
    corpus: &Corpus,
    temporary: &Arc<Temporary>,
    memory: u64,
    watch: &dyn Watch,
) -> Result<usize> {
    let step = Step::new(watch, "ids compared");
    step.add(0)?;
    if corpus.are_numbers {
        return repeated(corpus, temporary, memory, &step, |id| match id {
            IdRef::Number(number) => number,
            IdRef::Name(_) => 0,
        });
    }
    // As in every table, a number and a name that look alike are one id. Nobody sees two texts of one such hash.
    repeated(corpus, temporary, memory, &step, |id| xxh3_128(id.text().as_bytes()))
}

fn repeated<K: Fixed>(
    corpus: &Corpus,
    temporary: &Arc<Temporary>,
    memory: u64,
    step: &Step<'_>,
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
            step.add(0)?;
        }
    }
    let (mut repeated, mut last, mut run) = (0, None, 0);
    for (at, key) in (1..).zip(keys.finish()?) {
        let key = key?;
        if usize::is_multiple_of(at, BATCH) {
            step.add(BATCH as u64)?;
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
