//! The units that become parts: a large file, a section of one, or several small files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use simstore::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::parts::header::PartFile;
use simstore_corpus::Inputs;
use simstore_io::InputFile;
use simstore_io::bytes::Section;
use simstore_io::document::path_to_name;

/// Smaller files are taken together, up to this many: a folder of pages makes few parts.
const LARGE_FILE_BYTES: u64 = 1 << 20;
const PART_FILES: usize = 4096;
/// Larger ones are divided into sections of about this size, if nothing else is asked for.
const SECTION_BYTES: u64 = 256 << 20;
/// Bytes at the start and at the end of a file that identify it.
const CHECKED_BYTES: u64 = 1 << 16;

/// The files of one part.
pub(crate) struct Unit {
    pub(crate) files: Vec<InputFile>,
    /// The section of the file, if not all of it is read.
    pub(crate) section: Option<Section>,
}

/// All units, in order. A file that cannot be listed is an error of its own.
pub(crate) fn units(
    inputs: &Inputs,
    files: impl Iterator<Item = Result<InputFile>>,
    section_bytes: Option<u64>,
) -> Vec<Result<Unit>> {
    let is_small = |file: &InputFile| file.bytes.is_some_and(|bytes| bytes < LARGE_FILE_BYTES);
    let mut units: Vec<Result<Unit>> = Vec::new();
    for file in files {
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                units.push(Err(error));
                continue;
            }
        };
        let sections = inputs.sections(&file, section_bytes.unwrap_or(SECTION_BYTES));
        if sections.len() > 1 {
            let unit = |section| Ok(Unit { files: vec![file.clone()], section: Some(section) });
            units.extend(sections.into_iter().map(unit));
            continue;
        }
        match units.last_mut() {
            Some(Ok(Unit { files, section: None }))
                if is_small(&file) && is_small(&files[0]) && files.len() < PART_FILES =>
            {
                files.push(file);
            }
            _ => units.push(Ok(Unit { files: vec![file], section: None })),
        }
    }
    units
}

impl Unit {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// The first file, for messages.
    pub(crate) fn place(&self) -> std::path::Display<'_> {
        self.files[0].path.display()
    }

    /// When the files were modified last, in nanoseconds since 1970, where that is known.
    pub(crate) fn modified(&self) -> Result<Vec<Option<u64>>> {
        let modified = |file: &InputFile| {
            let metadata = file.path.metadata().map_err(Error::io(&file.path, "look at"))?;
            let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            Ok(since.and_then(|since| u64::try_from(since.as_nanos()).ok()))
        };
        self.files.iter().map(modified).collect()
    }

    /// The identity of the files in the header.
    pub(crate) fn part_files(&self) -> Result<Vec<PartFile>> {
        let file = |file: &InputFile| {
            Ok(PartFile {
                path: path_to_name(&file.path).replace(std::path::MAIN_SEPARATOR_STR, "/"),
                bytes: file.bytes.unwrap_or_default(),
                check: check(&file.path)?,
            })
        };
        self.files.iter().map(file).collect()
    }

    /// The inputs to read, once. The section says afterwards how far it has been read.
    pub(crate) fn inputs(&self, inputs: &Inputs) -> (Inputs, Option<Section>) {
        let section = self.section.as_ref().map(Section::unread);
        match &section {
            Some(unread) => (inputs.with_section(unread), section),
            None => (inputs.with_paths(self.paths()), None),
        }
    }
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
