//! Tests that queries over several segments find the same matches as a linear scan of all segments.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::SegmentBuilder;
use super::*;
use crate::codec::Codec;
use crate::format::footer_crc;
use crate::fs::Disk;
use crate::manifest::SegmentEntry;
use crate::options::BuildOptions;
use crate::permutation::Permutation;
use crate::plan::{self, Plan, PlanChoice, TablePlan};
use crate::progress::ProgressCounter;

/// Random fingerprints, and fingerprints near a few centres, each with an id.
fn entries<F: Fingerprint>(random: &mut impl FnMut() -> u64, count: usize, distance: u32) -> Vec<(F, u64)> {
    let mut wide = || F::from_u128(u128::from(random()) << 64 | u128::from(random()));
    let centres = [F::ZERO, F::MAX, F::from_u128(0x0123_4567_89ab_cdef << 60 | 0x0f0f_5555)];
    (0..count as u64)
        .map(|i| {
            let (value, way) = (wide(), wide().low_u64());
            let flips = way / 8 % u64::from(distance + 3);
            let near = |centre| {
                (0..flips)
                    .fold(centre, |x, j| x ^ F::bit_mask(way.rotate_right(8 + 5 * j as u32) as u32 % F::BITS))
            };
            // The centres are the same in all segments, so some fingerprints occur in several segments.
            (if way % 8 == 0 { value } else { near(centres[(way % 3) as usize]) }, i % 7)
        })
        .collect()
}

/// Rewrites the tables of a segment, except for the first, with other bits of the fingerprint as prefix. Older
/// versions of this crate wrote such tables for some plans.
fn with_other_bits<F: Fingerprint>(
    folder: &Path,
    mut entry: SegmentEntry,
    distance: u32,
    random: &mut impl FnMut() -> u64,
) -> SegmentEntry {
    let segment = Segment::<F>::open(&Disk::default(), folder, entry.clone(), distance).unwrap();
    let (plan, first) = (segment.plan().clone(), &segment.tables()[0]);
    let (codec, fingerprints) = (first.header().codec, first.scan().collect::<Result<Vec<F>>>().unwrap());
    drop(segment);
    // The first table is not changed: the ids are in its order.
    let mut order: Vec<u8> = (0..F::BITS as u8).collect();
    let (leading, others) = order.split_at_mut(plan.tables()[0].prefix_bits as usize);
    for bits in [leading, others] {
        (1..bits.len()).for_each(|i| bits.swap(i, random() as usize % (i + 1)));
    }
    for (number, table) in plan.tables().iter().enumerate().skip(1) {
        let sources = table.permutation.sources().iter().map(|&bit| order[usize::from(bit)]);
        let table = TablePlan { permutation: Permutation::new(sources).unwrap(), ..table.clone() };
        let mut permuted: Vec<F> = fingerprints.iter().map(|&x| table.permutation.apply(x)).collect();
        permuted.sort_unstable();
        let file = Table::encode(&permuted, &table, codec, Some(256)).unwrap();
        entry.footer_crcs[number] = footer_crc(&file);
        fs::write(folder.join(entry.table_file_name(number as u32)), file).unwrap();
    }
    entry
}

struct SegmentSet<F> {
    folder: TempDir,
    segments: Vec<Arc<Segment<F>>>,
    entries: Vec<Vec<(F, Option<u64>)>>,
}

/// Builds one segment for each of `sizes`, with random codecs and plans. Every second segment has Bloom filters. The tables of
/// every third segment are rewritten by [`with_other_bits`].
fn build<F: Fingerprint>(sizes: &[usize], distance: u32, seed: u64) -> SegmentSet<F> {
    let folder = tempfile::tempdir().unwrap();
    let plans = plan::names::<F>(distance);
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let mut all = SegmentSet { folder, segments: Vec::new(), entries: Vec::new() };
    for (i, &size) in sizes.iter().enumerate() {
        let options = BuildOptions {
            distance,
            codec: Codec::ALL[random() as usize % Codec::ALL.len()],
            plan: PlanChoice::Named(plans[random() as usize % plans.len()].clone()),
            block_size: Some(256),
            ids: i % 4 != 3,
            ..BuildOptions::default()
        };
        let has_ids = options.ids;
        let mut entries = entries::<F>(&mut random, size, distance);
        let mut builder = SegmentBuilder::new(all.folder.path(), i as u64, options);
        entries.iter().for_each(|&(fingerprint, id)| builder.insert(fingerprint, id).unwrap());
        let mut entry = builder.finish().unwrap();
        if i % 3 == 1 {
            entry = with_other_bits::<F>(all.folder.path(), entry, distance, &mut random);
        }
        let segment = Segment::open(&Disk::default(), all.folder.path(), entry, distance).unwrap();
        if i % 2 == 0 {
            segment.make_filters().unwrap();
        }
        entries.sort_unstable();
        entries.dedup_by_key(|&mut (fingerprint, id)| (fingerprint, if has_ids { id } else { 0 }));
        all.entries.push(entries.into_iter().map(|(x, id)| (x, has_ids.then_some(id))).collect());
        all.segments.push(Arc::new(segment));
    }
    all
}

fn is_hidden<F: Fingerprint>(segment: usize, fingerprint: F, id: Option<u64>) -> bool {
    (segment as u64 + fingerprint.low_u64() % 5 + id.unwrap_or(0)).is_multiple_of(5)
}

