//! The stages for documents whose fingerprints are compared: near fingerprints, sets, representatives.

use simstore::{Error, Fingerprint, Result, Snapshot, each_width};
use xxhash_rust::xxh3::xxh3_128;

use crate::config::ClusterBy;
use crate::corpus::ranks::Ranks;
use crate::pipeline::clusters::NearDocuments;
use crate::pipeline::exact::{Sets, distinct};
use crate::pipeline::features::Features;
use crate::pipeline::hamming::{LookedFor, NearPlaces, documents_of};
use crate::pipeline::nearest::{self, NearestSets, Tie};
use crate::pipeline::stages::{Outcome, Stages};
use crate::pipeline::verify::Compared;
use crate::rows::{Candidate, Near, Stored, of_similarity};
use simstore_corpus::Step;
use simstore_corpus::spill::Rows;

/// The sets of each near fingerprint: its place, and each of them; in order.
pub(crate) struct SetsOf(Rows<(u32, u32)>);

impl SetsOf {
    /// The sets of a fingerprint. Without texts it has one.
    fn get(&self, place: u32) -> Result<Vec<u32>> {
        let start = self.0.partition_point(|row| row.0 < place)?;
        let of_place = (start..self.0.len()).map(|at| self.0.get(at));
        let of_place = of_place.take_while(|row| row.as_ref().map_or(true, |row| row.0 == place));
        of_place.map(|row| Ok(row?.1)).collect()
    }

    /// The set of a fingerprint, where texts are not compared.
    pub(crate) fn only(&self, place: u32) -> Result<u32> {
        Ok(self.0.get(place as usize)?.1)
    }
}

