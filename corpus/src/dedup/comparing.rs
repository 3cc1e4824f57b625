//! Comparing all that was read, by the question that is asked.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use simstore::{Error, Fingerprint, Match, Result, Snapshot};
use simstore_text::{Profile, SimilarDocument, SimilarSettings, Sketched, StoredTexts};

use super::against::{Against, Stored};
use super::clusters::{self, Cluster, Representative};
use super::corpus::{Corpus, Room};
use super::feature_sets::FeatureSets;
use super::groups::{Groups, Resume};
use super::job::check_unchanged;
use super::listing::Listing;
use super::nearness::Nearness;
use super::options::{ClusterBy, Options};
use super::preference::{Keep, Preference};
use super::question::Question;
use super::similar::{LikeStored, Likely, Similar, StoredLike, Wanted};
use super::similarity::Texts;
use super::sketch_file::SketchFile;
use super::sketches::Sketches;
use crate::output::Unfinished;
use crate::spill::Temporary;
use crate::watch::Step;
use crate::{Inputs, Watch};

/// The ids of what may be similar to a document in each store, by the document.
type LikelyStored = BTreeMap<usize, Vec<Vec<u64>>>;

/// What is compared, and how.
pub(super) struct Comparing<'a, F: Fingerprint> {
    pub(super) options: &'a Options,
    pub(super) question: Question,
    /// Whether all pairs are to be known.
    pub(super) pairs: bool,
    pub(super) corpus: &'a Corpus<F>,
    /// The files of documents, to be read again, and what they were when they were read.
    pub(super) inputs: Option<&'a Inputs>,
    pub(super) listing: Option<&'a Listing>,
    /// The features of documents that were handed over.
    pub(super) features: Option<FeatureSets>,
    /// The profile of the features by which texts are compared.
    pub(super) profile_of_texts: Option<&'a Profile>,
    /// The stores that are compared with.
    pub(super) stores: &'a [Against<F>],
    /// What their texts are compared by, if they are stores of similar documents.
    pub(super) texts: Vec<StoredTexts>,
    pub(super) temporary: &'a Arc<Temporary>,
    pub(super) unfinished: &'a Unfinished,
    pub(super) watch: &'a dyn Watch,
}

