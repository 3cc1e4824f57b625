//! Runs the programs in `examples/` on small inputs, and compares their results with the plain loop.

use std::path::PathBuf;

use simstore::{Codec, Error, Snapshot};

use crate::support::random::Random;

#[path = "../examples/batch.rs"]
#[allow(dead_code, reason = "its main function takes the arguments of the process")]
mod batch;
#[path = "../examples/crawler.rs"]
#[allow(dead_code, reason = "its main function takes the arguments of the process")]
mod crawler;
#[path = "../examples/measure.rs"]
#[allow(dead_code, reason = "its main function takes the arguments of the process")]
mod measure;

fn distance(a: u64, b: u64) -> u32 {
    (a ^ b).count_ones()
}

/// The index has no two near pages, although four threads wrote it. A second crawl stores nothing.
#[test]
fn the_crawler_stores_no_two_near_pages() {
    let folder = tempfile::tempdir().unwrap();
    let [index, backup, second] = ["index", "backup", "second"].map(|name| folder.path().join(name));
    let report = crawler::run(3000, &index, &backup).unwrap();
    assert_eq!(report.stored + report.near, 3000, "{report:?}");
    assert!(report.near >= 500 && report.queries >= 1000 && report.found > 0, "{report:?}");
    assert!(report.in_backup <= report.stored);
    let pages = |path: &PathBuf| -> Vec<u64> {
        Snapshot::<u64>::open(path).unwrap().iter().map(|page| page.unwrap().fingerprint).collect()
    };
    let stored = pages(&index);
    assert_eq!(stored.len() as u64, report.stored);
    assert!((0..stored.len()).all(|i| stored[..i].iter().all(|&other| distance(stored[i], other) > 3)));
    assert!(pages(&backup).iter().all(|page| stored.binary_search(page).is_ok()));
    let again = crawler::run(3000, &index, &second).unwrap();
    assert_eq!((again.stored, again.in_backup), (0, report.stored), "{again:?}");
}

#[test]
fn the_batch_job_finds_what_the_plain_loop_finds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let (documents, count) = (4000, 600);
    let report = batch::run(documents, count, &path).unwrap();
    assert_eq!(report.stored, documents);
    let mut found: Vec<_> =
        report.matches.iter().map(|one| (one.query, one.found.id.unwrap(), one.found.distance)).collect();
    found.sort_unstable();
    let queries = batch::queries(documents, count);
    let mut expected = Vec::new();
    for (i, &query) in queries.iter().enumerate() {
        let near = |id: &u64| distance(query, batch::fingerprint(*id)) <= 3;
        expected
            .extend((0..documents).filter(near).map(|id| (i, id, distance(query, batch::fingerprint(id)))));
    }
    assert!(expected.len() >= count / 2);
    assert_eq!(found, expected);
    assert!(matches!(batch::run(1, 1, &path), Err(Error::AlreadyExists { .. })));
}

#[test]
fn the_measurement_reads_both_forms_and_measures_each_codec() {
    let fingerprints: Vec<u64> = (0..2000).map(Random::hash).collect();
    let lines: String = fingerprints.iter().map(|fingerprint| format!("{fingerprint:016x}\r\n")).collect();
    let raw: Vec<u8> = fingerprints.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()).collect();
    assert_eq!(measure::parse(lines.as_bytes()).unwrap(), fingerprints);
    assert_eq!(measure::parse(&raw).unwrap(), fingerprints);
    assert!(measure::parse(b"").unwrap().is_empty());
    assert!(measure::parse(b"1f\n\n12345678901234567\n").unwrap_err().starts_with("line 3: "));
    assert!(measure::parse(b"1f\nno\n").unwrap_err().starts_with("6 bytes, "));
    let folder = tempfile::tempdir().unwrap();
    let all = measure::run(fingerprints, 3, folder.path()).unwrap();
    assert_eq!((all.fingerprints, all.distance), (2000, 3));
    assert_eq!(all.codecs.iter().map(|one| one.codec).collect::<Vec<_>>(), Codec::ALL);
    for one in &all.codecs {
        // Each query is near the fingerprint that it was made from.
        assert!(one.matches == all.codecs[0].matches && one.matches >= 10_000, "{one:?}");
        assert!(one.tables > 0 && one.bytes > 2000 && !one.plan.is_empty(), "{one:?}");
    }
}
