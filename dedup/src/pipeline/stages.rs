//! The stages in order: the comparison of all documents by the criterion of a run, on one machine.

use simstore::{Error, Result, Snapshot};

use crate::checkpoint::stage_results::Keeping;
use crate::config::criterion::Criterion;
use crate::config::resolve::Resolved;
use crate::corpus::Corpus;
use crate::corpus::ranks::Ranks;
use crate::pipeline::bit_set::Marks;
use crate::pipeline::by_similarity::{Search, Searched, Wanted};
use crate::pipeline::clusters::NearDocuments;
use crate::pipeline::exact::Sets;
use crate::pipeline::exact::distinct;
use crate::pipeline::features::{Features, FeaturesWriter, ReadAgain};
use crate::pipeline::nearest;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::stored::look_up::SimilarStore;
use crate::pipeline::stored::matches::FoundStored;
use crate::pipeline::stored::similar::{self, ComparedStores};
use crate::rows::{SketchRow, of_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::Watch;
use simstore_corpus::spill::Rows;

/// The comparison of all documents, stage by stage.
pub(crate) struct Stages<'a> {
    pub(crate) resolved: &'a Resolved,
    /// Whether to list all pairs.
    pub(crate) pairs: bool,
    pub(crate) corpus: &'a Corpus,
    /// Sketches of all documents, if these are compared by similarity.
    pub(crate) sketches: Option<&'a Rows<SketchRow>>,
    /// Where the results of stages are kept.
    pub(crate) keeping: Option<Keeping<'a>>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) watch: &'a dyn Watch,
}

impl Stages<'_> {
    /// Finds what is near what, and makes clusters of it.
    pub(crate) fn run(&self) -> Result<Outcome> {
        match (self.resolved.criterion, self.sketches) {
            (Criterion::Distance(distance), _) => self.near(distance),
            (Criterion::Similarity(least), Some(sketches)) => self.similar(least, sketches),
            (Criterion::Similarity(_), None) => {
                Err(Error::Bug("similarity is asked of documents without sketches".to_owned()))
            }
        }
    }

    fn similar(&self, least: f64, sketches: &Rows<SketchRow>) -> Result<Outcome> {
        let &Stages { workspace, watch, .. } = self;
        let Resolved { recall, cluster_by, ref keep, .. } = *self.resolved;
        let keeps_none = self.resolved.keeps_none();
        let step = Step::new(watch, "documents numbered");
        step.add(0)?;
        let ranks = Ranks::new(self.corpus, keep, None, workspace, &step)?;
        let with_features = sketches.iter()?.filter(|row| row.as_ref().map_or(true, |row| row.features > 0));
        let keys = with_features.map(|row| row.map(|row| (row.digest(), row.number)));
        let sets = distinct(keys, &ranks, workspace, &step)?;
        drop((ranks, step));
        let stored = self.stored(sketches, least)?;
        let out = self.out(&stored, &sets)?;
        let wanted = Wanted { least, recall, cluster_by, pairs: self.pairs, keeps_none };
        let search = Search {
            wanted,
            sketches,
            sets: &sets,
            out: &out,
            count: sets.len(),
            keeping: self.keeping,
            workspace,
            watch,
        };
        let Searched { leaders, pairs, nearest, compared, boilerplate, .. } =
            search.run(|documents| self.features(documents))?;
        let (equal, distinct) = (of_similarity(1.0), sets.len());
        let nearest = nearest::of_documents(&nearest, &sets, keeps_none.then_some(equal), workspace)?;
        let near = NearDocuments { sets, pairs, documents: None, equal };
        let clusters = near.clusters(&leaders, &out, &stored.of_documents, workspace)?;
        Ok(Outcome { clusters, stored, near, nearest, distinct, compared: Some(compared), boilerplate })
    }

    /// Similar documents in the stores: by their texts, or by an estimate.
    fn stored(&self, sketches: &Rows<SketchRow>, least: f64) -> Result<FoundStored> {
        let &Stages { workspace, watch, .. } = self;
        let references = &self.resolved.references;
        let profile = self.resolved.profile_of_texts.as_ref().filter(|_| references.are_similar());
        let Some(profile) = profile else { return Ok(FoundStored::none()) };
        let texts = references.texts(profile)?;
        let (numbers, snapshots): (Vec<u32>, Vec<&Snapshot<u64>>) = references.of_width().unzip();
        let stores: Vec<SimilarStore<'_>> = snapshots.into_iter().zip(&texts).collect();
        let step = Step::new(watch, "bands looked up");
        let candidates = similar::look_up(sketches, &stores, workspace, &step)?;
        drop(step);
        // Where no store has texts, nothing is compared by features.
        let has_texts = texts.iter().any(|texts| texts.settings().has_texts());
        let features = match has_texts {
            true => self.features(&mut candidates.documents()?)?,
            false => FeaturesWriter::new(workspace)?.finish()?,
        };
        let step = Step::new(watch, "stored documents compared");
        let compared =
            ComparedStores { stores: &stores, numbers: &numbers, least, with_all: self.pairs, workspace };
        compared.compare(&candidates, sketches, &features, &step)
    }

    /// The sets of documents that are similar to something stored.
    fn out(&self, stored: &FoundStored, sets: &Sets) -> Result<Marks> {
        let out = Marks::new(sets.len());
        if stored.of_documents.is_empty() {
            return Ok(out);
        }
        let by_document = sets.by_document(self.workspace)?;
        let mut rows = by_document.cursor()?;
        // Equal documents are out together.
        for row in stored.of_documents.iter()? {
            let (document, _) = row?;
            if let Some((_, set)) = rows.at(document, |row| row.0)? {
                out.set(set);
            }
        }
        Ok(out)
    }

    /// Features of `wanted`: ascending documents, each with the number of its features.
    pub(crate) fn features(&self, wanted: &mut dyn Iterator<Item = Result<(u64, u32)>>) -> Result<Features> {
        let Resolved { inputs, profile_of_texts, .. } = self.resolved;
        let &Stages { corpus, workspace, watch, .. } = self;
        let Some(profile) = profile_of_texts else { return FeaturesWriter::new(workspace)?.finish() };
        self.resolved.check_unchanged()?;
        ReadAgain { corpus, inputs, profile, workspace, watch }.features(wanted)
    }
}
