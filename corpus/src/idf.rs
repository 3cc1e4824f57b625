//! In how many documents of a corpus each feature comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;

use crate::inputs::item::Malformed;
use crate::numbers::{bytes, count_of};
use crate::output::Unfinished;
use crate::spill::{Budget, SpillFile, SpillReader, SpillWriter, Temporary, check_memory};
use crate::watch::Step;
use crate::{Counts, InputKind, Inputs, Notice, Watch};
use simstore::threads::ensure_pool;
use simstore::{Error, Result};
use simstore_text::{DocumentFrequencies, IdfRow, Profile};

/// Bytes of text that all threads count together.
const BATCH_BYTES: usize = 8 << 20;
/// Files of counts that are merged into one when there are so many: files that are open at the same time.
const RUNS: usize = 64;
/// Bytes that are read at once of one of them.
const BUFFER: usize = 1 << 16;

/// What counting may take.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Memory limit in bytes, at least 64 KiB; by default the memory that the machine, or the group of processes, has. Counts beyond it
    /// go to disk, sorted by their features. A quarter of it, up to 128 MiB, is left to the program and for reading.
    pub memory: Option<u64>,
    /// The folder for these files; that of the system by default.
    pub temporary: Option<PathBuf>,
    /// Where the files are listed as long as they are there.
    pub unfinished: Unfinished,
}

/// In how many documents each feature comes.
#[derive(Debug)]
pub struct Frequencies {
    /// What is in memory.
    last: DocumentFrequencies,
    /// What is on disk, each sorted by its features.
    runs: Vec<SpillFile>,
}

/// How many features were visited, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visited {
    /// Those of enough documents.
    pub kept: u64,
    /// All different features.
    pub features: u64,
}

/// Counts in how many documents each feature comes, as the profile makes features: a table of inverse document frequencies
/// for [`Resources::idf`](simstore_text::Resources::idf).
///
/// Of the counts, `read`, `bad` and `replaced` are known.
///
/// ```
/// use simstore_corpus::idf::{Options, document_frequencies};
/// use simstore_corpus::{DocumentOptions, Inputs};
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
/// [`Error::BadArgument`] for inputs that hold fingerprints, [`Error::Refused`] if what is too much for the memory cannot be put on
/// disk, and as [`Inputs::visit`].
pub fn document_frequencies(
    inputs: &Inputs,
    profile: &Profile,
    options: &Options,
    watch: &dyn Watch,
) -> Result<(Frequencies, Counts)> {
    if inputs.kind()? == InputKind::Fingerprints {
        return Err(Error::BadArgument("the inputs hold fingerprints already, not documents".to_owned()));
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
        // To bring those of all threads together takes as much again.
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
        "{} take more than half of the {} {}: they are put on disk, in {}",
        count_of(features as u64, "feature"),
        bytes(budget.of),
        if budget.is_given { "of option `memory`" } else { "that there are" },
        temporary.folder()?.display()
    )));
    Ok(())
}

/// Puts counts on disk, sorted by their features.
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
    // The others are removed.
    *runs = vec![file.finish()?];
    Ok(())
}

/// Visits the features of all runs, and of what is in memory, in order, each once with the sum of its counts.
fn merge(
    runs: &[SpillFile],
    memory: Vec<(Box<str>, u64)>,
    mut visitor: impl FnMut(&str, u64) -> Result<()>,
) -> Result<()> {
    let mut readers: Vec<SpillReader> =
        runs.iter().map(|run| run.read_with(BUFFER)).collect::<Result<_>>()?;
    let mut memory = memory.into_iter();
    // Of each run, and in the end of what is in memory, the next feature.
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

    /// Visits the table, in code point order, without features of fewer than `min_documents` documents.
    ///
    /// # Errors
    /// Those of the visitor, and of reading what was put on disk.
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
