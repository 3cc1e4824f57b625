//! Copies the files of an open segment.

use std::path::Path;

use super::chunked_file::ChunkedFile;
use super::{Segment, tombstones};
use crate::error::{Error, Result};
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::fs::NewFile;

/// The content of one file of an open segment.
enum FileContent<'a, F> {
    Bytes(&'a Bytes),
    /// Pairs of the tombstone file. An open segment has them instead of the file's bytes.
    Tombstones(&'a [(F, u64)]),
}

impl<F: Fingerprint> Segment<F> {
    /// Writes a copy of one of the segment's files to `copy`, and commits the copy. `index` is the position of the file in
    /// [`SegmentEntry::file_names`](crate::manifest::SegmentEntry::file_names). The segment has the content of its files
    /// open, so they may have been removed. `path` is the path of the copy.
    pub(crate) fn copy_file(&self, index: usize, mut copy: NewFile, path: &Path) -> Result<()> {
        fn chunked<F>(file: Option<&ChunkedFile>) -> Option<FileContent<'_, F>> {
            file.map(|file| FileContent::Bytes(file.file_bytes()))
        }
        let side_files = [
            chunked(self.ids.as_ref().map(|ids| &ids.chunks)),
            chunked(self.names.as_ref().map(|names| &names.chunks)),
            self.tombstones.as_ref().map(|tombstones| FileContent::Tombstones(tombstones.pairs())),
            chunked(self.metadata.as_ref().map(|metadata| &metadata.chunks)),
            chunked(self.notes.as_ref().map(|notes| &notes.chunks)),
        ];
        let tables = self.tables.iter().map(|table| FileContent::Bytes(table.file_bytes()));
        match tables.chain(side_files.into_iter().flatten()).nth(index) {
            Some(FileContent::Bytes(bytes)) => bytes.copy_to(&mut copy).map_err(Error::io(path, "write"))?,
            Some(FileContent::Tombstones(pairs)) => tombstones::write(&mut copy, path, pairs)?,
            None => return Err(Error::Bug(format!("segment {} has no file {index}", self.number()))),
        }
        copy.commit()
    }
}
