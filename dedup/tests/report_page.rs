//! Tests the report page: its data against the run and a plain loop, its size, and names and texts with markup.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use simstore::{Error, StoreOptions};
use simstore_corpus::Inputs;
use simstore_dedup::{ComparisonConfig, DedupConfig, KeepRule, Outputs, Report, run};
use simstore_io::{DocumentId, DocumentOptions};
use simstore_text::{Profile, SimilarDocuments, SimilarSettings, jaccard};

use crate::support::folder::TempFolder;
use crate::support::{Random, inputs, page_data};

/// Returns the data in the page of a report.
fn data(report: &Report) -> Value {
    page_data(&report.page(&()).unwrap().unwrap())
}

fn with_report(config: DedupConfig) -> DedupConfig {
    DedupConfig { report: true, ..config }
}

fn counts(data: &Value) -> BTreeMap<String, String> {
    let pairs: Vec<(String, String)> = serde_json::from_value(data["counts"].clone()).unwrap();
    pairs.into_iter().collect()
}

fn numbers(value: &Value) -> Vec<u64> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Returns texts of 40 to 70 words. Each third is a copy of an earlier text with up to 12 other words.
fn texts(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random(seed);
    let mut texts: Vec<Vec<u64>> = Vec::new();
    for at in 0..count {
        let mut text = match at % 3 {
            2 => texts[random.below(at as u64) as usize].clone(),
            _ => (0..40 + random.below(30)).map(|_| random.below(100_000)).collect(),
        };
        for _ in 0..if at % 3 == 2 { random.below(12) } else { 0 } {
            let place = random.below(text.len() as u64) as usize;
            text[place] = random.below(100_000);
        }
        texts.push(text);
    }
    texts.iter().map(|text| text.iter().map(|word| format!("w{word} ")).collect()).collect()
}

/// The histogram has each compared pair once, with its similarity, above and below the threshold. With `pairs`, the pairs above
/// are all similar pairs. Each cluster is there, with the similarities of its documents.
#[test]
fn the_data_is_that_of_a_plain_loop() {
    let texts = texts(5, 600);
    let sets: Vec<Vec<u64>> = texts.iter().map(|text| Profile::shingles().feature_set(text)).collect();
    let config = with_report(DedupConfig { pairs: true, ..DedupConfig::default() });
    let report = run(&config, &inputs::numbered(&texts), Outputs::default(), &()).unwrap();
    let (data, summary) = (data(&report), report.summary().clone());
    let pairs = numbers(&data["histogram"]["pairs"]);
    assert_eq!(pairs.iter().sum::<u64>(), summary.verified.unwrap());
    assert_eq!(pairs[..80].iter().sum::<u64>(), summary.rejected.unwrap());
    assert!(summary.rejected.unwrap() > 0);
    let mut expected = vec![0; 101];
    for b in 0..sets.len() {
        for a in (0..b).filter(|&a| sets[a] != sets[b]) {
            let similarity = jaccard(&sets[a], &sets[b]);
            expected[(similarity * 100.0 + 1e-9) as usize] += 1;
        }
    }
    // Groups of equal texts count once in the page, and with each text here.
    let distinct: std::collections::BTreeSet<&Vec<u64>> = sets.iter().collect();
    if distinct.len() == sets.len() {
        assert_eq!(pairs[90..], expected[90..]);
    }
    assert!((0..101).all(|bin| pairs[bin] <= expected[bin]), "{pairs:?} {expected:?}");

    let clusters = data["clusters"].as_array().unwrap();
    assert_eq!(
        (clusters.len(), data["cluster_count"].as_u64()),
        (summary.clusters, Some(summary.clusters as u64))
    );
    let (mut documents, mut removed) = (0, vec![0; 101]);
    let mut size_before = u64::MAX;
    for cluster in clusters {
        let size = cluster["size"].as_u64().unwrap();
        assert!(size <= size_before);
        (documents, size_before) = (documents + size, size);
        let representative: usize = cluster["id"].as_str().unwrap().parse().unwrap();
        let members = cluster["members"].as_array().unwrap();
        assert_eq!(members.len() as u64 + 1, size);
        let mut least = 0.0;
        for member in members {
            let score = member["score"].as_f64().unwrap();
            assert!(score >= least, "least similar first");
            least = score;
            let document: usize = member["id"].as_str().unwrap().parse().unwrap();
            let similarity = jaccard(&sets[representative], &sets[document]);
            assert!((0.0..2e-4).contains(&(similarity - score)), "{similarity} {score}");
            removed[(similarity * 100.0 + 1e-9) as usize] += 1;
        }
        assert_eq!(cluster["worst"].as_f64().unwrap().to_bits() > 0, !members.is_empty());
    }
    assert_eq!(documents as usize, summary.clustered);
    assert_eq!(numbers(&data["histogram"]["removed"]), removed);
    assert_eq!(removed.iter().sum::<u64>() as usize, summary.duplicates);
    assert_eq!(counts(&data)["documents read"], "600");
}

