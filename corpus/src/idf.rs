//! Counts the documents of a corpus that have each feature.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;

use crate::inputs::item::Malformed;
use crate::spill::{Budget, SpillFile, SpillReader, SpillWriter, Temporary, check_memory};
use crate::watch::Step;
use crate::{Counts, InputKind, Inputs, Notice, Watch};
use simstore::threads::ensure_pool;
use simstore::{Error, Result};
use simstore_io::numbers::{bytes, count_of};
use simstore_io::output::Unfinished;
use simstore_text::{DocumentFrequencies, IdfRow, Profile};

/// Bytes of text counted in one batch by all threads.
const BATCH_BYTES: usize = 8 << 20;
/// Files of counts are merged into one when there are this many. This bounds the number of open files.
const RUNS: usize = 64;
/// Size of the read buffer of a file, in bytes.
const BUFFER: usize = 1 << 16;

/// Resources for counting.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Memory limit in bytes, at least 64 KiB. By default the memory of the machine, or of the group of processes.
    /// Counts beyond the limit go to disk, sorted by feature. A quarter of the limit, up to 128 MiB, is reserved for
    /// the program and for reading.
    pub memory: Option<u64>,
    /// Folder for the files on disk. The default is the system's folder for temporary files.
    pub temporary: Option<PathBuf>,
    /// Receives the paths of the files as long as they exist.
    pub unfinished: Unfinished,
}

/// Number of documents for each feature.
#[derive(Debug)]
pub struct Frequencies {
    /// Counts in memory.
    last: DocumentFrequencies,
    /// Counts on disk. Each file is sorted by feature.
    runs: Vec<SpillFile>,
}

/// Numbers of visited features and of all features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visited {
    /// Visited features, which occur in enough documents.
    pub kept: u64,
    /// Distinct features.
    pub features: u64,
}

/// Counts the documents that have each feature of the profile. The result is a table of inverse document frequencies
/// for [`Resources::idf`](simstore_text::Resources::idf).
///
/// Of the returned [`Counts`], `read`, `bad` and `replaced` are set.
///
/// ```
/// use simstore_corpus::idf::{document_frequencies, Options};
/// use simstore_corpus::Inputs;
/// use simstore_io::DocumentOptions;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.jsonl");
/// std::fs::write(&path, "{\"text\": \"to be\"}\n{\"text\": \"or not to be\"}\n").unwrap();
/// let inputs = Inputs::new(&[path], DocumentOptions::default())?;
/// let (frequencies, _) = document_frequencies(&inputs, &"words-2".parse()?, &Options::default(), &())?;
/// let visited = frequencies.visit(2, |row| {
///     assert_eq!((row.feature, row.documents), ("to be", 2));
///     Ok(())
/// })?;
/// assert_eq!((visited.kept, visited.features), (1, 3));
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// [`Error::BadArgument`] for inputs of fingerprints; [`Error::Refused`] if counts beyond the memory limit cannot be
/// written to disk; others as for [`Inputs::visit`].
pub fn document_frequencies(
    inputs: &Inputs,
    profile: &Profile,
    options: &Options,
    watch: &dyn Watch,
) -> Result<(Frequencies, Counts)> {
    if inputs.kind()? == InputKind::Fingerprints {
        return Err(Error::BadArgument("the inputs are fingerprints, not documents".to_owned()));
    }
    check_memory(options.memory)?;
    ensure_pool()?;
    let temporary = Temporary::new(options.temporary.as_deref(), &options.unfinished, watch)?;
    let budget = Budget::new(options.memory);
    let step = Step::new(watch, "documents");
    let mut malformed = Malformed::new(inputs.skips_bad(), watch);
    let mut parts = vec![DocumentFrequencies::default(); rayon::current_num_threads()];
    let mut runs = Vec::new();
    let mut counts = Counts::default();
    let mut documents = inputs.within(budget.of_reading()).documents();
    loop {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(document) = documents.next()
        {
            step.add(0)?;
            match document {
                Ok(document) => {
                    bytes += document.text.len();
                    (counts.read, counts.replaced) = (counts.read + 1, counts.replaced + document.replaced);
                    batch.push(document.text);
                }
                Err(error) => malformed.take(error)?,
            }
        }
        if batch.is_empty() {
            break;
        }
        let share = batch.len().div_ceil(parts.len());
        batch.par_chunks(share).zip(&mut parts).try_for_each(|(texts, part)| {
            texts.iter().try_for_each(|text| {
                part.add(profile, text);
                step.add(1)
            })
        })?;
        // Merging the counts of all threads takes as much memory again.
        if parts.iter().map(DocumentFrequencies::memory).sum::<u64>() > budget.bytes / 2 {
            if runs.is_empty() {
                tell(&parts, budget, &temporary, watch)?;
            }
            parts.iter_mut().try_for_each(|part| put(part.take(), &temporary, &mut runs))?;
        }
    }
    counts.bad = malformed.count();
    let mut last = DocumentFrequencies::default();
    parts.into_iter().for_each(|part| last.merge(part));
    Ok((Frequencies { last, runs }, counts))
}

