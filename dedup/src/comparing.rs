//! Comparing all that was read, by the question that is asked: the row of stages of one machine.

use simstore::{Error, Fingerprint, Result, Snapshot};
use simstore_text::{Profile, StoredTexts};

use super::against::Against;
use super::documents::{Corpus, Keep, Listing, Ranks, check_unchanged};
use super::kept::Keeping;
use super::model::{SketchRow, of_similarity};
use super::options::Options;
use super::outcome::{NearDocuments, Outcome};
use super::question::Question;
use super::room::Room;
use super::stages::distance::NearSearch;
use super::stages::look_up::SimilarStore;
use super::stages::similar::{Search, Searched, Wanted};
use super::stages::similar_stored::{self, ComparedStores};
use super::stages::{
    Clustering, Features, FeaturesWriter, FoundStored, Marks, ReadAgain, Sets, distinct, nearest,
};
use simstore_corpus::Step;
use simstore_corpus::spill::Rows;
use simstore_corpus::{Inputs, Watch};

/// Settings and inputs of the comparison.
pub(super) struct Comparing<'a, F: Fingerprint> {
    pub(super) options: &'a Options,
    pub(super) question: Question,
    /// Whether to list all pairs.
    pub(super) pairs: bool,
    pub(super) corpus: &'a Corpus<F>,
    /// Of all documents, if they are compared by similarity.
    pub(super) sketches: Option<&'a Rows<SketchRow>>,
    /// The documents, which are read again, and the list of their files when these were read first.
    pub(super) inputs: Option<&'a Inputs>,
    pub(super) listing: Option<&'a Listing>,
    /// The profile whose features texts are compared by.
    pub(super) profile_of_texts: Option<&'a Profile>,
    /// The stores that are compared with.
    pub(super) stores: &'a [Against<F>],
    /// The comparison with their texts, if they are stores of similar documents.
    pub(super) texts: Vec<StoredTexts>,
    /// Where what stages have found is kept.
    pub(super) keeping: Option<Keeping<'a>>,
    pub(super) room: &'a Room,
    pub(super) watch: &'a dyn Watch,
}

impl<F: Fingerprint> Comparing<'_, F> {
    /// Finds what is near what, and makes clusters of it.
    pub(super) fn run(&self) -> Result<Outcome<F>> {
        match (self.question, self.sketches) {
            (Question::Distance(distance), _) => self.near(distance),
            (Question::Similarity(least), Some(sketches)) => self.similar(least, sketches),
            (Question::Similarity(_), None) => {
                Err(Error::Bug("similarity is asked of documents without sketches".to_owned()))
            }
        }
    }

    fn near(&self, distance: u32) -> Result<Outcome<F>> {
        let search = NearSearch {
            corpus: self.corpus,
            distance,
            verify: self.options.compare.verify().map(|verify| verify.least),
            cluster_by: self.options.cluster_by(self.question),
            keep: &self.options.keep,
            pairs: self.pairs,
            stores: self.stores.iter().map(Against::snapshot).collect(),
            keeping: self.keeping,
            room: self.room,
            watch: self.watch,
        };
        search.run(|wanted| self.features(wanted))
    }

    fn similar(&self, least: f64, sketches: &Rows<SketchRow>) -> Result<Outcome<F>> {
        let &Comparing { room, watch, .. } = self;
        let is_dropped = self.options.keep == Keep::None;
        let step = Step::new(watch, "documents numbered");
        step.add(0)?;
        let ranks = Ranks::new(self.corpus, &self.options.keep, None, room, &step)?;
        let with_features = sketches.iter()?.filter(|row| row.as_ref().map_or(true, |row| row.features > 0));
        let keys = with_features.map(|row| row.map(|row| (row.digest(), row.number)));
        let sets = distinct(keys, &ranks, room, &step)?;
        drop((ranks, step));
        let stored = self.stored(sketches, least)?;
        let out = self.out(&stored, &sets)?;
        let cluster_by = self.options.cluster_by(self.question);
        let wanted =
            Wanted { least, recall: self.options.recall(), cluster_by, pairs: self.pairs, is_dropped };
        let search = Search {
            wanted,
            sketches,
            sets: &sets,
            out: &out,
            count: sets.len(),
            keeping: self.keeping,
            room,
            watch,
        };
        let Searched { leaders, pairs, nearest, compared, boilerplate, .. } =
            search.run(|documents| self.features(documents))?;
        let equal = of_similarity(1.0);
        let clustering = Clustering {
            sets: &sets,
            leaders: &leaders,
            out: &out,
            stored: &stored.of_documents,
            documents: None,
            equal,
            room,
        };
        let clusters = clustering.clusters()?;
        let nearest = match is_dropped {
            true => nearest::of_all_documents(&nearest, &sets, equal, room)?,
            false => nearest::of_documents(&nearest, &sets, room)?,
        };
        Ok(Outcome {
            clusters,
            stored,
            nearest,
            distinct: sets.len(),
            near: NearDocuments { sets, pairs, documents: None, equal },
            compared: Some(compared),
            boilerplate,
        })
    }

    /// Similar documents in the stores: by their texts, or by an estimate.
    fn stored(&self, sketches: &Rows<SketchRow>, least: f64) -> Result<FoundStored<F>> {
        let &Comparing { room, watch, .. } = self;
        if self.texts.is_empty() {
            return FoundStored::none(room);
        }
        let numbered = (0..).zip(self.stores).filter_map(|(number, store)| Some((number, store.snapshot()?)));
        let (numbers, snapshots): (Vec<u32>, Vec<&Snapshot<F>>) = numbered.unzip();
        let stores: Vec<SimilarStore<'_, F>> = snapshots.into_iter().zip(&self.texts).collect();
        let step = Step::new(watch, "bands looked up");
        let candidates = similar_stored::look_up(sketches, &stores, room, &step)?;
        drop(step);
        // Where no store has texts, nothing is compared by features.
        let has_texts = self.texts.iter().any(|texts| texts.settings().has_texts());
        let features = match has_texts {
            true => self.features(&mut candidates.documents()?)?,
            false => FeaturesWriter::new(room)?.finish()?,
        };
        let step = Step::new(watch, "stored documents compared");
        let compared =
            ComparedStores { stores: &stores, numbers: &numbers, least, with_all: self.pairs, room };
        compared.compare(&candidates, sketches, &features, &step)
    }

    /// The sets of documents that are similar to something stored.
    fn out(&self, stored: &FoundStored<F>, sets: &Sets) -> Result<Marks> {
        let out = Marks::new(sets.len());
        if stored.of_documents.is_empty() {
            return Ok(out);
        }
        let by_document = sets.by_document(self.room)?;
        let mut rows = by_document.cursor()?;
        // Equal documents are out together.
        for row in stored.of_documents.iter()? {
            let (document, _) = row?;
            while rows.take_if(|&(other, _)| other < document)?.is_some() {}
            if let Some((_, set)) = rows.take_if(|&(other, _)| other == document)? {
                out.set(set);
            }
        }
        Ok(out)
    }

    /// Features of `wanted`: ascending documents, each with the number of its features.
    fn features(&self, wanted: &mut dyn Iterator<Item = Result<(u64, u32)>>) -> Result<Features> {
        match (self.inputs, self.profile_of_texts) {
            (Some(inputs), Some(profile)) => {
                // Before work that would be in vain.
                check_unchanged(self.listing, self.inputs)?;
                let &Comparing { corpus, room, watch, .. } = self;
                ReadAgain { corpus, inputs, profile, room, watch }.features(wanted)
            }
            // Nothing was read.
            _ => FeaturesWriter::new(self.room)?.finish(),
        }
    }
}
