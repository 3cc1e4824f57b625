//! Measures the speed of fingerprinting texts on one thread, in MB of text per second, and of jieba-rs alone. Prints Markdown.
//!
//! `cargo bench -p simstore-corpus --bench text -- FILE.jsonl.gz ...` reads files of documents. Without files, it reads
//! the samples. `--profiles=NAMES` measures other profiles than the default ones; names are separated by spaces.
//! `--documents=N` reads the first N documents of each file instead of the first 4,000.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use jieba_rs::{Jieba, KeywordExtract, TfIdf};
use simstore_io::{DocumentOptions, documents};
use simstore_text::Profile;

const PROFILES: &str = "auto words-1 words-2 words-3 chars-4 jieba-50 jieba-50,search phrases sentences-8 tokens \
    words-2,plain-text words-2,html-text words-2,main-text words-2,weights=none words-2,weights=levels \
    auto,simplified";
/// Number of timing rounds. Each round times every profile and every function of jieba-rs once; the fastest round counts.
const ROUNDS: usize = 5;

type Error = Box<dyn std::error::Error>;

fn texts(path: PathBuf, count: usize) -> Result<Vec<String>, Error> {
    let texts = documents(&[path], &DocumentOptions::default()).take(count);
    Ok(texts.map(|document| Ok(document?.text)).collect::<simstore::Result<_>>()?)
}

/// Name of a profile or of a jieba-rs function, and a closure that processes one text with it.
type TimedCandidate<'a> = (String, Box<dyn Fn(&str) + 'a>);

fn main() -> Result<(), Error> {
    let (mut files, mut profiles, mut count) = (Vec::new(), PROFILES.to_owned(), 4000);
    for arg in std::env::args().skip(1).filter(|arg| arg != "--bench") {
        match arg.split_once('=') {
            Some(("--profiles", names)) => names.clone_into(&mut profiles),
            Some(("--documents", number)) => count = number.parse()?,
            _ => files.push(PathBuf::from(arg)),
        }
    }
    if files.is_empty() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
        files = ["en.jsonl", "zh.jsonl"].map(|name| samples.join(name)).into();
    }
    let (jieba, tf_idf) = (Jieba::new(), TfIdf::default());
    for file in files {
        let name = file.display().to_string();
        let texts = texts(file, count)?;
        let bytes: usize = texts.iter().map(String::len).sum();
        println!(
            "\n{name}: {} documents, {:.1} MB of text\n\n| | MB/s | documents/s |\n|---|---|---|",
            texts.len(),
            bytes as f64 / 1e6
        );
        let mut timed: Vec<TimedCandidate> = Vec::new();
        for name in profiles.split_whitespace() {
            let profile: Profile = name.parse()?;
            timed.push((
                format!("`{name}`"),
                Box::new(move |text| {
                    black_box(profile.fingerprint::<u64>(text));
                }),
            ));
        }
        let cut = |text: &str| drop(black_box(jieba.cut(text, false)));
        let keywords = |text: &str| drop(black_box(tf_idf.extract_keywords(&jieba, text, 50, Vec::new())));
        timed.push(("jieba-rs: cut".to_owned(), Box::new(cut)));
        timed.push(("jieba-rs: 50 keywords".to_owned(), Box::new(keywords)));
        let mut fastest = vec![f64::INFINITY; timed.len()];
        for _ in 0..ROUNDS {
            for ((_, run), fastest) in timed.iter().zip(&mut fastest) {
                let start = Instant::now();
                texts.iter().for_each(|text| run(text));
                *fastest = fastest.min(start.elapsed().as_secs_f64());
            }
        }
        for ((name, _), seconds) in timed.iter().zip(fastest) {
            println!(
                "| {name} | {:.1} | {:.0} |",
                bytes as f64 / 1e6 / seconds,
                texts.len() as f64 / seconds
            );
        }
    }
    Ok(())
}
