//! In how many documents of a corpus each feature comes.

use rayon::prelude::*;

use crate::item::Malformed;
use crate::watch::Step;
use crate::{Counts, InputKind, Inputs, Watch};
use simstore::threads::ensure_pool;
use simstore::{Error, Result};
use simstore_text::{DocumentFrequencies, Profile};

/// Bytes of text that all threads count together.
const BATCH_BYTES: usize = 8 << 20;

/// Counts in how many documents each feature comes, as the profile makes features: a table of inverse document frequencies
/// for [`Resources::idf`](simstore_text::Resources::idf). Takes memory for all different features.
///
/// Of the counts, `read`, `bad` and `replaced` are known.
///
/// ```
/// use simstore_corpus::idf::document_frequencies;
/// use simstore_corpus::{DocumentOptions, Inputs};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.jsonl");
/// std::fs::write(&path, "{\"text\": \"to be\"}\n{\"text\": \"or not to be\"}\n").unwrap();
/// let inputs = Inputs::new(&[path], DocumentOptions::default())?;
/// let (frequencies, _) = document_frequencies(&inputs, &"words-2".parse()?, &())?;
/// let rows = frequencies.rows(2);
/// assert_eq!((rows[0].feature, rows[0].documents), ("to be", 2));
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// [`Error::BadArgument`] for inputs that hold fingerprints, and as [`Inputs::visit`].
pub fn document_frequencies(
    inputs: &Inputs,
    profile: &Profile,
    watch: &dyn Watch,
) -> Result<(DocumentFrequencies, Counts)> {
    if inputs.kind()? == InputKind::Fingerprints {
        return Err(Error::BadArgument("the inputs hold fingerprints already, not documents".to_owned()));
    }
    ensure_pool()?;
    let step = Step::new(watch, "documents");
    let mut malformed = Malformed::new(inputs.skips_bad(), watch);
    let mut parts = vec![DocumentFrequencies::default(); rayon::current_num_threads()];
    let mut counts = Counts::default();
    let mut documents = inputs.documents();
    loop {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(document) = documents.next()
        {
            step.add(0)?;
            match document {
                Ok(document) => {
                    bytes += document.text.len();
                    (counts.read, counts.replaced) = (counts.read + 1, counts.replaced + document.replaced);
                    batch.push(document.text);
                }
                Err(error) => malformed.take(error)?,
            }
        }
        if batch.is_empty() {
            break;
        }
        let share = batch.len().div_ceil(parts.len());
        batch.par_chunks(share).zip(&mut parts).try_for_each(|(texts, part)| {
            texts.iter().try_for_each(|text| {
                part.add(profile, text);
                step.add(1)
            })
        })?;
    }
    counts.bad = malformed.count();
    let mut all = DocumentFrequencies::default();
    parts.into_iter().for_each(|part| all.merge(part));
    Ok((all, counts))
}
