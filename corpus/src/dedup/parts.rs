//! Work that is kept: the fingerprints of finished files, so that a run can be carried on and shared between machines.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::UNIX_EPOCH;

use simstore::{Error, Fingerprint, Result};
use simstore_text::{Profile, Sketcher};
use xxhash_rust::xxh3::Xxh3;

use super::part::{self, Header, Part, PartFile};
use crate::output::Unfinished;
use crate::visit::tell_notes;
use crate::watch::{Notice, Step};
use crate::{Counts, DocumentOptions, InputFile, Inputs, Item, Watch};

/// Smaller files are taken together, up to this many: a folder of pages makes few parts.
const LARGE_FILE_BYTES: u64 = 1 << 20;
const PART_FILES: usize = 4096;
/// Bytes at the start and at the end of a file by which it is known again.
const CHECKED_BYTES: u64 = 1 << 16;

/// One of several machines, or runs, that share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let shard = text.split_once('/').and_then(|(number, of)| {
            let shard = Shard { number: number.parse().ok()?, of: of.parse().ok()? };
            (1..=shard.of).contains(&shard.number).then_some(shard)
        });
        shard.ok_or_else(|| {
            Error::BadArgument("expected a shard and the number of shards, like 1/4".to_owned())
        })
    }
}

/// A folder of parts.
pub(super) struct Parts<'a> {
    pub(super) folder: &'a Path,
    pub(super) shard: Option<Shard>,
    pub(super) inputs: &'a Inputs,
    pub(super) profile: &'a Profile,
    /// Makes sketches, if these are wanted.
    pub(super) sketcher: Option<&'a Sketcher>,
    pub(super) unfinished: &'a Unfinished,
    pub(super) watch: &'a dyn Watch,
}

/// How many parts were there, were made, and are left to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Parts that were there.
    pub found: u64,
    /// Parts that were made.
    pub made: u64,
    /// Parts that are left to other shards.
    pub left: u64,
}

