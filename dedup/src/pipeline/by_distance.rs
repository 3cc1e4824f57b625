//! The stages for documents whose fingerprints are compared: near fingerprints, sets, representatives.

use simstore::{Error, Fingerprint, Result, Snapshot, each_width};
use xxhash_rust::xxh3::xxh3_128;

use crate::checkpoint::stage_results::Keeping;
use crate::config::ClusterBy;
use crate::corpus::Corpus;
use crate::corpus::keep_rule::Keep;
use crate::corpus::ranks::Ranks;
use crate::pipeline::bit_set::Marks;
use crate::pipeline::clusters::Clustering;
use crate::pipeline::components;
use crate::pipeline::exact::{Sets, distinct};
use crate::pipeline::features::Features;
use crate::pipeline::hamming::{LookedFor, NearValues, documents_of};
use crate::pipeline::nearest::{self, NearestSets, Tie};
use crate::pipeline::outcome::{NearDocuments, Outcome};
use crate::pipeline::representatives::{Leaders, stars_of};
use crate::pipeline::verify::Compared;
use crate::reference::References;
use crate::rows::{Candidate, Near, Nearness, Stored, of_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::Watch;
use simstore_corpus::spill::Rows;

/// A search for near fingerprints.
pub(crate) struct NearSearch<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) distance: u32,
    /// The least similarity of texts, where these are compared.
    pub(crate) verify: Option<f64>,
    pub(crate) cluster_by: ClusterBy,
    pub(crate) keep: &'a Keep,
    /// Whether to list all pairs.
    pub(crate) pairs: bool,
    pub(crate) references: &'a References,
    /// Where what stages have found is kept.
    pub(crate) keeping: Option<Keeping<'a>>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) watch: &'a dyn Watch,
}

/// Near fingerprints. Each has a number, its place among all of them.
pub(crate) struct NearPlaces {
    /// Near ones, `a` < `b`, with their distance in bits, if pairs are listed; in order.
    pairs: Rows<(u32, u32, u32)>,
    /// Connections, if pairs are not listed.
    edges: Rows<(u32, u32)>,
    /// Near fingerprints of stores: the place, the distance, and the stored fingerprint; in order.
    pub(crate) stored: Rows<(u32, (u32, Stored))>,
    /// Number of distinct fingerprints of the corpus.
    distinct: usize,
}

/// The documents of near fingerprints, numbered in order of input.
struct Told {
    /// Their numbers in the corpus.
    documents: Rows<u64>,
    /// The places of their fingerprints among the near ones.
    places: Rows<u32>,
}

/// The sets of each near fingerprint: its place, and each of them; in order.
pub(crate) struct SetsOf(Rows<(u32, u32)>);