impl Stages<'_> {
    /// Compares documents by the distance of their fingerprints and, if the run says so, by the similarity of their texts.
    pub(crate) fn near(&self, distance: u32) -> Result<Outcome> {
        let &Stages { resolved, corpus, workspace, watch, .. } = self;
        let keeps_none = resolved.keeps_none();
        let with_pairs =
            self.pairs || resolved.verify.is_some() || resolved.cluster_by == ClusterBy::Stars || keeps_none;
        let (near, rows) =
            each_width!(corpus.width(), type F => self.near_places::<F>(distance, with_pairs))?;
        let step = Step::new(watch, "documents numbered");
        let (documents, places) = self.columns(&rows)?;
        drop(rows);
        let ranks = Ranks::new(corpus, &resolved.keep, Some(&documents), workspace, &step)?;
        drop(step);
        let numbered = || Ok((0..).zip(documents.iter()?).map(|(at, document)| Ok((document?, at))));
        let features = resolved.verify.map(|_| self.read_again().features(numbered()?)).transpose()?;
        let step =
            Step::new(watch, if features.is_some() { "texts compared" } else { "documents in clusters" });
        let sets = self.sets(&places, features.as_ref(), &ranks, &step)?;
        let sets_of = self.sets_of(&sets, &places)?;
        let compared = features.as_ref().zip(resolved.verify);
        let compared = compared.map(|(features, least)| Compared::new(&sets, features, least));
        let (pairs, counts) = match &compared {
            Some(compared) => {
                let candidates = self.candidates(&near, &sets_of)?;
                let pairs = compared.similar_pairs(&candidates, workspace, &step)?;
                (pairs, Some(pairs_of_documents(candidates.iter()?, &sets)?))
            }
            None => (self.pairs_of_sets(&near, &sets_of)?, None),
        };
        let edges = self.edges(&near, &sets_of, &pairs)?;
        let (stored, out) = self.near_stored(&near, &sets, &sets_of, &edges, &step)?;
        let is_similar = compared.is_some();
        let (tie, equal) =
            if is_similar { (Tie::SimilarThenBest, of_similarity(1.0)) } else { (Tie::NearThenBest, 0) };
        let edges = (resolved.cluster_by == ClusterBy::Components).then_some(edges.iter()?);
        let nearest = NearestSets::new(&sets, tie, workspace);
        let (leaders, nearest) =
            nearest.with_leaders(&pairs, edges, &out, compared.as_ref(), keeps_none, &step)?;
        let nearest = nearest::of_documents(&nearest, &sets, keeps_none.then_some(equal), workspace)?;
        let compared = counts.map(|counts| self.counts(counts, &pairs, &sets)).transpose()?;
        let distinct = near.distinct;
        let near = NearDocuments { sets, pairs, documents: Some(documents), equal };
        let clusters = near.clusters(&leaders, &out, &stored.of_documents, workspace)?;
        Ok(Outcome { clusters, stored, near, nearest, distinct, compared, boilerplate: None })
    }

    /// Finds near fingerprints, and the documents that have them, ascending, each with the place of its fingerprint.
    fn near_places<F: Fingerprint>(
        &self,
        distance: u32,
        with_pairs: bool,
    ) -> Result<(NearPlaces, Rows<(u64, u32)>)> {
        let &Stages { corpus, workspace, watch, .. } = self;
        let references = &self.resolved.references;
        let step = Step::new(watch, "pairs found");
        let stores: Vec<(u32, &Snapshot<F>)> = references.of_width().collect();
        // The contents of stores may differ in the next run.
        let keeping = self.keeping.filter(|_| references.stores.is_empty());
        let looked_for = LookedFor { corpus, distance, with_pairs, stores, workspace, step: &step };
        let (values, near) = match keeping {
            Some(keeping) => looked_for.kept(&keeping)?,
            None => looked_for.find()?,
        };
        Ok((near, documents_of(&values, corpus, workspace, &step)?))
    }

    /// How many pairs of documents were compared, and how many of them were not similar: documents of equal texts are.
    fn counts(&self, candidates: u64, similar: &Rows<Near>, sets: &Sets) -> Result<(u64, u64)> {
        let mut equal = 0;
        for set in (0..sets.len() as u32).filter(|&set| sets.is_several(set)) {
            let count = sets.size(set)?;
            equal += count * (count - 1) / 2;
        }
        let similar = similar.iter()?.map(|pair| pair.map(|(a, b, _)| (a, b)));
        Ok((candidates + equal, candidates - pairs_of_documents(similar, sets)?))
    }

    /// Splits rows into the numbers of the documents in the corpus, and the places of their fingerprints.
    fn columns(&self, near: &Rows<(u64, u32)>) -> Result<(Rows<u64>, Rows<u32>)> {
        let (mut documents, mut places) = (self.workspace.rows(), self.workspace.rows());
        for row in near.iter()? {
            let (document, place) = row?;
            if documents.len() == u32::MAX as usize {
                return Err(Error::Refused(
                    "more than 4,294,967,295 documents are near or equal to others: deduplicate smaller parts of the corpus first"
                        .to_owned(),
                ));
            }
            documents.push(document)?;
            places.push(place)?;
        }
        Ok((documents.finish()?, places.finish()?))
    }

    /// Documents of equal fingerprints, and of equal texts if these are compared.
    fn sets(
        &self,
        places: &Rows<u32>,
        features: Option<&Features>,
        ranks: &Ranks,
        step: &Step<'_>,
    ) -> Result<Sets> {
        let keys = (0..).zip(places.iter()?);
        let Some(features) = features else {
            return distinct(keys.map(|(at, place)| Ok((place?, at))), ranks, self.workspace, step);
        };
        let keys = keys.map(|(at, place)| {
            let bytes: Vec<u8> = features.get(at)?.iter().flat_map(|feature| feature.to_le_bytes()).collect();
            Ok(((place?, xxh3_128(&bytes)), at))
        });
        distinct(keys, ranks, self.workspace, step)
    }

    fn sets_of(&self, sets: &Sets, places: &Rows<u32>) -> Result<SetsOf> {
        let rows = (0..).zip(sets.all_best().iter()?);
        let rows = rows.map(|(set, best)| Ok((places.get(best? as usize)?, set)));
        Ok(SetsOf(self.workspace.sorted(rows)?))
    }

    /// Pairs of sets of near fingerprints, and of sets of one fingerprint: their texts are compared.
    fn candidates(&self, near: &NearPlaces, sets_of: &SetsOf) -> Result<Rows<Candidate>> {
        let mut all = self.workspace.sorter::<Candidate>();
        for row in near.pairs.iter()? {
            let (a, b, _) = row?;
            let others = sets_of.get(b)?;
            for one in sets_of.get(a)? {
                others.iter().try_for_each(|&other| all.push((one.max(other), one.min(other))))?;
            }
        }
        let mut rows = sets_of.0.cursor()?;
        while let Some((place, first)) = rows.take()? {
            let mut same = vec![first];
            while let Some((_, set)) = rows.take_if(|&(next, _)| next == place)? {
                same.iter().try_for_each(|&other| all.push((set.max(other), set.min(other))))?;
                same.push(set);
            }
        }
        Rows::sorted(all)
    }

    /// The pairs of the sets of near fingerprints.
    fn pairs_of_sets(&self, near: &NearPlaces, sets_of: &SetsOf) -> Result<Rows<Near>> {
        self.workspace.sorted(near.pairs.iter()?.map(|row| {
            let (a, b, distance) = row?;
            let (a, b) = (sets_of.only(a)?, sets_of.only(b)?);
            Ok((a.max(b), a.min(b), distance.into()))
        }))
    }

    /// Connections of sets.
    fn edges(&self, near: &NearPlaces, sets_of: &SetsOf, pairs: &Rows<Near>) -> Result<Rows<(u32, u32)>> {
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
            edges.push((sets_of.only(a)?, sets_of.only(b)?))?;
        }
        // Sets that are near the same stored document are connected.
        let mut by_thing = self.workspace.sorter();
        for row in near.stored.iter()? {
            let (place, (_, stored)) = row?;
            by_thing.push((stored, sets_of.only(place)?))?;
        }
        let mut first: Option<(Stored, u32)> = None;
        for row in by_thing.finish()? {
            let (stored, set) = row?;
            match first.filter(|(thing, _)| *thing == stored) {
                Some((_, other)) => edges.push((set, other))?,
                None => first = Some((stored, set)),
            }
        }
        edges.finish()
    }
}

/// How many pairs of documents are pairs of these sets.
fn pairs_of_documents(pairs: impl Iterator<Item = Result<Candidate>>, sets: &Sets) -> Result<u64> {
    let mut count = 0;
    for pair in pairs {
        let (a, b) = pair?;
        count += sets.size(a)? * sets.size(b)?;
    }
    Ok(count)
}