impl<F: Fingerprint> SegmentSet<F> {
    fn query(&self, query: F, distance: u32) -> Result<Vec<(F, Option<u64>)>> {
        let mut matches = Vec::new();
        super::query(&self.segments, query, distance, is_hidden, &mut matches)?;
        assert!(matches.iter().all(|found| found.distance == query.distance(found.fingerprint)));
        let mut found: Vec<_> = matches.iter().map(|found| (found.fingerprint, found.id)).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Finds the expected matches of a query by a linear scan of all segments.
    fn expected(&self, query: F, distance: u32) -> Vec<(F, Option<u64>)> {
        let each = self.entries.iter().enumerate().flat_map(|(segment, entries)| {
            let near = entries.iter().filter(move |entry| entry.0.distance(query) <= distance);
            near.filter(move |entry| !is_hidden(segment, entry.0, entry.1))
        });
        let mut found: Vec<_> = each.map(|&(fingerprint, id)| (fingerprint, id)).collect();
        found.sort_unstable();
        found
    }

    fn check(&self, distance: u32) {
        let near = |i: usize, x: F| {
            (0..i as u32 % (distance + 2)).fold(x, |x, j| x ^ F::bit_mask((i as u32 * 7 + j * 11) % F::BITS))
        };
        let stored = self.entries.iter().flatten().step_by(23).enumerate().map(|(i, entry)| near(i, entry.0));
        for (i, query) in stored.chain([F::ZERO, F::MAX, F::from_u128(u128::MAX / 5)]).enumerate() {
            let query_distance = if i % 4 == 0 { i as u32 / 4 % (distance + 1) } else { distance };
            assert_eq!(
                self.query(query, query_distance).unwrap(),
                self.expected(query, query_distance),
                "{query:x} within {query_distance}"
            );
        }
    }
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![2 => 1_usize..20, 2 => 100_usize..400, 1 => 1000_usize..3000], 0..9)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn many_segments_are_as_the_plain_loop(
        sizes in sizes(),
        distance in 0_u32..=10,
        wide in any::<bool>(),
        seed in any::<u64>(),
    ) {
        if wide {
            build::<u128>(&sizes, distance, seed).check(distance);
        } else {
            build::<u64>(&sizes, distance, seed).check(distance);
        }
    }
}

/// Asserts that a query finds all matches if there are more tables than are probed together, and more matches than
/// are kept without heap memory.
#[test]
fn dozens_of_segments() {
    build::<u64>(&[60; 40], 3, 7).check(3);
    build::<u128>(&[60; 40], 6, 8).check(6);
}

/// Asserts that a table file is read with the permutation in its header, even if the plan with the same name now
/// has other prefix bits.
#[test]
fn tables_with_other_bits_are_read() {
    fn check<F: Fingerprint>(distance: u32) {
        let all = build::<F>(&[500; 40], distance, 12);
        all.check(distance);
        let is_other = |plan: &Plan<F>| plan != &Plan::named(plan.name(), distance).unwrap();
        let others: Vec<_> = all.segments.iter().filter(|segment| is_other(segment.plan())).collect();
        assert!(others.len() > 5);
        for segment in others {
            segment.verify(&ProgressCounter::new(None, 0), |error| panic!("{error}")).unwrap();
        }
    }
    check::<u64>(3);
    check::<u128>(3);
}

/// Asserts that missing Bloom filters are built after enough queries, but only if there are several segments.
#[test]
fn filters_are_made_when_they_are_worth_it() {
    let count = 40 * FINGERPRINTS_PER_QUERY as usize;
    for segments in [1, 2] {
        let all = build::<u64>(&vec![count; segments], 3, 9);
        let reopened: Vec<_> = all
            .segments
            .iter()
            .map(|segment| {
                let path = all.folder.path();
                Arc::new(Segment::open(&Disk::default(), path, segment.entry.clone(), 3).unwrap())
            })
            .collect();
        let memory = |segments: &[Arc<Segment<u64>>]| {
            segments.iter().map(|segment| segment.stats().memory).sum::<u64>()
        };
        let before = memory(&reopened);
        for i in 0..60 {
            let mut matches = Vec::new();
            super::query(&reopened, i << 50, 3, |_, _, _| false, &mut matches).unwrap();
        }
        assert_eq!(memory(&reopened) > before, segments > 1);
        assert_eq!(
            reopened.iter().all(|segment| segment.filters_decided.load(Ordering::Relaxed)),
            segments > 1
        );
    }
}

/// Asserts that a damaged block of any segment never gives a wrong answer: each query returns all matches or an
/// error that names the file, and at least one query returns the error.
#[test]
fn a_damaged_block_of_any_segment_is_reported_by_its_file() {
    let distance = 3;
    let mut all = build::<u64>(&[300, 40, 700, 300], distance, 11);
    let queries: Vec<u64> = all.entries.iter().flatten().map(|entry| entry.0 ^ 1 << 33).collect();
    for i in 0..all.segments.len() {
        let (sound, entry) = (all.segments[i].clone(), all.segments[i].entry.clone());
        for number in 0..entry.tables {
            let path = all.folder.path().join(entry.table_file_name(number));
            let bytes = fs::read(&path).unwrap();
            let mut damaged = bytes.clone();
            let info = sound.tables[number as usize].block_info(0).unwrap();
            damaged[info.offset as usize + info.len / 2] ^= 4;
            fs::write(&path, damaged).unwrap();
            for filters in [false, true] {
                let segment =
                    Segment::open(&Disk::default(), all.folder.path(), entry.clone(), distance).unwrap();
                // A table with a damaged block gets no filter.
                let _ = if filters { segment.make_filters() } else { Ok(()) };
                all.segments[i] = Arc::new(segment);
                let mut errors = 0;
                for &query in &queries {
                    match all.query(query, distance) {
                        Ok(found) => assert_eq!(found, all.expected(query, distance)),
                        Err(Error::Corrupt { path: of, .. }) if of == path => errors += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(errors > 0, "{}", path.display());
            }
            fs::write(&path, bytes).unwrap();
        }
        all.segments[i] = sound;
    }
}
