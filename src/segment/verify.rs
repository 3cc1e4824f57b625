//! Full verification of a segment: reads all files and compares them with one another.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::Path;

use super::id_values::{IdValue, IdValueFile, NameFile, NoteFile};
use super::ids::IdFile;
use super::metadata::MetadataFile;
use super::tombstones::Tombstones;
use super::{Segment, SegmentFileOpener};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::SegmentEntry;
use crate::progress::ProgressCounter;
use crate::table::Table;

/// An order-independent checksum of a set of fingerprints: equal for tables with the same fingerprints in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FingerprintSum {
    count: u64,
    sum: u128,
}

impl FingerprintSum {
    fn add<F: Fingerprint>(&mut self, fingerprint: F) {
        let mix = |value: u64| {
            // The finalizer of MurmurHash3: every bit of the input changes every bit of the output.
            let value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
            let value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            value ^ value >> 33
        };
        let (high, low) = (fingerprint.high_u64(), fingerprint.low_u64());
        let first = mix(high ^ mix(low));
        let second = mix(first.wrapping_add(low));
        self.count += 1;
        self.sum = self.sum.wrapping_add(u128::from(first) << 64 | u128::from(second));
    }
}

impl<F: Fingerprint> Segment<F> {
    /// Number of fingerprints that [`Segment::verify`] reads: the fingerprints of the segment, once for each table and
    /// once for the id file. It is the total for the display of progress.
    pub(crate) fn verified_fingerprints(&self) -> u64 {
        self.entry.fingerprints * (self.tables.len() + usize::from(self.ids.is_some())) as u64
    }

    /// Reads all files and calls `damaged` with each error. Returns the largest id that could be read.
    pub(crate) fn verify(
        &self,
        progress: &ProgressCounter<'_>,
        mut damaged: impl FnMut(Error),
    ) -> Result<Option<u64>> {
        let mut first = None;
        for (number, table) in self.tables.iter().enumerate() {
            let (sum, is_sound) = verify_table(table, progress, &mut damaged)?;
            if !is_sound {
                continue;
            }
            if number == 0 {
                first = Some(sum);
            } else if first.is_some_and(|first| first != sum) {
                damaged(self.first_difference(table, progress)?);
            }
        }
        let largest = self.verify_ids(progress, &mut damaged)?;
        let named = "the number of names and the manifest";
        verify_by_id(self.names.as_ref(), (self.entry.names, named), progress, &mut damaged)?;
        let noted = "the number of notes and the manifest";
        verify_by_id(self.notes.as_ref(), (self.entry.notes, noted), progress, &mut damaged)?;
        if let Some(metadata) = &self.metadata {
            let mut is_sound = true;
            let count = metadata.verify(progress, |error| {
                is_sound = false;
                damaged(error);
            })?;
            if is_sound && count != self.entry.metadata {
                let what = "the number of metadata values and the manifest";
                damaged(Error::corrupt(metadata.chunks.path(), 0, Damage::Mismatch { what }));
            }
        }
        Ok(largest)
    }

