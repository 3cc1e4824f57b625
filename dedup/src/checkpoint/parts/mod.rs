//! Work that is kept: the fingerprints of finished files, so that a run can be carried on and shared between machines.

pub(crate) mod header;
pub(crate) mod outdated;
pub(crate) mod reader;
pub(crate) mod section_lines;
pub(crate) mod shard;
#[cfg(test)]
mod tests;
pub(crate) mod units;
pub(crate) mod writer;

use std::path::Path;

use simstore::{Error, Fingerprint, Result};
use simstore_text::{BANDS, MinHasher, Profile};

use crate::checkpoint::parts::header::{Header, SectionEnd};
use crate::checkpoint::parts::reader::{First, Part};
use crate::checkpoint::parts::section_lines::Placed;
use crate::checkpoint::parts::shard::{Shard, Tally};
use crate::checkpoint::parts::units::{Unit, units};
use crate::checkpoint::parts::writer::Writer;
use simstore_corpus::Diagnostic;
use simstore_corpus::Stage;
use simstore_corpus::report_read_diagnostics;
use simstore_corpus::{InputCounts, Inputs, Item, Observer};
use simstore_io::output::UnfinishedOutputs;
use simstore_io::{DocumentId, DocumentOptions, InputFile};

/// A folder of parts.
pub(crate) struct Parts<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) shard: Option<Shard>,
    pub(crate) inputs: &'a Inputs,
    pub(crate) profile: &'a Profile,
    /// Makes sketches, if these are wanted.
    pub(crate) sketcher: Option<&'a MinHasher>,
    /// Larger files are divided.
    pub(crate) section_bytes: Option<u64>,
    pub(crate) unfinished: &'a UnfinishedOutputs,
    pub(crate) observer: &'a dyn Observer,
}

/// How far the divided file has been read.
#[derive(Default)]
struct Course {
    /// Lines, if all before has been read.
    lines: Option<u64>,
    /// Whether there is nothing more of it.
    is_over: bool,
}

