//! Damaged and hostile files lead to an error or to the right answer, never to a panic.
#![expect(unsafe_code, reason = "an allocator that records the largest allocation")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use simstore::batch::{BatchMatch, BatchMethod};
use simstore::plan::{Plan, TablePlan};
use simstore::raw::Permutation;
use simstore::{BuildOptions, Builder, Codec, Entry, Fingerprint, Match, PlanChoice, Result, Snapshot};
use tempfile::TempDir;

use crate::support::random::Random;
use crate::support::samples::{SampleDocument, build, documents};
use crate::support::seal::{StoreFiles, seal_store};

/// The system's allocator, which also records the largest allocation of each thread in bytes.
struct TrackingAllocator;

thread_local! {
    static LARGEST_ALLOCATION: Cell<usize> = const { Cell::new(0) };
}

fn record_allocation(layout: Layout) {
    let _ = LARGEST_ALLOCATION.try_with(|largest| largest.set(largest.get().max(layout.size())));
}

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for TrackingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: TrackingAllocator = TrackingAllocator;

/// Results of reading a store in all ways: iteration, queries, look-ups of fingerprints, names and notes.
#[derive(Debug, PartialEq)]
struct StoreAnswers<F> {
    entries: Result<Vec<Entry<F>>, String>,
    matches: Vec<Result<Vec<Match<F>>, String>>,
    batches: Vec<Result<Vec<BatchMatch<F>>, String>>,
    contained: Vec<Result<bool, String>>,
    names: Vec<Result<Option<String>, String>>,
    notes: Vec<Result<Option<Vec<u8>>, String>>,
}

fn answers<F: Fingerprint>(store: &Snapshot<F>, documents: &[SampleDocument<F>]) -> StoreAnswers<F> {
    let text = |error: simstore::Error| error.to_string();
    let queries = || documents.iter().map(|document| document.0);
    let flipped = queries().map(|query| query ^ F::bit_mask(3) ^ F::bit_mask(F::BITS - 2));
    StoreAnswers {
        entries: store.iter().collect::<Result<_>>().map_err(text),
        matches: queries()
            .chain(flipped)
            .chain([F::ZERO, F::MAX])
            .map(|query| store.query(query, store.distance()).map_err(text))
            .collect(),
        batches: [BatchMethod::Stream, BatchMethod::LookUp]
            .map(|method| {
                store.batch_query_by(&queries().collect::<Vec<_>>(), store.distance(), method).map_err(text)
            })
            .to_vec(),
        contained: queries().map(|query| store.contains(query).map_err(text)).collect(),
        names: documents.iter().map(|document| store.name(document.1).map_err(text)).collect(),
        notes: documents.iter().map(|document| store.note(document.1).map_err(text)).collect(),
    }
}

/// Asserts that each result in `found` is an error, or equals the result in `sound`, which was read from undamaged
/// files.
fn check_answers<F: Fingerprint>(found: &StoreAnswers<F>, sound: &StoreAnswers<F>, context: &str) {
    fn same<T: PartialEq>(found: &Result<T, String>, sound: &Result<T, String>) -> bool {
        found.is_err() || found == sound
    }
    fn all_same<T: PartialEq>(found: &[Result<T, String>], sound: &[Result<T, String>]) -> bool {
        found.len() == sound.len() && found.iter().zip(sound).all(|(found, sound)| same(found, sound))
    }
    assert!(same(&found.entries, &sound.entries), "{context}: other entries");
    assert!(all_same(&found.matches, &sound.matches), "{context}: other matches");
    assert!(all_same(&found.batches, &sound.batches), "{context}: other matches of a batch");
    assert!(all_same(&found.contained, &sound.contained), "{context}: other fingerprints");
    assert!(all_same(&found.names, &sound.names), "{context}: other names");
    assert!(all_same(&found.notes, &sound.notes), "{context}: other notes");
}

/// A store in a folder of its own, with the contents of its undamaged files and the results of reading them.
struct SampleStore<F> {
    folder: TempDir,
    files: StoreFiles,
    documents: Vec<SampleDocument<F>>,
    answers: StoreAnswers<F>,
}

