//! Building a segment in one go.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::by_id::{NamesWriter, NotesWriter};
use super::ids::IdsWriter;
use super::marks::MarksWriter;
use super::purpose::choose;
use super::records::{Record, Records, Source};
use super::tombstones;
use crate::codec::{Codec, SymbolCounts};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{check_text, footer_crc};
use crate::fs::{Fs, NewFile};
use crate::manifest::SegmentEntry;
use crate::options::BuildOptions;
use crate::plan::{self, TablePlan, Workload};
use crate::progress::{STEP, Steps};
use crate::spill::{Folder, Runs, Sorter};
use crate::table::{TableHeader, TableWriter};
use crate::threads;

/// Collects fingerprints and ids in any order, names, notes and marks in theirs, and writes the files of a segment.
pub(crate) struct SegmentBuilder<F> {
    options: BuildOptions,
    made: Arc<Made>,
    pushed: Pushed<F>,
    names: Option<NamesWriter<NewFile>>,
    tombstones: Vec<(F, u64)>,
    marks: Option<MarksWriter<NewFile>>,
    notes: Option<NotesWriter<NewFile>>,
}

enum Pushed<F> {
    Plain(Sorter<F>),
    WithIds(Sorter<(F, u64)>),
}

impl<F: Fingerprint> SegmentBuilder<F> {
    pub(crate) fn new(store: &Path, number: u64, options: BuildOptions) -> Self {
        // Half for the records, the other half for the tables that are sorted while they are held.
        let memory = options.memory() / 2;
        let runs = Folder::new(&options.fs, &store.join(format!("{number:06}")));
        let pushed = if options.ids {
            Pushed::WithIds(Sorter::new(runs.clone(), memory).watched(options.progress.as_ref()))
        } else {
            Pushed::Plain(Sorter::new(runs.clone(), memory).watched(options.progress.as_ref()))
        };
        let (fs, store, names) = (options.fs.clone(), store.to_path_buf(), Mutex::default());
        let made = Arc::new(Made { fs, store, number, names, runs });
        SegmentBuilder {
            options,
            made,
            pushed,
            names: None,
            tombstones: Vec::new(),
            marks: None,
            notes: None,
        }
    }

    pub(crate) fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        match &mut self.pushed {
            Pushed::Plain(sorter) => sorter.push(fingerprint),
            Pushed::WithIds(sorter) => sorter.push((fingerprint, id)),
        }
    }

    pub(crate) fn name(&mut self, id: u64, name: &str) -> Result<()> {
        check_text("name", name.as_bytes())?;
        self.made.writer(&mut self.names, "names", NamesWriter::new)?.push(id, name.as_bytes())
    }

    pub(crate) fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.made.writer(&mut self.notes, "notes", NotesWriter::new)?.push(id, note)
    }

    /// Keeps a mark. Keys come in ascending order.
    pub(crate) fn mark(&mut self, key: &str, value: &[u8]) -> Result<()> {
        check_text("key of a mark", key.as_bytes())?;
        self.made.writer(&mut self.marks, "marks", MarksWriter::new)?.push(key, value)
    }

    /// Pairs that are deleted from older segments, ascending.
    pub(crate) fn tombstones(&mut self, pairs: Vec<(F, u64)>) {
        self.tombstones = pairs;
    }

    fn entry(&self) -> SegmentEntry {
        SegmentEntry {
            number: self.made.number,
            names: self.names.as_ref().map_or(0, |names| names.entries.total),
            tombstones: self.tombstones.len() as u64,
            marks: self.marks.as_ref().map_or(0, |marks| marks.entries.total),
            notes: self.notes.as_ref().map_or(0, |notes| notes.entries.total),
            has_ids: self.options.ids,
            ..SegmentEntry::default()
        }
    }

    /// Writes the segment's files under their names; after an error none of them is left.
    pub(crate) fn finish(self) -> Result<SegmentEntry> {
        self.finish_chosen().map(|(entry, _)| entry)
    }

    /// [`SegmentBuilder::finish`], and the codec that was chosen.
    pub(crate) fn finish_chosen(self) -> Result<(SegmentEntry, Codec)> {
        let made = self.made.clone();
        self.write_files().inspect_err(|_| made.remove())
    }

    fn write_files(self) -> Result<(SegmentEntry, Codec)> {
        let entry = self.entry();
        self.names.map_or(Ok(()), |names| names.finish()?.commit())?;
        self.marks.map_or(Ok(()), |marks| marks.finish()?.commit())?;
        self.notes.map_or(Ok(()), |notes| notes.finish()?.commit())?;
        if !self.tombstones.is_empty() {
            let (path, mut file) = self.made.create(entry.file("tombstones"))?;
            tombstones::write(&mut file, &path, &self.tombstones)?;
            file.commit()?;
        }
        let (options, made) = (self.options, self.made);
        match self.pushed {
            Pushed::Plain(sorter) => write(&made, entry, options, &Records::Sorted(sorter.finish_runs()?)),
            Pushed::WithIds(sorter) => write(&made, entry, options, &Records::Sorted(sorter.finish_runs()?)),
        }
    }

    /// [`SegmentBuilder::finish`] with the fingerprints of a source, without ids, in the place of inserted ones.
    pub(crate) fn finish_sorted(self, source: Source<F>) -> Result<(SegmentEntry, Codec)> {
        let entry = self.entry();
        let written = write(&self.made, entry, self.options, &Records::Source(source));
        written.inspect_err(|_| self.made.remove())
    }
}

/// The files of a segment that no manifest names yet.
struct Made {
    fs: Arc<dyn Fs>,
    store: PathBuf,
    number: u64,
    /// Names of the files, complete or unfinished.
    names: Mutex<Vec<String>>,
    /// Where records are sorted.
    runs: Arc<Folder>,
}