impl Parts<'_> {
    /// Visits the documents of all inputs in order: from parts where they are there, and else from the files, whose
    /// parts are then kept. Of a shard, only its parts are made, and nothing is visited.
    pub(crate) fn visit<F: Fingerprint>(
        &self,
        mut visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<(InputCounts, Tally)> {
        if let Some(input) = self.inputs.read_once_paths().next() {
            let message = "option `resume` needs files as inputs: standard input and pipes cannot be resumed";
            return Err(Error::BadArgument(format!("{}: {message}", input.display())));
        }
        std::fs::create_dir_all(self.folder).map_err(Error::io(self.folder, "write"))?;
        // Also where all parts are there, each is asked for.
        let stage = Stage::new(self.observer, "parts");
        let (mut counts, mut tally) = (InputCounts::default(), Tally::default());
        let (mut position, mut course) = (0, Course::default());
        let mut listed = self.inputs.files();
        let units = units(self.inputs, listed.by_ref(), self.section_bytes);
        counts.count_files(&listed.progress());
        report_read_diagnostics(&listed.progress(), self.observer);
        for (number, unit) in units.into_iter().enumerate() {
            stage.add(1)?;
            let unit = match unit {
                Ok(unit) => unit,
                Err(error @ Error::BadInput { .. }) if self.inputs.skips_malformed() => {
                    self.observer.diagnostic(&Diagnostic::Malformed(&error));
                    position += 1;
                    counts.malformed += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if unit.section.as_ref().is_none_or(|section| section.from == 0) {
                course = Course { lines: Some(0), is_over: false };
            }
            if course.is_over {
                continue;
            }
            let header = self.header::<F>(&unit)?;
            let path = header.path(self.folder)?;
            let (of_part, end) = if let Some(part) = self.usable::<F>(&path, &header, &unit)? {
                tally.found += 1;
                if self.shard.is_some() {
                    course.lines = None;
                    continue;
                }
                let first = First { position, lines: course.lines.unwrap_or_default() };
                read(part, first, &mut visitor)?
            } else if self.shard.is_some_and(|shard| number % shard.of + 1 != shard.number) {
                tally.left += 1;
                course.lines = None;
                continue;
            } else {
                tally.made += 1;
                self.make(&path, &header, &unit, position, course.lines, &mut visitor)?
            };
            position += of_part.read + of_part.malformed;
            counts.add(of_part);
            if let Some(end) = end {
                course.lines = course.lines.map(|lines| lines + end.lines);
                // Only if all before has been read, it is known that a section is one.
                course.is_over = end.is_rest && course.lines.is_some();
            }
        }
        Ok((counts, tally))
    }

    fn header<F: Fingerprint>(&self, unit: &Unit) -> Result<Header> {
        // Each option of reading is part of the header, so that other options make another part. A part without what was too
        // long for the memory is not kept.
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
        Ok(Header {
            part: match (&unit.section, self.sketcher) {
                (Some(_), Some(_)) => header::VERSION_OF_SECTIONS_WITH_SKETCHES,
                (Some(_), None) => header::VERSION_OF_SECTIONS,
                (None, Some(_)) => header::VERSION_WITH_SKETCHES,
                (None, None) => header::VERSION,
            },
            bits: F::BITS,
            profile: self.profile.to_string(),
            sketches: self.sketcher.map(|_| BANDS),
            id_field,
            text_fields,
            extra_field,
            format: format.map(|format| format.to_string()),
            delimiter: delimiter.map(char::from),
            encoding: encoding.to_string(),
            max_bytes,
            skip_bad: self.inputs.skips_malformed(),
            files: unit.part_files()?,
            section: unit.section.as_ref().map(|section| [section.from, section.to]),
        })
    }

    /// The part, if it exists, is undamaged, and its files have not changed.
    fn usable<F: Fingerprint>(&self, path: &Path, header: &Header, unit: &Unit) -> Result<Option<Part>> {
        if !path.try_exists().map_err(Error::io(path, "look for"))? {
            return Ok(None);
        }
        let again = |reason: &str| {
            let warning = format!("{}: {reason}; processing the file again", path.display());
            self.observer.diagnostic(&Diagnostic::Warning(&warning));
        };
        let part = match Part::open(path, header) {
            Ok(part) => part,
            Err(reason) => {
                again(&reason);
                return Ok(None);
            }
        };
        // A copy has another time, and so has a file that was changed in its middle.
        if part.modified == unit.modified()? {
            return Ok(Some(part));
        }
        let remark = format!("{}: modification time differs from its part: comparing contents", unit.place());
        self.observer.diagnostic(&Diagnostic::Info(&remark));
        if self.is_same::<F>(part, unit)? {
            return Ok(Part::open(path, header).ok());
        }
        again("its files have changed");
        Ok(None)
    }

    /// Whether the files still hold the documents of a part.
    fn is_same<F: Fingerprint>(&self, part: Part, unit: &Unit) -> Result<bool> {
        let stage = Stage::new(self.observer, "documents compared with their parts");
        let ((inputs, section), options) = (unit.inputs(self.inputs), self.inputs.options());
        let mut records = inputs.records();
        let mut is_same = true;
        let end = part.visit::<F>(First::default(), |item| {
            stage.add(1)?;
            // After the first difference, the rest of the part is only passed over.
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
        Ok(is_same && records.next().is_none() && end == section.as_ref().map(SectionEnd::of))
    }

    /// Makes a part. `lines` is the number of lines before a section, if known.
    fn make<F: Fingerprint>(
        &self,
        path: &Path,
        header: &Header,
        unit: &Unit,
        first: u64,
        lines: Option<u64>,
        visitor: &mut impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<(InputCounts, Option<SectionEnd>)> {
        let before = unit.modified()?;
        let mut writer = Writer::create(path, header, &before, self.unfinished)?;
        let (inputs, section) = unit.inputs(self.inputs);
        let (paths, mut file) = (unit.paths(), 0);
        let take = |mut item: Item<F>| {
            writer.push_bad(item.position)?;
            // Documents come in the order of their files; members of an archive are below its path.
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
        let placed = Placed::new(self.observer, section.as_ref(), lines);
        let visited = match self.sketcher {
            Some(sketcher) => inputs.visit_with_signatures(sketcher, &placed, take),
            None => inputs.visit_documents(self.profile, &placed, take),
        };
        let counts = visited.map_err(|error| placed.in_file(error))?;
        writer.push_bad(counts.read + counts.malformed)?;
        if unit.modified()? != before {
            return Err(Error::Refused(format!(
                "{}: it, or a file of the same part, changed while it was read; run this again when they no longer change",
                unit.place()
            )));
        }
        let end = section.as_ref().map(SectionEnd::of);
        if placed.lacks_memory() {
            // Another run may have more.
            self.observer.diagnostic(&Diagnostic::Warning(&format!(
                "{}: not kept for later runs, because documents were skipped for lack of memory",
                unit.place()
            )));
        } else {
            writer.finish(end)?;
        }
        Ok((counts, end))
    }
}

/// How many parts there are of some files.
pub(crate) fn count<'a>(
    inputs: &Inputs,
    files: impl Iterator<Item = &'a InputFile>,
    section_bytes: Option<u64>,
) -> usize {
    units(inputs, files.cloned().map(Ok), section_bytes).len()
}

/// Visits the documents of a part.
fn read<F: Fingerprint>(
    part: Part,
    first: First,
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
