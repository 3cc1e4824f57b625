//! Runs the stages of a deduplication in order: compares all documents of a run on one machine, by similarity
//! or by distance.

use simstore::{Error, Result, Snapshot};

use crate::checkpoint::stage_results::StageCheckpoints;
use crate::config::criterion::Criterion;
use crate::config::resolve::ResolvedConfig;
use crate::documents::Corpus;
use crate::documents::preference_ranks::PreferenceRanks;
use crate::documents::text_starts::TextStarts;
use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::boilerplate::Boilerplate;
use crate::pipeline::by_similarity::{SimilarityOptions, SimilarityResult, SimilarityStages};
use crate::pipeline::clusters::{Clusters, NearDocuments};
use crate::pipeline::features::{FeatureFileWriter, FeatureReader, FeatureSource};
use crate::pipeline::removal_reasons::{self, NearestRow};
use crate::pipeline::stored::candidate_lookup::SimilarStoreRef;
use crate::pipeline::stored::similar::{self, StoreComparison};
use crate::pipeline::stored::stored_matches::StoredMatches;
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::rows::{SignatureRow, score_from_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Observer;
use simstore_corpus::Stage;
use simstore_corpus::spill::Rows;

/// Inputs of all stages that compare the documents of a run.
pub(crate) struct Pipeline<'a> {
    pub(crate) resolved: &'a ResolvedConfig,
    /// Whether the run lists all near pairs.
    pub(crate) with_pairs: bool,
    /// Whether the similarities of all compared pairs are counted.
    pub(crate) with_histogram: bool,
    pub(crate) corpus: &'a Corpus,
    /// Signatures of all documents, in document order. `None` if documents are compared by distance.
    pub(crate) signatures: Option<&'a Rows<SignatureRow>>,
    /// Folder that keeps the results of stages for `--resume`; `None` without that option.
    pub(crate) checkpoints: Option<StageCheckpoints<'a>>,
    /// Where the starts of compared texts are put aside, for the report page.
    pub(crate) texts: Option<&'a TextStarts>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) observer: &'a dyn Observer,
}

/// Result of the comparison of all documents.
#[derive(Debug)]
pub(crate) struct PipelineResult {
    pub(crate) clusters: Clusters,
    pub(crate) stored: StoredMatches,
    pub(crate) near: NearDocuments,
    /// Nearest kept document of each removed document, in document order. There is no row if this kept document is
    /// the representative of the cluster. If the run keeps no document of a cluster, the rows have the nearest other
    /// document of each document instead.
    pub(crate) nearest: Rows<NearestRow>,
    /// Number of distinct fingerprints, if documents are compared by distance; else number of distinct feature
    /// sets.
    pub(crate) distinct: usize,
    /// (Number of pairs whose texts were compared, number of these pairs whose texts are not similar). `None` if the
    /// run does not compare texts.
    pub(crate) compared: Option<(u64, u64)>,
    /// Number of compared pairs of unique documents in each [bin of similarity](crate::pipeline::similarity_histogram). `None`
    /// if the run does not compare texts, or does not count them.
    pub(crate) histogram: Option<Vec<u64>>,
    pub(crate) boilerplate: Option<Boilerplate>,
}

