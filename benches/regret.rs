//! Compares the plan that `simstore::plan::choose` takes with other named plans, by measured times of queries. Prints
//! Markdown.
//!
//! The *regret* is the time of a query with the chosen plan, divided by the time with the fastest *allowed* plan. A plan is
//! allowed if its tables take at most 1 MiB, or a tenth, more than the tables of the chosen plan. The last columns are the
//! plan with the lowest price, and the price of the chosen plan as a multiple of it. `choose` defines the price; here it
//! is computed from the measured time and size. Plans with far worse estimates than the chosen plan are not measured.
//!
//! `cargo bench --bench regret -- 1000 1000000 FILE.u64 FILE.u128` selects the sets: numbers of random fingerprints
//! (default: 100000), and files of little-endian fingerprints of 64 or 128 bits. `N@FILE.u64` selects N fingerprints in
//! clusters like in the file. `--bits=64,128` are the widths of the random sets, `--distances=0,3,8` the
//! distances, `--codecs=gap` the codecs, and `--plans=scan,probe-3` the plans to compare with. With `--all`, the bench
//! measures all named plans and prints a row for each. Stores go to the folder TMPDIR and are removed at the end.

#[path = "../tests/support/random.rs"]
mod random;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use random::Random;
use simstore::plan::{CostEstimate, Medium, Plan, PlanChoice, Workload, choose, estimate, estimate_all};
use simstore::{BuildOptions, Builder, Codec, Fingerprint, Match, Snapshot};

const CODECS: &str = "first-difference,elias-fano";
const DISTANCES: &str = "0,1,2,3,4,6,8,10,12,16";
const ROUNDS: usize = 5;
const QUERIES: usize = 2000;
/// Time limit for all queries of one store, in seconds. If they would take longer, fewer queries run.
const MEASURE_SECONDS: f64 = 0.2;

type BoxError = Box<dyn std::error::Error>;

/// A set of distinct fingerprints, in ascending order.
struct Set<F> {
    name: String,
    fingerprints: Vec<F>,
    /// Whether the fingerprints are random. Queries of a random set are near stored fingerprints or random, half of
    /// them each. Queries of other sets are near stored fingerprints.
    random: bool,
}

fn random_fingerprint<F: Fingerprint>(state: &mut Random) -> F {
    let bytes: Vec<u8> = (0..2).flat_map(|_| state.next().to_le_bytes()).collect();
    F::read_le(&bytes[..F::BITS as usize / 8])
}

impl<F: Fingerprint> Set<F> {
    fn new(name: String, mut fingerprints: Vec<F>, random: bool) -> Self {
        fingerprints.sort_unstable();
        fingerprints.dedup();
        Set { name, fingerprints, random }
    }

    fn random(count: u64) -> Self {
        let mut state = Random(1);
        let fingerprints = (0..count).map(|_| random_fingerprint(&mut state)).collect();
        Set::new("random".into(), fingerprints, true)
    }

    /// Reads the fingerprints of a file. If `count` is given, returns `count` of them at random. If the file has fewer,
    /// appends copies of the whole set. Each copy has random bits flipped: the same bits in all its fingerprints.
    fn from_file(path: &str, count: Option<u64>) -> Result<Self, BoxError> {
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let read = bytes.chunks_exact(F::BITS as usize / 8).map(F::read_le).collect();
        let name = path.rsplit('/').next().unwrap_or(path).to_string();
        let set = Set::new(name, read, false);
        let Some(count) = count else { return Ok(set) };
        let (mut state, mut fingerprints) = (Random(5), set.fingerprints.clone());
        while (fingerprints.len() as u64) < count {
            let flips: F = random_fingerprint(&mut state);
            fingerprints.extend(set.fingerprints.iter().map(|&fingerprint| fingerprint ^ flips));
        }
        for i in (1..fingerprints.len()).rev() {
            fingerprints.swap(i, state.index(i + 1));
        }
        fingerprints.truncate(count as usize);
        Ok(Set::new(set.name, fingerprints, false))
    }

    /// Generates queries. A query near a stored fingerprint differs from it in 0 to `distance` bits.
    fn queries(&self, distance: u32) -> Vec<F> {
        let mut state = Random(99);
        let queries = (0..QUERIES).map(|i| {
            if self.random && i % 2 == 1 {
                return random_fingerprint(&mut state);
            }
            let stored = self.fingerprints[state.index(self.fingerprints.len())];
            let flips = state.below(u64::from(distance) + 1);
            (0..flips).fold(stored, |x, _| x ^ F::bit_mask(state.below(u64::from(F::BITS)) as u32))
        });
        queries.collect()
    }
}