/// Builds a store of these documents. Every fifth document has a note.
fn build_noted<F: Fingerprint>(
    path: &Path,
    options: BuildOptions,
    documents: &[SampleDocument<F>],
) -> Snapshot<F> {
    let mut builder = Builder::create(path, options).unwrap();
    for (_, id, _) in documents.iter().step_by(5) {
        builder.set_note(*id, &id.to_le_bytes()[..(*id % 9) as usize]).unwrap();
    }
    build(builder, documents)
}

fn sample<F: Fingerprint>(codec: Codec, plan: &str, count: usize, seed: u64) -> SampleStore<F> {
    let mut random = Random(seed);
    let mut fingerprints: Vec<F> = (0..count / 2).map(|_| random.fingerprint()).collect();
    fingerprints.extend(random.clustered::<F>(count / 2));
    fingerprints.extend([fingerprints[1], fingerprints[1], fingerprints[5]]);
    let documents = documents(&mut random, &fingerprints);
    let options = BuildOptions {
        codec,
        plan: PlanChoice::Named(plan.to_string()),
        block_size: Some(256),
        ..BuildOptions::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let store = build_noted(&folder.path().join("store"), options, &documents);
    let answers = answers(&store, &documents);
    assert!(answers.entries.as_ref().is_ok_and(|entries| entries.len() == documents.len()));
    let mut files = StoreFiles::new();
    for entry in fs::read_dir(store.path()).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        if name != "LOCK" {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    SampleStore { folder, files, documents, answers }
}

impl<F: Fingerprint> SampleStore<F> {
    /// Writes these files to a folder with the name `name`, and returns the path of the folder.
    fn write(&self, name: &str, files: &StoreFiles) -> std::path::PathBuf {
        let path = self.folder.path().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(path.join(name), bytes).unwrap());
        path
    }

    /// Opens, queries and verifies the store at path `store`. It may be refused when it is opened; otherwise, each
    /// result must be an error or the right result. If `damaged`, `verify` must report a problem.
    fn check(&self, store: &Path, damaged: bool, context: &str) {
        let checked = catch_unwind(AssertUnwindSafe(|| {
            let Ok(store) = Snapshot::<F>::open(store) else { return };
            check_answers(&answers(&store, &self.documents), &self.answers, context);
            assert!(!damaged || store.verify(|_| ()) > 0, "{context}: not found by verify");
        }));
        assert!(checked.is_ok(), "{context}");
    }

    fn flips_and_truncations(&self) {
        let store = self.write("damaged", &self.files);
        for (name, sound) in &self.files {
            let path = store.join(name);
            // Changes the file in place, which is much faster than writing it anew for each bit.
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            let mut put = |at: usize, byte: u8| {
                file.seek(SeekFrom::Start(at as u64)).unwrap();
                file.write_all(&[byte]).unwrap();
            };
            for bit in 0..sound.len() * 8 {
                put(bit / 8, sound[bit / 8] ^ 1 << (bit % 8));
                self.check(&store, true, &format!("{name}, bit {bit} flipped"));
                put(bit / 8, sound[bit / 8]);
            }
            put(sound.len(), 0);
            assert!(Snapshot::<F>::open(&store).is_err(), "{name} with a byte more");
            for len in (0..sound.len()).rev() {
                file.set_len(len as u64).unwrap();
                assert!(Snapshot::<F>::open(&store).is_err(), "{name} cut to {len} bytes");
            }
            fs::write(&path, sound).unwrap();
        }
        assert_eq!(Snapshot::<F>::open(&store).unwrap().verify(|error| panic!("{error}")), 0);
    }

    /// Changes some bytes of the store's files, recomputes the checksums, and reads the store, `rounds` times. Any
    /// result is accepted, but reading must not panic, take more than 10 seconds, or allocate more than 4 MiB at once.
    fn hostile(&self, rounds: usize, random: &mut Random) {
        let names: Vec<&String> = self.files.keys().collect();
        let opened = (0..rounds).filter(|round| {
            let mut files = self.files.clone();
            for _ in 0..1 + random.below(2) {
                let name = names[random.below(names.len() as u64) as usize];
                mutate(files.get_mut(name).unwrap(), random);
            }
            seal_store(&mut files);
            let store = self.write("hostile", &files);
            let start = Instant::now();
            LARGEST_ALLOCATION.set(0);
            let read = catch_unwind(AssertUnwindSafe(|| {
                let Ok(store) = Snapshot::<F>::open(&store) else { return false };
                store.verify(|_| ());
                answers(&store, &self.documents);
                store.stats();
                true
            }));
            let context = format!("round {round}; the files are in {}", store.display());
            if read.is_err()
                || start.elapsed() > Duration::from_secs(10)
                || LARGEST_ALLOCATION.get() > 1 << 22
            {
                let kept = std::env::temp_dir().join("simstore-hostile");
                let _ = fs::rename(&store, &kept);
                panic!("{context}, moved to {}: {} bytes at once", kept.display(), LARGEST_ALLOCATION.get());
            }
            read.unwrap()
        });
        let opened = opened.count();
        assert!(opened > rounds / 20, "only {opened} of {rounds} stores got past Snapshot::open");
    }
}

/// Changes a few bytes, half of them near the start or the end, where headers and footers are.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let len = bytes.len() as u64;
        let at = match random.below(4) {
            0 => random.below(len.min(300)),
            1 => len - 1 - random.below(len.min(60)),
            _ => random.below(len),
        } as usize;
        bytes[at] = match random.below(4) {
            0 => [0, 1, 2, 127, 128, 254, 255][random.below(7) as usize],
            1 => bytes[at].wrapping_add(1),
            2 => bytes[at] ^ 1 << random.below(8),
            _ => random.next() as u8,
        };
    }
}

