//! Tests the estimates of dry runs for large groups of documents whose similarity to each other is just below the
//! threshold.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use simstore_corpus::{Inputs, Observer, StageProgress};
use simstore_dedup::{DedupConfig, Outputs, SearchEstimate};
use simstore_io::DocumentOptions;

use crate::{Random, TempFolder, gzip};

/// Returns documents as JSON lines. Each is the same text of `words` words, with some words replaced. `others` gets the
/// index of a document, and returns its replaced words: (position, new word).
fn crowd(
    documents: usize,
    words: usize,
    others: impl Fn(usize, &mut Random) -> Vec<(usize, String)>,
) -> String {
    let mut random = Random(1);
    let mut lines = String::new();
    for document in 0..documents {
        let mut text: Vec<String> = (0..words).map(|word| format!("word{word}")).collect();
        others(document, &mut random).into_iter().for_each(|(at, word)| text[at] = word);
        lines += &format!("{{\"id\": {document}, \"text\": \"{}\"}}\n", text.join(" "));
    }
    lines
}

/// Returns pages of 60 words. Each page has its own name at three positions; all other words are the same. Any two
/// pages have a similarity of 0.73.
fn parked(documents: usize) -> String {
    crowd(documents, 60, |document, _| [5, 25, 45].map(|at| (at, format!("name{document}"))).to_vec())
}

/// Returns texts of 25 words, each with its own word at one position. Any two texts have a similarity of 0.77.
fn short(documents: usize) -> String {
    crowd(documents, 25, |document, _| vec![(12, format!("name{document}"))])
}

/// Returns pages of 100 words with three words replaced at random positions. Most pairs have a similarity of 0.69.
fn changed(documents: usize) -> String {
    crowd(documents, 100, |document, random| {
        (0..3).map(|i| (random.below(100) as usize, format!("other{document}x{i}"))).collect()
    })
}

/// Returns pages of 100 words, each with its own word at one position. Each page is similar to all others.
fn copies(documents: usize) -> String {
    crowd(documents, 100, |document, _| vec![(50, format!("name{document}"))])
}

fn unrelated(documents: usize) -> String {
    crowd(documents, 60, |_, random| {
        (0..60).map(|at| (at, format!("random{}", random.below(100_000)))).collect()
    })
}

fn inputs(path: &Path) -> Inputs {
    Inputs::new(&[path.to_path_buf()], DocumentOptions::default()).unwrap()
}

fn estimate_search(path: &Path) -> SearchEstimate {
    simstore_dedup::estimate(&DedupConfig::default(), &inputs(path), &()).unwrap().search.unwrap()
}

/// Observer that records all counts that stages report: (name of the stage, count).
#[derive(Default)]
struct StageCounts(Mutex<Vec<(&'static str, u64)>>);

impl Observer for StageCounts {
    fn progress(&self, progress: &StageProgress) -> ControlFlow<()> {
        self.0.lock().unwrap().push((progress.stage, progress.count));
        ControlFlow::Continue(())
    }
}

/// For groups of documents whose similarity to each other is just below the threshold, the estimated number of
/// candidates and the estimated time are small.
#[test]
fn crowds_just_below_the_threshold_take_little() {
    let folder = TempFolder::new();
    const DOCUMENTS: usize = 5000;
    for (name, crowd) in [("parked", parked as fn(usize) -> String), ("short", short), ("changed", changed)] {
        let lines = crowd(DOCUMENTS);
        // The sample is spread evenly, or consists of the first documents if the file cannot be read from the middle.
        let is_short = name == "short";
        let zipped = is_short.then(|| (format!("{name}.jsonl.gz"), gzip(lines.as_bytes())));
        for (name, bytes) in [(format!("{name}.jsonl"), lines.into_bytes())].into_iter().chain(zipped) {
            let path = folder.file(&name, bytes);
            let search = estimate_search(&path);
            assert!(search.candidates < 200.0 * DOCUMENTS as f64, "{name}: {search:?}");
            assert!((0.1..10.0).contains(&search.seconds) && search.sampled == 1024, "{name}: {search:?}");
            assert!(search.dense_documents > 4000, "{name}: {search:?}");
        }
    }
    // Each document is in few candidates if there are no dense groups, or if all members of the groups are similar.
    for (name, crowd) in [("copies", copies as fn(usize) -> String), ("unrelated", unrelated)] {
        let search = estimate_search(&folder.file(&format!("{name}.jsonl"), crowd(DOCUMENTS)));
        assert!(search.candidates < 4.0 * DOCUMENTS as f64, "{name}: {search:?}");
        assert!(search.seconds < 5.0, "{name}: {search:?}");
        assert_eq!(search.dense_documents > 0, name == "copies", "{name}: {search:?}");
    }
}

/// The estimated number of candidates is about the number of pairs that a run verifies. The number of candidates that
/// the run shows as progress is not much larger.
#[test]
fn estimated_work_is_done_and_shown() {
    let folder = TempFolder::new();
    for (name, lines) in [("parked", parked(600)), ("short", short(600)), ("changed", changed(600))] {
        let path = folder.file(&format!("{name}.jsonl"), lines);
        let estimated = estimate_search(&path).candidates;
        let counted = StageCounts::default();
        let found =
            simstore_dedup::run(&DedupConfig::default(), &inputs(&path), Outputs::default(), &counted)
                .unwrap();
        let counts = counted.0.lock().unwrap();
        let shown = counts.iter().filter(|(stage, _)| *stage == "candidates").map(|&(_, count)| count).max();
        // Before a group is recognized as dense, it gives some candidates for each of its members.
        assert!(shown.is_some_and(|shown| shown <= 600 * 130), "{name}: {shown:?} shown");
        let done = found.summary().verified.unwrap() as f64;
        assert!((0.3..3.0).contains(&(estimated / done)), "{name}: {estimated} estimated, {done} done");
    }
}