impl Pipeline<'_> {
    /// Finds near documents and groups them in clusters.
    pub(crate) fn run(&self) -> Result<PipelineResult> {
        match (self.resolved.criterion, self.signatures) {
            (Criterion::Distance(distance), _) => self.compare_by_distance(distance),
            (Criterion::Similarity(min_similarity), Some(signatures)) => {
                self.compare_by_similarity(min_similarity, signatures)
            }
            (Criterion::Similarity(_), None) => {
                Err(Error::Bug("similarity is asked of documents without signatures".to_owned()))
            }
        }
    }

    fn compare_by_similarity(
        &self,
        min_similarity: f64,
        signatures: &Rows<SignatureRow>,
    ) -> Result<PipelineResult> {
        let &Pipeline { workspace, observer, .. } = self;
        let ResolvedConfig { recall, cluster_by, ref keep, .. } = *self.resolved;
        let keeps_none = self.resolved.keeps_none();
        let stage = Stage::new(observer, "documents numbered");
        stage.add(0)?;
        let ranks = PreferenceRanks::new(self.corpus, keep, None, workspace, &stage)?;
        let uniques = UniqueDocuments::from_signatures(signatures, &ranks, workspace, &stage)?;
        drop((ranks, stage));
        let stored = self.find_stored(signatures, min_similarity)?;
        let excluded = self.matched_uniques(&stored, &uniques)?;
        let options = SimilarityOptions {
            min_similarity,
            recall,
            cluster_by,
            with_pairs: self.with_pairs,
            keeps_none,
            with_histogram: self.with_histogram,
        };
        let search = SimilarityStages {
            options,
            signatures,
            uniques: &uniques,
            excluded: &excluded,
            count: uniques.len(),
            source: FeatureSource::Documents(self.feature_reader()),
            checkpoints: self.checkpoints,
            workspace,
            observer,
        };
        let SimilarityResult { assignments, pairs, nearest, compared, histogram, boilerplate, .. } =
            search.run()?;
        let (equal, distinct) = (score_from_similarity(1.0), uniques.len());
        let nearest =
            removal_reasons::nearest_documents(&nearest, &uniques, keeps_none.then_some(equal), workspace)?;
        let near = NearDocuments { uniques, pairs, documents: None, equal };
        let clusters = near.clusters(&assignments, &excluded, &stored.assignments, workspace)?;
        Ok(PipelineResult {
            clusters,
            stored,
            near,
            nearest,
            distinct,
            compared: Some(compared),
            histogram,
            boilerplate,
        })
    }

    /// Finds stored documents that are similar to input documents. If a store keeps texts, similarities to its
    /// documents are exact; otherwise they are estimated from signatures.
    fn find_stored(&self, signatures: &Rows<SignatureRow>, min_similarity: f64) -> Result<StoredMatches> {
        let &Pipeline { workspace, observer, .. } = self;
        let references = &self.resolved.references;
        let profile = self.resolved.text_profile.as_ref().filter(|_| references.are_similar());
        let Some(profile) = profile else { return Ok(StoredMatches::empty()) };
        let texts = references.text_comparers(profile)?;
        let (numbers, snapshots): (Vec<u32>, Vec<&Snapshot<u64>>) = references.with_width().unzip();
        let stores: Vec<SimilarStoreRef<'_>> = snapshots.into_iter().zip(&texts).collect();
        let stage = Stage::new(observer, "bands looked up");
        let candidates = similar::look_up(signatures, &stores, workspace, &stage)?;
        drop(stage);
        // Features are read only if a store has texts; else signatures suffice.
        let has_texts = texts.iter().any(|texts| texts.settings().has_texts());
        let features = match has_texts {
            true => self.feature_reader().features(candidates.documents()?)?,
            false => FeatureFileWriter::new(workspace)?.finish()?,
        };
        let stage = Stage::new(observer, "stored documents compared");
        let compared = StoreComparison {
            stores: &stores,
            numbers: &numbers,
            min_similarity,
            with_all: self.with_pairs,
            workspace,
        };
        compared.compare(&candidates, signatures, &features, &stage)
    }

    /// Returns the unique documents that a stored document represents, according to `stored`.
    fn matched_uniques(&self, stored: &StoredMatches, uniques: &UniqueDocuments) -> Result<AtomicBitSet> {
        let matched = AtomicBitSet::new(uniques.len());
        if stored.assignments.is_empty() {
            return Ok(matched);
        }
        let by_document = uniques.by_document(self.workspace)?;
        let mut rows = by_document.cursor()?;
        // All exact duplicates of a matched document are matched, too.
        for row in stored.assignments.iter()? {
            let (document, _) = row?;
            if let Some((_, unique)) = rows.seek(document, |row| row.0)? {
                matched.set(unique);
            }
        }
        Ok(matched)
    }

    /// Returns a reader that reads the inputs a second time, and computes the features of documents.
    pub(crate) fn feature_reader(&self) -> FeatureReader<'_> {
        let &Pipeline { resolved, corpus, workspace, observer, texts, .. } = self;
        FeatureReader { corpus, resolved, workspace, observer, texts }
    }
}
