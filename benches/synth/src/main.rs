//! Generates a store of random fingerprints, or random documents, for benchmarks. The same seed gives the same output. Memory
//! use does not depend on the number of fingerprints or documents.
//!
//! ```sh
//! cargo run --release -p simstore-synth -- fingerprints random.simstore --count 100M --queries 1M --queries-file queries.u64
//! cargo run --release -p simstore-synth -- documents random.jsonl --count 1M --copies 0.2 --similarity 0.8..0.9 --seed 7
//! ```

#![forbid(unsafe_code)]

mod documents;
mod fingerprints;
#[path = "../../../tests/support/random.rs"]
mod random;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use simstore::{BuildOptions, Builder, Codec, PlanChoice};
use simstore_io::numbers::{format_count, parse_scaled};

use crate::documents::RandomDocuments;
use crate::fingerprints::RandomFingerprints;

#[derive(Debug, Parser)]
#[command(about = "Random fingerprints and documents, to measure with")]
struct Synth {
    #[command(subcommand)]
    command: SynthCommand,
}

#[derive(Debug, Subcommand)]
enum SynthCommand {
    Fingerprints(FingerprintsArgs),
    Documents(DocumentsArgs),
}

/// Write a store of random 64-bit fingerprints without ids, in one table
#[derive(Debug, Args)]
struct FingerprintsArgs {
    /// The store: a folder that does not exist yet
    store: PathBuf,
    /// Number of fingerprints, like 1000000, 100M or 8e9
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: u64,
    /// The seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Codec that compresses the fingerprints in the store's table
    #[arg(long, default_value_t = Codec::FirstDifference)]
    codec: Codec,
    /// Also write N queries: half are stored fingerprints with up to 3 bits flipped, half are random
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "queries_file")]
    queries: Option<u64>,
    /// The file of the queries: raw, little-endian, so it should end in .u64
    #[arg(long, value_name = "FILE", requires = "queries")]
    queries_file: Option<PathBuf>,
}

/// Write random documents, some of them copies, as lines of JSON: `id`, `text`, and of a copy `of` and `similarity`
///
/// The words are made up, with the frequencies of words in a language. `of` is the id of the earlier document whose edited copy this
/// one is. `similarity` is the exact Jaccard similarity of their sets of word 3-grams.
#[derive(Debug, Args)]
struct DocumentsArgs {
    /// The file of the documents
    file: PathBuf,
    /// Number of documents, like 1000000 or 10M
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: u64,
    /// The seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Words of a document: from half as many to half as many again
    #[arg(long, value_name = "N", default_value_t = 60)]
    words: u32,
    /// The share of documents that are edited copies of earlier ones, from 0 to below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    copies: f64,
    /// Similarity of copies to their originals, from 0 to 1: a number, or the least and the largest
    #[arg(long, value_name = "S..S", default_value = "0.7..1", value_parser = parse_range)]
    similarity: (f64, f64),
}

fn parse_count(text: &str) -> Result<u64, String> {
    let count = parse_scaled(text, 1000).filter(|&count| count > 0);
    count.ok_or_else(|| format!("`{text}` is no count: expected a number from 1 like 1000000, 100M or 8e9"))
}

/// Parses a range such as `0.7..1`, or one number such as `0.8`.
fn parse_range(text: &str) -> Result<(f64, f64), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) => Ok((least, most)),
        _ => Err(format!("`{text}` is no range: expected a number from 0 to 1, or two like 0.7..1")),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match Synth::parse().command {
        SynthCommand::Fingerprints(args) => write_store(&args),
        SynthCommand::Documents(args) => {
            let DocumentsArgs { count, seed, words, copies, similarity, .. } = args;
            write_documents(&args.file, &RandomDocuments { count, seed, words, copies, similarity })
        }
    }
}

fn write_store(args: &FingerprintsArgs) -> Result<(), Box<dyn Error>> {
    let fingerprints = RandomFingerprints::new(args.count, args.seed);
    // The store has one table, whose order is the order of generation, so nothing is sorted.
    let plan = PlanChoice::Named("probe-1".to_owned());
    let options = BuildOptions { codec: args.codec, plan, ids: false, ..BuildOptions::default() };
    let store = Builder::<u64>::create(&args.store, options)?
        .finish_sorted(move |write| fingerprints.visit(write))?;
    if let (Some(queries), Some(file)) = (args.queries, &args.queries_file) {
        let mut file = BufWriter::new(File::create(file)?);
        fingerprints.queries(queries).iter().try_for_each(|query| file.write_all(&query.to_le_bytes()))?;
        file.flush()?;
    }
    let stats = store.stats();
    let each = stats.bytes as f64 / stats.fingerprints.max(1) as f64;
    eprintln!("{} random fingerprints, {each:.3} bytes each", format_count(stats.fingerprints));
    Ok(())
}

fn write_documents(path: &Path, documents: &RandomDocuments) -> Result<(), Box<dyn Error>> {
    let (mut file, mut copies) = (BufWriter::with_capacity(1 << 20, File::create(path)?), 0);
    documents.visit(&mut |document| {
        copies += u64::from(document.copy.is_some());
        let written = serde_json::to_writer(&mut file, document).map_err(std::io::Error::from);
        written.and_then(|()| file.write_all(b"\n")).map_err(simstore::Error::io(path, "write"))
    })?;
    file.flush()?;
    eprintln!("{} random documents, {} of them copies", format_count(documents.count), format_count(copies));
    Ok(())
}
