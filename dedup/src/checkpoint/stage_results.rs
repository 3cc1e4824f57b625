//! Kept results of stages, so that an interrupted run can be resumed.
//!
//! The format is specified in `format-spec/stage.md`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use simstore::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::checksummed_file::{SealedLines, SealedWriter, json, path_of};
use crate::workspace::Workspace;
use simstore_corpus::spill::{FixedSize, Rows};
use simstore_corpus::{Diagnostic, Observer};
use simstore_io::output::UnfinishedOutputs;

const VERSION: u32 = 3;
/// Encoded size of the longest row, in bytes.
const LONGEST: usize = 96;

/// The folder where a resumable run keeps its stages.
#[derive(Clone, Copy)]
pub(crate) struct Keeping<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) unfinished: &'a UnfinishedOutputs,
    pub(crate) observer: &'a dyn Observer,
}

/// Header of a kept stage. The name of the file is a hash of it, so stages with different headers are different files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StageHeader {
    /// Version of the format.
    stage: u32,
    /// Name of the stage: `near`, `candidates` or `leaders`.
    name: String,
    /// The question and the options that affect the stage, as a text.
    question: String,
    /// Checksum of the input of the stage, in hexadecimal.
    check: String,
}

/// Adds rows to a checksum.
pub(crate) fn check_of<R: FixedSize>(hash: &mut Xxh3, rows: impl Iterator<Item = Result<R>>) -> Result<()> {
    let mut bytes = [0; LONGEST];
    for row in rows {
        row?.write(&mut bytes);
        hash.update(&bytes[..R::BYTES]);
    }
    Ok(())
}

impl StageHeader {
    pub(crate) fn new(name: &str, question: String, check: u64) -> StageHeader {
        StageHeader { stage: VERSION, name: name.to_owned(), question, check: format!("{check:016x}") }
    }
}

impl Keeping<'_> {
    /// Returns the result of a stage that an earlier run has kept. If there is none, makes it and keeps it: `write` writes its
    /// tables. If its file is unsound, warns and makes it again.
    pub(crate) fn kept<T>(
        &self,
        stage: &StageHeader,
        read: impl FnOnce(&mut KeptReader) -> Result<T, Unsound>,
        make: impl FnOnce() -> Result<T>,
        write: impl FnOnce(&T, &mut KeptWriter) -> Result<()>,
    ) -> Result<T> {
        let path = path_of(self.folder, stage, "stage.zst")?;
        if path.try_exists().map_err(Error::io(&path, "look for"))? {
            let found = KeptReader::open(&path, stage).and_then(|mut reader| {
                let found = read(&mut reader)?;
                match reader.lines.is_at_end() {
                    true => Ok(found),
                    false => Err(Unsound::Reason("there is more than was expected".to_owned())),
                }
            });
            match found {
                Ok(found) => {
                    let remark = format!("{}: reusing {} of an earlier run", path.display(), stage.name);
                    self.observer.diagnostic(&Diagnostic::Info(&remark));
                    return Ok(found);
                }
                Err(Unsound::Reason(reason)) => {
                    let warning = format!("{}: {reason}; computing it again", path.display());
                    self.observer.diagnostic(&Diagnostic::Warning(&warning));
                }
                Err(Unsound::Failed(error)) => return Err(error),
            }
        }
        let made = make()?;
        let mut writer = KeptWriter(SealedWriter::create(&path, self.unfinished)?);
        writer.0.push(&json(stage)?)?;
        write(&made, &mut writer)?;
        writer.0.finish()?;
        Ok(made)
    }
}

/// Why the file of a kept stage is not used.
pub(crate) enum Unsound {
    /// The file is damaged, or its content is impossible.
    Reason(String),
    /// An error that is no fault of the file: for example, its rows could not be written to a temporary file.
    Failed(Error),
}

impl From<Error> for Unsound {
    fn from(error: Error) -> Self {
        Unsound::Failed(error)
    }
}

/// Writes the tables of a stage.
pub(crate) struct KeptWriter(SealedWriter);

impl KeptWriter {
    /// Writes a table: the number of rows, then the rows.
    pub(crate) fn rows<R: FixedSize>(
        &mut self,
        count: usize,
        rows: impl Iterator<Item = Result<R>>,
    ) -> Result<()> {
        self.0.push_bytes(&(count as u64).to_le_bytes())?;
        let mut bytes = [0; LONGEST];
        for row in rows {
            row?.write(&mut bytes);
            self.0.push_bytes(&bytes[..R::BYTES])?;
        }
        Ok(())
    }

    /// Writes all of `rows` as a table.
    pub(crate) fn all<R: FixedSize>(&mut self, rows: &Rows<R>) -> Result<()> {
        self.rows(rows.len(), rows.iter()?)
    }
}

/// Reads the tables of a stage.
pub(crate) struct KeptReader {
    lines: SealedLines,
}

impl KeptReader {
    fn open(path: &Path, expected: &StageHeader) -> Result<KeptReader, Unsound> {
        let mut lines = SealedLines::open(path).map_err(Unsound::Reason)?;
        let line = lines.next().map_err(Unsound::Reason)?;
        match serde_json::from_slice::<StageHeader>(line) {
            Ok(stage) if stage == *expected => Ok(KeptReader { lines }),
            Ok(_) => Err(Unsound::Reason("its header does not match its name".to_owned())),
            Err(error) => Err(Unsound::Reason(format!("line 1: invalid stage header: {error}"))),
        }
    }

    /// Reads a table. Rejects rows that fail `is_sound`, and rows that are not strictly ascending.
    pub(crate) fn rows<R: FixedSize>(
        &mut self,
        workspace: &Workspace,
        is_sound: impl Fn(&R) -> bool,
    ) -> Result<Rows<R>, Unsound> {
        let mut rows = workspace.rows();
        let mut last: Option<R> = None;
        self.visit(|row: R| {
            if !is_sound(&row) || last.replace(row).is_some_and(|last| last >= row) {
                return Err(Unsound::Reason("rows that cannot be".to_owned()));
            }
            Ok(rows.push(row)?)
        })?;
        Ok(rows.finish()?)
    }

    /// Reads a table of numbers.
    pub(crate) fn numbers(&mut self) -> Result<Vec<u64>, Unsound> {
        let mut numbers = Vec::new();
        self.visit(|number| {
            numbers.push(number);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Visits the rows of a table.
    pub(crate) fn visit<R: FixedSize>(
        &mut self,
        mut visitor: impl FnMut(R) -> Result<(), Unsound>,
    ) -> Result<(), Unsound> {
        let mut bytes = [0; LONGEST];
        let mut read = |bytes: &mut [u8]| self.lines.fill(bytes).map_err(Unsound::Reason);
        read(&mut bytes[..8])?;
        for _ in 0..u64::read(&bytes) {
            read(&mut bytes[..R::BYTES])?;
            visitor(R::read(&bytes))?;
        }
        Ok(())
    }
}
