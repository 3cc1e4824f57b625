//! gaoya's index of MinHash: a document is kept if the index has none that is similar to it, and is then put there.

use std::error::Error;
use std::io;

use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, SmallVecContainer, calculate_minhash_params};
use gaoya::text::{shingle_tokens, whitespace_split};
use rayon::prelude::*;
use simstore_peers::{Document, Task};

const HASHES: usize = 256;
const BATCH: usize = 1 << 12;

/// The container that takes the least memory where most buckets have one document.
type Index = MinHashIndex<u32, u32, SmallVecContainer<u32, 2>>;

fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::from_arguments()?;
    let (bands, width) = calculate_minhash_params(task.similarity, HASHES);
    let hasher = MinHasher32::new(bands * width);
    let mut index = Index::new_index(bands, width, task.similarity);
    let sketched = |line: &String| -> serde_json::Result<(u64, Vec<u32>)> {
        let document: Document = serde_json::from_str(line)?;
        let text = document.text.to_lowercase();
        let words: Vec<&str> = whitespace_split(&text).collect();
        Ok((document.id, hasher.create_signature(shingle_tokens(&words, 3))))
    };
    let (mut lines, mut kept) = (task.lines()?, Vec::new());
    loop {
        let batch: Vec<String> = lines.by_ref().take(BATCH).collect::<io::Result<_>>()?;
        if batch.is_empty() {
            break;
        }
        let sketches: Vec<_> = batch.par_iter().map(sketched).collect::<Result<_, _>>()?;
        for (id, sketch) in sketches {
            if index.query(&sketch).is_empty() {
                index.insert(u32::try_from(kept.len())?, sketch);
                kept.push(id);
            }
        }
    }
    Ok(task.write_kept(kept)?)
}
