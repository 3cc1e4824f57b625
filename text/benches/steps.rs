//! Measures the steps from a text to its MinHash signature, and the computation of its simhash, on one thread. Prints a Markdown
//! table of microseconds per document, the fastest of several rounds.
//!
//! `cargo bench -p simstore-text --bench steps -- FILE ...` reads files of JSON lines, whose field `text` is the text of a
//! document. `--documents=N` reads the first N documents of each file instead of the first 2,000.

use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

use simstore_text::{Profile, SignatureSteps};

/// Number of times that each step is measured. The fastest of these times is printed.
const ROUNDS: usize = 7;

type BoxError = Box<dyn std::error::Error>;
/// The name of a step, and a function that processes one text from the first step up to this step.
type TimedStep<'a> = (&'a str, Box<dyn FnMut(&str) + 'a>);

/// Reads the texts of the first `count` documents of a file.
fn read_texts(path: &str, count: usize) -> Result<Vec<String>, BoxError> {
    let lines = std::io::BufReader::new(std::fs::File::open(path)?).lines().take(count);
    let text = |line: std::io::Result<String>| -> Result<String, BoxError> {
        let document: serde_json::Value = serde_json::from_str(&line?)?;
        Ok(document["text"].as_str().ok_or("a line without a text")?.to_owned())
    };
    lines.map(text).collect()
}

fn main() -> Result<(), BoxError> {
    let (mut files, mut count) = (Vec::new(), 2000);
    for arg in std::env::args().skip(1).filter(|arg| arg != "--bench") {
        match arg.split_once('=') {
            Some(("--documents", number)) => count = number.parse()?,
            _ => files.push(arg),
        }
    }
    let (shingles, simhash) = (Profile::shingles(), Profile::default());
    println!(
        "| | documents | bytes each | clean | cut and hash | distinct | signature | all | MB/s | simhash |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for file in files {
        let texts = read_texts(&file, count)?;
        let [mut clean, mut shingle, mut distinct, mut sign] = [(); 4].map(|()| SignatureSteps::default());
        let mut timed: Vec<TimedStep> = vec![
            ("clean", Box::new(|text| _ = black_box(clean.clean(&shingles, text)))),
            ("shingle", Box::new(|text| _ = black_box(shingle.shingle(&shingles, text)))),
            ("distinct", Box::new(|text| _ = black_box(distinct.distinct(&shingles, text)))),
            ("sign", Box::new(|text| _ = black_box(sign.signature(&shingles, text)))),
            ("simhash", Box::new(|text| _ = black_box(simhash.fingerprint::<u64>(text)))),
        ];
        let mut fastest = vec![f64::MAX; timed.len()];
        for _ in 0..ROUNDS {
            for ((_, work), fastest) in timed.iter_mut().zip(&mut fastest) {
                let start = Instant::now();
                texts.iter().for_each(|text| work(text));
                *fastest = fastest.min(start.elapsed().as_secs_f64() * 1e6 / texts.len() as f64);
            }
        }
        let [clean, shingle, distinct, sign, simhash] = fastest[..] else { unreachable!("five steps") };
        let bytes = texts.iter().map(String::len).sum::<usize>() as f64 / texts.len() as f64;
        println!(
            "| {file} | {} | {bytes:.0} | {clean:.2} | {:.2} | {:.2} | {:.2} | {sign:.2} | {:.0} | {simhash:.2} |",
            texts.len(),
            shingle - clean,
            distinct - shingle,
            sign - distinct,
            bytes / sign,
        );
    }
    Ok(())
}
