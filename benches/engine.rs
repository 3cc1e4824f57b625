//! Criterion benches of the inner loops: decoding a table from start to end, finding the fingerprints of a table with
//! a given 32-bit prefix, and querying a store.

#[path = "../tests/support/random.rs"]
mod random;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use random::random;
use simstore::plan::Plan;
use simstore::raw::{Bytes, Table};
use simstore::{BuildOptions, Builder, Codec, Fingerprint, PlanChoice};

const COUNT: u64 = 1 << 20;

fn table(codec: Codec) -> Table<u64> {
    let mut state = 1;
    let mut fingerprints: Vec<u64> = (0..COUNT).map(|_| random(&mut state)).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    let plan = Plan::<u64>::named("probe-2", 3).expect("a plan of the catalogue");
    let bytes = Table::encode(&fingerprints, &plan.tables()[0], codec, None).expect("sorted");
    Table::open("table".as_ref(), Bytes::from(bytes)).expect("just written")
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode 2^20");
    group.throughput(Throughput::Elements(COUNT));
    for codec in Codec::ALL {
        let table = table(codec);
        let mut decoded = Vec::new();
        group.bench_function(codec.name(), |bencher| {
            bencher.iter(|| {
                for block in 0..table.blocks() {
                    decoded.clear();
                    table.decode_block(block, &mut decoded).expect("sound");
                    black_box(&decoded);
                }
            });
        });
    }
}

fn lookup(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("look up a 32-bit prefix, 2^20");
    for codec in Codec::ALL {
        let table = table(codec);
        let mut state = 7;
        group.bench_function(codec.name(), |bencher| {
            bencher.iter_batched(
                || random(&mut state) & u64::prefix_mask(32),
                |low| {
                    let mut sum = 0;
                    table.visit(low, low | u64::suffix_mask(32), |_, _, value| sum ^= value).expect("sound");
                    sum
                },
                BatchSize::SmallInput,
            );
        });
    }
}

fn query(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("query at distance 3, 2^20");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for plan in ["probe-1", "probe-2", "paper-4", "cover-11"] {
        for codec in [Codec::FirstDifference, Codec::EliasFano] {
            let plan_choice = PlanChoice::Named(plan.into());
            let options = BuildOptions { codec, plan: plan_choice, ids: false, ..BuildOptions::default() };
            let path = folder.path().join(format!("{plan} {codec}"));
            let mut builder = Builder::<u64>::create(&path, options).expect("a new store");
            let mut state = 1;
            (0..COUNT).for_each(|id| builder.insert(random(&mut state), id).expect("memory"));
            let store = builder.finish().expect("room on the disk");
            let mut matches = Vec::new();
            group.bench_function(format!("{plan}, {codec}"), |bencher| {
                bencher.iter_batched(
                    || random(&mut state),
                    |query| store.query_into(query, 3, &mut matches).expect("sound"),
                    BatchSize::SmallInput,
                );
            });
        }
    }
}

criterion_group!(benches, decode, lookup, query);
criterion_main!(benches);
