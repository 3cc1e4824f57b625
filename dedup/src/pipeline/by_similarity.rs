//! The stages of a run by similarity: candidates, verification, representatives.
//!
//! Candidates are pairs of unique documents with [near bands](crate::pipeline::candidates). Their features are
//! then [compared exactly](crate::pipeline::verify). So every reported pair is similar, and a formula gives the
//! recall ([`BandSearch::recall`](simstore_text::BandSearch::recall)).

use bitvec::vec::BitVec;
use simstore::Result;
use simstore_text::BandSearch;
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::stage_results::{
    StageCheckpoints, StageHeader, StageReadError, StageReader, StageWriter, hash_rows,
};
use crate::config::ClusterBy;
use crate::config::band_search_plan;
use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::boilerplate::{self, Boilerplate};
use crate::pipeline::candidate_rule::CandidateRule;
use crate::pipeline::candidates::{BandJoin, JoinedCandidates};
use crate::pipeline::dense_groups::DenseGroups;
use crate::pipeline::dense_pairs;
use crate::pipeline::features::FeatureSource;
use crate::pipeline::removal_reasons::{self, NearestOrder, NearestSearch};
use crate::pipeline::representatives::{Assignments, assign_stars};
use crate::pipeline::similar_components::ComponentSearch;
use crate::pipeline::similarity_histogram::SIMILARITY_BINS;
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::pipeline::verify::Verifier;
use crate::rows::{AssignmentRow, ScoredPair, SignatureRow, score_from_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Observer;
use simstore_corpus::Stage;
use simstore_corpus::spill::Rows;

/// Options of a search for similar documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimilarityOptions {
    /// Least Jaccard similarity of similar documents.
    pub(crate) min_similarity: f64,
    /// Least probability of finding a pair whose similarity is exactly `min_similarity`.
    pub(crate) recall: f64,
    pub(crate) cluster_by: ClusterBy,
    /// Whether the run lists all similar pairs.
    pub(crate) with_pairs: bool,
    /// Whether the run removes all documents of a cluster, including the representative.
    pub(crate) keeps_none: bool,
    /// Whether the similarities of all compared pairs are counted.
    pub(crate) with_histogram: bool,
}

impl SimilarityOptions {
    /// Whether documents similar to a stored document are compared with other input documents, too.
    fn compares_all(&self) -> bool {
        self.with_pairs || self.keeps_none
    }
}

/// Inputs of a search for similar unique documents.
pub(crate) struct SimilarityStages<'a> {
    pub(crate) options: SimilarityOptions,
    /// Signatures of all documents, in document order.
    pub(crate) signatures: &'a Rows<SignatureRow>,
    pub(crate) uniques: &'a UniqueDocuments,
    /// Unique documents that are similar to a stored document. They represent no other documents, and no input
    /// document represents them. But a list of all similar pairs includes pairs with these documents.
    pub(crate) excluded: &'a AtomicBitSet,
    /// Number of unique documents. It determines how many bands of the signatures are compared. A dry run searches
    /// only a sample, but sets this field to the number of documents in the whole corpus.
    pub(crate) count: usize,
    pub(crate) source: FeatureSource<'a>,
    /// Folder that keeps the results of stages for `--resume`; `None` without that option.
    pub(crate) checkpoints: Option<StageCheckpoints<'a>>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) observer: &'a dyn Observer,
}

/// Similar pairs and representatives that a search by similarity has found, with counts.
pub(crate) struct SimilarityResult {
    pub(crate) assignments: Assignments,
    /// All similar pairs, if the run lists pairs; else empty.
    pub(crate) pairs: Rows<ScoredPair>,
    /// Pairs of a represented unique document and the kept document most similar to it. A pair is left out if that
    /// kept document is the representative. If the run removes all documents of each cluster (`--keep none`), the
    /// pairs are instead each unique document and the other document most similar to it, if any is similar.
    pub(crate) nearest: Rows<ScoredPair>,
    /// (Number of pairs of unique documents that were compared exactly, number of these pairs that are not similar).
    pub(crate) compared: (u64, u64),
    /// Number of compared pairs in each [bin of similarity](crate::pipeline::similarity_histogram), if they are counted.
    pub(crate) histogram: Option<Vec<u64>>,
    /// (Number of unique documents in [dense groups](DenseGroups), number of pairs of these documents whose
    /// signatures were compared).
    pub(crate) groups: (u64, u64),
    /// Number of duplicates that share mostly boilerplate with their representatives; `None` if no duplicates were
    /// examined for boilerplate.
    pub(crate) boilerplate: Option<Boilerplate>,
}