fn tell(
    parts: &[DocumentFrequencies],
    budget: Budget,
    temporary: &Arc<Temporary>,
    watch: &dyn Watch,
) -> Result<()> {
    let features: usize = parts.iter().map(DocumentFrequencies::features).sum();
    watch.notice(&Notice::Remark(&format!(
        "{} need more than half of the {} {}: continuing on disk, in {}",
        count_of(features as u64, "feature"),
        bytes(budget.of),
        if budget.is_given { "of option `memory`" } else { "of memory available" },
        temporary.folder()?.display()
    )));
    Ok(())
}

/// Writes counts to disk, sorted by feature.
fn put(counts: Vec<(Box<str>, u64)>, temporary: &Arc<Temporary>, runs: &mut Vec<SpillFile>) -> Result<()> {
    let mut file = SpillWriter::create(temporary.clone())?;
    for (feature, count) in counts {
        file.push_text(&feature)?;
        file.push_record(count)?;
    }
    runs.push(file.finish()?);
    if runs.len() < RUNS {
        return Ok(());
    }
    let mut file = SpillWriter::create(temporary.clone())?;
    merge(runs, Vec::new(), |feature, count| {
        file.push_text(feature)?;
        file.push_record(count)
    })?;
    // This removes the merged files.
    *runs = vec![file.finish()?];
    Ok(())
}

/// Visits the features of all runs and of `memory` in order, each once with the sum of its counts.
fn merge(
    runs: &[SpillFile],
    memory: Vec<(Box<str>, u64)>,
    mut visitor: impl FnMut(&str, u64) -> Result<()>,
) -> Result<()> {
    let mut readers: Vec<SpillReader> =
        runs.iter().map(|run| run.read_with(BUFFER)).collect::<Result<_>>()?;
    let mut memory = memory.into_iter();
    // Returns the next feature of a run or, after the last run, of the counts in memory.
    let mut following = |at: usize| match readers.get_mut(at) {
        Some(reader) => next(reader),
        None => Ok(memory.next()),
    };
    let mut heads = BinaryHeap::new();
    for at in 0..=runs.len() {
        heads.extend(following(at)?.map(|(feature, count)| Reverse((feature, at, count))));
    }
    while let Some(Reverse((feature, at, mut sum))) = heads.pop() {
        heads.extend(following(at)?.map(|(feature, count)| Reverse((feature, at, count))));
        while let Some(Reverse((_, at, count))) =
            heads.peek_mut().filter(|head| head.0.0 == feature).map(PeekMut::pop)
        {
            sum += count;
            heads.extend(following(at)?.map(|(feature, count)| Reverse((feature, at, count))));
        }
        visitor(&feature, sum)?;
    }
    Ok(())
}

fn next(run: &mut SpillReader) -> Result<Option<(Box<str>, u64)>> {
    if run.is_at_end() {
        return Ok(None);
    }
    let feature = run.text()?;
    let count = run.record()?.ok_or_else(|| run.changed())?;
    Ok(Some((feature.into_boxed_str(), count)))
}

impl Frequencies {
    /// Number of documents.
    pub fn documents(&self) -> u64 {
        self.last.documents()
    }

    /// Visits the table in code point order, without features of fewer than `min_documents` documents.
    ///
    /// # Errors
    /// Errors of the visitor, and of reading the counts on disk.
    pub fn visit(
        mut self,
        min_documents: u64,
        mut visitor: impl FnMut(&IdfRow<'_>) -> Result<()>,
    ) -> Result<Visited> {
        let (documents, mut visited) = (self.documents(), Visited::default());
        merge(&self.runs, self.last.take(), |feature, count| {
            visited.features += 1;
            if count < min_documents {
                return Ok(());
            }
            visited.kept += 1;
            visitor(&IdfRow::new(feature, count, documents))
        })?;
        Ok(visited)
    }
}
