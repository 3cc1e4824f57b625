//! All pairs of documents whose shingles have a Jaccard similarity of at least a threshold, by counting: no sketch, no sample,
//! nothing that could miss one.

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

mod counting;
#[cfg(test)]
#[path = "../../../tests/support/random.rs"]
mod random;

/// Documents whose shingles are made at once.
const BATCH: usize = 1024;

/// Write all pairs of documents that are at least so similar, as `a<TAB>b<TAB>similarity`
#[derive(Debug, Parser)]
struct Arguments {
    /// The documents, as simstore reads them
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// The least Jaccard similarity of two documents' shingles
    #[arg(long, default_value_t = 0.7)]
    similarity: f64,
    /// Whose features the shingles are
    #[arg(long, default_value_t = Profile::shingles())]
    profile: Profile,
    /// Where the pairs go
    #[arg(long)]
    pairs: PathBuf,
    /// Where the shingles go, for other tools: a line of JSON for each document, `id` and `text`, the hashes of its different
    /// shingles with spaces between
    #[arg(long)]
    shingles: Option<PathBuf>,
}

#[derive(Serialize)]
struct Shingled<'a> {
    id: &'a str,
    text: String,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (ids, sets) = read(&arguments)?;
    if let Some(path) = &arguments.shingles {
        let mut file = create(path)?;
        for (id, set) in ids.iter().zip(&sets) {
            let words: Vec<String> = set.iter().map(|hash| format!("{hash:016x}")).collect();
            serde_json::to_writer(&mut file, &Shingled { id, text: words.join(" ") })?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
    }
    let pairs = counting::similar_pairs(&sets, arguments.similarity);
    let mut file = create(&arguments.pairs)?;
    for pair in &pairs {
        writeln!(file, "{}\t{}\t{}", ids[pair.a as usize], ids[pair.b as usize], pair.similarity)?;
    }
    file.flush()?;
    let empty = sets.iter().filter(|set| set.is_empty()).count();
    println!("{} documents, {empty} of them without shingles, {} pairs", ids.len(), pairs.len());
    Ok(())
}

/// The ids and the shingles of all documents, in their order.
fn read(arguments: &Arguments) -> Result<(Vec<String>, Vec<Vec<u64>>)> {
    let (mut ids, mut sets) = (Vec::new(), Vec::new());
    let mut batch = Vec::new();
    let mut documents = documents(&arguments.inputs, &DocumentOptions::default());
    loop {
        batch.clear();
        for document in documents.by_ref().take(BATCH) {
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

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(BufWriter::new(file))
}
