//! Counts, for each feature of texts, the documents of a corpus that have this feature.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;

use crate::inputs::item::MalformedHandler;
use crate::observer::Stage;
use crate::spill::{MemoryBudget, SpillFile, SpillReader, SpillWriter, TemporaryFolder, check_memory};
use crate::{Diagnostic, InputCounts, InputKind, Inputs, Observer};
use simstore::threads::ensure_pool;
use simstore::{Error, Result};
use simstore_io::numbers::{format_bytes, format_count_of};
use simstore_io::output::UnfinishedOutputs;
use simstore_text::{DocumentFrequencies, IdfRow, Profile};

/// A batch of texts is full when the texts have this many bytes in total. All threads count the features of a batch together.
const BATCH_BYTES: usize = 8 << 20;
/// When there are this many files of counts, all of them are merged into one, to bound the number of open files.
const MAX_RUNS: usize = 64;
/// Size of the read buffer of a file, in bytes.
const READ_BUFFER_BYTES: usize = 1 << 16;

/// Memory limit and temporary folder for counting.
#[derive(Clone, Debug, Default)]
pub struct IdfOptions {
    /// Memory limit in bytes, at least 64 KiB. The default is the available memory of the machine or of the process's control
    /// group. Counts beyond the limit go to disk, sorted by feature. A quarter of the limit, up to 128 MiB, is reserved for
    /// the program and for reading.
    pub memory: Option<u64>,
    /// Folder for temporary files. The default is the system's folder for temporary files.
    pub temporary: Option<PathBuf>,
    /// List to which temporary files are added as long as they exist, so that an interrupted program can remove them.
    pub unfinished: UnfinishedOutputs,
}

/// For each feature of the texts of a corpus, the number of documents that have this feature.
#[derive(Debug)]
pub struct FeatureFrequencies {
    /// Counts of the last batches, which are still in memory.
    last: DocumentFrequencies,
    /// Files of the counts on disk. Each file is sorted by feature.
    runs: Vec<SpillFile>,
}

/// Number of features that [`FeatureFrequencies::visit`] has visited, and number of all features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitedFeatures {
    /// Number of features that were visited, because enough documents have them.
    pub kept: u64,
    /// Number of all distinct features, visited or not.
    pub features: u64,
}

/// Counts, for each feature that the profile finds in the texts, the documents that have this feature. The result is a
/// table of inverse document frequencies for [`Resources::idf`](simstore_text::Resources::idf).
///
/// In the returned [`InputCounts`], only `read`, `malformed` and `replacements` are set.
///
/// ```
/// use simstore_corpus::idf::{document_frequencies, IdfOptions};
/// use simstore_corpus::Inputs;
/// use simstore_io::DocumentOptions;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.jsonl");
/// std::fs::write(&path, "{\"text\": \"to be\"}\n{\"text\": \"or not to be\"}\n").unwrap();
/// let inputs = Inputs::new(&[path], DocumentOptions::default())?;
/// let (frequencies, _) = document_frequencies(&inputs, &"words-2".parse()?, &IdfOptions::default(), &())?;
/// let visited = frequencies.visit(2, |row| {
///     assert_eq!((row.feature, row.documents), ("to be", 2));
///     Ok(())
/// })?;
/// assert_eq!((visited.kept, visited.features), (1, 3));
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// [`Error::BadArgument`] if the inputs are fingerprints. [`Error::Refused`] if counts beyond the memory limit cannot be
/// written to disk. Other errors as for [`Inputs::visit`].
pub fn document_frequencies(
    inputs: &Inputs,
    profile: &Profile,
    options: &IdfOptions,
    observer: &dyn Observer,
) -> Result<(FeatureFrequencies, InputCounts)> {
    if inputs.kind()? == InputKind::Fingerprints {
        return Err(Error::BadArgument("the inputs are fingerprints, not documents".to_owned()));
    }
    check_memory(options.memory)?;
    ensure_pool()?;
    let temporary = TemporaryFolder::new(options.temporary.as_deref(), &options.unfinished, observer)?;
    let budget = MemoryBudget::new(options.memory);
    let stage = Stage::new(observer, "documents");
    let mut malformed = MalformedHandler::new(inputs.skips_malformed(), observer);
    let mut parts = vec![DocumentFrequencies::default(); rayon::current_num_threads()];
    let mut runs = Vec::new();
    let mut counts = InputCounts::default();
    let mut documents = inputs.with_memory_limit(budget.reading_limit()).documents();
    loop {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(document) = documents.next()
        {
            stage.add(0)?;
            match document {
                Ok(document) => {
                    bytes += document.text.len();
                    (counts.read, counts.replacements) =
                        (counts.read + 1, counts.replacements + document.replacements);
                    batch.push(document.text);
                }
                Err(error) => malformed.handle(error)?,
            }
        }
        if batch.is_empty() {
            break;
        }
        let share = batch.len().div_ceil(parts.len());
        batch.par_chunks(share).zip(&mut parts).try_for_each(|(texts, part)| {
            texts.iter().try_for_each(|text| {
                part.add(profile, text);
                stage.add(1)
            })
        })?;
        // Merging the counts of all threads needs the same amount of memory again.
        if parts.iter().map(DocumentFrequencies::memory).sum::<u64>() > budget.bytes / 2 {
            if runs.is_empty() {
                report_spilling(&parts, budget, &temporary, observer)?;
            }
            parts.iter_mut().try_for_each(|part| write_run(part.take_counts(), &temporary, &mut runs))?;
        }
    }
    counts.malformed = malformed.count();
    let mut last = DocumentFrequencies::default();
    parts.into_iter().for_each(|part| last.merge(part));
    Ok((FeatureFrequencies { last, runs }, counts))
}

