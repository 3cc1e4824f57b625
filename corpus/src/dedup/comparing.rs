//! Comparing all that was read, by the question that is asked.

use simstore::{Fingerprint, Result, Snapshot};
use simstore_text::Profile;

use super::clusters::{self, Cluster, Representative};
use super::corpus::Corpus;
use super::feature_sets::FeatureSets;
use super::groups::Groups;
use super::job::check_unchanged;
use super::listing::Listing;
use super::nearness::Nearness;
use super::options::{ClusterBy, Options, Question};
use super::preference::Preference;
use super::similar::{Similar, Wanted};
use super::similarity::Texts;
use crate::{Inputs, Watch};

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
    /// The store that is compared with.
    pub(super) stored: Option<&'a Snapshot<F>>,
    pub(super) watch: &'a dyn Watch,
}

impl<F: Fingerprint> Comparing<'_, F> {
    /// Finds what is near what, and makes clusters of it.
    pub(super) fn run(mut self) -> Result<(Nearness<F>, Vec<Cluster<F>>)> {
        let (corpus, watch) = (self.corpus, self.watch);
        let preference =
            Preference { keep: &self.options.keep, values: &corpus.values, names: &corpus.names };
        let cluster_by = self.options.cluster_by(self.question);
        let distance = match (self.question, &corpus.sketches) {
            (Question::Similarity(least), Some(sketches)) => {
                let wanted = Wanted { least, recall: self.options.recall(), cluster_by, pairs: self.pairs };
                let read = |documents: Vec<usize>| self.features(documents.into_iter());
                let (similar, clusters) = Similar::find(wanted, sketches, &preference, read, watch)?;
                return Ok((Nearness::Similarity(similar), clusters));
            }
            // Without sketches there is no other question.
            (Question::Similarity(_), None) => 0,
            (Question::Distance(distance), _) => distance,
        };
        let verify = self.options.verify_text;
        let with_pairs = self.pairs || verify.is_some() || cluster_by == ClusterBy::Stars;
        let groups = Groups::new(corpus, distance, with_pairs, self.stored, self.watch)?;
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
        let mut clusters = match cluster_by {
            ClusterBy::Components => clusters::components(&groups, &preference, texts.as_ref(), self.watch)?,
            ClusterBy::Stars => clusters::stars(&groups, &preference, texts.as_ref(), self.watch)?,
        };
        if let Some(texts) = &texts {
            clusters.iter_mut().try_for_each(|cluster| compare_members(cluster, texts))?;
        }
        Ok((Nearness::Distance { groups, texts }, clusters))
    }

    /// The features of some documents, which ascend.
    fn features(&mut self, documents: impl Iterator<Item = usize>) -> Result<FeatureSets> {
        match (self.features.take(), self.inputs, self.profile_of_texts) {
            (None, Some(inputs), Some(profile)) => {
                check_unchanged(self.listing, self.inputs)?;
                FeatureSets::read(documents, self.corpus, inputs, profile, self.watch)
            }
            (Some(features), ..) => Ok(features),
            // Nothing was read.
            (None, ..) => FeatureSets::new(),
        }
    }
}

/// How similar the members of a cluster are to the one that stands for it.
fn compare_members<F>(cluster: &mut Cluster<F>, texts: &Texts) -> Result<()> {
    let Representative::Document(representative) = cluster.representative else { return Ok(()) };
    let similarity = |&member: &usize| Ok(texts.similarity(representative, member)? as f32);
    cluster.similarities = Some(cluster.members.iter().map(similarity).collect::<Result<_>>()?);
    Ok(())
}
