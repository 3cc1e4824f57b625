//! The most similar stored documents of texts, for a search that is spread over machines.

use std::fmt;
use std::path::PathBuf;

use rayon::prelude::*;
use simstore::{Error, Result, Snapshot};
use simstore_text::{SimilarDocument, Sketched, Sketcher, StoredTexts};

use crate::config::DedupConfig;
use crate::config::criterion::{Compare, Criterion};
use crate::config::resolve::profile_with;
use crate::pipeline::stored::dense_groups::DenseComparison;
use crate::pipeline::stored::look_up::LookUp;
use crate::pipeline::stored::pairs::{Asked, Match, compare};
use crate::pipeline::stored::similar::FEW;
use crate::reference::References;
use crate::rows::SketchRow;
use simstore_corpus::InputKind;
use simstore_corpus::Step;
use simstore_corpus::spill::Budget;

/// Bytes of memory for matches, and for features.
const MEMORY: u64 = 64 << 20;

/// Stores of similar documents, which texts are compared with as [`DedupConfig::against`] says.
pub struct SimilarStores {
    references: References,
    texts: Vec<StoredTexts>,
    sketcher: Sketcher,
    least: f64,
}

impl fmt::Debug for SimilarStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimilarStores").field(&self.texts).finish()
    }
}

impl SimilarStores {
    /// Opens stores, to find documents of this similarity or a greater one; by default, of the similarity of the stores.
    ///
    /// # Errors
    /// As [`run`](crate::run()) for the same options.
    pub fn open(paths: &[PathBuf], similar: Option<f64>) -> Result<Self> {
        let compare = similar.map_or(Compare::Default, Compare::similar);
        let config = DedupConfig { compare, against: paths.to_vec(), ..DedupConfig::default() };
        config.check()?;
        let width = config.width()?;
        let references = References::open(paths, width, false, Budget::new(None), &())?;
        let Criterion::Similarity(least) = config.criterion(InputKind::Documents, width, &references, &())?
        else {
            return Err(Error::BadArgument("option `against`: not a store of similar documents".to_owned()));
        };
        let profile = profile_with(None, &config.resources, references.profile.as_deref())?;
        let (sketcher, texts) = (Sketcher::new(profile.clone()), references.texts(&profile)?);
        Ok(SimilarStores { references, texts, sketcher, least })
    }

    /// The least similarity that is looked for.
    pub fn similar(&self) -> f64 {
        self.least
    }

    /// How the texts of the stores become features.
    pub fn profile(&self) -> &simstore_text::Profile {
        self.sketcher.profile()
    }

    /// The most similar stored document of each text, with the number of its store; `None` if none is similar. Of several that are equally
    /// similar, the first store and the smallest id win.
    ///
    /// # Errors
    /// Those of reading the stores.
    pub fn most_similar(&self, texts: &[Option<&str>]) -> Result<Vec<Option<(usize, SimilarDocument)>>> {
        let sketched: Vec<Option<Sketched>> =
            texts.par_iter().map(|text| self.sketcher.sketch((*text)?)).collect();
        let rows = sketched.iter().enumerate().map(|(at, sketched)| SketchRow::new(at, sketched.as_ref()));
        let rows: Vec<SketchRow> = rows.collect::<Result<_>>()?;
        let stores: Vec<(&Snapshot<u64>, &StoredTexts)> =
            self.references.of_width().map(|(_, snapshot)| snapshot).zip(&self.texts).collect();
        let step = Step::new(&(), "bands looked up");
        let asked = Asked {
            sketched: &|document| Ok(rows[document as usize].sketched()),
            features: &|document| {
                Ok(self.profile().feature_set(texts[document as usize].unwrap_or_default()))
            },
        };
        let take = |found: &mut Vec<Option<Match>>, one: Match| {
            found[one.document as usize] = Some(one);
            Ok(())
        };
        let mut found = vec![None; texts.len()];
        let mut dense = DenseComparison::new(&stores, self.least, false);
        LookUp::new(&stores, MEMORY, &step).visit(rows.iter().copied().map(Ok), |_, likely| {
            let (mut few, mut many, mut of_many) = (Vec::new(), Vec::new(), Vec::new());
            for of_document in likely.chunk_by(|a, b| a.0 == b.0) {
                if of_document.len() <= FEW {
                    few.extend_from_slice(of_document);
                } else {
                    many.push(rows[of_document[0].0 as usize]);
                    of_many.extend_from_slice(of_document);
                }
            }
            for one in compare(&stores, &few, &asked, self.least, MEMORY, &step)? {
                // The most similar one comes first.
                found[one.document as usize].get_or_insert(one);
            }
            dense.add(&many, &of_many, asked.features)?;
            if dense.bytes() >= MEMORY {
                dense.compare(&step, |one| take(&mut found, one))?;
            }
            Ok(())
        })?;
        dense.compare(&step, |one| take(&mut found, one))?;
        let named = |found: Option<Match>| {
            let Some(Match { store, id, estimate, .. }) = found else { return Ok(None) };
            let name = stores[store as usize].0.name(id)?;
            Ok(Some((store as usize, SimilarDocument { id, name, estimate })))
        };
        found.into_iter().map(named).collect()
    }
}
