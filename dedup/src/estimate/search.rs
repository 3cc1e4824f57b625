//! Forecast of a search by the search of a sample: the number of candidates, and the time to compare them.
//!
//! Documents of one template that are just below the threshold are a crowd: each is near all others, and none is a duplicate. Their
//! similar pairs are searched by rare shingles, so that few pairs are compared.

use serde::Serialize;
use simstore::Result;
use simstore_text::{BANDS, BandSearch, Profile, Signature};

use crate::config::DedupConfig;
use crate::config::band_choice::{self, Choice};
use crate::config::resolve::Resolved;
use crate::corpus::ranks::Ranks;
use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::by_similarity::{self, SimilarityOptions, SimilarityResult};
use crate::pipeline::features::{FeatureFileWriter, FeatureSource};
use crate::pipeline::stored::candidate_lookup::SimilarStoreRef;
use crate::pipeline::stored::similar;
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::rows::{ScoredPair, SignatureRow};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{FixedSize, RowsWriter};
use simstore_corpus::{Inputs, Observer};
use simstore_io::InputFile;
use simstore_io::output::UnfinishedOutputs;

/// Documents that are searched, at most: all of them may be candidates of one another. And bytes of their texts.
const SEARCHED: usize = 1024;
const SEARCHED_BYTES: usize = 64 << 20;
/// Places of a file that is large or alone, evenly spread, where it can be read from the middle.
const PLACES: usize = 64;

/// Seconds on one core to compare two texts by their shingles.
const COMPARED: f64 = 2e-6;
/// Seconds on one core to prepare a member of a crowd, and to compare the sketches of a pair.
const ASKED: f64 = 60e-6;
const LOOKED_AT: f64 = 6e-9;

/// How similar texts are found. Some sketches of 64 bits each are joined within a distance; pairs whose sketches are all together within
/// a total distance are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Search {
    /// The least similarity.
    pub similar: f64,
    /// The probability that two texts of just that similarity are found.
    pub recall: f64,
    /// The probability for texts that are half as far from equal.
    pub recall_of_closer: f64,
    /// Sketches of a document.
    pub sketches: usize,
    /// How many of them are joined.
    pub joined: usize,
    /// Within so many bits of 64.
    pub distance: u32,
    /// All sketches together within so many bits.
    pub total: u32,
    /// Pairs of unrelated documents whose sketches are looked at.
    pub unrelated_pairs: f64,
    /// Documents of the sample that was searched.
    pub sampled: u64,
    /// Documents of crowds, such as pages of one template, which are all near one another: they are found by their rare shingles.
    pub crowded: u64,
    /// Pairs of documents whose texts are compared.
    pub candidates: f64,
    /// Pairs of an input document and a stored document that are compared; `None` without stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_candidates: Option<f64>,
    /// Seconds for the whole search on one core, without reading.
    pub seconds: f64,
}

/// The documents that are searched.
struct Sample<'a> {
    profile: &'a Profile,
    sketches: RowsWriter<SignatureRow>,
    features: FeatureFileWriter,
    bytes: usize,
    documents: usize,
}

impl<'a> Sample<'a> {
    /// Reads a sample of some files.
    fn read(
        resolved: &'a Resolved,
        files: &[&InputFile],
        workspace: &Workspace,
        observer: &dyn Observer,
    ) -> Result<Sample<'a>> {
        let inputs = &resolved.inputs;
        let stage = Stage::new(observer, "documents to be searched");
        stage.add(0)?;
        let mut sample = Sample {
            profile: &resolved.profile,
            sketches: workspace.rows(),
            features: FeatureFileWriter::new(workspace)?,
            bytes: 0,
            documents: 0,
        };
        let looked_into = files.len().min(SEARCHED);
        let places = PLACES.div_ceil(looked_into.max(1)) as u64;
        for i in 0..looked_into {
            let file = files[i * files.len() / looked_into];
            // Later files make up for documents that earlier ones lack.
            let left = (SEARCHED - sample.documents).div_ceil(looked_into - i);
            let size = file.bytes.unwrap_or_default();
            let sections = if places > 1 { inputs.sections(file, size.div_ceil(places)) } else { Vec::new() };
            if sections.len() < 2 {
                sample.add(&inputs.with_paths(vec![file.path.clone()]), left, &stage)?;
                continue;
            }
            let most = left.div_ceil(sections.len());
            sections
                .iter()
                .try_for_each(|section| sample.add(&inputs.with_section(section), most, &stage))?;
        }
        Ok(sample)
    }

    fn is_full(&self) -> bool {
        self.documents == SEARCHED || self.bytes > SEARCHED_BYTES
    }

    /// Takes the first documents of some inputs.
    fn add(&mut self, inputs: &Inputs, most: usize, stage: &Stage<'_>) -> Result<()> {
        let options = inputs.options();
        for record in inputs.records().take(most) {
            if self.is_full() {
                break;
            }
            stage.add(1)?;
            // Malformed documents were reported before.
            let Ok(document) = record.and_then(|record| record.into_document(options)) else { continue };
            self.bytes += document.text.len();
            let features = self.profile.feature_set(&document.text);
            self.features.push(self.documents as u32, &features)?;
            self.sketches.push(SignatureRow::new(self.documents, Signature::new(&features).as_ref())?)?;
            self.documents += 1;
        }
        Ok(())
    }
}

