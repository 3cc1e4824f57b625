//! The stages of a run that compares fingerprints by distance. They find near fingerprints, group exact
//! duplicates, verify texts if requested, and assign representatives.

use simstore::{Error, Fingerprint, Result, Snapshot, each_width};
use xxhash_rust::xxh3::xxh3_128;

use crate::config::ClusterBy;
use crate::documents::preference_ranks::PreferenceRanks;
use crate::pipeline::clusters::NearDocuments;
use crate::pipeline::features::FeatureFile;
use crate::pipeline::hamming::{FingerprintNeighbors, HammingSearch, documents_with};
use crate::pipeline::removal_reasons::{self, NearestOrder, NearestSearch};
use crate::pipeline::stages::{Pipeline, PipelineResult};
use crate::pipeline::unique_documents::{UniqueDocuments, group_by_key};
use crate::pipeline::verify::Verifier;
use crate::rows::{Candidate, ScoredPair, StoredRow, score_from_similarity};
use simstore_corpus::Stage;
use simstore_corpus::spill::Rows;

/// Look-up of the [unique documents](UniqueDocuments) of fingerprints, as sorted rows (index of the fingerprint,
/// unique document). If texts are compared, a fingerprint may have several unique documents: one for each distinct
/// text.
pub(crate) struct UniquesByFingerprint(Rows<(u32, u32)>);

impl UniquesByFingerprint {
    /// Returns all unique documents that have the fingerprint with the index `index`.
    fn get(&self, index: u32) -> Result<Vec<u32>> {
        let start = self.0.partition_point(|row| row.0 < index)?;
        let rows = (start..self.0.len()).map(|at| self.0.get(at));
        let rows = rows.take_while(|row| row.as_ref().map_or(true, |row| row.0 == index));
        rows.map(|row| Ok(row?.1)).collect()
    }

    /// Returns the unique document that has the fingerprint with the index `index`. Must be called only if texts
    /// are not compared, because then each fingerprint has exactly one unique document.
    pub(crate) fn single_unique(&self, index: u32) -> Result<u32> {
        Ok(self.0.get(index as usize)?.1)
    }
}

