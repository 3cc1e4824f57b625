//! Estimate of the search for similar texts. Searches a sample of the documents, and extrapolates the number of
//! candidates and the time.
//!
//! In a *dense group*, each document is near many others, but few are near-duplicates: for example, pages of one
//! template whose similarity is just below the threshold. Near-duplicates in a dense group are found by rare
//! shingles, so that few pairs are compared.

use serde::Serialize;
use simstore::Result;
use simstore_text::{BANDS, BandSearch, Profile, Signature};

use crate::config::DedupConfig;
use crate::config::band_search_plan::{self, BandSearchPlan};
use crate::config::resolve::ResolvedConfig;
use crate::documents::preference_ranks::PreferenceRanks;
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

/// Maximum number of documents in the sample. The number is small, because in the worst case all pairs of sampled
/// documents are candidates.
const MAX_SAMPLE_DOCUMENTS: usize = 1024;
/// Maximum size of the texts in the sample, in bytes.
const MAX_SAMPLE_BYTES: usize = 64 << 20;
/// Total number of sections (byte ranges of files) whose first documents are sampled. The sections are divided
/// equally among the sampled files. But a file whose format cannot be read from the middle has a single section.
const SAMPLED_SECTIONS: usize = 64;

/// Time to compare two texts by their shingles, in seconds on one core.
const VERIFY_SECONDS: f64 = 2e-6;
/// Time to prepare a document of a [dense group](crate::pipeline::dense_groups) for comparison, in seconds on one
/// core.
const DENSE_MEMBER_SECONDS: f64 = 60e-6;
/// Time to compare the signatures of two documents of a [dense group](crate::pipeline::dense_groups), in seconds
/// on one core.
const DENSE_PAIR_SECONDS: f64 = 6e-9;

/// Estimate of the search for similar texts. A MinHash signature of 512 bits consists of 8 bands of 64 bits.
/// Two documents form a candidate pair if one of the first [`joined`](Self::joined) bands differs in at most
/// [`distance`](Self::distance) bits, and the whole signatures differ in at most [`total`](Self::total) bits. The
/// texts of candidate pairs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SearchEstimate {
    /// Minimum similarity of near-duplicates, from 0 to 1.
    #[serde(rename = "similar")]
    pub min_similarity: f64,
    /// Probability of finding a pair whose similarity is exactly the minimum.
    pub recall: f64,
    /// Probability of finding a pair whose similarity is halfway between the minimum and 1.
    pub recall_of_closer: f64,
    /// Number of bands in a signature.
    pub bands: usize,
    /// Number of bands that the search compares. They are the first bands of each signature.
    pub joined: usize,
    /// Maximum Hamming distance of near bands, in bits. In a candidate pair, at least one of the first
    /// [`joined`](Self::joined) bands is near.
    pub distance: u32,
    /// Maximum Hamming distance of the whole signatures of a candidate pair, in bits.
    pub total: u32,
    /// Expected number of pairs of unrelated documents whose whole signatures are compared, because they have a near
    /// band by chance. Only the first [`joined`](Self::joined) bands count; near bands differ in at most
    /// [`distance`](Self::distance) bits.
    pub unrelated_pairs: f64,
    /// Number of documents in the sample.
    pub sampled: u64,
    /// Estimated number of documents in dense groups. In a dense group, such as the pages of one template, each
    /// document is near many others. Similar documents in the group are found by their rare shingles.
    #[serde(rename = "crowded")]
    pub dense_documents: u64,
    /// Estimated number of pairs of input documents whose texts are compared.
    pub candidates: f64,
    /// Estimated number of pairs of an input document and a stored document that are compared; `None` without
    /// reference stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_candidates: Option<f64>,
    /// Estimated time of the search in seconds on one core, without the time to read the inputs.
    pub seconds: f64,
}

/// Sample of input documents, with their signatures and features.
struct SearchSample<'a> {
    profile: &'a Profile,
    signatures: RowsWriter<SignatureRow>,
    features: FeatureFileWriter,
    bytes: usize,
    documents: usize,
}

impl<'a> SearchSample<'a> {
    /// Reads the sample: the first documents of sections that are spread evenly over `files`.
    fn read(
        resolved: &'a ResolvedConfig,
        files: &[&InputFile],
        workspace: &Workspace,
        observer: &dyn Observer,
    ) -> Result<SearchSample<'a>> {
        let inputs = &resolved.inputs;
        let stage = Stage::new(observer, "documents to be searched");
        stage.add(0)?;
        let mut sample = SearchSample {
            profile: &resolved.profile,
            signatures: workspace.rows(),
            features: FeatureFileWriter::new(workspace)?,
            bytes: 0,
            documents: 0,
        };
        let sampled_files = files.len().min(MAX_SAMPLE_DOCUMENTS);
        let sections_per_file = SAMPLED_SECTIONS.div_ceil(sampled_files.max(1)) as u64;
        for i in 0..sampled_files {
            let file = files[i * files.len() / sampled_files];
            // If a file has too few documents, the later files contribute more.
            let left = (MAX_SAMPLE_DOCUMENTS - sample.documents).div_ceil(sampled_files - i);
            let size = file.bytes.unwrap_or_default();
            let sections = if sections_per_file > 1 {
                inputs.sections(file, size.div_ceil(sections_per_file))
            } else {
                Vec::new()
            };
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
        self.documents == MAX_SAMPLE_DOCUMENTS || self.bytes > MAX_SAMPLE_BYTES
    }

