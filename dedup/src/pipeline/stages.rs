//! The stages in order: the comparison of all documents by the criterion of a run, on one machine.

use simstore::{Error, Result, Snapshot};

use crate::checkpoint::stage_results::Keeping;
use crate::config::criterion::Criterion;
use crate::config::resolve::Resolved;
use crate::corpus::Corpus;
use crate::corpus::ranks::Ranks;
use crate::pipeline::bit_set::Marks;
use crate::pipeline::boilerplate::Boilerplate;
use crate::pipeline::by_similarity::{Search, Searched, Wanted};
use crate::pipeline::clusters::{Clusters, NearDocuments};
use crate::pipeline::exact::Sets;
use crate::pipeline::features::{FeatureSource, FeaturesWriter, ReadAgain};
use crate::pipeline::nearest::{self, Nearest};
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

/// Result of the stages.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) clusters: Clusters,
    pub(crate) stored: FoundStored,
    pub(crate) near: NearDocuments,
    /// Nearest documents, where these are not the representatives of their clusters; by document.
    pub(crate) nearest: Rows<Nearest>,
    /// Number of different fingerprints, or of different sets of features.
    pub(crate) distinct: usize,
    /// How many pairs of texts were compared, and how many of them were not alike, where texts are compared.
    pub(crate) compared: Option<(u64, u64)>,
    pub(crate) boilerplate: Option<Boilerplate>,
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
        let sets = Sets::of_sketches(sketches, &ranks, workspace, &step)?;
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
            source: FeatureSource::Documents(self.read_again()),
            keeping: self.keeping,
            workspace,
            watch,
        };
        let Searched { leaders, pairs, nearest, compared, boilerplate, .. } = search.run()?;
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
            true => self.read_again().features(candidates.documents()?)?,
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

    /// The second reading of documents.
    pub(crate) fn read_again(&self) -> ReadAgain<'_> {
        let &Stages { resolved, corpus, workspace, watch, .. } = self;
        ReadAgain { corpus, resolved, workspace, watch }
    }
}
