//! Finds all pairs of documents with a Jaccard similarity of at least a threshold, by exact counts of shared
//! shingles. It misses no pair, because it uses no signatures and no samples.

#![allow(missing_docs)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use rayon::prelude::*;
use serde::Serialize;
use simstore_io::{DocumentOptions, documents};
use simstore_text::Profile;

mod jaccard_join;
#[cfg(test)]
#[path = "../../../tests/support/random.rs"]
mod random;

/// Number of documents in a batch. The shingles of a batch are computed in parallel.
const BATCH_DOCUMENTS: usize = 1024;

/// Write all pairs of documents with at least the given similarity, as `a<TAB>b<TAB>similarity`
#[derive(Debug, Parser)]
struct SimilarArgs {
    /// Input files, in any format that simstore reads
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Smallest Jaccard similarity of the shingles of a pair
    #[arg(long, default_value_t = 0.7)]
    similarity: f64,
    /// Profile whose features are the shingles
    #[arg(long, default_value_t = Profile::shingles())]
    profile: Profile,
    /// Output file of the pairs
    #[arg(long)]
    pairs: PathBuf,
    /// Output file of the shingles, for other tools: one line of JSON per document, with `id` and `text`, the
    /// hashes of its distinct shingles separated by spaces
    #[arg(long)]
    shingles: Option<PathBuf>,
}

/// A line of the output file of `--shingles`: a document with its hashed shingles.
#[derive(Serialize)]
struct ShingledDocument<'a> {
    id: &'a str,
    /// Hashes of the distinct shingles in hexadecimal, separated by spaces.
    text: String,
}

fn main() -> Result<()> {
    let arguments = SimilarArgs::parse();
    let (ids, sets) = read_shingles(&arguments)?;
    if let Some(path) = &arguments.shingles {
        let mut file = create_file(path)?;
        for (id, set) in ids.iter().zip(&sets) {
            let words: Vec<String> = set.iter().map(|hash| format!("{hash:016x}")).collect();
            serde_json::to_writer(&mut file, &ShingledDocument { id, text: words.join(" ") })?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
    }
    let pairs = jaccard_join::similar_pairs(&sets, arguments.similarity);
    let mut file = create_file(&arguments.pairs)?;
    for pair in &pairs {
        writeln!(file, "{}\t{}\t{}", ids[pair.a as usize], ids[pair.b as usize], pair.similarity)?;
    }
    file.flush()?;
    let empty = sets.iter().filter(|set| set.is_empty()).count();
    println!("{} documents, {empty} of them without shingles, {} pairs", ids.len(), pairs.len());
    Ok(())
}

/// Returns the ids and the shingle sets of all documents, in input order.
fn read_shingles(arguments: &SimilarArgs) -> Result<(Vec<String>, Vec<Vec<u64>>)> {
    let (mut ids, mut sets) = (Vec::new(), Vec::new());
    let mut batch = Vec::new();
    let mut documents = documents(&arguments.inputs, &DocumentOptions::default());
    loop {
        batch.clear();
        for document in documents.by_ref().take(BATCH_DOCUMENTS) {
            let document = document?;
            ids.push(document.id.to_string());
            batch.push(document.text);
        }
        if batch.is_empty() {
            return Ok((ids, sets));
        }
        sets.par_extend(batch.par_iter().map(|text| arguments.profile.feature_set(text)));
    }
}

fn create_file(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(BufWriter::new(file))
}
