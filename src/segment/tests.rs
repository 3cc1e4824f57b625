//! Tests of whole segments: all pairs are read back, and errors name each missing, damaged or foreign file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::codec::Codec;
use crate::fs::Disk;
use crate::options::BuildOptions;
use crate::plan::PlanChoice;
use crate::progress::ProgressCounter;
use crate::spill::PrefixLocation;

/// Asserts that `read` reports each flipped bit and each truncation of a file.
pub(super) fn every_damage_is_found(mut bytes: Vec<u8>, read: impl Fn(&[u8]) -> Result<()>) {
    read(&bytes).unwrap();
    for len in 0..bytes.len() {
        assert!(read(&bytes[..len]).is_err(), "cut off at {len}");
    }
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&bytes).is_err(), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// A folder with a segment.
struct BuiltSegment {
    folder: TempDir,
    entry: SegmentEntry,
}

fn fingerprint(i: u64) -> u64 {
    (i % 500).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn options() -> BuildOptions {
    BuildOptions {
        codec: Codec::Gap,
        plan: PlanChoice::Named("probe-2".to_string()),
        block_size: Some(256),
        ..BuildOptions::default()
    }
}

/// Builds a segment of 500 fingerprints with two tombstones and two metadata values, and with ids, also 600 ids, 100 names and
/// 120 notes. The smallest id is `first`.
fn build(number: u64, first: u64, options: BuildOptions) -> BuiltSegment {
    let folder = tempfile::tempdir().unwrap();
    let has_ids = options.ids;
    let mut builder = SegmentBuilder::<u64>::new(folder.path(), number, options);
    for i in 0..600 {
        builder.insert(fingerprint(i), first + i).unwrap();
        if has_ids && i % 6 == 0 {
            builder.add_name(first + i, &format!("document {i}")).unwrap();
        }
        if has_ids && i % 5 == 0 {
            builder.add_note(first + i, &i.to_be_bytes()).unwrap();
        }
    }
    builder.set_tombstones(if has_ids { vec![(3, 7), (4, 0)] } else { vec![(3, 0), (4, 0)] });
    builder.add_metadata("a", b"1").unwrap();
    builder.add_metadata("b", b"").unwrap();
    let entry = builder.finish().unwrap();
    BuiltSegment { folder, entry }
}

impl BuiltSegment {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn open_as(&self, entry: &SegmentEntry, distance: u32) -> Result<Segment<u64>> {
        Segment::open(&Disk::default(), self.path(), entry.clone(), distance)
    }

    fn open(&self) -> Result<Segment<u64>> {
        self.open_as(&self.entry, 3)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Changes the byte at an offset of a file.
    fn damage(&self, name: &str, at: usize) {
        let mut bytes = fs::read(self.file(name)).unwrap();
        bytes[at] ^= 0x10;
        fs::write(self.file(name), bytes).unwrap();
    }

    /// Opens each file on its own. Returns the names of the files that cannot be opened.
    fn damaged_files(&self) -> Vec<String> {
        let mut damaged = Vec::new();
        Segment::<u64>::check_files(&Disk::default(), self.path(), &self.entry, |error| {
            damaged.push(name_of(&error));
        });
        damaged
    }
}

/// Name of the file that an error is about.
fn name_of(error: &Error) -> String {
    let (Error::Corrupt { path, .. } | Error::Io { path, .. }) = error else { panic!("{error}") };
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn problems(segment: &Segment<u64>) -> Vec<Error> {
    let mut problems = Vec::new();
    segment.verify(&ProgressCounter::new(None, 0), |error| problems.push(error)).unwrap();
    problems
}

#[test]
fn a_built_segment_has_all_its_values() {
    let built = build(12, 1000, options());
    let files = [
        "000012-00.table", "000012-01.table", "000012.ids", "000012.names", "000012.tombstones",
        "000012.metadata", "000012.notes",
    ];
    assert_eq!(built.entry.file_names(), files);
    let segment = built.open().unwrap();
    assert_eq!(problems(&segment).len(), 0);
    let stats = segment.stats();
    let counts = (stats.fingerprints, stats.ids, stats.names, stats.tombstones, stats.metadata, stats.notes);
    assert_eq!((counts, stats.tables), ((500, 600, 100, 2, 2, 120), 2));
    let on_disk: u64 = files.iter().map(|name| fs::metadata(built.file(name)).unwrap().len()).sum();
    assert_eq!(stats.bytes, on_disk);

    let mut entries = Vec::new();
    (0..segment.tables()[0].blocks()).for_each(|block| segment.entries(block, &mut entries).unwrap());
    let mut expected: Vec<_> =
        (0..600).map(|i| Entry { fingerprint: fingerprint(i), id: Some(1000 + i) }).collect();
    expected.sort();
    assert_eq!(entries, expected);
    let mut matches = Vec::new();
    query(&[Arc::new(built.open().unwrap())], fingerprint(7) ^ 1 << 40, 3, |_, _, _| false, &mut matches)
        .unwrap();
    matches.sort_by_key(|found| found.id);
    let expected = [1007, 1507].map(|id| Match { fingerprint: fingerprint(7), distance: 1, id: Some(id) });
    assert_eq!(matches, expected);
    assert_eq!(segment.name(1006).unwrap().as_deref(), Some("document 6"));
    assert_eq!((segment.name(1007).unwrap(), segment.name(0).unwrap()), (None, None));
    assert_eq!(
        (segment.note(1005).unwrap(), segment.note(1006).unwrap()),
        (Some(vec![0, 0, 0, 0, 0, 0, 0, 5]), None)
    );
    assert_eq!(
        (segment.metadata_value("a").unwrap(), segment.metadata_value("c").unwrap()),
        (Some(b"1".to_vec()), None)
    );
    assert!(segment.has_tombstone(3, 7) && !segment.has_tombstone(3, 0) && !segment.has_tombstone(7, 3));
}

#[test]
fn a_segment_without_ids_has_none() {
    let built = build(1, 0, BuildOptions { ids: false, ..options() });
    assert!(!built.entry.has_ids && built.entry.file_names().iter().all(|name| !name.ends_with(".ids")));
    let segment = built.open().unwrap();
    let mut matches = Vec::new();
    query(&[Arc::new(built.open().unwrap())], fingerprint(7), 0, |_, _, _| false, &mut matches).unwrap();
    assert_eq!(matches, [Match { fingerprint: fingerprint(7), distance: 0, id: None }]);
    assert_eq!((segment.stats().ids, segment.stats().id_bytes), (0, 0));
}

#[test]
fn every_missing_or_cut_off_file_is_reported_by_its_name() {
    let built = build(1, 0, options());
    assert_eq!(built.damaged_files(), [""; 0]);
    for name in built.entry.file_names() {
        let bytes = fs::read(built.file(&name)).unwrap();
        fs::remove_file(built.file(&name)).unwrap();
        let error = built.open().unwrap_err();
        assert!(matches!(&error, Error::Io { action: "open", .. }), "{error}");
        assert_eq!((name_of(&error), built.damaged_files()), (name.clone(), vec![name.clone()]));
        fs::write(built.file(&name), &bytes[..bytes.len() - 1]).unwrap();
        let error = built.open().unwrap_err();
        assert!(matches!(&error, Error::Corrupt { .. }), "{error}");
        assert_eq!((name_of(&error), built.damaged_files()), (name.clone(), vec![name.clone()]));
        fs::write(built.file(&name), &bytes).unwrap();
    }
    built.open().unwrap();
}

/// Replaces each file in turn with the sound file of a segment with other contents, and asserts that the error names this
/// file.
#[test]
fn every_file_of_another_segment_is_reported_by_its_name() {
    let built = build(1, 0, options());
    let other = tempfile::tempdir().unwrap();
    let mut builder = SegmentBuilder::<u64>::new(other.path(), 1, options());
    for i in 0..600 {
        builder.insert(!fingerprint(i), 9000 + i).unwrap();
        if i % 6 == 0 {
            builder.add_name(9000 + i, "other").unwrap();
            builder.add_note(9000 + i, b"other").unwrap();
        }
    }
    builder.set_tombstones(vec![(3, 7), (4, 1)]);
    builder.add_metadata("a", b"1").unwrap();
    builder.add_metadata("b", b"2").unwrap();
    assert_eq!(builder.finish().unwrap().file_names(), built.entry.file_names());
    for name in built.entry.file_names() {
        let bytes = fs::read(built.file(&name)).unwrap();
        fs::copy(other.path().join(&name), built.file(&name)).unwrap();
        let error = built.open().unwrap_err();
        assert!(matches!(&error, Error::Corrupt { damage: Damage::Mismatch { .. }, .. }), "{error}");
        assert_eq!((name_of(&error), built.damaged_files()), (name.clone(), vec![name.clone()]));
        fs::write(built.file(&name), bytes).unwrap();
    }
}

/// Asserts that a count in the manifest that does not match its file is reported with the name of this file, even
/// if all footer checksums match.
#[test]
fn counts_that_are_not_the_files_are_reported() {
    let built = build(1, 0, options());
    let entry = &built.entry;
    let opened = [
        ("000001-00.table", SegmentEntry { fingerprints: 499, ..entry.clone() }),
        ("000001.tombstones", SegmentEntry { tombstones: 1, ..entry.clone() }),
        ("000001.ids", SegmentEntry { ids: 601, ..entry.clone() }),
    ];
    for (name, entry) in opened {
        assert_eq!(name_of(&built.open_as(&entry, 3).unwrap_err()), name);
    }
    // Only reading the whole file finds these wrong counts.
    let read = [
        ("000001.names", SegmentEntry { names: 99, ..entry.clone() }),
        ("000001.metadata", SegmentEntry { metadata: 1, ..entry.clone() }),
        ("000001.notes", SegmentEntry { notes: 121, ..entry.clone() }),
    ];
    for (name, entry) in read {
        let problems = problems(&built.open_as(&entry, 3).unwrap());
        assert_eq!(problems.iter().map(name_of).collect::<Vec<_>>(), [name]);
    }
}

#[test]
fn tables_that_would_miss_neighbours_are_refused() {
    let built = build(1, 0, options());
    built.open_as(&built.entry, 2).unwrap();
    let Error::IncompletePlan { plan, distance: 4, reason } = built.open_as(&built.entry, 4).unwrap_err()
    else {
        panic!()
    };
    assert!(plan == "probe-2" && reason.contains("000001-00.table"), "{reason}");
}

/// Asserts that verification reports damage after the header of a file, with the name of this file.
#[test]
fn verifying_tells_the_file_that_is_damaged() {
    for (name, at) in [("000001-00.table", 300), ("000001-01.table", 300), ("000001.ids", 40)] {
        let built = build(1, 0, options());
        built.damage(name, at);
        let problems = problems(&built.open().unwrap());
        assert!(!problems.is_empty() && problems.iter().all(|error| name_of(error) == name), "{problems:?}");
    }
    for name in ["000001.names", "000001.metadata", "000001.notes"] {
        let built = build(1, 0, options());
        built.damage(name, 30);
        let names: Vec<_> = problems(&built.open().unwrap()).iter().map(name_of).collect();
        assert!(!names.is_empty() && names.iter().all(|found| found == name), "{names:?}");
    }
}

/// Asserts that verification reports a second table with a fingerprint that the first table does not have, although the
/// number of fingerprints and the manifest match.
#[test]
fn tables_of_different_fingerprints_are_reported() {
    let mut built = build(1, 0, options());
    let other = tempfile::tempdir().unwrap();
    let mut builder = SegmentBuilder::<u64>::new(other.path(), 1, options());
    (0..500).for_each(|i| builder.insert(fingerprint(i) ^ u64::from(i == 77), i).unwrap());
    let entry = builder.finish().unwrap();
    fs::copy(other.path().join("000001-01.table"), built.file("000001-01.table")).unwrap();
    built.entry.footer_crcs[1] = entry.footer_crcs[1];
    let problems = problems(&built.open().unwrap());
    let [Error::Corrupt { path, damage: Damage::Mismatch { what }, .. }] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert!(path.ends_with("000001-01.table"));
    assert_eq!(*what, "the fingerprints of the first table and of this one");
}

/// Salvages a segment. Returns the (fingerprint, id) pairs, with `None` for a lost id, and the names of the damaged files.
fn salvaged(built: &BuiltSegment) -> (Vec<(u64, Option<u64>)>, Vec<String>) {
    let mut files = Vec::new();
    let mut damaged = |error: Error| files.push(name_of(&error));
    let damaged_segment =
        DamagedSegment::<u64>::open(&Disk::default(), built.path(), built.entry.clone(), &mut damaged);
    let fs: Arc<dyn Fs> = Arc::new(Disk::default());
    let mut pairs = Vec::new();
    let count = damaged_segment
        .visit(
            PrefixLocation::new(&fs, &built.file("run")),
            1 << 20,
            &ProgressCounter::new(None, 0),
            &mut damaged,
            &mut |fingerprint, id| {
                pairs.push((fingerprint, id));
                Ok(())
            },
        )
        .unwrap();
    let mut distinct: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len() as u64, count);
    pairs.sort_unstable();
    files.sort();
    files.dedup();
    (pairs, files)
}

fn all_pairs() -> Vec<(u64, Option<u64>)> {
    let mut pairs: Vec<_> = (0..600).map(|i| (fingerprint(i), Some(i))).collect();
    pairs.sort_unstable();
    pairs
}

/// Asserts that one sound table is enough to salvage all fingerprints, with their ids if the id file is sound.
#[test]
fn one_table_is_enough_to_rescue_all() {
    let built = build(1, 0, options());
    assert_eq!(salvaged(&built), (all_pairs(), vec![]));
    built.damage("000001-00.table", 300);
    assert_eq!(salvaged(&built), (all_pairs(), vec!["000001-00.table".to_string()]));
    fs::remove_file(built.file("000001-00.table")).unwrap();
    assert_eq!(salvaged(&built), (all_pairs(), vec!["000001-00.table".to_string()]));
    let built = build(1, 0, options());
    fs::remove_file(built.file("000001-01.table")).unwrap();
    assert_eq!(salvaged(&built), (all_pairs(), vec!["000001-01.table".to_string()]));
}

/// Asserts that if the first of three tables is missing and one of the others has a damaged block, all pairs are salvaged.
#[test]
fn damaged_tables_complete_one_another() {
    let plan = PlanChoice::Named("probe-3".to_string());
    let built = build(1, 0, BuildOptions { plan, ..options() });
    fs::remove_file(built.file("000001-00.table")).unwrap();
    for damaged in ["000001-01.table", "000001-02.table"] {
        built.damage(damaged, 300);
        assert_eq!(salvaged(&built).0, all_pairs(), "{damaged}");
        built.damage(damaged, 300);
    }
}

#[test]
fn salvage_loses_only_pairs_that_no_table_has() {
    let built = build(1, 0, options());
    fs::remove_file(built.file("000001-01.table")).unwrap();
    let first_block = {
        let table =
            Table::<u64>::open(Path::new("t"), fs::read(built.file("000001-00.table")).unwrap().into())
                .unwrap();
        let mut first = Vec::new();
        table.decode_block(0, &mut first).unwrap();
        first
    };
    built.damage("000001-00.table", 300);
    let kept = |pair: &(u64, Option<u64>)| !first_block.contains(&pair.0);
    assert_eq!(salvaged(&built).0, all_pairs().into_iter().filter(kept).collect::<Vec<_>>());
}

/// Asserts that if a chunk of the id file is damaged, only the ids of one block are lost, but no fingerprints.
#[test]
fn fingerprints_outlive_their_ids() {
    let built = build(1, 0, options());
    built.damage("000001.ids", 40);
    let (pairs, damaged) = salvaged(&built);
    assert_eq!(damaged, ["000001.ids"]);
    let without: Vec<u64> = pairs.iter().filter(|pair| pair.1.is_none()).map(|pair| pair.0).collect();
    assert!((1..100).contains(&without.len()), "{}", without.len());
    let with: Vec<_> = all_pairs().into_iter().filter(|pair| !without.contains(&pair.0)).collect();
    assert_eq!(pairs.into_iter().filter(|pair| pair.1.is_some()).collect::<Vec<_>>(), with);
    fs::remove_file(built.file("000001.ids")).unwrap();
    let (pairs, damaged) = salvaged(&built);
    assert_eq!(damaged, ["000001.ids"]);
    assert!(pairs.len() == 500 && pairs.iter().all(|pair| pair.1.is_none()));
}

#[test]
fn out_of_order_names_notes_and_marks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = SegmentBuilder::<u64>::new(folder.path(), 1, options());
    builder.add_name(5, "a").unwrap();
    assert!(matches!(builder.add_name(5, "b"), Err(Error::OutOfOrder { .. })));
    builder.add_note(5, b"a").unwrap();
    assert!(matches!(builder.add_note(4, b"b"), Err(Error::OutOfOrder { .. })));
    builder.add_metadata("k", b"").unwrap();
    assert!(matches!(builder.add_metadata("j", b""), Err(Error::OutOfOrder { .. })));
}