impl SetsOf {
    /// The sets of a fingerprint. Without texts it has one.
    fn get(&self, place: u32) -> Result<Vec<u32>> {
        let rows = &self.0;
        let (mut start, mut end) = (0, rows.len());
        while start < end {
            let middle = (start + end) / 2;
            if rows.get(middle)?.0 < place {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        let mut sets = Vec::new();
        for at in start..rows.len() {
            match rows.get(at)? {
                (next, set) if next == place => sets.push(set),
                _ => break,
            }
        }
        Ok(sets)
    }

    /// The set of a fingerprint, where texts are not compared.
    pub(crate) fn only(&self, place: u32) -> Result<u32> {
        Ok(self.0.get(place as usize)?.1)
    }
}

impl NearSearch<'_> {
    /// Searches. `read` reads the features of some documents, which ascend.
    pub(crate) fn run(
        &self,
        read: impl FnOnce(&mut dyn Iterator<Item = Result<(u64, u32)>>) -> Result<Features>,
    ) -> Result<Outcome> {
        let &NearSearch { corpus, workspace, watch, .. } = self;
        let keeps_none = *self.keep == Keep::None;
        let with_pairs =
            self.pairs || self.verify.is_some() || self.cluster_by == ClusterBy::Stars || keeps_none;
        let (near, documents) = each_width!(corpus.width(), type F => self.near::<F>(with_pairs))?;
        let step = Step::new(watch, "documents numbered");
        let told = self.told(&documents)?;
        drop(documents);
        let ranks = Ranks::new(corpus, self.keep, Some(&told.documents), workspace, &step)?;
        drop(step);
        let features = match self.verify {
            Some(_) => {
                Some(read(&mut (0..).zip(told.documents.iter()?).map(|(at, document)| Ok((document?, at))))?)
            }
            None => None,
        };
        let step =
            Step::new(watch, if features.is_some() { "texts compared" } else { "documents in clusters" });
        let sets = self.sets(&told, features.as_ref(), &ranks, &step)?;
        let sets_of = self.sets_of(&sets, &told)?;
        let compared = features.as_ref().zip(self.verify);
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
        let (stored, out) = self.stored(&near, &sets, &sets_of, &edges, &step)?;
        let (leaders, nearest) = self.leaders(&sets, &pairs, &edges, &out, compared.as_ref(), &step)?;
        let equal = if compared.is_some() { of_similarity(1.0) } else { 0 };
        let nearest = match keeps_none {
            true => nearest::of_all_documents(&nearest, &sets, equal, workspace)?,
            false => nearest::of_documents(&nearest, &sets, workspace)?,
        };
        let counts = counts.map(|counts| self.counts(counts, &pairs, &sets)).transpose()?;
        let documents = Some(&told.documents);
        let clustering = Clustering {
            sets: &sets,
            leaders: &leaders,
            out: &out,
            stored: &stored.of_documents,
            documents,
            equal,
            workspace,
        };
        let clusters = clustering.clusters()?;
        Ok(Outcome {
            clusters,
            stored,
            near: NearDocuments { sets, pairs, documents: Some(told.documents), equal },
            nearest,
            distinct: near.distinct,
            compared: counts,
            boilerplate: None,
        })
    }

    /// Finds near fingerprints, and the documents that have them, ascending, each with the place of its fingerprint.
    fn near<F: Fingerprint>(&self, with_pairs: bool) -> Result<(NearPlaces, Rows<(u64, u32)>)> {
        let &NearSearch { corpus, distance, workspace, watch, .. } = self;
        let step = Step::new(watch, "pairs found");
        let stores: Vec<(u32, &Snapshot<F>)> = self.references.of_width().collect();
        // The contents of stores may differ in the next run.
        let keeping = self.keeping.filter(|_| self.references.stores.is_empty());
        let looked_for = LookedFor { corpus, distance, with_pairs, stores, workspace, step: &step };
        let NearValues { values, pairs, edges, stored, distinct } = match keeping {
            Some(keeping) => looked_for.kept(&keeping)?,
            None => looked_for.find()?,
        };
        let documents = documents_of(&values, corpus, workspace, &step)?;
        Ok((NearPlaces { pairs, edges, stored, distinct }, documents))
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

    fn told(&self, near: &Rows<(u64, u32)>) -> Result<Told> {
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
        Ok(Told { documents: documents.finish()?, places: places.finish()? })
    }

    /// Documents of equal fingerprints, and of equal texts if these are compared.
    fn sets(&self, told: &Told, features: Option<&Features>, ranks: &Ranks, step: &Step<'_>) -> Result<Sets> {
        let keys = (0..).zip(told.places.iter()?);
        let Some(features) = features else {
            return distinct(keys.map(|(at, place)| Ok((place?, at))), ranks, self.workspace, step);
        };
        let keys = keys.map(|(at, place)| {
            let bytes: Vec<u8> = features.get(at)?.iter().flat_map(|feature| feature.to_le_bytes()).collect();
            Ok(((place?, xxh3_128(&bytes)), at))
        });
        distinct(keys, ranks, self.workspace, step)
    }

    fn sets_of(&self, sets: &Sets, told: &Told) -> Result<SetsOf> {
        let mut rows = self.workspace.sorter();
        for (set, best) in (0..).zip(sets.all_best().iter()?) {
            rows.push((told.places.get(best? as usize)?, set))?;
        }
        Ok(SetsOf(Rows::sorted(rows)?))
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
        let mut pairs = self.workspace.sorter::<Near>();
        for row in near.pairs.iter()? {
            let (a, b, distance) = row?;
            let (a, b) = (sets_of.only(a)?, sets_of.only(b)?);
            pairs.push((a.max(b), a.min(b), distance.into()))?;
        }
        Rows::sorted(pairs)
    }

    /// Connections of sets.
    fn edges(&self, near: &NearPlaces, sets_of: &SetsOf, pairs: &Rows<Near>) -> Result<Rows<(u32, u32)>> {
        let mut edges = self.workspace.rows();
        if self.cluster_by == ClusterBy::Stars {
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

    /// Representatives, and the nearest set of each set.
    fn leaders(
        &self,
        sets: &Sets,
        pairs: &Rows<Near>,
        edges: &Rows<(u32, u32)>,
        out: &Marks,
        compared: Option<&Compared<'_>>,
        step: &Step<'_>,
    ) -> Result<(Leaders, Rows<Near>)> {
        let workspace = self.workspace;
        let is_left = |&(a, b, _): &Near| !out.has(a) && !out.has(b);
        let left = || Ok(pairs.iter()?.filter(move |pair| pair.as_ref().map_or(true, is_left)));
        let tie = if compared.is_some() { Tie::SimilarThenBest } else { Tie::NearThenBest };
        let mut nearest = NearestSets::new(sets, tie, workspace);
        let leaders = match self.cluster_by {
            ClusterBy::Stars => {
                let leaders = stars_of(left()?, sets.len(), workspace, step)?;
                nearest.push_others(&leaders, left()?)?;
                leaders
            }
            ClusterBy::Components => {
                let firsts = components::components(edges.iter()?, sets.len(), workspace, step)?;
                let mut left = workspace.rows();
                for row in firsts.iter()? {
                    let row = row?;
                    if !out.has(row.0) {
                        left.push(row)?;
                    }
                }
                let nearness =
                    |a, b| compared.map_or(Ok::<Nearness, _>(0), |compared| compared.similarity(a, b));
                components::leaders(&left.finish()?, pairs, sets.len(), workspace, nearness)?
            }
        };
        if *self.keep == Keep::None {
            pairs.iter()?.try_for_each(|pair| nearest.push_both(pair?))?;
            return Ok((leaders, nearest.of_all(workspace)?));
        }
        let nearest = nearest.nearer_than_leaders(&leaders, workspace)?;
        Ok((leaders, nearest))
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