#[test]
fn flips_and_truncations_first_difference() {
    sample::<u64>(Codec::FirstDifference, "probe-2", 24, 1).flips_and_truncations();
}

#[test]
fn flips_and_truncations_gap() {
    sample::<u64>(Codec::Gap, "probe-2", 24, 2).flips_and_truncations();
}

#[test]
fn flips_and_truncations_elias_fano() {
    sample::<u64>(Codec::EliasFano, "probe-2", 24, 3).flips_and_truncations();
}

#[test]
fn flips_and_truncations_all_differences() {
    sample::<u64>(Codec::AllDifferences, "probe-2", 24, 3).flips_and_truncations();
}

#[test]
fn flips_and_truncations_prefix_lines() {
    sample::<u64>(Codec::PrefixLines, "probe-2", 24, 3).flips_and_truncations();
}

#[test]
fn hostile_bytes_with_right_checksums() {
    for (i, codec) in Codec::ALL.into_iter().enumerate() {
        let mut random = Random(100 + i as u64);
        sample::<u64>(codec, "probe-2", 150, 4).hostile(1200, &mut random);
        sample::<u128>(codec, "probe-3", 80, 5).hostile(600, &mut random);
    }
}

/// A bit of a block is flipped, and the checksums are recomputed. Then the engine and `format-spec/reader.py` either
/// both accept the block, or both refuse it.
#[test]
fn the_independent_reader_agrees_on_hostile_blocks() {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec");
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(13);
    let (mut refused, mut accepted) = (0, 0);
    for name in [
        "consecutive",
        "no-flips",
        "example-gap",
        "example-first-difference",
        "example-elias-fano",
        "example-all-differences",
        "all-differences-64",
        "example-prefix-lines",
        "prefix-lines-64",
    ] {
        let mut sound = StoreFiles::new();
        for entry in fs::read_dir(spec.join("golden").join(name)).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if !name.ends_with(".json") {
                sound.insert(name, fs::read(entry.path()).unwrap());
            }
        }
        for round in 0..16 {
            let mut files = sound.clone();
            let table = files.get_mut("000001-00.table").unwrap();
            let foot = table.len() - 52;
            let u64_at = |at: usize| u64::from_le_bytes(table[at..at + 8].try_into().unwrap());
            let (start, len) = (u64_at(24) & 0xffff_ffff, u64_at(foot + 8));
            let bit = ((start + 8) * 8 + random.below((len - 8) * 8)) as usize;
            table[bit / 8] ^= 1 << (bit % 8);
            seal_store(&mut files);
            let store = folder.path().join(format!("{name}-{round}"));
            fs::create_dir(&store).unwrap();
            files.iter().for_each(|(name, bytes)| fs::write(store.join(name), bytes).unwrap());
            let ours = Snapshot::<u64>::open(&store).is_ok_and(|store| store.verify(|_| ()) == 0);
            let theirs = match Command::new("python3").arg(spec.join("reader.py")).arg(&store).output() {
                Ok(output) => output,
                Err(error) if std::env::var_os("CI").is_some() => panic!("python3: {error}"),
                Err(error) => {
                    return eprintln!("SKIPPED, the independent reader was not run: python3: {error}");
                }
            };
            let text = String::from_utf8_lossy(&theirs.stderr);
            assert_eq!(ours, theirs.status.success(), "{name}, bit {bit}: reader.py says: {text}");
            assert!(ours || text.lines().count() == 1, "{text}");
            *(if ours { &mut accepted } else { &mut refused }) += 1;
        }
    }
    assert!(refused > 20, "{refused} refused, {accepted} accepted");
}

