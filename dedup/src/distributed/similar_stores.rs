//! Finds the stored document that is most similar to each text, in a search that is distributed over machines.

use std::fmt;
use std::path::PathBuf;

use rayon::prelude::*;
use simstore::{Error, Result, Snapshot};
use simstore_text::{DocumentComparer, MinHasher, Signature, SimilarDocument};

use crate::config::DedupConfig;
use crate::config::criterion::{ComparisonConfig, Criterion};
use crate::config::resolve::resolve_profile;
use crate::pipeline::stored::candidate_lookup::CandidateLookup;
use crate::pipeline::stored::dense_groups::DenseComparison;
use crate::pipeline::stored::pairs::{QueryDocuments, StoredMatch, compare};
use crate::pipeline::stored::similar::MAX_LISTED_CANDIDATES;
use crate::reference_stores::ReferenceStores;
use crate::rows::SignatureRow;
use simstore_corpus::InputKind;
use simstore_corpus::Stage;
use simstore_corpus::spill::MemoryBudget;

/// Memory in bytes for the candidates from the stores. The feature sets of the compared documents may take as much again.
const MEMORY_BYTES: u64 = 64 << 20;

/// Stores of similar documents that texts are compared with, like the stores of [`DedupConfig::against`].
pub struct SimilarStores {
    references: ReferenceStores,
    texts: Vec<DocumentComparer>,
    min_hasher: MinHasher,
    min_similarity: f64,
}

impl fmt::Debug for SimilarStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimilarStores").field(&self.texts).finish()
    }
}

impl SimilarStores {
    /// Opens the stores at `paths`, to find documents with a similarity of at least `similar`. If `similar` is
    /// `None`, uses the minimum similarity that the stores were created for.
    ///
    /// # Errors
    /// The errors of [`run`](crate::run()) with the same options.
    pub fn open(paths: &[PathBuf], similar: Option<f64>) -> Result<Self> {
        let compare = similar.map_or(ComparisonConfig::Default, ComparisonConfig::by_similarity);
        let config = DedupConfig { comparison: compare, against: paths.to_vec(), ..DedupConfig::default() };
        config.check()?;
        let width = config.width()?;
        let references = ReferenceStores::open(paths, width, false, MemoryBudget::new(None), &())?;
        let Criterion::Similarity(min_similarity) =
            config.criterion(InputKind::Documents, width, &references, &())?
        else {
            return Err(Error::BadArgument("option `against`: not a store of similar documents".to_owned()));
        };
        let profile = resolve_profile(None, &config.resources, references.profile.as_deref())?;
        let (min_hasher, texts) = (MinHasher::new(profile.clone()), references.text_comparers(&profile)?);
        Ok(SimilarStores { references, texts, min_hasher, min_similarity })
    }

    /// Threshold of the search: a stored document is found if it is at least this similar to a text.
    pub fn similar(&self) -> f64 {
        self.min_similarity
    }

    /// Profile that turns texts into features. All stores have this profile.
    pub fn profile(&self) -> &simstore_text::Profile {
        self.min_hasher.profile()
    }

    /// For each text, finds the most similar stored document. Returns (index of its store, document), or `None` if
    /// no stored document is similar to the text. Ties go to the first store, then to the smallest id.
    ///
    /// # Errors
    /// The errors of reading the stores.
    pub fn most_similar(&self, texts: &[Option<&str>]) -> Result<Vec<Option<(usize, SimilarDocument)>>> {
        let signatures: Vec<Option<Signature>> =
            texts.par_iter().map(|text| self.min_hasher.signature((*text)?)).collect();
        let rows =
            signatures.iter().enumerate().map(|(at, signature)| SignatureRow::new(at, signature.as_ref()));
        let rows: Vec<SignatureRow> = rows.collect::<Result<_>>()?;
        let stores: Vec<(&Snapshot<u64>, &DocumentComparer)> =
            self.references.with_width().map(|(_, snapshot)| snapshot).zip(&self.texts).collect();
        let stage = Stage::new(&(), "bands looked up");
        let queries = QueryDocuments {
            signature: &|document| Ok(rows[document as usize].signature()),
            features: &|document| {
                Ok(self.profile().feature_set(texts[document as usize].unwrap_or_default()))
            },
        };
        let store_match = |found: &mut Vec<Option<StoredMatch>>, one: StoredMatch| {
            found[one.document as usize] = Some(one);
            Ok(())
        };
        let mut found = vec![None; texts.len()];
        let mut dense = DenseComparison::new(&stores, self.min_similarity, false);
        CandidateLookup::new(&stores, MEMORY_BYTES, &stage).visit(
            rows.iter().copied().map(Ok),
            |_, candidates| {
                let (mut listed, mut dense_rows, mut dense_candidates) = (Vec::new(), Vec::new(), Vec::new());
                for document_candidates in candidates.chunk_by(|a, b| a.0 == b.0) {
                    if document_candidates.len() <= MAX_LISTED_CANDIDATES {
                        listed.extend_from_slice(document_candidates);
                    } else {
                        dense_rows.push(rows[document_candidates[0].0 as usize]);
                        dense_candidates.extend_from_slice(document_candidates);
                    }
                }
                for one in compare(&stores, &listed, &queries, self.min_similarity, MEMORY_BYTES, &stage)? {
                    // The most similar match of each document comes first.
                    found[one.document as usize].get_or_insert(one);
                }
                dense.add(&dense_rows, &dense_candidates, queries.features)?;
                if dense.bytes() >= MEMORY_BYTES {
                    dense.compare(&stage, |one| store_match(&mut found, one))?;
                }
                Ok(())
            },
        )?;
        dense.compare(&stage, |one| store_match(&mut found, one))?;
        let named = |found: Option<StoredMatch>| {
            let Some(StoredMatch { store, id, estimate, .. }) = found else { return Ok(None) };
            let name = stores[store as usize].0.name(id)?;
            Ok(Some((store as usize, SimilarDocument { id, name, estimate })))
        };
        found.into_iter().map(named).collect()
    }
}