    /// Adds the first `most` documents of `inputs` to the sample. Adds fewer if the sample becomes full.
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
            self.signatures.push(SignatureRow::new(self.documents, Signature::new(&features).as_ref())?)?;
            self.documents += 1;
        }
        Ok(())
    }
}

/// Estimates the search for similar texts among all documents in `files`, from a search in a sample. `least` is the
/// minimum similarity, and `documents` the number of all documents. Also returns the size of the temporary files
/// for similar pairs, in bytes.
pub(crate) fn estimate_search(
    least: f64,
    resolved: &ResolvedConfig,
    config: &DedupConfig,
    stores: &[SimilarStoreRef<'_>],
    files: &[&InputFile],
    documents: f64,
    observer: &dyn Observer,
) -> Result<(SearchEstimate, u64)> {
    let workspace = &Workspace::new(config, &UnfinishedOutputs::default(), observer)?;
    let sample = SearchSample::read(resolved, files, workspace, observer)?;
    let SearchSample { signatures, features, documents: sampled, .. } = sample;
    let (signatures, features) = (signatures.finish()?, features.finish()?);
    let options = SimilarityOptions {
        min_similarity: least,
        recall: resolved.recall,
        cluster_by: resolved.cluster_by,
        with_pairs: config.pairs,
        keeps_none: resolved.keeps_none(),
        with_histogram: false,
    };
    let stage = Stage::new(observer, "bands looked up");
    let stored_matches = match stores.is_empty() {
        true => None,
        false => Some(similar::look_up(&signatures, stores, workspace, &stage)?),
    };
    drop(stage);
    let stage = Stage::new(observer, "documents numbered");
    let uniques = UniqueDocuments::from_signatures(&signatures, &PreferenceRanks::Input, workspace, &stage)?;
    drop(stage);
    let excluded = AtomicBitSet::new(uniques.len());
    let (signatures, uniques) = (&signatures, &uniques);
    let search = by_similarity::SimilarityStages {
        options,
        signatures,
        uniques,
        excluded: &excluded,
        count: documents as usize,
        source: FeatureSource::File(&features),
        checkpoints: None,
        workspace,
        observer,
    };
    let SimilarityResult { compared: (compared, rejected), groups: (members, dense_pairs), .. } =
        search.run()?;
    let times = (documents / sampled.max(1) as f64).max(1.0);
    let scale_pairs = |pairs: u64| pairs as f64 * times * times;
    // Candidate pairs grow with the square of the number of documents. But unless all pairs are listed, some
    // numbers grow linearly: after a similar kept document, a document is compared with no others, and a
    // document of a dense group is compared only with few.
    let is_linear = members > 0 && !options.with_pairs;
    let scale_candidates = |pairs: u64| if is_linear { pairs as f64 * times } else { scale_pairs(pairs) };
    let similar = compared - rejected;
    let similar = if options.with_pairs { scale_pairs(similar) } else { similar as f64 * times };
    let candidates = scale_candidates(rejected) + similar;
    let stored_candidates = stored_matches.as_ref().map(|found| found.count as f64 * times);
    let compared = candidates + stored_candidates.unwrap_or_default();
    let seconds = compared * VERIFY_SECONDS
        + members as f64 * times * DENSE_MEMBER_SECONDS
        + scale_pairs(dense_pairs) * DENSE_PAIR_SECONDS;
    let dense_documents =
        stored_matches.map_or(0, |found| found.dense_documents() as u64).max(members) as f64 * times;
    // A list of pairs is written twice, because it is sorted. The most similar documents need each pair in
    // both directions.
    let listed =
        if options.with_pairs { similar * 2.0 * <ScoredPair as FixedSize>::BYTES as f64 } else { 0.0 };
    let both =
        if options.keeps_none { similar * 2.0 * <(ScoredPair, u32) as FixedSize>::BYTES as f64 } else { 0.0 };
    let on_disk = [listed, both].into_iter().filter(|&bytes| bytes > workspace.share() as f64);
    let disk_of_pairs = on_disk.sum::<f64>() as u64;
    let BandSearchPlan { search, unrelated_pairs: unrelated, seconds: seconds_to_join } =
        band_search_plan::plan_band_search(least, resolved.recall, documents as usize)?;
    let BandSearch { bands: joined, band_distance: distance, signature_distance: total } = search;
    let search = SearchEstimate {
        min_similarity: least,
        recall: search.recall(least),
        recall_of_closer: search.recall((1.0 + least) / 2.0),
        bands: BANDS,
        joined,
        distance,
        total,
        unrelated_pairs: unrelated,
        sampled: sampled as u64,
        dense_documents: dense_documents as u64,
        candidates,
        stored_candidates,
        seconds: seconds_to_join + seconds,
    };
    Ok((search, disk_of_pairs))
}
