//! Reads all documents of a run into a corpus, with their fingerprints or signatures.

use simstore::{Fingerprint, Result, each_width};

use crate::checkpoint::parts::PartFolder;
use crate::config::resolve::ResolvedConfig;
use crate::config::{DedupConfig, ResumeConfig};
use crate::documents::Corpus;
use crate::documents::repeated_ids::count_repeated_ids;
use crate::workspace::Workspace;
use simstore_corpus::spill::RowsWriter;
use simstore_corpus::{Diagnostic, FingerprintBlock, InputCounts, InputKind, Item, ItemOrBlock, Observer};
use simstore_io::output::UnfinishedOutputs;

/// Number of documents that are read between two checks of the memory use.
const MEMORY_CHECK_INTERVAL: usize = 4096;

/// Reads all documents of a run into a corpus. With `--resume`, reuses the files that earlier runs have saved.
pub(crate) fn read_corpus(
    config: &DedupConfig,
    resolved: &ResolvedConfig,
    unfinished: &UnfinishedOutputs,
    workspace: &Workspace,
    observer: &dyn Observer,
) -> Result<(Corpus, InputCounts)> {
    // Signatures have no limit of their own: they spill to disk together with the other rows of the corpus.
    let signatures =
        resolved.min_hasher.as_ref().map(|_| RowsWriter::new(workspace.temporary.clone(), u64::MAX));
    let with_checksums = resolved.file_list.is_some() && (config.add.is_some() || resolved.reads_twice);
    let mut corpus = Corpus::new(resolved.width, &resolved.keep, with_checksums, signatures);
    let counts = each_width!(resolved.width, type F => {
        read_items::<F>(config.resume.as_ref(), resolved, unfinished, workspace, observer, &mut corpus)
    })?;
    corpus.finish(workspace, observer)?;
    if !corpus.ids_are_positions {
        let memory = if corpus.spilled().is_some() { workspace.budget.bytes / 2 } else { u64::MAX };
        let same_id = count_repeated_ids(&corpus, &workspace.temporary, memory, observer)?;
        corpus.repeated_ids = same_id;
    }
    Ok((corpus, counts))
}

fn read_items<F: Fingerprint>(
    resume: Option<&ResumeConfig>,
    ResolvedConfig { inputs, profile, min_hasher, .. }: &ResolvedConfig,
    unfinished: &UnfinishedOutputs,
    workspace: &Workspace,
    observer: &dyn Observer,
    corpus: &mut Corpus,
) -> Result<InputCounts> {
    let push = |corpus: &mut Corpus, item: &Item<F>| {
        corpus.push(item)?;
        if corpus.len().is_multiple_of(MEMORY_CHECK_INTERVAL) {
            corpus.spill_beyond_budget(workspace, observer)
        } else {
            Ok(())
        }
    };
    if inputs.kind()? == InputKind::Fingerprints {
        return inputs.visit_blocks(observer, |piece| match piece {
            ItemOrBlock::Item(item) => push(corpus, &item),
            ItemOrBlock::Block(FingerprintBlock { fingerprints, position, path, line }) => {
                corpus.push_block::<F>(fingerprints, position, path, line);
                corpus.spill_beyond_budget(workspace, observer)
            }
        });
    }
    profile.check_bits(F::BITS)?;
    let Some(&ResumeConfig { ref folder, section_bytes }) = resume else {
        return match min_hasher {
            Some(min_hasher) => {
                inputs.visit_with_signatures(min_hasher, observer, |item| push(corpus, &item))
            }
            None => inputs.visit_documents(profile, observer, |item| push(corpus, &item)),
        };
    };
    let min_hasher = min_hasher.as_ref();
    let parts =
        PartFolder { folder, shard: None, inputs, profile, min_hasher, section_bytes, unfinished, observer };
    let (counts, tally) = parts.visit(|item| push(corpus, &item))?;
    observer.diagnostic(&Diagnostic::Parts { reused: tally.reused, processed: tally.made });
    Ok(counts)
}
