//! Reading all of a segment and comparing its parts with one another.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::Path;

use super::by_id::{ById, Names, Notes, Value};
use super::ids::Ids;
use super::marks::Marks;
use super::tombstones::Tombstones;
use super::{Files, Segment};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::SegmentEntry;
use crate::progress::Steps;
use crate::table::Table;

/// A sum over a set of fingerprints, equal for tables with the same fingerprints in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    sum: u128,
}

impl Sum {
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
    /// How many fingerprints [`Segment::verify`] reads.
    pub(crate) fn verified_fingerprints(&self) -> u64 {
        self.entry.fingerprints * (self.tables.len() + usize::from(self.ids.is_some())) as u64
    }

    /// Reads everything; calls `damaged` with each error. Returns the largest id that could be read.
    pub(crate) fn verify(&self, steps: &Steps<'_>, mut damaged: impl FnMut(Error)) -> Result<Option<u64>> {
        let mut first = None;
        for (number, table) in self.tables.iter().enumerate() {
            let (sum, whole) = sum(table, steps, &mut damaged)?;
            if !whole {
                continue;
            }
            if number == 0 {
                first = Some(sum);
            } else if first.is_some_and(|first| first != sum) {
                damaged(self.first_difference(table, steps)?);
            }
        }
        let largest = self.verify_ids(steps, &mut damaged)?;
        let named = "the number of names and the manifest";
        verify_by_id(self.names.as_ref(), (self.entry.names, named), steps, &mut damaged)?;
        let noted = "the number of notes and the manifest";
        verify_by_id(self.notes.as_ref(), (self.entry.notes, noted), steps, &mut damaged)?;
        if let Some(marks) = &self.marks {
            let mut whole = true;
            let count = marks.verify(steps, |error| {
                whole = false;
                damaged(error);
            })?;
            if whole && count != self.entry.marks {
                let what = "the number of marks and the manifest";
                damaged(Error::corrupt(marks.chunks.path(), 0, Damage::Mismatch { what }));
            }
        }
        Ok(largest)
    }

    /// Where a table first has a fingerprint that the first table lacks.
    fn first_difference(&self, table: &Table<F>, steps: &Steps<'_>) -> Result<Error> {
        let what = "the fingerprints of the first table and of this one";
        let mut decoded = Vec::new();
        for block in 0..table.blocks() {
            steps.ask()?;
            decoded.clear();
            let offset = match table.block_info(block).and_then(|info| {
                table.decode_block(block, &mut decoded)?;
                Ok(info.offset)
            }) {
                Ok(offset) => offset,
                Err(error) => return Ok(error),
            };
            for &permuted in &decoded {
                match self.find(table.header().plan.permutation.invert(permuted)) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(Error::corrupt(table.path(), offset, Damage::Mismatch { what })),
                    Err(error) => return Ok(error),
                }
            }
        }
        Ok(Error::corrupt(table.path(), 0, Damage::Mismatch { what }))
    }

    /// Reads all ids of a segment with an id file; returns the largest one.
    fn verify_ids(&self, steps: &Steps<'_>, damaged: &mut impl FnMut(Error)) -> Result<Option<u64>> {
        let Some(ids) = &self.ids else { return Ok(None) };
        let (mut count, mut whole, mut largest) = (0, true, None);
        let mut entries = Vec::new();
        let (blocks, mut pending) = (self.tables[0].blocks(), 0);
        for block in 0..blocks {
            steps.add_some(&mut pending, self.entry.fingerprints / blocks as u64)?;
            entries.clear();
            let read = self.entries(block, &mut entries);
            largest = entries.iter().filter_map(|entry| entry.id).max().max(largest);
            match read {
                Ok(()) if entries.windows(2).all(|pair| pair[0] < pair[1]) => count += entries.len() as u64,
                Ok(()) => {
                    whole = false;
                    damaged(ids.chunks.damaged(block, Damage::Order { what: "the ids of a fingerprint" }));
                }
                // A damaged block of the table has been reported with the table.
                Err(Error::Corrupt { path, .. }) if path != ids.chunks.path() => whole = false,
                Err(error) => {
                    whole = false;
                    damaged(error);
                }
            }
        }
        if let Err(error) = ids.chunks.verify() {
            damaged(error);
        }
        if whole && (count != ids.len() || count != self.entry.ids) {
            let what = "the number of ids, the header and the manifest";
            damaged(Error::corrupt(ids.chunks.path(), 0, Damage::Mismatch { what }));
        }
        Ok(largest)
    }
}

impl<F: Fingerprint> Segment<F> {
    /// Opens each file by itself; calls `damaged` with each that cannot be, or is not the one that the manifest names.
    pub(crate) fn check_files(
        fs: &dyn Fs,
        store: &Path,
        entry: &SegmentEntry,
        mut damaged: impl FnMut(Error),
    ) {
        let mut files = Files { fs, store, entry, footers: Some(entry.footers.iter()) };
        for name in entry.files() {
            let opened = files.open(name, |path, bytes| match path.extension().and_then(OsStr::to_str) {
                Some("table") => Table::<F>::open(path, bytes).map(drop),
                Some("ids") => Ids::open_alone(path, bytes).map(drop),
                Some("names") => Names::open(path, bytes).map(drop),
                Some("notes") => Notes::open(path, bytes).map(drop),
                Some("marks") => Marks::open(path, bytes).map(drop),
                _ => Tombstones::<F>::open(path, bytes).map(drop),
            });
            opened.unwrap_or_else(&mut damaged);
        }
    }
}

/// Reads all names or notes, and compares their number with the manifest.
fn verify_by_id<V: Value>(
    values: Option<&ById<V>>,
    (expected, what): (u64, &'static str),
    steps: &Steps<'_>,
    damaged: &mut impl FnMut(Error),
) -> Result<()> {
    let Some(values) = values else { return Ok(()) };
    let mut whole = true;
    let count = values.verify(steps, |error| {
        whole = false;
        damaged(error);
    })?;
    if whole && count != expected {
        damaged(Error::corrupt(values.chunks.path(), 0, Damage::Mismatch { what }));
    }
    Ok(())
}

/// The sum of a table's original fingerprints, and whether all of it could be read.
fn sum<F: Fingerprint>(
    table: &Table<F>,
    steps: &Steps<'_>,
    damaged: &mut impl FnMut(Error),
) -> Result<(Sum, bool)> {
    let mut sum = Sum::default();
    let mut whole = true;
    let (mut pending, mut cancelled) = (0, Ok(()));
    steps.ask()?;
    let read = table.verify(
        |block| {
            block.iter().for_each(|&permuted| sum.add(table.header().plan.permutation.invert(permuted)));
            cancelled = steps.add_some(&mut pending, block.len() as u64);
            if cancelled.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
        |error| {
            whole = false;
            damaged(error);
        },
    );
    cancelled?;
    read?;
    steps.add(pending)?;
    Ok((sum, whole))
}
