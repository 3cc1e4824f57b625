//! Division of the input files into parts. The input of a part is a file, a section of a large file, or
//! several small files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use simstore::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::parts::header::PartInputFile;
use simstore_corpus::Inputs;
use simstore_io::InputFile;
use simstore_io::bytes::Section;
use simstore_io::document::path_to_name;

/// Size in bytes below which an input file is small. Several small files share a part, so that a folder of many
/// small files needs few part files.
const MIN_LARGE_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of small files in a part.
const MAX_PART_FILES: usize = 4096;
/// Default size of a section in bytes. Larger files are divided into sections of about this size.
const DEFAULT_SECTION_BYTES: u64 = 256 << 20;
/// Number of bytes at the start and at the end of a file that its checksum covers.
const CHECKSUM_BYTES: u64 = 1 << 16;

/// Input files of one part.
pub(crate) struct PartInput {
    pub(crate) files: Vec<InputFile>,
    /// Section of the only input file; `None` if the part has whole files.
    pub(crate) section: Option<Section>,
}

/// Divides input files into parts, in input order. An item is an error if a file could not be listed.
pub(crate) fn part_inputs(
    inputs: &Inputs,
    files: impl Iterator<Item = Result<InputFile>>,
    section_bytes: Option<u64>,
) -> Vec<Result<PartInput>> {
    let is_small = |file: &InputFile| file.bytes.is_some_and(|bytes| bytes < MIN_LARGE_FILE_BYTES);
    let mut part_inputs: Vec<Result<PartInput>> = Vec::new();
    for file in files {
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                part_inputs.push(Err(error));
                continue;
            }
        };
        let sections = inputs.sections(&file, section_bytes.unwrap_or(DEFAULT_SECTION_BYTES));
        if sections.len() > 1 {
            let unit = |section| Ok(PartInput { files: vec![file.clone()], section: Some(section) });
            part_inputs.extend(sections.into_iter().map(unit));
            continue;
        }
        match part_inputs.last_mut() {
            Some(Ok(PartInput { files, section: None }))
                if is_small(&file) && is_small(&files[0]) && files.len() < MAX_PART_FILES =>
            {
                files.push(file);
            }
            _ => part_inputs.push(Ok(PartInput { files: vec![file], section: None })),
        }
    }
    part_inputs
}

impl PartInput {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Path of the first file of the part, for messages.
    pub(crate) fn display_path(&self) -> std::path::Display<'_> {
        self.files[0].path.display()
    }

    /// Modification time of each file, in nanoseconds since 1970; `None` if the system does not report it.
    pub(crate) fn modified(&self) -> Result<Vec<Option<u64>>> {
        let modified = |file: &InputFile| {
            let metadata = file.path.metadata().map_err(Error::io(&file.path, "look at"))?;
            let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            Ok(since.and_then(|since| u64::try_from(since.as_nanos()).ok()))
        };
        self.files.iter().map(modified).collect()
    }

    /// Returns the paths, sizes and checksums of the files, for the header of the part.
    pub(crate) fn part_files(&self) -> Result<Vec<PartInputFile>> {
        let file = |file: &InputFile| {
            Ok(PartInputFile {
                path: path_to_name(&file.path).replace(std::path::MAIN_SEPARATOR_STR, "/"),
                bytes: file.bytes.unwrap_or_default(),
                check: ends_checksum(&file.path)?,
            })
        };
        self.files.iter().map(file).collect()
    }

    /// Restricts `inputs` to the files or the section of this part. The returned inputs can be read only once.
    /// After they were read, the returned section knows its number of lines, and whether the file ended there.
    pub(crate) fn inputs(&self, inputs: &Inputs) -> (Inputs, Option<Section>) {
        let section = self.section.as_ref().map(Section::unread);
        match &section {
            Some(unread) => (inputs.with_section(unread), section),
            None => (inputs.with_paths(self.paths()), None),
        }
    }
}

/// Returns the hash of the first and the last [`CHECKSUM_BYTES`] of a file, in hexadecimal.
fn ends_checksum(path: &Path) -> Result<String> {
    let mut hash = Xxh3::new();
    let mut update = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut buffer = Vec::new();
        for start in [0, length.saturating_sub(CHECKSUM_BYTES)] {
            buffer.clear();
            file.seek(SeekFrom::Start(start))?;
            (&mut file).take(CHECKSUM_BYTES).read_to_end(&mut buffer)?;
            hash.update(&buffer);
        }
        Ok(())
    };
    update().map_err(|error: std::io::Error| {
        Error::Refused(format!("{}: cannot read: {error}", path.display()))
    })?;
    Ok(format!("{:016x}", hash.digest()))
}