impl SimilarityResult {
    fn write(&self, kept: &mut StageWriter) -> Result<()> {
        kept.write_rows(&self.assignments.rows)?;
        kept.write_rows(&self.pairs)?;
        kept.write_rows(&self.nearest)?;
        let mut numbers = vec![self.compared.0, self.compared.1, self.groups.0, self.groups.1];
        if let Some(Boilerplate { examined, mostly_boilerplate }) = self.boilerplate {
            numbers.extend([examined as u64, mostly_boilerplate as u64]);
        }
        numbers.extend(self.histogram.iter().flatten());
        kept.rows(numbers.len(), numbers.into_iter().map(Ok))
    }
}

impl SimilarityStages<'_> {
    /// Runs all stages: finds candidates, verifies them and assigns representatives. Loads the results that an
    /// earlier run has saved, if any.
    pub(crate) fn run(&self) -> Result<SimilarityResult> {
        let search =
            band_search_plan::plan_band_search(self.options.min_similarity, self.options.recall, self.count)?
                .search;
        let rule = CandidateRule { search, min_similarity: self.options.min_similarity };
        let Some((checkpoints, [first, last])) = self.stage_keys(&rule)? else {
            return self.verify(rule, self.candidates(rule)?);
        };
        let make = || self.verify(rule, self.load_candidates(rule, &checkpoints, &first)?);
        checkpoints.load_or_compute(&last, |kept| self.load(kept), make, SimilarityResult::write)
    }

    /// Second stage of the search: verifies candidates and pairs within [dense groups](DenseGroups), and assigns
    /// representatives.
    fn verify(
        &self,
        rule: CandidateRule,
        JoinedCandidates { candidates, dense_members }: JoinedCandidates,
    ) -> Result<SimilarityResult> {
        let &SimilarityStages { options, signatures, uniques, workspace, observer, .. } = self;
        let has_candidates = !candidates.is_empty() || dense_members.count() > 0;
        let sample = if has_candidates { boilerplate::sample(uniques, signatures)? } else { Vec::new() };
        let computed;
        let features = match self.source {
            FeatureSource::File(features) => features,
            FeatureSource::Documents(documents) => {
                computed =
                    documents.features(self.documents_to_verify(&candidates, &dense_members, &sample)?)?;
                &computed
            }
        };
        let verifier = Verifier::new(uniques, features, options.min_similarity, options.with_histogram);
        let stage = Stage::new(observer, "texts compared");
        let groups = match dense_members.count() {
            0 => None,
            _ => Some(DenseGroups::new(&verifier, signatures, rule, &dense_members, workspace, &stage)?),
        };
        let similar = ComponentSearch {
            candidates: &candidates,
            dense_members: &dense_members,
            groups: groups.as_ref(),
            verifier: &verifier,
            excluded: self.excluded,
            workspace,
            stage: &stage,
        };
        let none = || workspace.rows().finish();
        let (assignments, pairs, nearest) = match (options.with_pairs, options.cluster_by) {
            (true, _) => {
                let pairs = self.all_pairs(&similar)?;
                let edges = pairs.iter()?.map(|pair| pair.map(|(a, b, _)| (a, b)));
                let edges = (options.cluster_by == ClusterBy::Components).then_some(edges);
                let nearest = NearestSearch::new(uniques, NearestOrder::MostSimilarFirst, workspace);
                let (excluded, verifier, keeps_none) = (self.excluded, Some(&verifier), options.keeps_none);
                let (assignments, nearest) = nearest
                    .into_assignments_and_nearest(&pairs, edges, excluded, verifier, keeps_none, &stage)?;
                (assignments, pairs, nearest)
            }
            (false, ClusterBy::Components) if options.keeps_none => {
                let (assignments, nearest) = similar.components_and_nearest()?;
                (assignments, none()?, nearest)
            }
            (false, ClusterBy::Components) => (similar.components()?, none()?, none()?),
            (false, ClusterBy::Stars) => {
                let assignments =
                    assign_stars(&candidates, &dense_members, groups.as_ref(), &verifier, workspace, &stage)?;
                let mut nearest = NearestSearch::new(uniques, NearestOrder::MostSimilarFirst, workspace);
                removal_reasons::verify_other_representatives(
                    &candidates, &assignments, &verifier, &mut nearest, workspace, &stage,
                )?;
                if let Some(groups) = &groups {
                    dense_pairs::visit_nearer_representatives(
                        groups,
                        &dense_members,
                        &assignments,
                        &stage,
                        |pair| nearest.push(pair),
                    )?;
                }
                let nearest = nearest.into_nearer_than_representatives(&assignments)?;
                (assignments, none()?, nearest)
            }
        };
        let (counts, histogram) = (verifier.counts(), verifier.histogram());
        let groups = (dense_members.count() as u64, groups.as_ref().map_or(0, DenseGroups::pairs_tested));
        let boilerplate = boilerplate::boilerplate(&sample, &assignments.rows, &verifier, signatures)?;
        Ok(SimilarityResult { assignments, pairs, nearest, compared: counts, histogram, groups, boilerplate })
    }

    /// Returns the folder that keeps the results of stages, and the headers that identify the results of the two
    /// stages: candidates and representatives. Returns `None` if the run does not save results.
    fn stage_keys(&self, rule: &CandidateRule) -> Result<Option<(StageCheckpoints<'_>, [StageHeader; 2])>> {
        let Some(checkpoints) = self.checkpoints else { return Ok(None) };
        let mut hash = Xxh3::new();
        hash_rows(&mut hash, self.signatures.iter()?)?;
        hash_rows(&mut hash, self.uniques.best_documents().iter()?)?;
        hash_rows(&mut hash, self.excluded.ones().map(Ok))?;
        let all = self.options.compares_all();
        let BandSearch { bands: joined, band_distance: distance, signature_distance: total } = rule.search;
        let joins = format!(
            "similar {} all {all} joined {joined} distance {distance} total {total}",
            rule.min_similarity
        );
        let SimilarityOptions { cluster_by, with_pairs: pairs, keeps_none, with_histogram, .. } =
            self.options;
        let histogram = if with_histogram { " histogram" } else { "" };
        let stars = format!("{joins} {cluster_by:?} dropped {keeps_none} pairs {pairs} ties kept{histogram}");
        let check = hash.digest();
        let stage_keys =
            [StageHeader::new("candidates", joins, check), StageHeader::new("representatives", stars, check)];
        Ok(Some((checkpoints, stage_keys)))
    }

    fn load_candidates(
        &self,
        rule: CandidateRule,
        checkpoints: &StageCheckpoints<'_>,
        stage: &StageHeader,
    ) -> Result<JoinedCandidates> {
        let uniques = self.uniques.len();
        let load = |kept: &mut StageReader| {
            let candidates = kept.rows(self.workspace, |&(a, b)| b < a && (a as usize) < uniques)?;
            let dense_members = AtomicBitSet::new(uniques);
            for unique in kept.rows::<u32>(self.workspace, |&unique| (unique as usize) < uniques)?.iter()? {
                dense_members.set(unique?);
            }
            for pair in candidates.iter()? {
                let (a, b) = pair?;
                if dense_members.contains(a) && dense_members.contains(b) {
                    return Err(StageReadError::Invalid(
                        "candidates of two documents in dense groups".to_owned(),
                    ));
                }
            }
            Ok(JoinedCandidates { candidates, dense_members })
        };
        let make = || self.candidates(rule);
        checkpoints.load_or_compute(stage, load, make, |found, kept| {
            kept.write_rows(&found.candidates)?;
            kept.rows(found.dense_members.count(), found.dense_members.ones().map(Ok))
        })
    }

    /// Reads the similar pairs and representatives that an earlier run has saved, and checks them.
    fn load(&self, kept: &mut StageReader) -> Result<SimilarityResult, StageReadError> {
        let uniques = self.uniques.len();
        let is_pair = |&(a, b, score): &ScoredPair| {
            a != b && (a.max(b) as usize) < uniques && score <= score_from_similarity(1.0)
        };
        let is_ordered = |pair: &ScoredPair| is_pair(pair) && pair.1 < pair.0;
        let rows = kept.rows::<AssignmentRow>(self.workspace, is_ordered)?;
        let mut is_represented: BitVec = BitVec::repeat(false, uniques);
        let cannot_be = || StageReadError::Invalid("representatives that cannot be".to_owned());
        for row in rows.iter()? {
            if is_represented.replace(row?.0 as usize, true) {
                return Err(cannot_be());
            }
        }
        for row in rows.iter()? {
            let (unique, representative, _) = row?;
            if is_represented[representative as usize]
                || self.excluded.contains(unique)
                || self.excluded.contains(representative)
            {
                return Err(cannot_be());
            }
        }
        let pairs = kept.rows(self.workspace, is_ordered)?;
        let nearest = kept.rows(self.workspace, is_pair)?;
        let mut numbers = kept.numbers()?;
        let histogram = match (self.options.with_histogram, numbers.len().checked_sub(SIMILARITY_BINS)) {
            (true, Some(start)) => Some(numbers.split_off(start)),
            (true, None) => return Err(StageReadError::Invalid("a histogram that cannot be".to_owned())),
            (false, _) => None,
        };
        let boilerplate = match numbers[..] {
            [_, _, _, _] => None,
            [.., examined, mostly_boilerplate] if numbers.len() == 6 => Some(Boilerplate {
                examined: examined as usize,
                mostly_boilerplate: mostly_boilerplate as usize,
            }),
            _ => return Err(StageReadError::Invalid("counts that cannot be".to_owned())),
        };
        let (compared, groups) = ((numbers[0], numbers[1]), (numbers[2], numbers[3]));
        let total =
            |counts: &Vec<u64>| counts.iter().try_fold(0_u64, |total, &count| total.checked_add(count));
        if histogram.as_ref().is_some_and(|counts| total(counts) != Some(compared.0)) {
            return Err(StageReadError::Invalid("a histogram that cannot be".to_owned()));
        }
        Ok(SimilarityResult {
            assignments: Assignments { rows, is_represented },
            pairs,
            nearest,
            compared,
            histogram,
            groups,
            boilerplate,
        })
    }

    fn candidates(&self, rule: CandidateRule) -> Result<JoinedCandidates> {
        let &SimilarityStages { options, signatures, uniques, excluded, workspace, observer, .. } = self;
        let stage = Stage::new(observer, "candidates");
        stage.add(0)?;
        let none = AtomicBitSet::new(uniques.len());
        let excluded = if options.compares_all() { &none } else { excluded };
        BandJoin { signatures, uniques, excluded, rule, workspace, stage: &stage }.find()
    }

    /// Returns the documents whose features may be needed, in ascending order: one document of each group of exact
    /// duplicates in `candidates`, `dense_members` or `sample`. Each item has the index of the document twice,
    /// because [`FeatureReader::features`] expects an index in the corpus and an index in the feature file.
    ///
    /// [`FeatureReader::features`]: crate::pipeline::features::FeatureReader::features
    fn documents_to_verify(
        &self,
        candidates: &Rows<(u32, u32)>,
        dense_members: &AtomicBitSet,
        sample: &[u32],
    ) -> Result<impl Iterator<Item = Result<(u64, u32)>> + use<>> {
        let to_verify = AtomicBitSet::new(self.uniques.len());
        sample.iter().for_each(|&unique| to_verify.set(unique));
        dense_members.ones().for_each(|unique| to_verify.set(unique));
        for pair in candidates.iter()? {
            let (a, b) = pair?;
            to_verify.set(a);
            to_verify.set(b);
        }
        let mut documents = self.workspace.sorter();
        for unique in to_verify.ones() {
            documents.push(self.uniques.best_document(unique)?)?;
        }
        Ok(documents.finish()?.map(|document| document.map(|document| (document.into(), document))))
    }

    /// Verifies all candidates and all pairs within [dense groups](DenseGroups). Returns the similar pairs, sorted.
    fn all_pairs(&self, similar: &ComponentSearch<'_>) -> Result<Rows<ScoredPair>> {
        let &ComponentSearch { candidates, dense_members, verifier, stage, .. } = similar;
        let pairs = verifier.similar_pairs(candidates, self.workspace, stage)?;
        let Some(groups) = similar.groups else { return Ok(pairs) };
        let mut all = self.workspace.sorter();
        pairs.iter()?.try_for_each(|pair| all.push(pair?))?;
        dense_pairs::visit_pairs(groups, dense_members, stage, |pair| all.push(pair))?;
        Rows::from_sorter(all)
    }
}
