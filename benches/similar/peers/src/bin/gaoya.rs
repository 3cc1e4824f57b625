//! Deduplicates with gaoya's MinHash index: a document is kept, and inserted into the index, if the index has no
//! similar document.

use std::error::Error;
use std::io;

use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, SmallVecContainer, calculate_minhash_params};
use gaoya::text::{shingle_tokens, whitespace_split};
use rayon::prelude::*;
use simstore_peers::{CorpusDocument, DedupTask};

/// Number of hashes of a signature.
const HASHES: usize = 256;
/// Number of documents in a batch. The signatures of a batch are computed in parallel.
const BATCH_DOCUMENTS: usize = 1 << 12;

/// MinHash index. Of gaoya's types for the documents of a bucket, `SmallVecContainer` takes the least memory if most buckets
/// have one document.
type SignatureIndex = MinHashIndex<u32, u32, SmallVecContainer<u32, 2>>;

fn main() -> Result<(), Box<dyn Error>> {
    let task = DedupTask::from_arguments()?;
    let (bands, width) = calculate_minhash_params(task.similarity, HASHES);
    let hasher = MinHasher32::new(bands * width);
    let mut index = SignatureIndex::new_index(bands, width, task.similarity);
    let sign = |line: &String| -> serde_json::Result<(u64, Vec<u32>)> {
        let document: CorpusDocument = serde_json::from_str(line)?;
        let text = document.text.to_lowercase();
        let words: Vec<&str> = whitespace_split(&text).collect();
        Ok((document.id, hasher.create_signature(shingle_tokens(&words, 3))))
    };
    let (mut lines, mut kept) = (task.lines()?, Vec::new());
    loop {
        let batch: Vec<String> = lines.by_ref().take(BATCH_DOCUMENTS).collect::<io::Result<_>>()?;
        if batch.is_empty() {
            break;
        }
        let signatures: Vec<_> = batch.par_iter().map(sign).collect::<Result<_, _>>()?;
        for (id, signature) in signatures {
            if index.query(&signature).is_empty() {
                index.insert(u32::try_from(kept.len())?, signature);
                kept.push(id);
            }
        }
    }
    Ok(task.write_kept(kept)?)
}
