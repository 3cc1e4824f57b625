//! Deduplicates with find-simdoc's all-pairs Jaccard search. In input order, a document is removed if it is
//! similar to a kept document.

use std::error::Error;

use find_simdoc::JaccardSearcher;
use simstore_peers::{CorpusDocument, DedupTask};

/// Number of 64-bit chunks in a document's sketch. This is the default of find-simdoc's own program.
const CHUNKS: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let task = DedupTask::from_arguments()?;
    let (mut ids, mut failure) = (Vec::new(), None);
    let texts = task.lines()?.map_while(|line| {
        let document =
            line.map_err(Into::into).and_then(|line| Ok(serde_json::from_str::<CorpusDocument>(&line)?));
        match document {
            Ok(document) => {
                ids.push(document.id);
                Some(normalize_words(&document.text))
            }
            Err(error) => {
                failure = Some::<Box<dyn Error + Send + Sync>>(error);
                None
            }
        }
    });
    let searcher = JaccardSearcher::new(3, Some(' '), Some(42))?.build_sketches_in_parallel(texts, CHUNKS)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let mut pairs = searcher.search_similar_pairs(1.0 - task.similarity);
    pairs.sort_unstable_by_key(|&(a, b, _)| (b, a));
    let mut removed = vec![false; ids.len()];
    for (a, b, _) in pairs {
        removed[b] |= !removed[a];
    }
    let kept = ids.iter().zip(&removed).filter(|&(_, removed)| !removed).map(|(&id, _)| id);
    Ok(task.write_kept(kept)?)
}

/// Returns the words in lower case and without punctuation, separated by single spaces, because find-simdoc can only
/// split texts at one given character.
fn normalize_words(text: &str) -> String {
    let text = text.to_lowercase();
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
