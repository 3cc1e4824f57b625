//! Tests keep rules that compare the value of a field (`--keep newest:FIELD` and others). Compares the kept documents
//! with the result of a plain loop.

use serde_json::{Value, json};
use simstore::Error;
use simstore_corpus::Inputs;
use simstore_dedup::{ComparisonConfig, DedupConfig, KeepRule, Outputs};
use simstore_io::{Document, DocumentId, DocumentOptions};

use crate::beyond_memory::{DiagnosticRecorder, SMALL_MEMORY_BYTES};
use crate::{Random, TempFolder};

const DOCUMENTS: usize = 9000;
/// Number of shared topics. One document in 14 has a random shared topic; each other document has a topic of its own.
const TOPICS: u64 = 200;

/// Returns a random value of the field that the keep rule compares: a number, a number as text, a text, or no value.
fn value(random: &mut Random) -> Option<Value> {
    let number = random.below(7) as f64 - 3.0;
    match random.below(12) {
        0 => None,
        1 => Some(Value::Null),
        2 => Some(json!("")),
        3 => Some(json!(["NaN", "nan", "-NaN"][random.index(3)])),
        4 => Some(json!(["inf", "Infinity", "1e999"][random.index(3)])),
        5 => Some(json!(["-inf", "-Infinity", "-1e999"][random.index(3)])),
        6 => Some(json!(["-0.0", "0", "-0", "0.0"][random.index(4)])),
        7 => Some(json!(["2024-05-01", "2026-01-01T00:00:00", "soon"][random.index(3)])),
        8 => Some(json!(number)),
        9 => Some(json!(number as i64)),
        10 => Some(json!(format!("{}.5", number as i64))),
        _ => Some(json!(random.below(2) == 0)),
    }
}

/// Converts a JSON value to the text that a keep rule compares; `None` for a missing value.
fn as_text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn number(value: Option<&str>) -> Option<f64> {
    match value? {
        "true" => Some(1.0),
        "false" => Some(0.0),
        text => text.parse().ok().filter(|number: &f64| !number.is_nan()),
    }
}

/// Whether the rule prefers value `a` to value `b`. Returns `false` if it prefers neither.
fn is_preferred(keep: &KeepRule, a: Option<&str>, b: Option<&str>) -> bool {
    let is_text =
        |value: Option<&str>| value.is_some_and(|text| !text.is_empty() && text.parse::<f64>().is_err());
    let (x, y) = (number(a), number(b));
    match keep {
        KeepRule::Largest(_) => x.is_some_and(|x| y.is_none_or(|y| x > y)),
        KeepRule::Smallest(_) => x.is_some_and(|x| y.is_none_or(|y| x < y)),
        _ if is_text(a) && is_text(b) && x.or(y).is_none() => a > b,
        _ if x.is_some() || y.is_some() => match (x, y) {
            (Some(x), Some(y)) => x > y,
            (Some(_), None) => !is_text(b),
            _ => is_text(a),
        },
        _ => is_text(a) && !is_text(b),
    }
}

#[test]
fn kept_documents_equal_those_of_the_plain_loop() {
    let folder = TempFolder::new();
    let mut random = Random(8);
    let topics: Vec<u64> = (0..DOCUMENTS as u64)
        .map(|at| if random.below(14) == 0 { random.below(TOPICS) } else { TOPICS + at })
        .collect();
    let values: Vec<Option<Value>> = (0..DOCUMENTS).map(|_| value(&mut random)).collect();
    let text = |topic: u64| (0..12).map(|at| format!("w{}", topic * 100 + at)).collect::<Vec<_>>().join(" ");
    let mut lines = String::new();
    for (topic, value) in topics.iter().zip(&values) {
        let mut line = json!({"text": text(*topic)});
        if let Some(value) = value {
            line["of"] = value.clone();
        }
        lines += &format!("{line}\n");
    }
    let path = folder.file("a.jsonl", lines);
    let texts: Vec<Option<String>> = values.iter().map(|value| as_text(value.as_ref())).collect();
    for keep in [
        KeepRule::Newest("of".to_owned()),
        KeepRule::Largest("of".to_owned()),
        KeepRule::Smallest("of".to_owned()),
    ] {
        let mut best: Vec<Option<usize>> = vec![None; TOPICS as usize + DOCUMENTS];
        for (at, &topic) in topics.iter().enumerate() {
            let best = &mut best[topic as usize];
            if best.is_none_or(|best| is_preferred(&keep, texts[at].as_deref(), texts[best].as_deref())) {
                *best = Some(at);
            }
        }
        let mut expected: Vec<usize> = best.into_iter().flatten().collect();
        expected.sort_unstable();

        let kept = |inputs: &Inputs, options: &DedupConfig, told: &DiagnosticRecorder| -> Vec<usize> {
            let found = simstore_dedup::run(options, inputs, Outputs::default(), told).unwrap();
            found.kept().map(|kept| kept.unwrap().document).collect()
        };
        let files = || Inputs::new(std::slice::from_ref(&path), DocumentOptions::default()).unwrap();
        for distance in [None, Some(0)] {
            let compare = distance.map_or(ComparisonConfig::Default, ComparisonConfig::by_distance);
            let options =
                || DedupConfig { keep: keep.clone(), comparison: compare.clone(), ..DedupConfig::default() };
            let documents = topics.iter().zip(&texts).zip(0..).map(|((&topic, extra), at)| {
                let document = Document::new(DocumentId::Number(at), text(topic));
                Ok(Document { extra: extra.clone(), ..document })
            });
            let documents: Vec<_> = documents.collect();
            let told = DiagnosticRecorder::default();
            let handed = kept(&Inputs::from_documents(documents), &options(), &told);
            assert_eq!(handed, expected, "{keep:?} {distance:?}");
            assert!(!told.has_spilled());
            // The first run writes the part files, the second one reads them.
            for _ in 0..2 {
                let resume = Some(folder.0.path().join(format!("parts-{distance:?}")).into());
                let parts =
                    kept(&files(), &DedupConfig { resume, ..options() }, &DiagnosticRecorder::default());
                assert_eq!(parts, expected, "{keep:?} {distance:?}");
            }
            let told = DiagnosticRecorder::default();
            let on_disk =
                kept(&files(), &DedupConfig { memory: Some(SMALL_MEMORY_BYTES), ..options() }, &told);
            assert_eq!(on_disk, expected, "{keep:?} {distance:?}");
            assert!(told.has_spilled());
        }
    }
}

#[test]
fn a_rule_of_numbers_tells_of_documents_without_one() {
    let run = |values: [&str; 2], keep: KeepRule| {
        let documents = values.map(|value| {
            let document = Document::new(DocumentId::Number(0), "one two".to_owned());
            Ok(Document { extra: Some(value.to_owned()), ..document })
        });
        let told = DiagnosticRecorder::default();
        let options = DedupConfig { keep, ..DedupConfig::default() };
        simstore_dedup::run(&options, &Inputs::from_documents(documents), Outputs::default(), &told)
            .map(|_| told.all())
    };
    let largest = || KeepRule::Largest("size".to_owned());
    let said = run(["soon", "9"], largest()).unwrap();
    assert!(said.iter().any(|said| said.starts_with("1 document without a number in `size`")), "{said:?}");
    let error = run(["soon", "NaN"], largest()).unwrap_err();
    assert!(
        matches!(&error, Error::Refused(reason) if reason.contains("no document has a number in a field `size`"))
    );
    let error = run(["nan", ""], KeepRule::Newest("size".to_owned())).unwrap_err();
    assert!(error.to_string().contains("no document has a field `size`"), "{error}");
}
