//! Deduplicates a file of documents. `cargo run --release -p simstore-dedup --features parquet --example dedup
//! -- pages.jsonl unique.jsonl duplicates.parquet` reads `pages.jsonl`, writes the kept documents to
//! `unique.jsonl`, and writes a table of all documents that are in clusters to `duplicates.parquet`.

use std::error::Error;
use std::path::PathBuf;

use simstore_corpus::Inputs;
use simstore_dedup::{ComparisonConfig, DedupConfig, Outputs};
use simstore_io::DocumentOptions;

/// Deduplicates a file of documents. Returns the number of kept documents and the number of all documents.
pub(crate) fn run(
    input: PathBuf,
    unique: PathBuf,
    clusters: PathBuf,
) -> Result<(usize, u64), simstore::Error> {
    let inputs = Inputs::new(&[input], DocumentOptions::default())?;
    let config = DedupConfig { comparison: ComparisonConfig::by_similarity(0.8), ..DedupConfig::default() };
    let outputs = Outputs { output: Some(unique), clusters: Some(clusters), ..Outputs::default() };
    let report = simstore_dedup::run(&config, &inputs, outputs, &())?;
    for cluster in report.clusters() {
        let cluster = cluster?;
        for duplicate in cluster.members.iter().filter(|member| !member.is_kept) {
            let (id, of) = (duplicate.id.text(), &cluster.representative);
            println!("{id} is {} similar to {of}", duplicate.similarity.unwrap_or_default());
        }
    }
    Ok((report.summary().kept, report.summary().documents))
}

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [input, unique, clusters] = paths.try_into().map_err(|_| "usage: dedup INPUT UNIQUE CLUSTERS")?;
    let (kept, documents) = run(input, unique, clusters)?;
    println!("{kept} of {documents} documents are left");
    Ok(())
}
