//! What stages have found, kept for a run that carries on.
//!
//! The format is specified in `format-spec/stage.md`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use simstore::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use super::room::Room;
use super::sealed::{SealedLines, SealedWriter, json, path_of};
use crate::output::Unfinished;
use crate::spill::{Fixed, Rows};
use crate::{Notice, Watch};

const VERSION: u32 = 2;
/// Bytes of the longest row.
const LONGEST: usize = 96;

/// The folder of a run that can be carried on.
#[derive(Clone, Copy)]
pub(crate) struct Keeping<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) unfinished: &'a Unfinished,
    pub(crate) watch: &'a dyn Watch,
}

/// Which stage it is, of what: another one has another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stage {
    /// Version of the format.
    stage: u32,
    /// What the stage is called.
    name: String,
    /// How it was asked for.
    question: String,
    /// A checksum of what the stage is made of.
    check: String,
}

/// A checksum of rows.
pub(crate) fn check_of<R: Fixed>(hash: &mut Xxh3, rows: impl Iterator<Item = Result<R>>) -> Result<()> {
    let mut bytes = [0; LONGEST];
    for row in rows {
        row?.write(&mut bytes);
        hash.update(&bytes[..R::BYTES]);
    }
    Ok(())
}

impl Stage {
    pub(crate) fn new(name: &str, question: String, check: u64) -> Stage {
        Stage { stage: VERSION, name: name.to_owned(), question, check: format!("{check:016x}") }
    }
}

impl Keeping<'_> {
    fn path(&self, stage: &Stage) -> Result<PathBuf> {
        path_of(self.folder, stage, "stage.zst")
    }

    /// Keeps what a stage has found, by what writes it.
    pub(crate) fn write(
        &self,
        stage: &Stage,
        write: impl FnOnce(&mut KeptWriter) -> Result<()>,
    ) -> Result<()> {
        let mut lines = SealedWriter::create(&self.path(stage)?, self.unfinished)?;
        lines.push(&json(stage)?)?;
        let mut writer = KeptWriter(lines);
        write(&mut writer)?;
        writer.0.finish()
    }

    /// What a stage has found, if it is there and sound: it is told if it is not.
    pub(crate) fn read<T>(
        &self,
        stage: &Stage,
        read: impl FnOnce(&mut KeptReader) -> Result<T, Unsound>,
    ) -> Result<Option<T>> {
        let path = self.path(stage)?;
        if !path.try_exists().map_err(Error::io(&path, "look for"))? {
            return Ok(None);
        }
        let opened = KeptReader::open(&path, stage).and_then(|mut reader| {
            let found = read(&mut reader)?;
            match reader.lines.is_at_end() {
                true => Ok(found),
                false => Err(Unsound::Reason("there is more than was expected".to_owned())),
            }
        });
        match opened {
            Ok(found) => {
                let remark = format!("{}: {} taken from an earlier run", path.display(), stage.name);
                self.watch.notice(&Notice::Remark(&remark));
                Ok(Some(found))
            }
            Err(Unsound::Reason(reason)) => {
                let warning = format!("{}: {reason}; it is made again", path.display());
                self.watch.notice(&Notice::Warning(&warning));
                Ok(None)
            }
            Err(Unsound::Failed(error)) => Err(error),
        }
    }
}

/// Why nothing is taken of a file.
pub(crate) enum Unsound {
    /// It is damaged, or holds what cannot be.
    Reason(String),
    /// It, or what was read of it, could not be put on disk.
    Failed(Error),
}

impl From<Error> for Unsound {
    fn from(error: Error) -> Self {
        Unsound::Failed(error)
    }
}

/// Takes rows.
pub(crate) struct KeptWriter(SealedWriter);

impl KeptWriter {
    /// How many rows there are, and these.
    pub(crate) fn rows<R: Fixed>(
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

    /// All of some rows.
    pub(crate) fn all<R: Fixed>(&mut self, rows: &Rows<R>) -> Result<()> {
        self.rows(rows.len(), rows.iter()?)
    }
}

/// Gives rows back.
pub(crate) struct KeptReader {
    lines: SealedLines,
}

impl KeptReader {
    fn open(path: &Path, expected: &Stage) -> Result<KeptReader, Unsound> {
        let mut lines = SealedLines::open(path).map_err(Unsound::Reason)?;
        let line = lines.next().map_err(Unsound::Reason)?;
        match serde_json::from_slice::<Stage>(line) {
            Ok(stage) if stage == *expected => Ok(KeptReader { lines }),
            Ok(_) => Err(Unsound::Reason("not the stage that its name tells".to_owned())),
            Err(error) => Err(Unsound::Reason(format!("line 1: no header of a stage: {error}"))),
        }
    }

    /// Rows that are as they have to be: each one by itself, and ascending, none twice.
    pub(crate) fn rows<R: Fixed>(
        &mut self,
        room: &Room,
        is_sound: impl Fn(&R) -> bool,
    ) -> Result<Rows<R>, Unsound> {
        let mut rows = room.rows();
        let mut last: Option<R> = None;
        self.visit(|row: R| {
            if !is_sound(&row) || last.replace(row).is_some_and(|last| last >= row) {
                return Err(Unsound::Reason("rows that cannot be".to_owned()));
            }
            Ok(rows.push(row)?)
        })?;
        Ok(rows.finish()?)
    }

    /// Visits rows.
    pub(crate) fn visit<R: Fixed>(
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