#[test]
fn swapped_and_missing_files_are_refused() {
    for codec in Codec::ALL {
        let sample = sample::<u64>(codec, "paper-4", 60, 6);
        let names: Vec<&String> = sample.files.keys().collect();
        for (i, &name) in names.iter().enumerate() {
            let mut files = sample.files.clone();
            files.remove(name);
            assert!(Snapshot::<u64>::open(&sample.write("other", &files)).is_err(), "without {name}");
            for &other in &names[..i] {
                let mut files = sample.files.clone();
                files.insert(name.clone(), sample.files[other].clone());
                files.insert(other.clone(), sample.files[name].clone());
                let store = sample.write("other", &files);
                assert!(Snapshot::<u64>::open(&store).is_err(), "{name} and {other} swapped");
            }
        }
    }
}

/// If any file of a store is replaced with the file of another store, opening the store fails. The other store has
/// equally many documents, with slightly different fingerprints and ids.
#[test]
fn files_of_another_store_are_refused() {
    for codec in Codec::ALL {
        let sample = sample::<u64>(codec, "probe-2", 60, 7);
        let others: Vec<_> = (sample.documents.iter())
            .map(|(fingerprint, id, name)| (*fingerprint ^ 1, id + 1, name.clone()))
            .collect();
        let path = sample.folder.path().join("others");
        let options = BuildOptions {
            codec,
            plan: PlanChoice::Named("probe-2".to_string()),
            block_size: Some(256),
            ..BuildOptions::default()
        };
        let store = build_noted(&path, options, &others);
        for name in sample.files.keys() {
            let mut files = sample.files.clone();
            files.insert(name.clone(), fs::read(store.path().join(name)).unwrap());
            let mixed = sample.write("mixed", &files);
            let error = Snapshot::<u64>::open(&mixed).expect_err(name).to_string();
            assert!(name == "MANIFEST" || error.contains(&name[..]), "{error}");
        }
    }
}

/// `Plan::new` checks whether the tables of a plan find all matches. This check ends in bounded time, even for many
/// tables with arbitrary prefixes, which a hostile manifest may list.
#[test]
fn hostile_plans_are_checked_in_bounded_time() {
    let mut random = Random(8);
    let start = Instant::now();
    for round in 0..4 {
        let longest = [16, 48, 64, 128][round];
        let table = |_| {
            let mut bits: Vec<u8> = (0..128).collect();
            (0..127).for_each(|i| bits.swap(i, i + random.below(128 - i as u64) as usize));
            let permutation = Permutation::new(bits).unwrap();
            let prefix_bits = 1 + random.below(longest) as u32;
            TablePlan { permutation, prefix_bits, flips: random.below(u64::from(prefix_bits) / 3 + 1) as u32 }
        };
        let mut tables: Vec<TablePlan<u128>> = (0..64).map(table).collect();
        tables[0].permutation = Permutation::identity();
        let _ = Plan::new("hostile", 4 + 9 * round as u32, tables);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
