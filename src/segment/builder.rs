//! Builder of a segment.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::codec_choice::choose_codec;
use super::id_values::{NameFileWriter, NoteFileWriter};
use super::ids::IdFileWriter;
use super::metadata::MetadataFileWriter;
use super::records::{SegmentRecord, SegmentRecords, SortedRecordSource};
use super::tombstones;
use crate::codec::{Codec, SymbolCounter};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{check_keeps_ids, check_text, footer_crc};
use crate::fs::{Fs, NewFile};
use crate::manifest::SegmentEntry;
use crate::options::BuildOptions;
use crate::plan::{self, TablePlan, Workload};
use crate::progress::{CANCEL_CHECK_INTERVAL, ProgressCounter};
use crate::spill::{PrefixLocation, SortedRuns, Sorter};
use crate::table::{TableHeader, TableWriter};
use crate::threads;

/// Builds a segment and writes its files. Fingerprints and ids may be inserted in any order; names and notes must be added
/// in ascending order of ids, and metadata in ascending order of keys.
pub(crate) struct SegmentBuilder<F> {
    options: BuildOptions,
    files: Arc<UncommittedFiles>,
    records: RecordSorter<F>,
    names: Option<NameFileWriter<NewFile>>,
    tombstones: Vec<(F, u64)>,
    metadata: Option<MetadataFileWriter<NewFile>>,
    notes: Option<NoteFileWriter<NewFile>>,
}

enum RecordSorter<F> {
    Plain(Sorter<F>),
    WithIds(Sorter<(F, u64)>),
}

impl<F: Fingerprint> SegmentBuilder<F> {
    pub(crate) fn new(store: &Path, number: u64, options: BuildOptions) -> Self {
        // Half for the records, and half for sorting the other tables, during which the records stay in memory.
        let memory = options.memory() / 2;
        let runs = PrefixLocation::new(&options.fs, &store.join(format!("{number:06}")));
        let records = if options.ids {
            RecordSorter::WithIds(Sorter::new(runs.clone(), memory).with_progress(options.progress.as_ref()))
        } else {
            RecordSorter::Plain(Sorter::new(runs.clone(), memory).with_progress(options.progress.as_ref()))
        };
        let (fs, store, names) = (options.fs.clone(), store.to_path_buf(), Mutex::default());
        let files = Arc::new(UncommittedFiles { fs, store, number, names, runs });
        SegmentBuilder {
            options,
            files,
            records,
            names: None,
            tombstones: Vec::new(),
            metadata: None,
            notes: None,
        }
    }

    pub(crate) fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        match &mut self.records {
            RecordSorter::Plain(sorter) => sorter.push(fingerprint),
            RecordSorter::WithIds(sorter) => sorter.push((fingerprint, id)),
        }
    }

    pub(crate) fn add_name(&mut self, id: u64, name: &str) -> Result<()> {
        check_keeps_ids(self.options.ids, "name")?;
        check_text("name", name.as_bytes())?;
        self.files.writer(&mut self.names, "names", NameFileWriter::new)?.push(id, name.as_bytes())
    }

    pub(crate) fn add_note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        check_keeps_ids(self.options.ids, "note")?;
        self.files.writer(&mut self.notes, "notes", NoteFileWriter::new)?.push(id, note)
    }

    /// Adds a metadata value. Keys must ascend.
    pub(crate) fn add_metadata(&mut self, key: &str, value: &[u8]) -> Result<()> {
        check_text("metadata key", key.as_bytes())?;
        self.files.writer(&mut self.metadata, "metadata", MetadataFileWriter::new)?.push(key, value)
    }

    /// Sets the tombstones: the (fingerprint, id) pairs to delete from older segments. They must ascend.
    pub(crate) fn set_tombstones(&mut self, pairs: Vec<(F, u64)>) {
        self.tombstones = pairs;
    }

    fn entry(&self) -> SegmentEntry {
        SegmentEntry {
            number: self.files.number,
            names: self.names.as_ref().map_or(0, |names| names.entries.total),
            tombstones: self.tombstones.len() as u64,
            metadata: self.metadata.as_ref().map_or(0, |metadata| metadata.entries.total),
            notes: self.notes.as_ref().map_or(0, |notes| notes.entries.total),
            has_ids: self.options.ids,
            ..SegmentEntry::default()
        }
    }

    /// Writes the files of the segment. After an error, removes all of them.
    pub(crate) fn finish(self) -> Result<SegmentEntry> {
        self.finish_with_codec().map(|(entry, _)| entry)
    }

    /// Like [`SegmentBuilder::finish`], but also returns the codec of the tables.
    pub(crate) fn finish_with_codec(self) -> Result<(SegmentEntry, Codec)> {
        let files = self.files.clone();
        self.write_files().inspect_err(|_| files.remove())
    }

    fn write_files(self) -> Result<(SegmentEntry, Codec)> {
        let entry = self.entry();
        self.names.map_or(Ok(()), |names| names.finish()?.commit())?;
        self.metadata.map_or(Ok(()), |metadata| metadata.finish()?.commit())?;
        self.notes.map_or(Ok(()), |notes| notes.finish()?.commit())?;
        if !self.tombstones.is_empty() {
            let (path, mut file) = self.files.create(entry.side_file_name("tombstones"))?;
            tombstones::write(&mut file, &path, &self.tombstones)?;
            file.commit()?;
        }
        let (options, files) = (self.options, self.files);
        match self.records {
            RecordSorter::Plain(sorter) => {
                write_tables(&files, entry, options, &SegmentRecords::Sorted(sorter.finish_runs()?))
            }
            RecordSorter::WithIds(sorter) => {
                write_tables(&files, entry, options, &SegmentRecords::Sorted(sorter.finish_runs()?))
            }
        }
    }

    /// Like [`SegmentBuilder::finish_with_codec`], but takes all fingerprints from `source`, in ascending order, instead of
    /// inserted ones. The segment has no ids.
    pub(crate) fn finish_sorted(self, source: SortedRecordSource<F>) -> Result<(SegmentEntry, Codec)> {
        let entry = self.entry();
        let written = write_tables(&self.files, entry, self.options, &SegmentRecords::Source(source));
        written.inspect_err(|_| self.files.remove())
    }
}