/// Forecast of the search of some files, which hold so many documents: by the search of a sample. Returns the bytes of temporary
/// files for similar pairs, too.
pub(crate) fn foretell(
    least: f64,
    resolved: &Resolved,
    config: &DedupConfig,
    stores: &[SimilarStoreRef<'_>],
    files: &[&InputFile],
    documents: f64,
    observer: &dyn Observer,
) -> Result<(Search, u64)> {
    let workspace = &Workspace::new(config, &UnfinishedOutputs::default(), observer)?;
    let sample = Sample::read(resolved, files, workspace, observer)?;
    let Sample { sketches, features, documents: sampled, .. } = sample;
    let (sketches, features) = (sketches.finish()?, features.finish()?);
    let wanted = SimilarityOptions {
        min_similarity: least,
        recall: resolved.recall,
        cluster_by: resolved.cluster_by,
        with_pairs: config.pairs,
        keeps_none: resolved.keeps_none(),
    };
    let stage = Stage::new(observer, "bands looked up");
    let of_stores = match stores.is_empty() {
        true => None,
        false => Some(similar::look_up(&sketches, stores, workspace, &stage)?),
    };
    drop(stage);
    let stage = Stage::new(observer, "documents numbered");
    let sets = UniqueDocuments::from_signatures(&sketches, &Ranks::Input, workspace, &stage)?;
    drop(stage);
    let out = AtomicBitSet::new(sets.len());
    let (sketches, sets) = (&sketches, &sets);
    let search = by_similarity::SimilarityStages {
        options: wanted,
        signatures: sketches,
        uniques: sets,
        excluded: &out,
        count: documents as usize,
        source: FeatureSource::File(&features),
        keeping: None,
        workspace,
        observer,
    };
    let SimilarityResult { compared: (compared, unlike), groups: (members, looked_at), .. } = search.run()?;
    let times = (documents / sampled.max(1) as f64).max(1.0);
    let of_pairs = |pairs: u64| pairs as f64 * times * times;
    // A document that is similar to a kept one is compared with no more, and one of a crowd with few; unless all pairs are wanted.
    let is_linear = members > 0 && !wanted.with_pairs;
    let of_documents = |pairs: u64| if is_linear { pairs as f64 * times } else { of_pairs(pairs) };
    let similar = compared - unlike;
    let similar = if wanted.with_pairs { of_pairs(similar) } else { similar as f64 * times };
    let candidates = of_documents(unlike) + similar;
    let stored_candidates = of_stores.as_ref().map(|found| found.count as f64 * times);
    let compared = candidates + stored_candidates.unwrap_or_default();
    let seconds = compared * COMPARED + members as f64 * times * ASKED + of_pairs(looked_at) * LOOKED_AT;
    let crowded = of_stores.map_or(0, |found| found.dense_documents() as u64).max(members) as f64 * times;
    // A list of pairs is sorted, and written again; the most similar documents need each pair in both directions.
    let listed =
        if wanted.with_pairs { similar * 2.0 * <ScoredPair as FixedSize>::BYTES as f64 } else { 0.0 };
    let both =
        if wanted.keeps_none { similar * 2.0 * <(ScoredPair, u32) as FixedSize>::BYTES as f64 } else { 0.0 };
    let on_disk = [listed, both].into_iter().filter(|&bytes| bytes > workspace.share() as f64);
    let disk_of_pairs = on_disk.sum::<f64>() as u64;
    let Choice { search, unrelated, seconds: seconds_to_join } =
        band_choice::choose(least, resolved.recall, documents as usize)?;
    let BandSearch { bands: joined, band_distance: distance, signature_distance: total } = search;
    let search = Search {
        similar: least,
        recall: search.recall(least),
        recall_of_closer: search.recall((1.0 + least) / 2.0),
        sketches: BANDS,
        joined,
        distance,
        total,
        unrelated_pairs: unrelated,
        sampled: sampled as u64,
        crowded: crowded as u64,
        candidates,
        stored_candidates,
        seconds: seconds_to_join + seconds,
    };
    Ok((search, disk_of_pairs))
}
