//! Part files: the documents of the input files that were already read, with fingerprints. With part files, a run
//! can be resumed, and the work can be shared between machines.

pub(crate) mod header;
pub(crate) mod part_inputs;
pub(crate) mod reader;
pub(crate) mod remove_parts;
pub(crate) mod section_observer;
#[cfg(test)]
mod tests;
pub(crate) mod work_shard;
pub(crate) mod writer;

use std::path::Path;

use simstore::{Error, Fingerprint, Result};
use simstore_text::{BANDS, MinHasher, Profile};

use crate::checkpoint::parts::header::{PartHeader, SectionEnd};
use crate::checkpoint::parts::part_inputs::{PartInput, part_inputs};
use crate::checkpoint::parts::reader::{PartFileReader, PartOffsets};
use crate::checkpoint::parts::section_observer::SectionObserver;
use crate::checkpoint::parts::work_shard::{PartCounts, WorkShard};
use crate::checkpoint::parts::writer::PartFileWriter;
use simstore_corpus::Diagnostic;
use simstore_corpus::Stage;
use simstore_corpus::report_read_diagnostics;
use simstore_corpus::{InputCounts, Inputs, Item, Observer};
use simstore_io::output::UnfinishedOutputs;
use simstore_io::{DocumentId, DocumentOptions, InputFile};

/// Folder of part files. Reads the documents of the inputs from the part files, and makes missing part files.
pub(crate) struct PartFolder<'a> {
    pub(crate) folder: &'a Path,
    /// If set, only the missing part files of this shard are made, and no documents are visited.
    pub(crate) shard: Option<WorkShard>,
    pub(crate) inputs: &'a Inputs,
    pub(crate) profile: &'a Profile,
    /// Computes MinHash signatures, if documents are compared by similarity.
    pub(crate) min_hasher: Option<&'a MinHasher>,
    /// Size of a section in bytes; `None` for the default size. Larger input files are divided into sections.
    pub(crate) section_bytes: Option<u64>,
    pub(crate) unfinished: &'a UnfinishedOutputs,
    pub(crate) observer: &'a dyn Observer,
}

/// Progress within an input file that is divided into sections.
#[derive(Default)]
struct SectionProgress {
    /// Number of lines in all earlier sections of the file; `None` if one of these sections was not read.
    lines: Option<u64>,
    /// Whether reading an earlier section has already reached the end of the file.
    is_at_end: bool,
}