/// The files of an unfinished segment, which no manifest names yet.
struct UncommittedFiles {
    fs: Arc<dyn Fs>,
    store: PathBuf,
    number: u64,
    /// Names of the files created so far, complete or unfinished.
    names: Mutex<Vec<String>>,
    /// Location of the temporary files of the external sort.
    runs: Arc<PrefixLocation>,
}

impl UncommittedFiles {
    fn create(&self, name: String) -> Result<(PathBuf, NewFile)> {
        let path = self.store.join(&name);
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        let file = NewFile::create(&self.fs, &path)?;
        Ok((path, file))
    }

    /// Returns the writer in `writer`. If there is none yet, creates the file with this extension and its writer.
    fn writer<'a, W>(
        &self,
        writer: &'a mut Option<W>,
        extension: &str,
        new: impl FnOnce(NewFile, &Path) -> Result<W>,
    ) -> Result<&'a mut W> {
        match writer {
            Some(writer) => Ok(writer),
            none => {
                let entry = SegmentEntry { number: self.number, ..SegmentEntry::default() };
                let (path, file) = self.create(entry.side_file_name(extension))?;
                Ok(none.insert(new(file, &path)?))
            }
        }
    }

    /// Removes the files created so far. A file that cannot be removed now is removed when the store is next opened.
    fn remove(&self) {
        for name in &*self.names.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = self.fs.remove(&self.store.join(name));
        }
    }
}

struct TableTask<'a, R> {
    files: &'a UncommittedFiles,
    entry: &'a SegmentEntry,
    options: &'a BuildOptions,
    records: &'a SegmentRecords<R>,
    progress: &'a ProgressCounter<'a>,
}

fn write_tables<R: SegmentRecord>(
    files: &UncommittedFiles,
    mut entry: SegmentEntry,
    mut options: BuildOptions,
    records: &SegmentRecords<R>,
) -> Result<(SegmentEntry, Codec)> {
    if let Some(objective) = options.codec_objective {
        options.codec = choose_codec(objective, &options, records)?;
    }
    let options = &options;
    let mut counts = SymbolCounter::<R::Fingerprint>::new(options.codec);
    let (mut previous, mut seen) = (None, 0);
    let counting = ProgressCounter::new(options.progress.as_ref(), 0);
    counting.check_cancelled()?;
    records.visit(|record| {
        counting.check_cancelled_at(&mut seen)?;
        if previous != Some(record.fingerprint()) {
            previous = Some(record.fingerprint());
            counts.push(record.fingerprint());
        }
        entry.ids += u64::from(record.id().is_some());
        Ok(())
    })?;
    entry.fingerprints = counts.fingerprints();

    let workload = Workload {
        fingerprints: entry.fingerprints,
        codec: options.codec,
        block_size: options.block_size,
        span: options.span,
        medium: plan::Medium::Memory,
    };
    let plan = options.plan.plan(options.distance, &workload)?;
    entry.plan = plan.name().to_string();
    entry.tables = plan.tables().len() as u32;

    threads::ensure_pool()?;
    let progress =
        ProgressCounter::new(options.progress.as_ref(), entry.fingerprints * u64::from(entry.tables));
    let task = TableTask { files, entry: &entry, options, records, progress: &progress };
    plan.tables().par_iter().enumerate().try_for_each(|(number, table)| {
        if number == 0 { task.write_first(table, &counts) } else { task.write_other(number as u32, table) }
    })?;
    for name in entry.file_names() {
        let path = files.store.join(name);
        let bytes = options.fs.map(&path).map_err(Error::io(&path, "open"))?;
        entry.footer_crcs.push(footer_crc(bytes.as_ref()));
    }
    Ok((entry, options.codec))
}