/// The segments of a comparison are the two texts, and a member without a comparison is only in a cluster that is too large.
#[test]
fn comparisons_are_the_texts_of_the_two_documents() {
    let base: Vec<String> = (0..60).map(|word| format!("word{word}")).collect();
    let mut texts = vec![base.join(" ")];
    for copy in 0..30 {
        let mut words = base.clone();
        words[copy] = format!("other{copy}");
        texts.push(words.join(" "));
    }
    let report =
        run(&with_report(DedupConfig::default()), &inputs::numbered(&texts), Outputs::default(), &())
            .unwrap();
    let data = data(&report);
    let members = data["clusters"][0]["members"].as_array().unwrap();
    assert_eq!(members.len(), 30);
    assert_eq!(members.iter().filter(|member| member["diff"].is_u64()).count(), 20);
    for member in members.iter().take(20) {
        let document: usize = member["id"].as_str().unwrap().parse().unwrap();
        let comparison = &data["comparisons"][member["diff"].as_u64().unwrap() as usize];
        let changed: Vec<_> =
            comparison["segments"].as_array().unwrap().iter().filter_map(Value::as_array).collect();
        assert_eq!(changed.len(), 1);
        let strings = changed[0].iter().map(|text| text.as_str().unwrap().trim()).collect::<Vec<_>>();
        assert_eq!(strings, [format!("word{}", document - 1), format!("other{}", document - 1)]);
    }
}

#[test]
fn markup_in_names_and_texts_stays_text() {
    let hostile = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> ' \" & \u{202e} \u{0}";
    let text = format!("{hostile} to be or not to be that is the question");
    let documents = [hostile, "b"].map(|id| (DocumentId::Name(id.to_owned()), text.clone()));
    let report =
        run(&with_report(DedupConfig::default()), &inputs::texts(documents), Outputs::default(), &())
            .unwrap();
    let page = report.page(&()).unwrap().unwrap();
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("onerror=alert(2)>") || !page.contains("<img"));
    let data = page_data(&page);
    assert_eq!(data["clusters"][0]["id"], hostile);
    assert!(data["comparisons"][0]["segments"][0].as_str().unwrap().starts_with("</script>"));
}

/// 100,000 clusters with long names fit in 20 MiB, and the page says how many clusters it leaves out.
#[test]
fn very_many_clusters_fit_in_the_page() {
    let mut random = Random(1);
    let count = 110_000_u64;
    let fingerprints: Vec<u64> = (0..count).map(|_| random.next()).collect();
    let name = |at: u64, copy: u64| {
        DocumentId::Name(format!("https://example.org/a/rather/long/address/of/a/page/{at}?copy={copy}"))
    };
    let all = (0..count).flat_map(|at| {
        let fingerprint = fingerprints[at as usize];
        (0..2 + u64::from(at % 1000 == 0)).map(move |copy| (name(at, copy), fingerprint ^ (copy & 1)))
    });
    let report =
        run(&with_report(DedupConfig::default()), &inputs::values(all), Outputs::default(), &()).unwrap();
    let page = report.page(&()).unwrap().unwrap();
    assert!(page.len() < 20 << 20, "{}", page.len());
    let data = page_data(&page);
    assert_eq!(data["cluster_count"].as_u64(), Some(report.summary().clusters as u64));
    let listed = data["clusters"].as_array().unwrap();
    assert!((50_000..=100_500).contains(&listed.len()), "{}", listed.len());
    // The clusters of three documents come first.
    assert!(listed[..100].iter().all(|cluster| cluster["size"] == 3));
    assert_eq!(data["histogram"]["unit"], "distance");
    assert_eq!(
        numbers(&data["histogram"]["removed"]).iter().sum::<u64>() as usize,
        report.summary().duplicates
    );
    assert_eq!(data["has_texts"], false);
}

/// The size of the page is bounded also for long texts with many differences.
#[test]
fn long_texts_are_shortened() {
    let words = |mark: &str, times: usize| -> String {
        (0..times).map(|at| if at % 9 == 0 { format!("{mark}{at} ") } else { format!("same{at} ") }).collect()
    };
    let texts: Vec<String> =
        (0..400).flat_map(|at| [words(&format!("a{at}x"), 9000), words(&format!("b{at}x"), 9000)]).collect();
    let config = with_report(DedupConfig {
        comparison: ComparisonConfig::by_similarity(0.5),
        ..DedupConfig::default()
    });
    let report = run(&config, &inputs::numbered(&texts), Outputs::default(), &()).unwrap();
    let page = report.page(&()).unwrap().unwrap();
    assert!(page.len() < 20 << 20, "{}", page.len());
    let data = page_data(&page);
    let comparisons = data["comparisons"].as_array().unwrap();
    assert!(!comparisons.is_empty());
    assert!(
        comparisons
            .iter()
            .all(|comparison| comparison["cut"] == true && comparison["more"].as_u64() > Some(0))
    );
}

