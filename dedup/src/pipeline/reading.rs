//! Documents as they are read: fingerprints or sketches, what they are called, and what decides which is kept.

use simstore::{Fingerprint, Result, each_width};
use simstore_text::{Profile, Sketcher};

use crate::checkpoint::parts::Parts;
use crate::config::Resume;
use crate::corpus::Corpus;
use crate::corpus::repeated_ids::count as count_repeated;
use crate::workspace::Workspace;
use simstore_corpus::{Block, Counts, InputKind, Inputs, Item, Notice, Piece, Watch};
use simstore_io::output::Unfinished;

/// Documents after which the memory is looked at.
const MEMORY_CHECKED: usize = 4096;

/// How what is read becomes a corpus.
pub(crate) struct Reading<'a> {
    /// Where parts are kept, if the run can be resumed.
    pub(crate) resume: Option<&'a Resume>,
    pub(crate) profile: &'a Profile,
    /// Makes the sketches of documents that are compared by similarity.
    pub(crate) sketcher: Option<&'a Sketcher>,
    pub(crate) unfinished: &'a Unfinished,
    pub(crate) workspace: &'a Workspace,
    pub(crate) watch: &'a dyn Watch,
}

impl Reading<'_> {
    /// Reads all documents into a corpus.
    pub(crate) fn read(&self, inputs: &Inputs, mut corpus: Corpus) -> Result<(Corpus, Counts)> {
        let counts = each_width!(corpus.width(), type F => self.read_items::<F>(inputs, &mut corpus))?;
        corpus.finish(self.workspace, self.watch)?;
        if !corpus.are_positions() {
            let memory = if corpus.spilled().is_some() { self.workspace.budget.bytes / 2 } else { u64::MAX };
            let same_id = count_repeated(&corpus, &self.workspace.temporary, memory, self.watch)?;
            corpus.set_same_id(same_id);
        }
        Ok((corpus, counts))
    }

    fn read_items<F: Fingerprint>(&self, inputs: &Inputs, corpus: &mut Corpus) -> Result<Counts> {
        let &Reading { profile, sketcher, unfinished, workspace, watch, .. } = self;
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
        let Some(Resume { folder, section: section_bytes }) = self.resume else {
            return match sketcher {
                Some(sketcher) => inputs.visit_sketched(sketcher, watch, |item| push(corpus, &item)),
                None => inputs.visit_documents(profile, watch, |item| push(corpus, &item)),
            };
        };
        let section_bytes = *section_bytes;
        let parts =
            Parts { folder, shard: None, inputs, profile, sketcher, section_bytes, unfinished, watch };
        let (counts, tally) = parts.visit(|item| push(corpus, &item))?;
        watch.notice(&Notice::Parts { found: tally.found, made: tally.made });
        Ok(counts)
    }
}