fn report_spilling(
    parts: &[DocumentFrequencies],
    budget: MemoryBudget,
    temporary: &Arc<TemporaryFolder>,
    observer: &dyn Observer,
) -> Result<()> {
    let features: usize = parts.iter().map(DocumentFrequencies::features).sum();
    observer.diagnostic(&Diagnostic::Info(&format!(
        "{} need more than half of the {} {}: continuing on disk, in {}",
        format_count_of(features as u64, "feature"),
        format_bytes(budget.total),
        if budget.is_explicit { "of option `memory`" } else { "of memory available" },
        temporary.folder()?.display()
    )));
    Ok(())
}

/// Writes counts, which are sorted by feature, to a new file, and adds the file to `runs`. If there are then [`MAX_RUNS`]
/// files, merges all of them into one.
fn write_run(
    counts: Vec<(Box<str>, u64)>,
    temporary: &Arc<TemporaryFolder>,
    runs: &mut Vec<SpillFile>,
) -> Result<()> {
    let mut file = SpillWriter::create(temporary.clone())?;
    for (feature, count) in counts {
        file.push_text(&feature)?;
        file.push_record(count)?;
    }
    runs.push(file.finish()?);
    if runs.len() < MAX_RUNS {
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

/// Merges the sorted files `runs` and the sorted counts `memory`. Visits each feature once, in order, with the sum of its
/// counts.
fn merge(
    runs: &[SpillFile],
    memory: Vec<(Box<str>, u64)>,
    mut visitor: impl FnMut(&str, u64) -> Result<()>,
) -> Result<()> {
    let mut readers: Vec<SpillReader> =
        runs.iter().map(|run| run.open_with_buffer(READ_BUFFER_BYTES)).collect::<Result<_>>()?;
    let mut memory = memory.into_iter();
    // Returns the next feature of a run or, after the last run, of the counts in memory.
    let mut following = |at: usize| match readers.get_mut(at) {
        Some(reader) => next_feature(reader),
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

fn next_feature(run: &mut SpillReader) -> Result<Option<(Box<str>, u64)>> {
    if run.is_at_end() {
        return Ok(None);
    }
    let feature = run.read_text()?;
    let count = run.read_record()?.ok_or_else(|| run.changed_error())?;
    Ok(Some((feature.into_boxed_str(), count)))
}

impl FeatureFrequencies {
    /// Number of documents in the corpus.
    pub fn documents(&self) -> u64 {
        self.last.documents()
    }

    /// Visits the features in code point order, except features that fewer than `min_documents` documents have.
    ///
    /// # Errors
    /// Errors of the visitor, and of reading the counts on disk.
    pub fn visit(
        mut self,
        min_documents: u64,
        mut visitor: impl FnMut(&IdfRow<'_>) -> Result<()>,
    ) -> Result<VisitedFeatures> {
        let (documents, mut visited) = (self.documents(), VisitedFeatures::default());
        merge(&self.runs, self.last.take_counts(), |feature, count| {
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