/// Returns the processor time of this thread in nanoseconds. Unlike elapsed time, it hardly depends on other load on the
/// machine. Without Linux's `schedstat`, returns the elapsed time since `start`.
fn thread_nanoseconds(start: Instant) -> f64 {
    // Linux updates the count when a thread yields.
    std::thread::yield_now();
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let own = counts.split(' ').next().and_then(|count| count.parse().ok());
    own.unwrap_or_else(|| start.elapsed().as_nanos() as f64)
}

/// Runs the queries, and returns the mean time of a query in nanoseconds. `matches` is a buffer.
fn nanoseconds_per_query<F: Fingerprint>(
    store: &Snapshot<F>,
    queries: &[F],
    distance: u32,
    matches: &mut Vec<Match<F>>,
) -> Result<f64, BoxError> {
    let start = Instant::now();
    let before = thread_nanoseconds(start);
    for &query in queries {
        store.query_into(query, distance, matches)?;
        black_box(&matches);
    }
    Ok((thread_nanoseconds(start) - before) / queries.len() as f64)
}

/// A store with one plan, and the measured times of its queries.
struct PlanStore<F> {
    plan: String,
    store: Snapshot<F>,
    /// Mean time of a query in each round, in nanoseconds.
    times: Vec<f64>,
    /// Number of queries in each round.
    queries: usize,
}

impl<F: Fingerprint> PlanStore<F> {
    fn build(
        set: &Set<F>,
        queries: &[F],
        distance: u32,
        codec: Codec,
        plan: &str,
        folder: &Path,
    ) -> Result<Self, BoxError> {
        let choice = PlanChoice::Named(plan.to_string());
        let options = BuildOptions { codec, distance, ids: false, plan: choice, ..BuildOptions::default() };
        let mut builder = Builder::<F>::create(&folder.join(plan), options)?;
        for (&fingerprint, id) in set.fingerprints.iter().zip(0..) {
            builder.insert(fingerprint, id)?;
        }
        let store = builder.finish()?;
        // Reads all files into the page cache and verifies all blocks; queries would do this otherwise.
        assert_eq!(store.verify(|error| eprintln!("{error}")), 0);
        let each = nanoseconds_per_query(&store, &queries[..20], distance, &mut Vec::new())?;
        let count = ((MEASURE_SECONDS * 1e9 / each) as usize / ROUNDS).clamp(20, queries.len());
        Ok(PlanStore { plan: plan.to_string(), store, times: Vec::new(), queries: count })
    }