impl Parts<'_> {
    /// Visits the documents of all inputs in order: from parts where they are there, and else from the files, whose
    /// parts are then kept. Of a shard, only its parts are made, and nothing is visited.
    pub(super) fn visit<F: Fingerprint>(
        &self,
        mut visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<(Counts, Tally)> {
        if let Some(input) = self.inputs.pipes().next() {
            let message = "only files can be read in parts, and carried on with";
            return Err(Error::BadArgument(format!("{}: {message}", input.display())));
        }
        std::fs::create_dir_all(self.folder).map_err(Error::io(self.folder, "write"))?;
        // Also where all parts are there, each is asked for.
        let step = Step::new(self.watch, "parts");
        let (mut counts, mut tally) = (Counts::default(), Tally::default());
        let mut position = 0;
        let mut listed = self.inputs.files();
        let units = units(listed.by_ref());
        tell_notes(&listed.progress(), self.watch);
        for (number, files) in units.into_iter().enumerate() {
            step.add(1)?;
            let files = match files {
                Ok(files) => files,
                Err(error @ Error::BadInput { .. }) if self.inputs.skips_bad() => {
                    self.watch.notice(&Notice::Malformed(&error));
                    position += 1;
                    counts.bad += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let header = self.header::<F>(&files)?;
            let path = header.path(self.folder)?;
            if let Some(part) = self.usable::<F>(&path, &header, &files)? {
                tally.found += 1;
                if self.shard.is_none() {
                    let of_part = read(part, position, &mut visitor)?;
                    position += of_part.read + of_part.bad;
                    counts.add(of_part);
                }
                continue;
            }
            if self.shard.is_some_and(|shard| number % shard.of + 1 != shard.number) {
                tally.left += 1;
                continue;
            }
            let of_part = self.make(&path, &header, &files, position, &mut visitor)?;
            position += of_part.read + of_part.bad;
            counts.add(of_part);
            tally.made += 1;
        }
        Ok((counts, tally))
    }

    fn header<F: Fingerprint>(&self, files: &[InputFile]) -> Result<Header> {
        let file = |file: &InputFile| {
            Ok(PartFile {
                path: file.path.to_string_lossy().replace(std::path::MAIN_SEPARATOR_STR, "/"),
                bytes: file.bytes.unwrap_or_default(),
                check: check(&file.path)?,
            })
        };
        // Whatever changes how documents are read makes another part: no option is left out.
        let DocumentOptions { id_field, text_fields, extra_field, format, delimiter, encoding, max_bytes } =
            self.inputs.options().clone();
        Ok(Header {
            part: if self.sketcher.is_some() { part::VERSION_WITH_SKETCHES } else { part::VERSION },
            bits: F::BITS,
            profile: self.profile.to_string(),
            sketches: self.sketcher.map(Sketcher::sketches),
            few: self.sketcher.map(Sketcher::few),
            id_field,
            text_fields,
            extra_field,
            format: format.map(|format| format.to_string()),
            delimiter: delimiter.map(char::from),
            encoding: encoding.to_string(),
            max_bytes,
            skip_bad: self.inputs.skips_bad(),
            files: files.iter().map(file).collect::<Result<_>>()?,
        })
    }

    /// The part, if it is there, undamaged, and its files hold what they held.
    fn usable<F: Fingerprint>(
        &self,
        path: &Path,
        header: &Header,
        files: &[InputFile],
    ) -> Result<Option<Part>> {
        if !path.exists() {
            return Ok(None);
        }
        let again = |reason: &str| {
            let warning = format!("{}: {reason}; it is made again", path.display());
            self.watch.notice(&Notice::Warning(&warning));
        };
        let part = match Part::open(path, header) {
            Ok(part) => part,
            Err(reason) => {
                again(&reason);
                return Ok(None);
            }
        };
        // A copy has another time, and so has what was written to in its middle.
        if part.modified == modified(files) {
            return Ok(Some(part));
        }
        let remark = format!("{}: of another time than its part: compared", files[0].path.display());
        self.watch.notice(&Notice::Remark(&remark));
        if self.is_same::<F>(part, files)? {
            return Ok(Part::open(path, header).ok());
        }
        again("its files have changed since");
        Ok(None)
    }

    /// Whether the documents of files are those of a part.
    fn is_same<F: Fingerprint>(&self, part: Part, files: &[InputFile]) -> Result<bool> {
        let step = Step::new(self.watch, "documents compared with their parts");
        let (mut records, options) = (self.inputs.of_files(paths(files)).records(), self.inputs.options());
        let mut is_same = true;
        part.visit::<F>(0, |item| {
            step.add(1)?;
            // After the first difference, the rest of the part is only passed over.
            is_same = is_same
                && match (item, records.next()) {
                    (Some(item), Some(Ok(record))) => record.checksum(options) == item.checksum,
                    (None, Some(record)) => record.and_then(|record| record.document(options)).is_err(),
                    _ => false,
                };
            Ok(())
        })?;
        Ok(is_same && records.next().is_none())
    }

    fn make<F: Fingerprint>(
        &self,
        path: &Path,
        header: &Header,
        files: &[InputFile],
        first: u64,
        visitor: &mut impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        let before = modified(files);
        let mut writer = part::Writer::create(path, header, &before, self.unfinished)?;
        let paths = paths(files);
        let mut file = 0;
        let take = |mut item: Item<F>| {
            writer.push_bad(item.position)?;
            // Documents come in the order of their files; members of an archive are below its path.
            file += paths[file..].iter().position(|path| item.path.starts_with(path)).unwrap_or_default();
            writer.push_document(&item, file)?;
            item.position += first;
            if self.shard.is_some() { Ok(()) } else { visitor(item) }
        };
        let inputs = self.inputs.of_files(paths.clone());
        let counts = match self.sketcher {
            Some(sketcher) => inputs.visit_sketched(sketcher, self.watch, take),
            None => inputs.visit_documents(self.profile, self.watch, take),
        }?;
        writer.push_bad(counts.read + counts.bad)?;
        if modified(files) != before {
            return Err(Error::Refused(format!(
                "{}: changed while it was read, or files of its part did; run this again when they do not change",
                files[0].path.display()
            )));
        }
        writer.finish()?;
        Ok(counts)
    }
}

fn paths(files: &[InputFile]) -> Vec<PathBuf> {
    files.iter().map(|file| file.path.clone()).collect()
}

/// When files were modified last, in nanoseconds since 1970, where that is known.
fn modified(files: &[InputFile]) -> Vec<Option<u64>> {
    let modified = |file: &InputFile| {
        let time = file.path.metadata().ok()?.modified().ok()?;
        u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
    };
    files.iter().map(modified).collect()
}

/// Visits the documents of a part.
fn read<F: Fingerprint>(
    part: Part,
    first: u64,
    visitor: &mut impl FnMut(Item<F>) -> Result<()>,
) -> Result<Counts> {
    let mut counts = Counts::default();
    part.visit(first, |item| match item {
        Some(item) => {
            counts.count(&item);
            visitor(item)
        }
        None => {
            counts.bad += 1;
            Ok(())
        }
    })?;
    Ok(counts)
}

/// Files that make a part together: a large one alone, small ones that follow each other. What cannot be listed stands
/// by itself.
fn units(files: impl Iterator<Item = Result<InputFile>>) -> Vec<Result<Vec<InputFile>>> {
    let is_small = |file: &InputFile| file.bytes.is_some_and(|bytes| bytes < LARGE_FILE_BYTES);
    let mut units: Vec<Result<Vec<InputFile>>> = Vec::new();
    for file in files {
        match (units.last_mut(), file) {
            (Some(Ok(unit)), Ok(file))
                if is_small(&file) && is_small(&unit[0]) && unit.len() < PART_FILES =>
            {
                unit.push(file);
            }
            (_, file) => units.push(file.map(|file| vec![file])),
        }
    }
    units
}

fn check(path: &Path) -> Result<String> {
    let mut hash = Xxh3::new();
    let mut update = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut buffer = Vec::new();
        for start in [0, length.saturating_sub(CHECKED_BYTES)] {
            buffer.clear();
            file.seek(SeekFrom::Start(start))?;
            (&mut file).take(CHECKED_BYTES).read_to_end(&mut buffer)?;
            hash.update(&buffer);
        }
        Ok(())
    };
    update().map_err(|error: std::io::Error| {
        Error::Refused(format!("{}: cannot read: {error}", path.display()))
    })?;
    Ok(format!("{:016x}", hash.digest()))
}
