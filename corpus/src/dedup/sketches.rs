//! The sketches of all documents of a corpus.

use std::sync::Arc;

use simstore::Result;
use simstore_text::Sketched;

use super::similar::choice::SKETCHES;
use super::sketch_file::{SketchFile, SketchRow, SketchWriter};
use crate::spill::Temporary;

/// What joining them takes besides, in bytes a document: the sets, a sketch in order, and the space of a join.
const JOINED: u64 = 48;

/// Sketches, sizes and small sets, in order of input: in memory `8 * per + 12` bytes for each document, and 8 for each feature of
/// those that have few.
#[derive(Debug)]
pub(super) struct Sketches {
    /// Sketches of a document: those that are joined, and further ones that stores are asked for.
    per: usize,
    words: Vec<u64>,
    /// Number of features; 0 for a document without text.
    features: Vec<u32>,
    sums: Vec<u64>,
    /// The documents whose features are kept, ascending, and where these end in `members`.
    small: Vec<(usize, usize)>,
    members: Vec<u64>,
    /// Where those are of the documents before.
    disk: Disk,
}

/// Which documents are on disk.
#[derive(Debug)]
enum Disk {
    None,
    /// Those before the ones in memory.
    First(SketchWriter),
    All(SketchFile),
}

impl Sketches {
    pub(super) fn new(per: usize) -> Self {
        Sketches {
            per,
            disk: Disk::None,
            words: Vec::new(),
            features: Vec::new(),
            sums: Vec::new(),
            small: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Adds those of the next document.
    pub(super) fn push(&mut self, sketched: Option<&Sketched>) {
        let Some(sketched) = sketched else {
            self.words.resize(self.words.len() + self.per, 0);
            self.features.push(0);
            self.sums.push(0);
            return;
        };
        self.words.extend_from_slice(&sketched.sketches);
        if let Some(members) = &sketched.members {
            self.members.extend_from_slice(members);
            self.small.push((self.features.len(), self.members.len()));
        }
        self.features.push(sketched.features);
        self.sums.push(sketched.sum);
    }

    /// Adds those of the next document as they are on disk, and its features if they are few.
    pub(super) fn push_row(&mut self, row: &SketchRow, further: &[u64], members: Option<&[u64]>) {
        self.words.extend_from_slice(&row.words);
        self.words.extend_from_slice(further);
        if let Some(members) = members {
            self.members.extend_from_slice(members);
            self.small.push((self.features.len(), self.members.len()));
        }
        self.features.push(row.features);
        self.sums.push(row.sum);
    }

    /// Puts all that are in memory on disk.
    pub(super) fn spill(&mut self, temporary: &Arc<Temporary>) -> Result<()> {
        let mut writer = match std::mem::replace(&mut self.disk, Disk::None) {
            Disk::First(writer) => writer,
            _ => SketchWriter::new(temporary, self.per)?,
        };
        writer.push(self)?;
        *self = Sketches { disk: Disk::First(writer), ..Sketches::new(self.per) };
        Ok(())
    }

    /// To be called when all have been added.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Disk::First(mut writer) = std::mem::replace(&mut self.disk, Disk::None) {
            writer.push(self)?;
            *self = Sketches { disk: Disk::All(writer.finish()?), ..Sketches::new(self.per) };
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
        let documents = self.features.len() as u64 * (8 * self.per as u64 + 12 + JOINED);
        documents + self.small.len() as u64 * 16 + self.members.len() as u64 * 8
    }

    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.features.len()
    }

    /// The sketches of a document by which documents are compared with one another.
    #[inline]
    pub(super) fn of(&self, document: usize) -> &[u64] {
        &self.words[document * self.per..][..self.per.min(SKETCHES)]
    }

    /// All sketches of a document.
    pub(super) fn all(&self, document: usize) -> &[u64] {
        &self.words[document * self.per..][..self.per]
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

    /// The features of a document, ascending, if they are few.
    pub(super) fn members(&self, document: usize) -> Option<&[u64]> {
        let at = self.small.binary_search_by_key(&document, |&(document, _)| document).ok()?;
        let start = if at == 0 { 0 } else { self.small[at - 1].1 };
        Some(&self.members[start..self.small[at].1])
    }

    /// Whether two documents have the same set of features: the same number of them, the same sum, and the same sketches.
    pub(super) fn are_equal(&self, a: usize, b: usize) -> bool {
        self.sums[a] == self.sums[b] && self.features[a] == self.features[b] && self.of(a) == self.of(b)
    }
}