impl Made {
    fn create(&self, name: String) -> Result<(PathBuf, NewFile)> {
        let path = self.store.join(&name);
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        let file = NewFile::create(&self.fs, &path)?;
        Ok((path, file))
    }

    /// Returns the writer of the file with an ending; makes both when they are first needed.
    fn writer<'a, W>(
        &self,
        writer: &'a mut Option<W>,
        ending: &str,
        new: impl FnOnce(NewFile, &Path) -> Result<W>,
    ) -> Result<&'a mut W> {
        match writer {
            Some(writer) => Ok(writer),
            none => {
                let entry = SegmentEntry { number: self.number, ..SegmentEntry::default() };
                let (path, file) = self.create(entry.file(ending))?;
                Ok(none.insert(new(file, &path)?))
            }
        }
    }

    /// Removes these files, and no others. A file that cannot be removed now is removed when the store is opened next.
    fn remove(&self) {
        for name in &*self.names.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = self.fs.remove(&self.store.join(name));
        }
    }
}

struct TableTask<'a, R> {
    made: &'a Made,
    entry: &'a SegmentEntry,
    options: &'a BuildOptions,
    records: &'a Records<R>,
    steps: &'a Steps<'a>,
}

fn write<R: Record>(
    made: &Made,
    mut entry: SegmentEntry,
    mut options: BuildOptions,
    records: &Records<R>,
) -> Result<(SegmentEntry, Codec)> {
    if let Some(purpose) = options.codec_for {
        options.codec = choose(purpose, &options, records)?;
    }
    let options = &options;
    let mut counts = SymbolCounts::<R::Fingerprint>::new(options.codec);
    let (mut previous, mut seen) = (None, 0);
    let counting = Steps::new(options.progress.as_ref(), 0);
    counting.ask()?;
    records.visit(|record| {
        counting.ask_at(&mut seen)?;
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
    let steps = Steps::new(options.progress.as_ref(), entry.fingerprints * u64::from(entry.tables));
    let task = TableTask { made, entry: &entry, options, records, steps: &steps };
    plan.tables().par_iter().enumerate().try_for_each(|(number, table)| {
        if number == 0 { task.write_first(table, &counts) } else { task.write_other(number as u32, table) }
    })?;
    for name in entry.files() {
        let path = made.store.join(name);
        let bytes = options.fs.map(&path).map_err(Error::io(&path, "open"))?;
        entry.footers.push(footer_crc(bytes.as_ref()));
    }
    Ok((entry, options.codec))
}

impl<R: Record> TableTask<'_, R> {
    fn writer(
        &self,
        number: u32,
        plan: &TablePlan<R::Fingerprint>,
        counts: &SymbolCounts<R::Fingerprint>,
    ) -> Result<TableWriter<R::Fingerprint, NewFile>> {
        let (path, file) = self.made.create(self.entry.table_name(number))?;
        let options = self.options;
        let header = TableHeader::new(plan.clone(), options.codec, options.block_size, options.span, counts)?;
        TableWriter::new(file, &path, header)
    }

    fn step(&self, written: &mut u64) -> Result<()> {
        *written += 1;
        if written.is_multiple_of(STEP) { self.steps.add(STEP) } else { Ok(()) }
    }

    /// The first table, which is in the order of the records, and the ids.
    fn write_first(
        &self,
        plan: &TablePlan<R::Fingerprint>,
        counts: &SymbolCounts<R::Fingerprint>,
    ) -> Result<()> {
        let mut table = self.writer(0, plan, counts)?;
        let mut ids = match self.entry.has_ids {
            true => {
                let (path, file) = self.made.create(self.entry.file("ids"))?;
                Some(IdsWriter::new(file, &path, self.entry.fingerprints, self.entry.ids)?)
            }
            false => None,
        };
        let (mut previous, mut written) = (None, 0);
        self.records.visit(|record| {
            let fingerprint = record.fingerprint();
            let first = previous != Some(fingerprint);
            if first {
                previous = Some(fingerprint);
                // The block that this closes ends before this fingerprint, whose ids are not known yet.
                if let (Some(count), Some(ids)) = (table.push(fingerprint)?, &mut ids) {
                    ids.close_chunk(count)?;
                }
                self.step(&mut written)?;
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
        self.steps.add(written % STEP)
    }

    /// Another table: the distinct fingerprints permuted and sorted again.
    fn write_other(&self, number: u32, plan: &TablePlan<R::Fingerprint>) -> Result<()> {
        let memory = self.options.memory();
        let at_once = rayon::current_num_threads().min(self.entry.tables as usize) as u64;
        let is_held = matches!(self.records, Records::Sorted(Runs::Memory(_)));
        let free = if is_held { memory / 2 } else { memory };
        let sorter = Sorter::new(self.made.runs.clone(), free / at_once);
        let mut sorter = sorter.watched(self.options.progress.as_ref());
        let mut seen = 0;
        self.records.visit_fingerprints(|fingerprint| {
            self.steps.ask_at(&mut seen)?;
            sorter.push(plan.permutation.apply(fingerprint))
        })?;
        let permuted = sorter.finish_runs()?;
        let mut counts = SymbolCounts::new(self.options.codec);
        if self.options.codec.facts().has_code {
            permuted.visit(|fingerprint| {
                counts.push(fingerprint);
                self.steps.ask_at(&mut seen)
            })?;
        } else {
            counts = SymbolCounts::of(self.options.codec, self.entry.fingerprints);
        }
        let mut table = self.writer(number, plan, &counts)?;
        let mut written = 0;
        permuted.visit(|fingerprint| {
            self.step(&mut written)?;
            table.push(fingerprint).map(|_| ())
        })?;
        table.finish()?.0.commit()?;
        self.steps.add(written % STEP)
    }
}