    /// Returns the median of the measured times, in nanoseconds.
    fn nanoseconds(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn table_bytes(&self) -> u64 {
        self.store.stats().table_bytes
    }

    /// Returns the price of the plan as `choose` defines it, but with the measured time and size.
    fn price(&self) -> f64 {
        self.nanoseconds() * (self.table_bytes() as f64 + f64::from(16 << 20)).powi(3)
    }
}

struct Arguments {
    distances: Vec<u32>,
    codecs: Vec<Codec>,
    plans: Option<Vec<String>>,
    all: bool,
}

/// Measures the plans of a set for one distance and codec, and prints a row of the table.
fn measure<F: Fingerprint>(
    set: &Set<F>,
    distance: u32,
    codec: Codec,
    arguments: &Arguments,
) -> Result<(), BoxError> {
    let count = set.fingerprints.len() as u64;
    let workload =
        Workload { fingerprints: count, codec, block_size: None, span: None, medium: Medium::Memory };
    let chosen = choose::<F>(distance, &workload)?;
    let bytes = |estimate: &CostEstimate| estimate.bytes_per_fingerprint * count as f64;
    let price =
        |estimate: &CostEstimate| estimate.nanoseconds * (bytes(estimate) + f64::from(16 << 20)).powi(3);
    let estimated = estimate(&chosen, &workload);
    let limit = (bytes(&estimated) * 1.1).max(bytes(&estimated) + f64::from(1 << 20));
    let is_measured = |plan: &Plan<F>, estimate: &CostEstimate| match &arguments.plans {
        Some(plans) => plans.iter().any(|name| name == plan.name()) || plan.name() == chosen.name(),
        None if arguments.all => true,
        None => {
            let allowed = bytes(estimate) <= limit && estimate.nanoseconds < 8.0 * estimated.nanoseconds;
            allowed || price(estimate) < 3.0 * price(&estimated)
        }
    };
    let (folder, queries) = (tempfile::tempdir()?, set.queries(distance));
    let mut stores = Vec::new();
    for (plan, estimate) in estimate_all::<F>(distance, &workload)? {
        if is_measured(&plan, &estimate) {
            let store = PlanStore::build(set, &queries, distance, codec, plan.name(), folder.path())?;
            stores.push((store, estimate));
        }
    }
    // The plans take turns, so that other load on the machine slows all of them.
    let mut matches = Vec::new();
    for _ in 0..ROUNDS {
        for (one, _) in &mut stores {
            nanoseconds_per_query(&one.store, &queries[..20], distance, &mut matches)?;
            one.times.push(nanoseconds_per_query(
                &one.store,
                &queries[..one.queries],
                distance,
                &mut matches,
            )?);
        }
    }
    let prefix = format!("| {} | {} | {count} | {distance} | {codec} |", F::BITS, set.name);
    if arguments.all {
        for (one, estimate) in &stores {
            println!(
                "{prefix} {}{} | {} | {:.2} | {:.2} |",
                one.plan,
                if one.plan == chosen.name() { " (chosen)" } else { "" },
                one.table_bytes(),
                one.nanoseconds() / 1e3,
                estimate.nanoseconds / 1e3,
            );
        }
        return Ok(());
    }
    let auto = stores.iter().find(|(one, _)| one.plan == chosen.name()).map(|(one, _)| one);
    let allowed = stores.iter().filter(|(_, estimate)| bytes(estimate) <= limit).map(|(one, _)| one);
    let fastest = allowed.min_by(|a, b| a.nanoseconds().total_cmp(&b.nanoseconds()));
    let cheapest = stores.iter().map(|(one, _)| one).min_by(|a, b| a.price().total_cmp(&b.price()));
    let (Some(auto), Some(fastest), Some(cheapest)) = (auto, fastest, cheapest) else { return Ok(()) };
    println!(
        "{prefix} {} | {} | {:.2} | {} | {:.2} | {:.2} | {} | {:.2} |",
        auto.plan,
        auto.table_bytes(),
        auto.nanoseconds() / 1e3,
        fastest.plan,
        fastest.nanoseconds() / 1e3,
        auto.nanoseconds() / fastest.nanoseconds(),
        cheapest.plan,
        auto.price() / cheapest.price(),
    );
    Ok(())
}

fn measure_set<F: Fingerprint>(set: &Set<F>, arguments: &Arguments) -> Result<(), BoxError> {
    for &distance in &arguments.distances {
        for &codec in &arguments.codecs {
            measure(set, distance, codec, arguments)?;
        }
    }
    Ok(())
}

fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
    let list = |name: &str, default: &str| -> Vec<String> {
        option(name).unwrap_or(default).split(',').map(str::to_string).collect()
    };
    let widths = list("--bits=", "64,128");
    let options = Arguments {
        distances: list("--distances=", DISTANCES)
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?,
        codecs: list("--codecs=", CODECS).iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
        plans: option("--plans=").map(|text| text.split(',').map(str::to_string).collect()),
        all: arguments.iter().any(|argument| argument == "--all"),
    };
    if options.all {
        println!("| bits | set | n | k | codec | plan | bytes | measured, us | predicted, us |");
        println!("|---|---|---|---|---|---|---|---|---|");
    } else {
        println!(
            "| bits | set | n | k | codec | chosen plan | bytes | us | fastest allowed plan | us | regret \
             | plan of the lowest price | price / lowest price |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    }
    let mut sets: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|text| !text.starts_with("--")).collect();
    if sets.is_empty() {
        sets.push("100000");
    }
    for set in sets {
        if let Ok(count) = set.parse() {
            for width in &widths {
                match width.as_str() {
                    "64" => measure_set(&Set::<u64>::random(count), &options)?,
                    _ => measure_set(&Set::<u128>::random(count), &options)?,
                }
            }
            continue;
        }
        let (count, path) = match set.split_once('@') {
            Some((count, path)) => (Some(count.parse()?), path),
            None => (None, set),
        };
        if path.ends_with(".u128") {
            measure_set(&Set::<u128>::from_file(path, count)?, &options)?;
        } else {
            measure_set(&Set::<u64>::from_file(path, count)?, &options)?;
        }
    }
    Ok(())
}