impl Pipeline<'_> {
    /// Compares documents by the Hamming distance of their fingerprints. If the configuration requires it, also
    /// verifies the similarity of their texts.
    pub(crate) fn compare_by_distance(&self, distance: u32) -> Result<PipelineResult> {
        let &Pipeline { resolved, corpus, workspace, observer, .. } = self;
        let keeps_none = resolved.keeps_none();
        let with_pairs = self.with_pairs
            || resolved.min_verified_similarity.is_some()
            || resolved.cluster_by == ClusterBy::Stars
            || keeps_none;
        let (near, rows) =
            each_width!(corpus.width(), type F => self.near_fingerprints::<F>(distance, with_pairs))?;
        let stage = Stage::new(observer, "documents numbered");
        let (documents, indexes) = self.columns(&rows)?;
        drop(rows);
        let ranks = PreferenceRanks::new(corpus, &resolved.keep, Some(&documents), workspace, &stage)?;
        drop(stage);
        let numbered = || Ok((0..).zip(documents.iter()?).map(|(at, document)| Ok((document?, at))));
        let features = resolved
            .min_verified_similarity
            .map(|_| self.feature_reader().features(numbered()?))
            .transpose()?;
        let stage =
            Stage::new(observer, if features.is_some() { "texts compared" } else { "documents in clusters" });
        let uniques = self.group_exact(&indexes, features.as_ref(), &ranks, &stage)?;
        let by_fingerprint = self.uniques_by_fingerprint(&uniques, &indexes)?;
        let verifier = features.as_ref().zip(resolved.min_verified_similarity);
        let verifier = verifier.map(|(features, min_similarity)| {
            Verifier::new(&uniques, features, min_similarity, self.with_histogram)
        });
        let (pairs, candidate_count) = match &verifier {
            Some(verifier) => {
                let candidates = self.candidates(&near, &by_fingerprint)?;
                let pairs = verifier.similar_pairs(&candidates, workspace, &stage)?;
                (pairs, Some(count_document_pairs(candidates.iter()?, &uniques)?))
            }
            None => (self.unique_pairs(&near, &by_fingerprint)?, None),
        };
        let edges = self.edges(&near, &by_fingerprint, &pairs)?;
        let (stored, excluded) = self.near_stored(&near, &uniques, &by_fingerprint, &edges, &stage)?;
        let (order, equal) = if verifier.is_some() {
            (NearestOrder::MostSimilarFirst, score_from_similarity(1.0))
        } else {
            (NearestOrder::SmallestDistanceFirst, 0)
        };
        let edges = (resolved.cluster_by == ClusterBy::Components).then_some(edges.iter()?);
        let nearest = NearestSearch::new(&uniques, order, workspace);
        let (assignments, nearest) = nearest.into_assignments_and_nearest(
            &pairs,
            edges,
            &excluded,
            verifier.as_ref(),
            keeps_none,
            &stage,
        )?;
        let nearest =
            removal_reasons::nearest_documents(&nearest, &uniques, keeps_none.then_some(equal), workspace)?;
        let compared =
            candidate_count.map(|count| self.verified_counts(count, &pairs, &uniques)).transpose()?;
        let (distinct, histogram) = (near.distinct, verifier.as_ref().and_then(Verifier::histogram));
        let near = NearDocuments { uniques, pairs, documents: Some(documents), equal };
        let clusters = near.clusters(&assignments, &excluded, &stored.assignments, workspace)?;
        Ok(PipelineResult {
            clusters,
            stored,
            near,
            nearest,
            distinct,
            compared,
            histogram,
            boilerplate: None,
        })
    }

    /// Finds the fingerprints that are repeated or near others, and their near pairs. If `with_pairs` is not set,
    /// finds only edges that connect the same components as all near pairs. Also returns rows (document, index of
    /// its fingerprint), in document order, for all documents that have one of the found fingerprints.
    fn near_fingerprints<F: Fingerprint>(
        &self,
        distance: u32,
        with_pairs: bool,
    ) -> Result<(FingerprintNeighbors, Rows<(u64, u32)>)> {
        let &Pipeline { corpus, workspace, observer, .. } = self;
        let references = &self.resolved.references;
        let stage = Stage::new(observer, "pairs found");
        let stores: Vec<(u32, &Snapshot<F>)> = references.with_width().collect();
        // Results that depend on stores are not kept: the stores may have changed before the next run.
        let checkpoints = self.checkpoints.filter(|_| references.stores.is_empty());
        let search = HammingSearch { corpus, distance, with_pairs, stores, workspace, stage: &stage };
        let (values, near) = match checkpoints {
            Some(checkpoints) => search.find_or_load(&checkpoints)?,
            None => search.find()?,
        };
        Ok((near, documents_with(&values, corpus, workspace, &stage)?))
    }

    /// Returns the number of pairs of documents whose texts were compared, and the number of pairs whose texts were
    /// too different. Pairs of exact duplicates count as compared. `candidates` is the number of all other compared
    /// pairs, and `similar` has the pairs that were similar enough.
    fn verified_counts(
        &self,
        candidates: u64,
        similar: &Rows<ScoredPair>,
        uniques: &UniqueDocuments,
    ) -> Result<(u64, u64)> {
        let mut equal = 0;
        for unique in (0..uniques.len() as u32).filter(|&unique| uniques.has_duplicates(unique)) {
            let count = uniques.size(unique)?;
            equal += count * (count - 1) / 2;
        }
        let similar = similar.iter()?.map(|pair| pair.map(|(a, b, _)| (a, b)));
        Ok((candidates + equal, candidates - count_document_pairs(similar, uniques)?))
    }

    /// Splits the rows of [`near_fingerprints`](Self::near_fingerprints) into two columns: indexes of documents in
    /// the corpus, and indexes of the documents' fingerprints.
    fn columns(&self, near: &Rows<(u64, u32)>) -> Result<(Rows<u64>, Rows<u32>)> {
        let (mut documents, mut indexes) = (self.workspace.rows(), self.workspace.rows());
        for row in near.iter()? {
            let (document, index) = row?;
            if documents.len() == u32::MAX as usize {
                return Err(Error::Refused(
                    "more than 4,294,967,295 documents are near or equal to others: deduplicate smaller parts of the corpus first"
                        .to_owned(),
                ));
            }
            documents.push(document)?;
            indexes.push(index)?;
        }
        Ok((documents.finish()?, indexes.finish()?))
    }

    /// Groups exact duplicates: documents with equal fingerprints and, if texts are compared, also with equal
    /// feature sets. `indexes` has the index of the fingerprint of each document.
    fn group_exact(
        &self,
        indexes: &Rows<u32>,
        features: Option<&FeatureFile>,
        ranks: &PreferenceRanks,
        stage: &Stage<'_>,
    ) -> Result<UniqueDocuments> {
        let keys = (0..).zip(indexes.iter()?);
        let Some(features) = features else {
            return group_by_key(keys.map(|(at, index)| Ok((index?, at))), ranks, self.workspace, stage);
        };
        let keys = keys.map(|(at, index)| {
            let bytes: Vec<u8> = features.get(at)?.iter().flat_map(|feature| feature.to_le_bytes()).collect();
            Ok(((index?, xxh3_128(&bytes)), at))
        });
        group_by_key(keys, ranks, self.workspace, stage)
    }

    fn uniques_by_fingerprint(
        &self,
        uniques: &UniqueDocuments,
        indexes: &Rows<u32>,
    ) -> Result<UniquesByFingerprint> {
        let rows = (0..).zip(uniques.best_documents().iter()?);
        let rows = rows.map(|(unique, best)| Ok((indexes.get(best? as usize)?, unique)));
        Ok(UniquesByFingerprint(self.workspace.sorted(rows)?))
    }

    /// Returns the pairs of unique documents whose texts have to be compared: pairs with near fingerprints, and
    /// pairs with equal fingerprints but different texts.
    fn candidates(
        &self,
        near: &FingerprintNeighbors,
        by_fingerprint: &UniquesByFingerprint,
    ) -> Result<Rows<Candidate>> {
        let mut all = self.workspace.sorter::<Candidate>();
        for row in near.pairs.iter()? {
            let (a, b, _) = row?;
            let others = by_fingerprint.get(b)?;
            for one in by_fingerprint.get(a)? {
                others.iter().try_for_each(|&other| all.push((one.max(other), one.min(other))))?;
            }
        }
        let mut rows = by_fingerprint.0.cursor()?;
        while let Some((index, first)) = rows.next_row()? {
            let mut same = vec![first];
            while let Some((_, unique)) = rows.next_if(|&(next, _)| next == index)? {
                same.iter().try_for_each(|&other| all.push((unique.max(other), unique.min(other))))?;
                same.push(unique);
            }
        }
        Rows::from_sorter(all)
    }

    /// Converts pairs of near fingerprints to pairs of unique documents. Must be called only if texts are not
    /// compared, because then each fingerprint has exactly one unique document.
    fn unique_pairs(
        &self,
        near: &FingerprintNeighbors,
        by_fingerprint: &UniquesByFingerprint,
    ) -> Result<Rows<ScoredPair>> {
        self.workspace.sorted(near.pairs.iter()?.map(|row| {
            let (a, b, distance) = row?;
            let (a, b) = (by_fingerprint.single_unique(a)?, by_fingerprint.single_unique(b)?);
            Ok((a.max(b), a.min(b), distance.into()))
        }))
    }

    /// Returns edges between unique documents. The connected components of these edges are the clusters. If the run
    /// forms clusters as [stars](ClusterBy::Stars), which need no edges, returns none.
    fn edges(
        &self,
        near: &FingerprintNeighbors,
        by_fingerprint: &UniquesByFingerprint,
        pairs: &Rows<ScoredPair>,
    ) -> Result<Rows<(u32, u32)>> {
        let mut edges = self.workspace.rows();
        if self.resolved.cluster_by == ClusterBy::Stars {
            return edges.finish();
        }
        for pair in pairs.iter()? {
            let (a, b, _) = pair?;
            edges.push((a, b))?;
        }
        for row in near.edges.iter()? {
            let (a, b) = row?;
            edges.push((by_fingerprint.single_unique(a)?, by_fingerprint.single_unique(b)?))?;
        }
        // Unique documents near the same stored fingerprint are connected.
        let mut by_stored = self.workspace.sorter();
        for row in near.stored.iter()? {
            let (index, (_, stored)) = row?;
            by_stored.push((stored, by_fingerprint.single_unique(index)?))?;
        }
        let mut first: Option<(StoredRow, u32)> = None;
        for row in by_stored.finish()? {
            let (stored, unique) = row?;
            match first.filter(|(other, _)| *other == stored) {
                Some((_, other)) => edges.push((unique, other))?,
                None => first = Some((stored, unique)),
            }
        }
        edges.finish()
    }
}

/// Counts pairs of documents. `pairs` has pairs of unique documents, which are groups of exact duplicates. A pair of
/// groups with m and n documents counts as m · n pairs of documents.
fn count_document_pairs(
    pairs: impl Iterator<Item = Result<Candidate>>,
    uniques: &UniqueDocuments,
) -> Result<u64> {
    let mut count = 0;
    for pair in pairs {
        let (a, b) = pair?;
        count += uniques.size(a)? * uniques.size(b)?;
    }
    Ok(count)
}