impl PartFolder<'_> {
    /// Visits the documents of all inputs in input order. Reads existing part files. If a part file is missing,
    /// reads its input files instead, and writes the part file. If `shard` is set, makes only the missing part
    /// files of the shard, and visits nothing.
    pub(crate) fn visit<F: Fingerprint>(
        &self,
        mut visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<(InputCounts, PartCounts)> {
        if let Some(input) = self.inputs.read_once_paths().next() {
            let message = "option `resume` needs files as inputs: standard input and pipes cannot be resumed";
            return Err(Error::BadArgument(format!("{}: {message}", input.display())));
        }
        std::fs::create_dir_all(self.folder).map_err(Error::io(self.folder, "write"))?;
        // Shows progress also if all parts exist.
        let stage = Stage::new(self.observer, "parts");
        let (mut counts, mut tally) = (InputCounts::default(), PartCounts::default());
        let (mut position, mut progress) = (0, SectionProgress::default());
        let mut listed = self.inputs.files();
        let part_inputs = part_inputs(self.inputs, listed.by_ref(), self.section_bytes);
        counts.count_files(&listed.progress());
        report_read_diagnostics(&listed.progress(), self.observer);
        for (number, part_input) in part_inputs.into_iter().enumerate() {
            stage.add(1)?;
            let part_input = match part_input {
                Ok(part_input) => part_input,
                Err(error @ Error::BadInput { .. }) if self.inputs.skips_malformed() => {
                    self.observer.diagnostic(&Diagnostic::Malformed(&error));
                    position += 1;
                    counts.malformed += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if part_input.section.as_ref().is_none_or(|section| section.from == 0) {
                progress = SectionProgress { lines: Some(0), is_at_end: false };
            }
            if progress.is_at_end {
                continue;
            }
            let header = self.header::<F>(&part_input)?;
            let path = header.path(self.folder)?;
            let (part_counts, end) =
                if let Some(part) = self.open_unchanged::<F>(&path, &header, &part_input)? {
                    tally.reused += 1;
                    if self.shard.is_some() {
                        progress.lines = None;
                        continue;
                    }
                    let first = PartOffsets { position, lines: progress.lines.unwrap_or_default() };
                    read_part(part, first, &mut visitor)?
                } else if self.shard.is_some_and(|shard| number % shard.count + 1 != shard.number) {
                    tally.left_to_others += 1;
                    progress.lines = None;
                    continue;
                } else {
                    tally.made += 1;
                    self.make_part(&path, &header, &part_input, position, progress.lines, &mut visitor)?
                };
            position += part_counts.read + part_counts.malformed;
            counts.add(part_counts);
            if let Some(end) = end {
                progress.lines = progress.lines.map(|lines| lines + end.lines);
                // If an earlier section was not read, later sections may still be needed.
                progress.is_at_end = end.is_end_of_file && progress.lines.is_some();
            }
        }
        Ok((counts, tally))
    }

    fn header<F: Fingerprint>(&self, part_input: &PartInput) -> Result<PartHeader> {
        // The header has all options for reading, so that other options lead to another part. The memory
        // limit is not one of them: a part that skipped documents for lack of memory is not saved.
        let DocumentOptions {
            id_field,
            text_fields,
            extra_field,
            format,
            delimiter,
            encoding,
            max_bytes,
            memory: _,
        } = self.inputs.options().clone();
        Ok(PartHeader {
            part: header::VERSION,
            bits: F::BITS,
            profile: self.profile.to_string(),
            bands: self.min_hasher.map(|_| BANDS),
            id_field,
            text_fields,
            extra_field,
            format: format.map(|format| format.to_string()),
            delimiter: delimiter.map(char::from),
            encoding: encoding.to_string(),
            max_bytes,
            skip_bad: self.inputs.skips_malformed(),
            files: part_input.part_files()?,
            section: part_input.section.as_ref().map(|section| [section.from, section.to]),
        })
    }

    /// Opens a part file. Returns `None` if it does not exist, if it is damaged, or if its input files have
    /// changed.
    fn open_unchanged<F: Fingerprint>(
        &self,
        path: &Path,
        header: &PartHeader,
        part_input: &PartInput,
    ) -> Result<Option<PartFileReader>> {
        if !path.try_exists().map_err(Error::io(path, "look for"))? {
            return Ok(None);
        }
        let again = |reason: &str| {
            let warning = format!("{}: {reason}; processing the file again", path.display());
            self.observer.diagnostic(&Diagnostic::Warning(&warning));
        };
        let part = match PartFileReader::open(path, header) {
            Ok(part) => part,
            Err(reason) => {
                again(&reason);
                return Ok(None);
            }
        };
        // Another modification time may mean a copy, or a change in the middle of the file, which the
        // checksum of the ends does not cover.
        if part.modified == part_input.modified()? {
            return Ok(Some(part));
        }
        let remark = format!(
            "{}: modification time differs from its part: comparing contents",
            part_input.display_path()
        );
        self.observer.diagnostic(&Diagnostic::Info(&remark));
        if self.has_same_documents::<F>(part, part_input)? {
            return Ok(PartFileReader::open(path, header).ok());
        }
        again("its files have changed");
        Ok(None)
    }

    /// Whether the input files still contain the documents that are recorded in the part file.
    fn has_same_documents<F: Fingerprint>(
        &self,
        part: PartFileReader,
        part_input: &PartInput,
    ) -> Result<bool> {
        let stage = Stage::new(self.observer, "documents compared with their parts");
        let ((inputs, section), options) = (part_input.inputs(self.inputs), self.inputs.options());
        let mut records = inputs.records();
        let mut is_same = true;
        let end = part.visit::<F>(PartOffsets::default(), |item| {
            stage.add(1)?;
            // After the first difference, the rest of the part is skipped.
            if !is_same {
                return Ok(());
            }
            let record = match records.next() {
                Some(Err(error)) if !matches!(error, Error::BadInput { .. }) => return Err(error),
                record => record,
            };
            is_same = match (item, record) {
                (Some(item), Some(Ok(record))) => {
                    record.checksum(options) == item.checksum && record.line() == item.line
                }
                (None, Some(record)) => record.and_then(|record| record.into_document(options)).is_err(),
                _ => false,
            };
            Ok(())
        })?;
        Ok(is_same && records.next().is_none() && end == section.as_ref().map(SectionEnd::from_section))
    }

    /// Reads the input files of a part, writes the part file, and visits the documents. `first` is the input
    /// position of the first document. `lines` is the number of lines that precede the section in its file, if
    /// known.
    fn make_part<F: Fingerprint>(
        &self,
        path: &Path,
        header: &PartHeader,
        part_input: &PartInput,
        first: u64,
        lines: Option<u64>,
        visitor: &mut impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<(InputCounts, Option<SectionEnd>)> {
        let before = part_input.modified()?;
        let mut writer = PartFileWriter::create(path, header, &before, self.unfinished)?;
        let (inputs, section) = part_input.inputs(self.inputs);
        let (paths, mut file) = (part_input.paths(), 0);
        let take = |mut item: Item<F>| {
            writer.push_malformed_until(item.position)?;
            // Documents come in file order. The path of an archive member starts with the path of the archive.
            file += paths[file..].iter().position(|path| item.path.starts_with(path)).unwrap_or_default();
            writer.push_document(&item, file)?;
            if self.shard.is_some() {
                return Ok(());
            }
            item.position += first;
            if section.is_some() {
                item.line += lines.unwrap_or_default();
                if item.has_position_id {
                    item.id = DocumentId::from_position(&item.path, item.line);
                }
            }
            visitor(item)
        };
        let section_observer = SectionObserver::new(self.observer, section.as_ref(), lines);
        let visited = match self.min_hasher {
            Some(min_hasher) => inputs.visit_with_signatures(min_hasher, &section_observer, take),
            None => inputs.visit_documents(self.profile, &section_observer, take),
        };
        let counts = visited.map_err(|error| section_observer.with_file_line(error))?;
        writer.push_malformed_until(counts.read + counts.malformed)?;
        if part_input.modified()? != before {
            return Err(Error::Refused(format!(
                "{}: it, or a file of the same part, changed while it was read; run this again when they no longer change",
                part_input.display_path()
            )));
        }
        let end = section.as_ref().map(SectionEnd::from_section);
        if section_observer.lacks_memory() {
            // Another run may have more memory.
            self.observer.diagnostic(&Diagnostic::Warning(&format!(
                "{}: not kept for later runs, because documents were skipped for lack of memory",
                part_input.display_path()
            )));
        } else {
            writer.finish(end)?;
        }
        Ok((counts, end))
    }
}

/// Returns the number of part files that a run needs for the input files `files`.
pub(crate) fn part_count<'a>(
    inputs: &Inputs,
    files: impl Iterator<Item = &'a InputFile>,
    section_bytes: Option<u64>,
) -> usize {
    part_inputs(inputs, files.cloned().map(Ok), section_bytes).len()
}

/// Visits the documents of a part file. Returns their counts, and if the part is a section of a file, the outcome of
/// reading this section.
fn read_part<F: Fingerprint>(
    part: PartFileReader,
    first: PartOffsets,
    visitor: &mut impl FnMut(Item<F>) -> Result<()>,
) -> Result<(InputCounts, Option<SectionEnd>)> {
    let mut counts = InputCounts::default();
    let end = part.visit(first, |item| match item {
        Some(item) => {
            counts.count(&item);
            visitor(item)
        }
        None => {
            counts.malformed += 1;
            Ok(())
        }
    })?;
    Ok((counts, end))
}
