//! What is similar to texts in stores of similar documents, for those who spread the search over machines.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use rayon::prelude::*;
use simstore::{Error, Result, Snapshot};
use simstore_text::{SimilarDocument, Sketched, Sketcher, StoredTexts};

use super::against::{self, Against};
use super::model::SketchRow;
use super::options::Options;
use super::question::{Compare, Question};
use super::stages::similar_stored::{looked_up, similar_stored};
use crate::InputKind;
use crate::spill::Budget;
use crate::watch::Step;

/// Stores of similar documents, which texts are compared with as [`Options::against`] says.
pub struct SimilarStores {
    stores: Vec<Against<u64>>,
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
    /// Opens them, to find what has this similarity or a greater one; that of the stores, if none is given.
    ///
    /// # Errors
    /// As [`find`](super::find) for the same options.
    pub fn open(paths: &[PathBuf], similar: Option<f64>) -> Result<Self> {
        let compare = similar.map_or(Compare::Default, Compare::similar);
        let options = Options { compare, against: paths.to_vec(), ..Options::default() };
        options.check()?;
        options.width()?;
        let stores = against::open_all(paths, false, Budget::new(None), &())?;
        let settings = against::settings_of(&stores)?;
        let asked = options.ask(InputKind::Documents, &stores, &settings)?;
        let question @ Question::Similarity(least) = asked.question else {
            return Err(Error::BadArgument("option `against`: no store of similar documents".to_owned()));
        };
        let profile = against::profile_of(&stores)?.unwrap_or_default();
        let sketcher = options.sketcher_like(question, profile)?;
        let sketcher = sketcher.ok_or_else(|| Error::Bug("similarity without sketches".to_owned()))?;
        let texts = against::texts_of(&stores, &settings, sketcher.profile())?;
        Ok(SimilarStores { stores, texts, sketcher, least })
    }

    /// The least similarity that is looked for.
    pub fn similar(&self) -> f64 {
        self.least
    }

    /// How the texts of the stores become features.
    pub fn profile(&self) -> &simstore_text::Profile {
        self.sketcher.profile()
    }

    /// For each of some texts the most similar stored document, if there is one, with the number of its store: of several that are
    /// as similar, that of the first store, and of these the one with the smallest id.
    ///
    /// # Errors
    /// Those of reading the stores.
    pub fn most_similar(&self, texts: &[Option<&str>]) -> Result<Vec<Option<(usize, SimilarDocument)>>> {
        let sketched: Vec<Option<Sketched>> =
            texts.par_iter().map(|text| self.sketcher.sketch((*text)?)).collect();
        let rows = sketched.iter().enumerate().map(|(at, sketched)| SketchRow::new(at, sketched.as_ref()));
        let rows: Vec<SketchRow> = rows.collect::<Result<_>>()?;
        let stores: Vec<(&Snapshot<u64>, &StoredTexts)> =
            self.stores.iter().filter_map(Against::snapshot).zip(&self.texts).collect();
        let step = Step::new(&(), "sketches looked up");
        let mut likely: BTreeMap<usize, Vec<Vec<u64>>> = BTreeMap::new();
        for (at, (store, texts)) in stores.iter().enumerate() {
            for (document, id) in looked_up(&rows, store, texts.settings(), &step)? {
                likely.entry(document as usize).or_insert_with(|| vec![Vec::new(); stores.len()])[at]
                    .push(id);
            }
        }
        let mut found = vec![None; texts.len()];
        for (document, ids) in likely {
            let features = || Ok(self.profile().feature_set(texts[document].unwrap_or_default()));
            let sketched = rows[document].sketched();
            let similar = similar_stored(&stores, &ids, &sketched, &features, self.least)?;
            found[document] = similar.into_iter().next();
        }
        Ok(found)
    }
}
