//! Stage files: results of pipeline stages, saved so that an interrupted run can be resumed.
//!
//! The format is specified in `format-spec/stage.md`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use simstore::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::checksummed_file::{
    ChecksummedReader, ChecksummedWriter, path_from_header, to_json_line,
};
use crate::workspace::Workspace;
use simstore_corpus::spill::{FixedSize, Rows};
use simstore_corpus::{Diagnostic, Observer};
use simstore_io::output::UnfinishedOutputs;

const VERSION: u32 = 1;
/// Greatest encoded size of a row of any table, in bytes.
const MAX_ROW_BYTES: usize = 96;

/// Folder of the stage files of a resumable run.
#[derive(Clone, Copy)]
pub(crate) struct StageCheckpoints<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) unfinished: &'a UnfinishedOutputs,
    pub(crate) observer: &'a dyn Observer,
}

/// Header of a stage file. The file name is a hash of the header, so results with different headers have
/// different files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StageHeader {
    /// Format version of the stage file.
    stage: u32,
    /// Name of the stage on disk: `near`, `candidates` or `representatives`.
    name: String,
    /// Text with the criterion and all options that affect the result of the stage.
    parameters: String,
    /// Hash of the input of the stage, in hexadecimal.
    #[serde(rename = "check")]
    input_hash: String,
}

/// Hashes rows: updates `hash` with their encoded bytes.
pub(crate) fn hash_rows<R: FixedSize>(hash: &mut Xxh3, rows: impl Iterator<Item = Result<R>>) -> Result<()> {
    let mut bytes = [0; MAX_ROW_BYTES];
    for row in rows {
        row?.write(&mut bytes);
        hash.update(&bytes[..R::BYTES]);
    }
    Ok(())
}

impl StageHeader {
    pub(crate) fn new(name: &str, parameters: String, input_hash: u64) -> StageHeader {
        let input_hash = format!("{input_hash:016x}");
        StageHeader { stage: VERSION, name: name.to_owned(), parameters, input_hash }
    }
}

impl StageCheckpoints<'_> {
    /// Returns the result of a stage. If an earlier run has saved the result in a stage file, `read` reads the
    /// tables of this file. If there is no such file, `make` computes the result, and `write` writes its tables to a
    /// new file. If the file is damaged, warns and computes the result again.
    pub(crate) fn load_or_compute<T>(
        &self,
        stage: &StageHeader,
        read: impl FnOnce(&mut StageReader) -> Result<T, StageReadError>,
        make: impl FnOnce() -> Result<T>,
        write: impl FnOnce(&T, &mut StageWriter) -> Result<()>,
    ) -> Result<T> {
        let path = path_from_header(self.folder, stage, "stage.zst")?;
        if path.try_exists().map_err(Error::io(&path, "look for"))? {
            let found = StageReader::open(&path, stage).and_then(|mut reader| {
                let found = read(&mut reader)?;
                match reader.lines.is_at_end() {
                    true => Ok(found),
                    false => Err(StageReadError::Invalid("there is more than was expected".to_owned())),
                }
            });
            match found {
                Ok(found) => {
                    let remark = format!("{}: reusing {} of an earlier run", path.display(), stage.name);
                    self.observer.diagnostic(&Diagnostic::Info(&remark));
                    return Ok(found);
                }
                Err(StageReadError::Invalid(reason)) => {
                    let warning = format!("{}: {reason}; computing it again", path.display());
                    self.observer.diagnostic(&Diagnostic::Warning(&warning));
                }
                Err(StageReadError::Failed(error)) => return Err(error),
            }
        }
        let made = make()?;
        let mut writer = StageWriter(ChecksummedWriter::create(&path, self.unfinished)?);
        writer.0.push_line(&to_json_line(stage)?)?;
        write(&made, &mut writer)?;
        writer.0.finish()?;
        Ok(made)
    }
}

/// Reason why a stage file cannot be used.
pub(crate) enum StageReadError {
    /// The file is damaged, or its content is impossible, so the stage has to be computed again.
    Invalid(String),
    /// Error that is not due to the content of the file, for example that rows could not be written to a temporary
    /// file. It ends the run.
    Failed(Error),
}

impl From<Error> for StageReadError {
    fn from(error: Error) -> Self {
        StageReadError::Failed(error)
    }
}

/// Writes the tables of a stage file.
pub(crate) struct StageWriter(ChecksummedWriter);

impl StageWriter {
    /// Writes a table: the number of rows, then the rows.
    pub(crate) fn rows<R: FixedSize>(
        &mut self,
        count: usize,
        rows: impl Iterator<Item = Result<R>>,
    ) -> Result<()> {
        self.0.push_bytes(&(count as u64).to_le_bytes())?;
        let mut bytes = [0; MAX_ROW_BYTES];
        for row in rows {
            row?.write(&mut bytes);
            self.0.push_bytes(&bytes[..R::BYTES])?;
        }
        Ok(())
    }

    /// Writes `rows` as a table.
    pub(crate) fn write_rows<R: FixedSize>(&mut self, rows: &Rows<R>) -> Result<()> {
        self.rows(rows.len(), rows.iter()?)
    }
}

/// Reads the tables of a stage file.
pub(crate) struct StageReader {
    lines: ChecksummedReader,
}

impl StageReader {
    fn open(path: &Path, expected: &StageHeader) -> Result<StageReader, StageReadError> {
        let mut lines = ChecksummedReader::open(path).map_err(StageReadError::Invalid)?;
        let line = lines.next_line().map_err(StageReadError::Invalid)?;
        match serde_json::from_slice::<StageHeader>(line) {
            Ok(stage) if stage == *expected => Ok(StageReader { lines }),
            Ok(_) => Err(StageReadError::Invalid("its header does not match its name".to_owned())),
            Err(error) => Err(StageReadError::Invalid(format!("line 1: invalid stage header: {error}"))),
        }
    }

    /// Reads the next table of the file. Returns an error if `is_sound` rejects a row, or if the rows are not strictly
    /// ascending.
    pub(crate) fn rows<R: FixedSize>(
        &mut self,
        workspace: &Workspace,
        is_sound: impl Fn(&R) -> bool,
    ) -> Result<Rows<R>, StageReadError> {
        let mut rows = workspace.rows();
        let mut last: Option<R> = None;
        self.visit(|row: R| {
            if !is_sound(&row) || last.replace(row).is_some_and(|last| last >= row) {
                return Err(StageReadError::Invalid("rows that cannot be".to_owned()));
            }
            Ok(rows.push(row)?)
        })?;
        Ok(rows.finish()?)
    }

    /// Reads the next table of the file, a table of numbers.
    pub(crate) fn numbers(&mut self) -> Result<Vec<u64>, StageReadError> {
        let mut numbers = Vec::new();
        self.visit(|number| {
            numbers.push(number);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Reads the next table of the file, and calls `visitor` for each of its rows.
    pub(crate) fn visit<R: FixedSize>(
        &mut self,
        mut visitor: impl FnMut(R) -> Result<(), StageReadError>,
    ) -> Result<(), StageReadError> {
        let mut bytes = [0; MAX_ROW_BYTES];
        let mut read = |bytes: &mut [u8]| self.lines.fill(bytes).map_err(StageReadError::Invalid);
        read(&mut bytes[..8])?;
        for _ in 0..u64::read(&bytes) {
            read(&mut bytes[..R::BYTES])?;
            visitor(R::read(&bytes))?;
        }
        Ok(())
    }
}