impl<R: SegmentRecord> TableTask<'_, R> {
    fn writer(
        &self,
        number: u32,
        plan: &TablePlan<R::Fingerprint>,
        counts: &SymbolCounter<R::Fingerprint>,
    ) -> Result<TableWriter<R::Fingerprint, NewFile>> {
        let (path, file) = self.files.create(self.entry.table_file_name(number))?;
        let options = self.options;
        let header = TableHeader::new(plan.clone(), options.codec, options.block_size, options.span, counts)?;
        TableWriter::new(file, &path, header, Some(self.files.runs.clone()))
    }

    fn count_written(&self, written: &mut u64) -> Result<()> {
        *written += 1;
        if written.is_multiple_of(CANCEL_CHECK_INTERVAL) {
            self.progress.add(CANCEL_CHECK_INTERVAL)
        } else {
            Ok(())
        }
    }

    /// Writes the first table and the id file. Both are in the order of the sorted input records.
    fn write_first(
        &self,
        plan: &TablePlan<R::Fingerprint>,
        counts: &SymbolCounter<R::Fingerprint>,
    ) -> Result<()> {
        let mut table = self.writer(0, plan, counts)?;
        let mut ids = match self.entry.has_ids {
            true => {
                let (path, file) = self.files.create(self.entry.side_file_name("ids"))?;
                Some(IdFileWriter::new(file, &path, self.entry.fingerprints, self.entry.ids)?)
            }
            false => None,
        };
        let (mut previous, mut written) = (None, 0);
        self.records.visit(|record| {
            let fingerprint = record.fingerprint();
            let first = previous != Some(fingerprint);
            if first {
                previous = Some(fingerprint);
                // If this closes a block, the block ends before this fingerprint, whose ids are not known yet.
                if let (Some(count), Some(ids)) = (table.push(fingerprint)?, &mut ids) {
                    ids.close_chunk(count)?;
                }
                self.count_written(&mut written)?;
            }
            if let (Some(ids), Some(id)) = (&mut ids, record.id()) {
                ids.push(id, first);
            }
            Ok(())
        })?;
        while let Some(count) = table.drain()? {
            if let Some(ids) = &mut ids {
                ids.close_chunk(count)?;
            }
        }
        if let Some(ids) = ids {
            ids.finish()?.commit()?;
        }
        table.finish()?.0.commit()?;
        self.progress.add(written % CANCEL_CHECK_INTERVAL)
    }

    /// Writes one of the tables after the first. It has the distinct fingerprints, permuted and sorted again. `number` is
    /// the index of the table in the plan.
    fn write_other(&self, number: u32, plan: &TablePlan<R::Fingerprint>) -> Result<()> {
        let memory = self.options.memory();
        let concurrent = rayon::current_num_threads().min(self.entry.tables as usize) as u64;
        let is_in_memory = matches!(self.records, SegmentRecords::Sorted(SortedRuns::Memory(_)));
        let free = if is_in_memory { memory / 2 } else { memory };
        let sorter = Sorter::new(self.files.runs.clone(), free / concurrent);
        let mut sorter = sorter.with_progress(self.options.progress.as_ref());
        let mut seen = 0;
        self.records.visit_fingerprints(|fingerprint| {
            self.progress.check_cancelled_at(&mut seen)?;
            sorter.push(plan.permutation.apply(fingerprint))
        })?;
        let permuted = sorter.finish_runs()?;
        let mut counts = SymbolCounter::new(self.options.codec);
        let spec = self.options.codec.spec();
        if spec.has_code || spec.has_lines {
            permuted.visit(|fingerprint| {
                counts.push(fingerprint);
                self.progress.check_cancelled_at(&mut seen)
            })?;
        } else {
            counts = SymbolCounter::with_fingerprints(self.options.codec, self.entry.fingerprints);
        }
        let mut table = self.writer(number, plan, &counts)?;
        let mut written = 0;
        permuted.visit(|fingerprint| {
            self.count_written(&mut written)?;
            table.push(fingerprint).map(|_| ())
        })?;
        table.finish()?.0.commit()?;
        self.progress.add(written % CANCEL_CHECK_INTERVAL)
    }
}