impl<F: Fingerprint> Comparing<'_, F> {
    /// Finds what is near what, and makes clusters of it.
    pub(super) fn run(self) -> Result<(Nearness<F>, Vec<Cluster<F>>)> {
        let is_dropped = self.options.keep == Keep::None;
        let (nearness, mut clusters) = self.compare()?;
        clusters.iter_mut().for_each(|cluster| cluster.is_dropped = is_dropped);
        Ok((nearness, clusters))
    }

    fn compare(mut self) -> Result<(Nearness<F>, Vec<Cluster<F>>)> {
        let (corpus, watch) = (self.corpus, self.watch);
        let cluster_by = self.options.cluster_by(self.question);
        let distance = match (self.question, &corpus.sketches) {
            (Question::Similarity(least), Some(sketches)) => {
                let wanted = Wanted { least, recall: self.options.recall(), cluster_by, pairs: self.pairs };
                if let (Some(file), Some(spilled)) = (sketches.on_disk(), corpus.spilled()) {
                    return self.similar_on_disk(wanted, file, &spilled.room);
                }
                let likely = self.looked_up(|visitor| visitor(0, sketches))?;
                let sketched = |document| sketches.sketched(document);
                let stored = self.stored_like(likely, sketched, least)?;
                let mut found = stored.as_ref().map_or_else(Vec::new, clusters_of_stored);
                let out: HashSet<usize> = found.iter().flat_map(|cluster| cluster.members.clone()).collect();
                let preference = corpus.preference(&self.options.keep);
                let read = |documents: Vec<usize>| self.features(documents.into_iter());
                let (mut similar, clusters) =
                    Similar::find(wanted, sketches, &out, &preference, None, read, watch)?;
                similar.stored = stored;
                found.extend(clusters);
                found.sort_unstable_by_key(|cluster| cluster.members[0]);
                return Ok((Nearness::Similarity(similar), found));
            }
            (Question::Similarity(_), None) => {
                return Err(Error::Bug("similarity is asked of documents without sketches".to_owned()));
            }
            (Question::Distance(distance), _) => distance,
        };
        let verify = self.options.verify_text;
        let with_pairs = self.pairs || verify.is_some() || cluster_by == ClusterBy::Stars;
        let unfinished = self.unfinished;
        let resume = self.options.resume.as_deref().map(|folder| Resume { folder, unfinished });
        let groups = Groups::new(corpus, distance, with_pairs, self.stores, resume, self.watch)?;
        // Before work that would be in vain.
        check_unchanged(self.listing, self.inputs)?;
        let texts = match verify {
            Some(least) => {
                let documents = groups.documents();
                let features = self.features(documents.iter().map(|&(document, _)| document))?;
                Some(Texts::new(least, features))
            }
            None => None,
        };
        let preference = corpus.preference(&self.options.keep);
        let mut clusters = match cluster_by {
            ClusterBy::Components => clusters::components(&groups, &preference, texts.as_ref(), self.watch)?,
            ClusterBy::Stars => clusters::stars(&groups, &preference, texts.as_ref(), self.watch)?,
        };
        if let Some(texts) = &texts {
            clusters.iter_mut().try_for_each(|cluster| compare_members(cluster, texts))?;
        }
        Ok((Nearness::Distance { groups, texts }, clusters))
    }

    /// Finds what is similar in a corpus on disk: first which documents may be, and then those in memory, as if there were no others.
    fn similar_on_disk(
        &mut self,
        wanted: Wanted,
        file: &SketchFile,
        room: &Room,
    ) -> Result<(Nearness<F>, Vec<Cluster<F>>)> {
        let (corpus, watch) = (self.corpus, self.watch);
        let likely = self.looked_up(|visitor| file.visit_pieces(visitor))?;
        let Likely { documents, distinct } =
            Likely::find(&wanted, file, likely.keys().copied(), room, watch)?;
        corpus.recall(documents.clone(), watch)?;
        let sketches = file.of(&documents)?;
        // All that may be similar to something stored are among them.
        let sketched = |document| sketches.sketched(documents.partition_point(|&other| other < document));
        let stored = self.stored_like(likely, sketched, wanted.least)?;
        let mut found = stored.as_ref().map_or_else(Vec::new, clusters_of_stored);
        let members = found.iter().flat_map(|cluster| &cluster.members);
        let out: HashSet<usize> = members.filter_map(|member| documents.binary_search(member).ok()).collect();
        let preference = Preference { told: None, ..corpus.preference(&self.options.keep) };
        let read = |some: Vec<usize>| {
            let mut features = self.features(some.into_iter().map(|at| documents[at]))?;
            features.set_documents(documents.clone());
            Ok(features)
        };
        let (mut similar, mut clusters) =
            Similar::find(wanted, &sketches, &out, &preference, Some(distinct), read, watch)?;
        for Cluster { members, representative, .. } in &mut clusters {
            let of_representative = match representative {
                Representative::Document(document) => Some(document),
                Representative::Stored(_) => None,
            };
            members.iter_mut().chain(of_representative).for_each(|at| *at = documents[*at]);
        }
        similar.set_documents(documents);
        similar.stored = stored;
        found.extend(clusters);
        found.sort_unstable_by_key(|cluster| cluster.members[0]);
        Ok((Nearness::Similarity(similar), found))
    }

    /// Of each document, what may be similar to it in each store. `visit` visits the sketches of all documents, with the number of
    /// the first of them.
    fn looked_up(
        &self,
        visit: impl FnOnce(&mut dyn FnMut(usize, &Sketches) -> Result<()>) -> Result<()>,
    ) -> Result<LikelyStored> {
        let mut likely = LikelyStored::new();
        if self.texts.is_empty() {
            return Ok(likely);
        }
        let stores = || self.stores.iter().filter_map(Against::snapshot).zip(&self.texts);
        let step = Step::new(self.watch, "sketches looked up");
        visit(&mut |first, sketches| {
            for (at, (store, texts)) in stores().enumerate() {
                for (document, id) in looked_up(sketches, store, texts.settings(), &step)? {
                    let of_document = likely.entry(first + document);
                    of_document.or_insert_with(|| vec![Vec::new(); stores().count()])[at].push(id);
                }
            }
            Ok(())
        })?;
        Ok(likely)
    }

    /// What is similar to documents of the stores, by their texts, or as far as sketches tell; `None` without such stores.
    fn stored_like(
        &mut self,
        likely: LikelyStored,
        sketched: impl Fn(usize) -> Sketched,
        least: f64,
    ) -> Result<Option<StoredLike>> {
        let (stores, texts) = (self.stores, std::mem::take(&mut self.texts));
        if texts.is_empty() {
            return Ok(None);
        }
        let has_texts = |texts: &StoredTexts| texts.settings().has_texts();
        let mut like = StoredLike::new(!texts.iter().all(has_texts));
        let numbers: Vec<usize> = (0..stores.len()).filter(|&at| stores[at].snapshot().is_some()).collect();
        let stores: Vec<_> = stores.iter().filter_map(Against::snapshot).zip(&texts).collect();
        // Where no store has texts, nothing is compared by features.
        let features = match texts.iter().any(has_texts) {
            true => self.features(likely.keys().copied())?,
            false => FeatureSets::new(self.temporary)?,
        };
        let step = Step::new(self.watch, "stored documents compared");
        for (document, ids) in likely {
            step.add(1)?;
            let of_document = || features.get(document);
            let found = similar_stored(&stores, &ids, &sketched(document), &of_document, least)?;
            let some = if self.pairs { found.len() } else { 1 };
            like.extend(found.into_iter().take(some).map(|(at, found)| LikeStored {
                document,
                store: numbers[at],
                id: found.id,
                similarity: found.estimate.similarity as f32,
                error: found.estimate.standard_error as f32,
            }));
        }
        if self.inputs.is_none() && self.features.is_none() && texts.iter().any(has_texts) {
            self.features = Some(features);
        }
        Ok(Some(like))
    }

    /// The features of some documents, which ascend.
    fn features(&mut self, documents: impl Iterator<Item = usize>) -> Result<FeatureSets> {
        match (self.features.take(), self.inputs, self.profile_of_texts) {
            (None, Some(inputs), Some(profile)) => {
                check_unchanged(self.listing, self.inputs)?;
                FeatureSets::read(documents, self.corpus, inputs, profile, self.temporary, self.watch)
            }
            (Some(features), ..) => Ok(features),
            // Nothing was read.
            (None, ..) => FeatureSets::new(self.temporary),
        }
    }
}