    /// Returns the error for a table that does not have the same fingerprints as the first table. The error has the offset of
    /// the first block in `table` with a fingerprint that the first table does not have.
    fn first_difference(&self, table: &Table<F>, progress: &ProgressCounter<'_>) -> Result<Error> {
        let what = "the fingerprints of the first table and of this one";
        let mut decoded = Vec::new();
        for block in 0..table.blocks() {
            progress.check_cancelled()?;
            decoded.clear();
            let offset = match table.block_info(block).and_then(|info| {
                table.decode_block(block, &mut decoded)?;
                Ok(info.offset)
            }) {
                Ok(offset) => offset,
                Err(error) => return Ok(error),
            };
            for &permuted in &decoded {
                match self.locate(table.header().plan.permutation.invert(permuted)) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(Error::corrupt(table.path(), offset, Damage::Mismatch { what })),
                    Err(error) => return Ok(error),
                }
            }
        }
        Ok(Error::corrupt(table.path(), 0, Damage::Mismatch { what }))
    }

    /// Reads all ids of the id file, and returns the largest one. Returns `None` in a segment without ids.
    fn verify_ids(
        &self,
        progress: &ProgressCounter<'_>,
        damaged: &mut impl FnMut(Error),
    ) -> Result<Option<u64>> {
        let Some(ids) = &self.ids else { return Ok(None) };
        let (mut count, mut is_sound, mut largest) = (0, true, None);
        let mut entries = Vec::new();
        let (blocks, mut pending) = (self.tables[0].blocks(), 0);
        for block in 0..blocks {
            progress.add_batched(&mut pending, self.entry.fingerprints / blocks as u64)?;
            entries.clear();
            let read = self.entries(block, &mut entries);
            largest = entries.iter().filter_map(|entry| entry.id).max().max(largest);
            match read {
                Ok(()) if !ids.has_zero_padding(block)? => {
                    is_sound = false;
                    let damage = Damage::Field { name: "padding", found: 1, expected: "zero" };
                    damaged(ids.chunks.damaged(block, damage));
                }
                Ok(()) if entries.windows(2).all(|pair| pair[0] < pair[1]) => count += entries.len() as u64,
                Ok(()) => {
                    is_sound = false;
                    damaged(ids.chunks.damaged(block, Damage::Order { what: "the ids of a fingerprint" }));
                }
                // A damaged block of the table was already reported with the table.
                Err(Error::Corrupt { path, .. }) if path != ids.chunks.path() => is_sound = false,
                Err(error) => {
                    is_sound = false;
                    damaged(error);
                }
            }
        }
        if let Err(error) = ids.chunks.verify() {
            damaged(error);
        }
        if is_sound && (count != ids.len() || count != self.entry.ids) {
            let what = "the number of ids, the header and the manifest";
            damaged(Error::corrupt(ids.chunks.path(), 0, Damage::Mismatch { what }));
        }
        Ok(largest)
    }
}

impl<F: Fingerprint> Segment<F> {
    /// Opens each file on its own. Calls `damaged` with the error of each file that cannot be opened, or is not the file
    /// that the manifest names.
    pub(crate) fn check_files(
        fs: &dyn Fs,
        store: &Path,
        entry: &SegmentEntry,
        mut damaged: impl FnMut(Error),
    ) {
        let mut files = SegmentFileOpener { fs, store, entry, footers: Some(entry.footer_crcs.iter()) };
        for name in entry.file_names() {
            let opened = files.open(name, |path, bytes| match path.extension().and_then(OsStr::to_str) {
                Some("table") => Table::<F>::open(path, bytes).map(drop),
                Some("ids") => IdFile::open_alone(path, bytes).map(drop),
                Some("names") => NameFile::open(path, bytes).map(drop),
                Some("notes") => NoteFile::open(path, bytes).map(drop),
                Some("metadata") => MetadataFile::open(path, bytes).map(drop),
                _ => Tombstones::<F>::open(path, bytes).map(drop),
            });
            opened.unwrap_or_else(&mut damaged);
        }
    }
}

/// Verifies a name or note file. `expected` is the number of names or notes according to the manifest; a different
/// number is an error.
fn verify_by_id<V: IdValue>(
    values: Option<&IdValueFile<V>>,
    (expected, what): (u64, &'static str),
    progress: &ProgressCounter<'_>,
    damaged: &mut impl FnMut(Error),
) -> Result<()> {
    let Some(values) = values else { return Ok(()) };
    let mut is_sound = true;
    let count = values.verify(progress, |error| {
        is_sound = false;
        damaged(error);
    })?;
    if is_sound && count != expected {
        damaged(Error::corrupt(values.chunks.path(), 0, Damage::Mismatch { what }));
    }
    Ok(())
}

/// Verifies a table. Returns the checksum of its original fingerprints (before the permutation), and whether the table is
/// sound.
fn verify_table<F: Fingerprint>(
    table: &Table<F>,
    progress: &ProgressCounter<'_>,
    damaged: &mut impl FnMut(Error),
) -> Result<(FingerprintSum, bool)> {
    let mut sum = FingerprintSum::default();
    let mut is_sound = true;
    let (mut pending, mut cancelled) = (0, Ok(()));
    progress.check_cancelled()?;
    let read = table.verify(
        |block| {
            block.iter().for_each(|&permuted| sum.add(table.header().plan.permutation.invert(permuted)));
            cancelled = progress.add_batched(&mut pending, block.len() as u64);
            if cancelled.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
        |error| {
            is_sound = false;
            damaged(error);
        },
    );
    cancelled?;
    read?;
    progress.add(pending)?;
    Ok((sum, is_sound))
}