#[test]
fn stored_representatives_are_compared_if_the_store_has_texts() {
    let folder = TempFolder::new();
    let text = "the quick brown fox jumps over the lazy dog and then over the sleeping cat on the mat";
    for with_texts in [true, false] {
        let path = folder.0.path().join(if with_texts { "texts" } else { "signatures" });
        let settings = SimilarSettings::new(0.7, 0.95).unwrap();
        let settings = if with_texts { settings.with_texts() } else { settings };
        let stored =
            SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), settings).unwrap();
        stored.add(text, 1, Some("fox")).unwrap();
        drop(stored);
        let config = with_report(DedupConfig { against: vec![path], ..DedupConfig::default() });
        let copy = text.replace("mat", "bed");
        let report = run(&config, &inputs::numbered(&[copy]), Outputs::default(), &()).unwrap();
        let data = data(&report);
        let cluster = &data["clusters"][0];
        assert_eq!((&cluster["id"], cluster["stored"].is_string()), (&Value::from("fox"), true));
        let diff = cluster["members"][0]["diff"].as_u64();
        assert_eq!(diff.is_some(), with_texts);
        if let Some(diff) = diff {
            let segments = &data["comparisons"][diff as usize]["segments"];
            assert_eq!(segments[segments.as_array().unwrap().len() - 1], serde_json::json!([" mat", " bed"]));
        }
    }
}

#[test]
fn warnings_are_on_the_page() {
    let folder = TempFolder::new();
    let path = folder.0.path().join("in.jsonl");
    fs::write(
        &path,
        "{\"id\": \"a\", \"text\": \"to be or not\"}\nno JSON\n{\"id\": \"a\", \"text\": \"\"}\n",
    )
    .unwrap();
    let inputs = Inputs::new(&[path], DocumentOptions::default()).unwrap().skip_malformed(true);
    let page = folder.0.path().join("report.html");
    let outputs = Outputs { report: Some(page.clone()), ..Outputs::default() };
    run(&DedupConfig::default(), &inputs, outputs, &()).unwrap();
    let data = page_data(&fs::read_to_string(page).unwrap());
    let warnings: Vec<String> = serde_json::from_value(data["warnings"].clone()).unwrap();
    for part in ["in.jsonl", "skipped 1 invalid document", "has no text", "duplicate ids"] {
        assert!(warnings.iter().any(|warning| warning.contains(part)), "{part}: {warnings:?}");
    }
    assert_eq!(counts(&data)["invalid documents skipped"], "1");
}

#[test]
fn a_page_needs_its_option_and_a_name_of_html() {
    let texts = [String::from("to be or not to be")];
    let report = run(&DedupConfig::default(), &inputs::numbered(&texts), Outputs::default(), &()).unwrap();
    let refused = report.page(&()).unwrap_err().to_string();
    assert!(refused.contains("option `report`"), "{refused}");
    for (name, is_accepted) in [
        ("a.html", true),
        ("a.HTM", true),
        ("a", true),
        ("a.csv", false),
        ("a.jsonl", false),
        ("a.gz", false),
    ] {
        let folder = TempFolder::new();
        let outputs = Outputs { report: Some(folder.0.path().join(name)), ..Outputs::default() };
        let result = run(&DedupConfig::default(), &inputs::numbered(&texts), outputs, &());
        match result {
            Ok(_) => assert!(is_accepted, "{name}"),
            Err(error) => {
                assert!(matches!(error, Error::BadArgument(_)) && error.to_string().contains(".html"));
                assert!(!is_accepted, "{name}: {error}");
            }
        }
    }
}

/// Without a kept document, each other document of a cluster is compared with the first one.
#[test]
fn a_run_that_keeps_none_has_a_page() {
    let text = "to be or not to be that is the question".to_owned();
    let config = with_report(DedupConfig { keep: KeepRule::None, ..DedupConfig::default() });
    let report = run(&config, &inputs::numbered(&[text.clone(), text]), Outputs::default(), &()).unwrap();
    let data = data(&report);
    assert_eq!((&data["has_kept"], &data["clusters"][0]["size"]), (&Value::from(false), &Value::from(2)));
    assert_eq!(data["clusters"][0]["members"].as_array().unwrap().len(), 1);
}