/// Of the stored documents with some ids in each store, those that are similar to a text, each with the number of its store, the most
/// similar first. The features of the text are asked for where stored texts decide.
pub(super) fn similar_stored<F: Fingerprint>(
    stores: &[(&Snapshot<F>, &StoredTexts)],
    ids: &[Vec<u64>],
    sketched: &Sketched,
    features: &dyn Fn() -> Result<Vec<u64>>,
    least: f64,
) -> Result<Vec<(usize, SimilarDocument)>> {
    let mut all = Vec::new();
    for (at, ((store, texts), ids)) in stores.iter().zip(ids).enumerate() {
        let found = texts.similar_among(store, sketched, features, ids, least)?;
        all.extend(found.into_iter().map(|found| (at, found)));
    }
    // Of equally similar ones, those of the first store come first, and of these the smallest ids.
    all.sort_by(|(_, a), (_, b)| b.estimate.similarity.total_cmp(&a.estimate.similarity));
    Ok(all)
}

/// Clusters of documents that are similar to stored ones: each document is in that of the most similar one.
fn clusters_of_stored<F: Fingerprint>(like: &StoredLike) -> Vec<Cluster<F>> {
    let mut nearest: BTreeMap<(usize, u64), Vec<(usize, f32)>> = BTreeMap::new();
    for found in like.best() {
        nearest.entry((found.store, found.id)).or_default().push((found.document, found.similarity));
    }
    let cluster = |((store, id), members): ((usize, u64), Vec<(usize, f32)>)| {
        let (members, similarities) = members.into_iter().unzip();
        let found = Match { fingerprint: F::default(), distance: 0, id: Some(id) };
        Cluster {
            members,
            similarities: Some(similarities),
            representative: Representative::Stored(Stored { store, found }),
            is_dropped: false,
        }
    };
    nearest.into_iter().map(cluster).collect()
}

/// The documents that may be similar to something in a store, with the ids of that: each pair once, in order.
pub(super) fn looked_up<F: Fingerprint>(
    sketches: &Sketches,
    store: &Snapshot<F>,
    settings: &SimilarSettings,
    step: &Step<'_>,
) -> Result<Vec<(usize, u64)>> {
    step.add(0)?;
    // Many queries are answered together.
    let documents: Vec<usize> =
        (0..sketches.len()).filter(|&document| sketches.features(document) > 0).collect();
    let mut likely = Vec::new();
    for at in 0..settings.sketches() {
        let queries: Vec<F> =
            documents.iter().map(|&document| F::from_u128(sketches.of(document)[at].into())).collect();
        step.add(0)?;
        for found in store.batch_query(&queries, settings.distance())? {
            likely.extend(found.found.id.map(|id| (documents[found.query], id)));
        }
        step.add(queries.len() as u64)?;
    }
    likely.sort_unstable();
    likely.dedup();
    Ok(likely)
}

/// How similar the members of a cluster are to the one that stands for it.
fn compare_members<F>(cluster: &mut Cluster<F>, texts: &Texts) -> Result<()> {
    let Representative::Document(representative) = cluster.representative else { return Ok(()) };
    let similarity = |&member: &usize| Ok(texts.similarity(representative, member)? as f32);
    cluster.similarities = Some(cluster.members.iter().map(similarity).collect::<Result<_>>()?);
    Ok(())
}
