//! Tests of the data that the tasks of a distributed join exchange: disjoint sets of fingerprints (buckets), the
//! positions of the fingerprints in the input, and clusters of fingerprints (forests). The expected results come from
//! plain loops.

use std::collections::BTreeMap;

use simstore::Fingerprint;
use simstore::error::ErrorCode;
use simstore::join::{Bucket, Forest, JoinParts, bucket, bucket_distinct, bucket_positions, pack, unpack};

use crate::support::random::random;

/// Returns unsorted fingerprints that differ only in a few bit positions, so that many of them are equal.
fn values<F: Fingerprint>(count: usize) -> Vec<F> {
    let mut state = 23;
    let mut next = || u128::from(random(&mut state)) << 64 | u128::from(random(&mut state));
    (0..count).map(|_| F::from_u128(next() & (0b1011 << 120 | 0b11 << 60 | 0b111))).collect()
}

fn check<F: Fingerprint>() {
    let values = values::<F>(3000);
    let mut times: BTreeMap<F, Vec<u32>> = BTreeMap::new();
    for (&value, at) in values.iter().zip(0..) {
        times.entry(value).or_default().push(at);
    }
    for buckets in [1, 2, 7, 1000] {
        let sent = bucket_distinct(values.clone(), buckets);
        assert!(sent.windows(2).all(|pair| pair[0].place < pair[1].place));
        let mut expected = times.clone();
        for sent in &sent {
            assert!(!sent.fingerprints.is_empty() && sent.fingerprints.is_sorted());
            for &one in &sent.fingerprints {
                assert_eq!(bucket(one, buckets), sent.place);
                let times = expected.remove(&one).unwrap().len();
                assert_eq!(times > 1, sent.repeated.binary_search(&one).is_ok());
            }
            assert!(sent.repeated.iter().all(|one| sent.fingerprints.contains(one)));
        }
        assert!(expected.is_empty());
        let mut positions = Vec::new();
        for bucket_part in bucket_positions(&values, buckets, |at| at as u32 + 1) {
            for (&one, &position) in bucket_part.fingerprints.iter().zip(&bucket_part.positions) {
                assert_eq!((bucket(one, buckets), values[position as usize - 1]), (bucket_part.place, one));
                positions.push(position);
            }
        }
        positions.sort_unstable();
        assert!(positions.into_iter().eq(1..=values.len() as u32));
    }
    let stored = Bucket::new(&values).unwrap();
    for (&value, positions) in &times {
        assert!(stored.positions(value).eq(positions.iter().copied()));
    }
    assert_eq!(stored.positions(F::MAX).len(), 0);
    assert_eq!(Bucket::<F>::new(&[]).unwrap().positions(F::ZERO).len(), 0);
    assert_eq!(unpack::<F>(&pack(&values)).unwrap(), values);
    assert_eq!(unpack::<F>(&pack(&values)[1..]).unwrap_err().code(), ErrorCode::BadArgument);
}

#[test]
fn buckets_hold_each_once_and_tell_where_it_was() {
    check::<u64>();
    check::<u128>();
}

fn check_places<F: Fingerprint>(distance: u32, parts: usize) {
    let values = values::<F>(3000);
    let distinct: Vec<F> =
        values.iter().copied().collect::<std::collections::BTreeSet<F>>().into_iter().collect();
    let parts = JoinParts::<F>::with_parts(distance, parts).unwrap();
    // Each place gets the fingerprints of its part. Only places of the first table get the repeated fingerprints.
    let mut all = Forest::new();
    let mut last = None;
    let mut seen = 0;
    let repeated = vec![distinct[0], distinct[0]];
    parts
        .distribute(values.clone(), repeated, |sent| {
            assert!(last < Some(sent.place) && !sent.fingerprints.is_empty());
            last = Some(sent.place);
            let (table, part) = parts.table_and_part(sent.place)?;
            let expected = distinct.iter().copied().filter(|&one| parts.part(table, one) == part);
            let mut here = sent.fingerprints.clone();
            here.sort_unstable();
            assert!(here.into_iter().eq(expected));
            assert!(table == 0 || sent.repeated.is_empty());
            seen += sent.fingerprints.len();
            all.merge(&parts.edges(sent.place, sent.fingerprints, &sent.repeated, None)?);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, distinct.len() * parts.table_count());
    // The linear scan.
    let mut plain = Forest::new();
    for (at, &a) in distinct.iter().enumerate() {
        let is_repeated = at == 0 || values.iter().filter(|&&value| value == a).count() > 1;
        if is_repeated {
            plain.connect(a, a);
        }
        for &b in &distinct[at + 1..] {
            if a.distance(b) <= distance {
                plain.connect(a, b);
            }
        }
    }
    assert_eq!(all.edges(), plain.edges());
    assert_eq!(all.edges().to_vec(), all.into_edges());
    assert_eq!(parts.table_and_part(parts.place_count()).unwrap_err().code(), ErrorCode::BadArgument);
}

#[test]
fn places_connect_what_the_plain_loop_does() {
    for (distance, parts) in [(0, 1), (1, 4), (3, 16)] {
        check_places::<u64>(distance, parts);
        check_places::<u128>(distance, parts);
    }
}
