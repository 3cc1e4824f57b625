//! `/segments`: segments, tables and blocks, compared with the stored fingerprints.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simstore::{Codec, Store, StoreOptions};

use crate::support::{Random, TestService, hex};

fn strings<'a>(values: &'a Value, member: &str) -> Vec<&'a str> {
    values.as_array().unwrap().iter().map(|value| value[member].as_str().unwrap()).collect()
}

#[test]
fn blocks_have_all_fingerprints_of_each_table() {
    for codec in [Codec::FirstDifference, Codec::AllDifferences, Codec::Gap, Codec::EliasFano] {
        let create = |path: &std::path::Path| {
            let options = StoreOptions { codec: Some(codec), ..StoreOptions::default() };
            Store::<u64>::open(path, options).unwrap();
        };
        let service = TestService::start(create, |_| ());
        assert_eq!(service.get("/segments").with_status(200), json!([]));
        let mut random = Random(7);
        let stored: BTreeSet<String> = (0..2000).map(|_| hex(random.next())).collect();
        let documents: Vec<Value> = stored.iter().map(|digits| json!({"fingerprint": digits})).collect();
        service.post("/documents?if_new=false&durability=os", &json!(documents)).with_status(200);
        service.post("/flush", &json!({})).with_status(200);
        let segments = service.get("/segments").with_status(200);
        let [segment] = segments.as_array().unwrap().as_slice() else { panic!("{segments}") };
        assert_eq!((&segment["fingerprints"], &segment["pairs"]), (&json!(2000), &json!(2000)));
        assert!(segment["age_seconds"].as_f64().unwrap() < 1e5 && segment["bytes"].as_u64() > Some(4000));
        let tables = segment["tables"].as_array().unwrap();
        assert!(tables.len() > 1);
        for (at, listed) in tables.iter().enumerate() {
            let path = format!("/segments/{}/tables/{at}", segment["number"]);
            let table = service.get(&path).with_status(200);
            for member in ["table", "prefix_bits", "blocks", "bytes", "permutation", "codec"] {
                assert_eq!(table[member], listed[member], "{member}");
            }
            assert_eq!((&table["codec"], &table["sampled_every"]), (&json!(codec.name()), &json!(1)));
            let counted: u64 =
                table["histogram"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
            let blocks = table["blocks"].as_u64().unwrap();
            assert_eq!(counted, 2000 - blocks, "the first fingerprint of a block has no predecessor");
            let (mut originals, mut previous) = (BTreeSet::new(), String::new());
            for number in 0..blocks {
                let block = service.get(&format!("{path}/blocks/{number}")).with_status(200);
                let permuted = strings(&block["values"], "permuted");
                assert!(permuted.is_sorted() && *previous < *permuted[0]);
                assert_eq!((&block["first"], &block["last"]), (&json!(permuted[0]), &json!(permuted.last())));
                assert_eq!(block["values"][0]["differing_bit"], Value::Null);
                previous = (*permuted.last().unwrap()).to_owned();
                originals.extend(strings(&block["values"], "original").into_iter().map(str::to_owned));
            }
            assert_eq!(originals, stored, "{codec} table {at}");
            service.get(&format!("{path}/blocks/{blocks}")).fails(404, "no-part", "no block");
        }
        let number = &segment["number"];
        service.get(&format!("/segments/{number}/tables/99")).fails(404, "no-part", "no table 99");
        service.get("/segments/99/tables/0").fails(404, "no-part", "no segment 99");
        service.get("/segments/99/tables/0/blocks/0").fails(404, "no-part", "/segments");
        for path in ["/segments/x/tables/0", "/segments/1/tables/-1", "/segments/1/tables/0/blocks/1.5"] {
            service.get(path).fails(400, "bad-parameter", "");
        }
    }
}

#[test]
fn differing_bits_are_those_of_the_histogram() {
    let create = |path: &std::path::Path| {
        let options = StoreOptions { codec: Some(Codec::FirstDifference), ..StoreOptions::default() };
        Store::<u64>::open(path, options).unwrap();
    };
    let service = TestService::start(create, |_| ());
    for (id, fingerprint) in [0_u64, 1, 2, 1 << 63].into_iter().enumerate() {
        let body = json!({"id": id, "fingerprint": hex(fingerprint)});
        service.post("/documents?if_new=false", &body).with_status(201);
    }
    service.post("/flush", &json!({})).with_status(200);
    let number = service.get("/segments").with_status(200)[0]["number"].clone();
    let path = format!("/segments/{number}/tables/0");
    let table = service.get(&path).with_status(200);
    let block = service.get(&format!("{path}/blocks/0")).with_status(200);
    let values = block["values"].as_array().unwrap();
    let numbers: Vec<u64> = strings(&block["values"], "permuted")
        .iter()
        .map(|digits| u64::from_str_radix(digits, 16).unwrap())
        .collect();
    let mut histogram = vec![0; 64];
    for (at, pair) in numbers.windows(2).enumerate() {
        let bit = (pair[0] ^ pair[1]).leading_zeros();
        assert_eq!(values[at + 1]["differing_bit"], bit);
        histogram[bit as usize] += 1;
    }
    assert_eq!(table["histogram"], json!(histogram));
}

#[test]
fn a_trace_counts_each_table() {
    let service = TestService::fingerprints();
    let mut random = Random(11);
    let documents: Vec<Value> = (0..3000).map(|_| json!({"fingerprint": hex(random.next())})).collect();
    service.post("/documents?if_new=false&durability=os", &json!(documents)).with_status(200);
    service.post("/flush", &json!({})).with_status(200);
    let number = service.get("/segments").with_status(200)[0]["number"].clone();
    let fingerprint = documents[7]["fingerprint"].as_str().unwrap();
    let near = hex(u64::from_str_radix(fingerprint, 16).unwrap() ^ 0b1001);
    let trace = service.post("/trace", &json!({"fingerprint": near})).with_status(200);
    assert_eq!((&trace["fingerprints"], &trace["segments"][0]["number"]), (&json!(1), &number));
    let tables = trace["segments"][0]["tables"].as_array().unwrap();
    let sum = |member: &str| tables.iter().map(|table| table[member].as_u64().unwrap()).sum::<u64>();
    assert!(sum("found") >= 1 && sum("compared") >= sum("found") && sum("blocks") >= 1, "{trace}");
    assert!(sum("probes") >= tables.len() as u64 && sum("probes") >= sum("filtered") + sum("empty"));
    // Within 1 bit, the document is not found.
    let strict = service.post("/trace", &json!({"fingerprint": near, "distance": 1})).with_status(200);
    let found = strict["segments"][0]["tables"].as_array().unwrap();
    assert!(found.iter().all(|table| table["found"] == 0), "{strict}");
    service
        .post("/trace", &json!({"fingerprint": near, "distance": 4}))
        .fails(422, "distance", "more than the 3");
    service.post("/trace", &json!({"id": 99_999})).fails(404, "no-document", "`99999`");

    let similar = TestService::similar();
    let text: String = (0..100).map(|i| format!("word{i} ")).collect();
    similar.post("/documents", &json!({"id": 7, "text": text})).with_status(201);
    similar.post("/flush", &json!({})).with_status(200);
    for query in [json!({"text": text}), json!({"id": 7})] {
        let trace = similar.post("/trace", &query).with_status(200);
        let bands = trace["fingerprints"].as_u64().unwrap();
        let tables: Vec<&Value> = trace["segments"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|s| s["tables"].as_array().unwrap())
            .collect();
        // Each band finds at least itself.
        let found: u64 = tables.iter().map(|table| table["found"].as_u64().unwrap()).sum();
        assert!(bands > 1 && found >= bands, "{trace}");
    }
    similar.post("/trace", &json!({"fingerprint": hex(7)})).fails(422, "wrong-kind", "send a `text`");
    similar.post("/trace", &json!({"id": 8})).fails(404, "no-document", "`8`");
}

#[test]
fn a_trace_counts_the_probes_that_bloom_filters_end() {
    // The probes of this plan flip bits; only such a plan has filters.
    let create = |path: &std::path::Path| {
        let plan = Some("probe-2".parse().unwrap());
        Store::<u64>::open(path, StoreOptions { plan, ..StoreOptions::default() }).unwrap();
    };
    let service = TestService::start(create, |_| ());
    let mut random = Random(13);
    for _ in 0..2 {
        let documents: Vec<Value> = (0..3000).map(|_| json!({"fingerprint": hex(random.next())})).collect();
        service.post("/documents?if_new=false&durability=os", &json!(documents)).with_status(200);
        service.post("/flush", &json!({})).with_status(200);
    }
    let trace = service.post("/trace", &json!({"fingerprint": hex(random.next())})).with_status(200);
    let segments = trace["segments"].as_array().unwrap();
    let tables = || segments.iter().flat_map(|segment| segment["tables"].as_array().unwrap());
    let sum = |member: &str| tables().map(|table| table[member].as_u64().unwrap()).sum::<u64>();
    assert_eq!((segments.len(), sum("found")), (2, 0));
    assert!(
        sum("filtered") > sum("probes") / 2 && sum("filtered") + sum("empty") <= sum("probes"),
        "{trace}"
    );
}
