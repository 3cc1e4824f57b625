//! Reading of all documents, with their fingerprints or sketches, into a corpus.

use simstore::{Fingerprint, Result, each_width};

use crate::checkpoint::parts::Parts;
use crate::config::resolve::Resolved;
use crate::config::{DedupConfig, Resume};
use crate::corpus::Corpus;
use crate::corpus::repeated_ids::count as count_repeated;
use crate::workspace::Workspace;
use simstore_corpus::spill::RowsWriter;
use simstore_corpus::{Block, Counts, InputKind, Item, Notice, Piece, Watch};
use simstore_io::output::Unfinished;

/// Documents after which the memory is looked at.
const MEMORY_CHECKED: usize = 4096;

/// Reads all documents, or their parts, into a corpus.
pub(crate) fn read(
    config: &DedupConfig,
    resolved: &Resolved,
    unfinished: &Unfinished,
    workspace: &Workspace,
    watch: &dyn Watch,
) -> Result<(Corpus, Counts)> {
    // As long as documents are in memory, so are their sketches.
    let sketches = resolved.sketcher.as_ref().map(|_| RowsWriter::new(workspace.temporary.clone(), u64::MAX));
    let with_checksums = resolved.file_list.is_some() && (config.add.is_some() || resolved.reads_twice);
    let mut corpus = Corpus::new(resolved.width, &resolved.keep, with_checksums, sketches);
    let counts = each_width!(resolved.width, type F => {
        read_items::<F>(config.resume.as_ref(), resolved, unfinished, workspace, watch, &mut corpus)
    })?;
    corpus.finish(workspace, watch)?;
    if !corpus.are_positions {
        let memory = if corpus.spilled().is_some() { workspace.budget.bytes / 2 } else { u64::MAX };
        let same_id = count_repeated(&corpus, &workspace.temporary, memory, watch)?;
        corpus.same_id = same_id;
    }
    Ok((corpus, counts))
}

fn read_items<F: Fingerprint>(
    resume: Option<&Resume>,
    Resolved { inputs, profile, sketcher, .. }: &Resolved,
    unfinished: &Unfinished,
    workspace: &Workspace,
    watch: &dyn Watch,
    corpus: &mut Corpus,
) -> Result<Counts> {
    let push = |corpus: &mut Corpus, item: &Item<F>| {
        corpus.push(item)?;
        if corpus.len().is_multiple_of(MEMORY_CHECKED) {
            corpus.keep_within(workspace, watch)
        } else {
            Ok(())
        }
    };
    if inputs.kind()? == InputKind::Fingerprints {
        return inputs.visit_pieces(watch, |piece| match piece {
            Piece::Item(item) => push(corpus, &item),
            Piece::Block(Block { fingerprints, position, path, line }) => {
                corpus.push_block::<F>(fingerprints, position, path, line);
                corpus.keep_within(workspace, watch)
            }
        });
    }
    profile.check_bits(F::BITS)?;
    let Some(&Resume { ref folder, section: section_bytes }) = resume else {
        return match sketcher {
            Some(sketcher) => inputs.visit_sketched(sketcher, watch, |item| push(corpus, &item)),
            None => inputs.visit_documents(profile, watch, |item| push(corpus, &item)),
        };
    };
    let sketcher = sketcher.as_ref();
    let parts = Parts { folder, shard: None, inputs, profile, sketcher, section_bytes, unfinished, watch };
    let (counts, tally) = parts.visit(|item| push(corpus, &item))?;
    watch.notice(&Notice::Parts { found: tally.found, made: tally.made });
    Ok(counts)
}
