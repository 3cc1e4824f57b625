//! What a dry run foretells of the search: crowds of documents that are just less similar than was asked for.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use simstore_corpus::{Inputs, Progress, Watch};
use simstore_dedup::{DedupConfig, Outputs, Search};
use simstore_io::DocumentOptions;

use crate::{Folder, Random, gzip};

/// Words of a template, of which each document has others at some places.
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

/// Pages of 60 words with a name in three places: 0.73 similar to one another.
fn parked(documents: usize) -> String {
    crowd(documents, 60, |document, _| [5, 25, 45].map(|at| (at, format!("name{document}"))).to_vec())
}

/// Texts of 25 words, of which one is another: 0.77 similar.
fn short(documents: usize) -> String {
    crowd(documents, 25, |document, _| vec![(12, format!("name{document}"))])
}

/// Pages of 100 words, of which three at any places are others: most are 0.69 similar.
fn changed(documents: usize) -> String {
    crowd(documents, 100, |document, random| {
        (0..3).map(|i| (random.below(100) as usize, format!("other{document}x{i}"))).collect()
    })
}

/// Pages of 100 words of which one is another: all are similar.
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

fn foretold(path: &Path) -> Search {
    simstore_dedup::estimate(&DedupConfig::default(), &inputs(path), &()).unwrap().search.unwrap()
}

/// The most that was counted of each step.
#[derive(Default)]
struct Counted(Mutex<Vec<(&'static str, u64)>>);

impl Watch for Counted {
    fn progress(&self, progress: &Progress) -> ControlFlow<()> {
        self.0.lock().unwrap().push((progress.what, progress.count));
        ControlFlow::Continue(())
    }
}

/// Each is a candidate of all others, and few are compared: so it is foretold.
#[test]
fn crowds_just_below_the_threshold_take_little() {
    let folder = Folder::new();
    const DOCUMENTS: usize = 5000;
    for (name, crowd) in [("parked", parked as fn(usize) -> String), ("short", short), ("changed", changed)] {
        let lines = crowd(DOCUMENTS);
        // Evenly spread documents, or the first ones of what cannot be read from the middle.
        let is_short = name == "short";
        let zipped = is_short.then(|| (format!("{name}.jsonl.gz"), gzip(lines.as_bytes())));
        for (name, bytes) in [(format!("{name}.jsonl"), lines.into_bytes())].into_iter().chain(zipped) {
            let path = folder.file(&name, bytes);
            let search = foretold(&path);
            assert!(search.candidates < 200.0 * DOCUMENTS as f64, "{name}: {search:?}");
            assert!((0.1..10.0).contains(&search.seconds) && search.sampled == 1024, "{name}: {search:?}");
            assert!(search.crowded > 4000, "{name}: {search:?}");
        }
    }
    // A document of many is in few candidates where there are no crowds, or where crowds are alike.
    for (name, crowd) in [("copies", copies as fn(usize) -> String), ("unrelated", unrelated)] {
        let search = foretold(&folder.file(&format!("{name}.jsonl"), crowd(DOCUMENTS)));
        assert!(search.candidates < 4.0 * DOCUMENTS as f64, "{name}: {search:?}");
        assert!(search.seconds < 5.0, "{name}: {search:?}");
        assert_eq!(search.crowded > 0, name == "copies", "{name}: {search:?}");
    }
}

/// What is foretold is what a run does, and what it shows meanwhile.
#[test]
fn what_is_foretold_is_done_and_shown() {
    let folder = Folder::new();
    for (name, lines) in [("parked", parked(600)), ("short", short(600)), ("changed", changed(600))] {
        let path = folder.file(&format!("{name}.jsonl"), lines);
        let foretold = foretold(&path).candidates;
        let counted = Counted::default();
        let found =
            simstore_dedup::run(&DedupConfig::default(), &inputs(&path), Outputs::default(), &counted)
                .unwrap();
        let counts = counted.0.lock().unwrap();
        let shown = counts.iter().filter(|(step, _)| *step == "candidates").map(|&(_, count)| count).max();
        // Until it is known to be one, a crowd gives some candidates for each of its members.
        assert!(shown.is_some_and(|shown| shown <= 600 * 130), "{name}: {shown:?} shown");
        let done = found.summary().compared.unwrap() as f64;
        assert!((0.3..3.0).contains(&(foretold / done)), "{name}: {foretold} foretold, {done} done");
    }
}
