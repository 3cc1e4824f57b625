//! The sketches of all documents of a corpus.

use std::sync::Arc;

use simstore::Result;
use simstore_text::{SKETCHES, Sketched};

use super::sketch_file::{SketchFile, SketchRow, SketchWriter};
use crate::spill::Temporary;

/// What joining them takes besides, in bytes a document: the sets, a sketch in order, and the space of a join.
const JOINED: u64 = 48;

/// Sketches and sizes, in order of input: in memory 76 bytes for each document.
#[derive(Debug, Default)]
pub(super) struct Sketches {
    words: Vec<[u64; SKETCHES]>,
    /// Number of features; 0 for a document without text.
    features: Vec<u32>,
    sums: Vec<u64>,
    /// Where those are of the documents before.
    disk: Disk,
}

/// Which documents are on disk.
#[derive(Debug, Default)]
enum Disk {
    #[default]
    None,
    /// Those before the ones in memory.
    First(SketchWriter),
    All(SketchFile),
}

impl Sketches {
    /// Adds those of the next document.
    pub(super) fn push(&mut self, sketched: Option<&Sketched>) {
        let none = Sketched { sketches: [0; SKETCHES], features: 0, sum: 0 };
        let &Sketched { sketches, features, sum } = sketched.unwrap_or(&none);
        self.words.push(sketches);
        self.features.push(features);
        self.sums.push(sum);
    }

    /// Adds those of the next document as they are on disk.
    pub(super) fn push_row(&mut self, row: &SketchRow) {
        self.words.push(row.words);
        self.features.push(row.features);
        self.sums.push(row.sum);
    }

    /// Puts all that are in memory on disk.
    pub(super) fn spill(&mut self, temporary: &Arc<Temporary>) -> Result<()> {
        let mut writer = match std::mem::replace(&mut self.disk, Disk::None) {
            Disk::First(writer) => writer,
            _ => SketchWriter::new(temporary)?,
        };
        writer.push(self)?;
        *self = Sketches { disk: Disk::First(writer), ..Sketches::default() };
        Ok(())
    }

    /// To be called when all have been added.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Disk::First(mut writer) = std::mem::replace(&mut self.disk, Disk::None) {
            writer.push(self)?;
            *self = Sketches { disk: Disk::All(writer.finish()?), ..Sketches::default() };
        }
        Ok(())
    }

    /// All of them, if they are on disk.
    pub(super) fn on_disk(&self) -> Option<&SketchFile> {
        match &self.disk {
            Disk::All(file) => Some(file),
            Disk::None | Disk::First(_) => None,
        }
    }

    /// The memory that they take, and that joining them does.
    pub(super) fn memory(&self) -> u64 {
        self.features.len() as u64 * (8 * SKETCHES as u64 + 12 + JOINED)
    }

    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.features.len()
    }

    /// The sketches of a document.
    #[inline]
    pub(super) fn of(&self, document: usize) -> &[u64; SKETCHES] {
        &self.words[document]
    }

    /// Number of features of a document; 0 without text.
    #[inline]
    pub(super) fn features(&self, document: usize) -> u32 {
        self.features[document]
    }

    /// What tells a set of features from others.
    pub(super) fn sum(&self, document: usize) -> u64 {
        self.sums[document]
    }

    /// All that is known of a document that has features.
    pub(super) fn sketched(&self, document: usize) -> Sketched {
        let (sketches, features) = (self.words[document], self.features[document]);
        Sketched { sketches, features, sum: self.sums[document] }
    }

    /// Whether two documents have the same set of features: the same number of them, the same sum, and the same sketches.
    pub(super) fn are_equal(&self, a: usize, b: usize) -> bool {
        self.sums[a] == self.sums[b] && self.features[a] == self.features[b] && self.of(a) == self.of(b)
    }
}
