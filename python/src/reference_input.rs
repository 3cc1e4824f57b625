//! The argument `against` of `dedup`. It is either stores, or documents, or fingerprints. Documents and
//! fingerprints are added to a temporary store during the call.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use simstore::any::Width;
use simstore::store::is_store;
use simstore::{Error, Fingerprint, Result, Store, StoreOptions, each_width};
use simstore_corpus::Inputs;
use simstore_corpus::add::{AddOptions, add};
use simstore_dedup::{ComparisonConfig, DedupConfig, DistanceConfig, SimilarityConfig};
use simstore_io::DocumentOptions;
use simstore_text::{Profile, SimilarSettings, open_similar_store};
use tempfile::TempDir;

use crate::call::Call;
use crate::documents::{DocumentIter, FieldNames};
use crate::source::{Source, read_path};

/// Default similarity threshold of the temporary store that is made from the texts given as `against`.
const TEMPORARY_STORE_SIMILARITY: f64 = 0.8;
/// Default recall of the temporary store that is made from the texts given as `against`.
const TEMPORARY_STORE_RECALL: f64 = 0.95;
/// Default distance of the temporary store that is made from the fingerprints given as `against`.
const TEMPORARY_STORE_DISTANCE: u32 = 3;

/// The value of the argument `against`.
pub(crate) enum ReferenceInput {
    Stores(Vec<PathBuf>),
    Temporary(Source),
}

impl ReferenceInput {
    /// Reads the argument `against` of `dedup`. Paths are taken for stores. But if all paths are patterns or
    /// existing files that are no stores, they are taken for files of documents. If `add` is set, the run adds
    /// documents to a store: then all paths are taken for stores, and anything else is an error.
    pub(crate) fn read(
        object: Option<&Bound<'_, PyAny>>,
        names: &FieldNames,
        add: bool,
        bits: Option<u32>,
    ) -> PyResult<ReferenceInput> {
        let Some(object) = object.filter(|object| !object.is_none()) else {
            return Ok(ReferenceInput::Stores(Vec::new()));
        };
        let is_path = |object: &Bound<'_, PyAny>| read_path(object).is_ok();
        let paths = if is_path(object) {
            vec![read_path(object)?]
        } else {
            let only_paths = object.extract::<Vec<Bound<'_, PyAny>>>().unwrap_or_default();
            let is_name = |path: &Bound<'_, PyAny>| {
                is_path(path)
                    && (!path.is_instance_of::<PyString>() || read_path(path).is_ok_and(|path| path.exists()))
            };
            if !only_paths.is_empty() && only_paths.iter().all(is_name) {
                only_paths.iter().map(read_path).collect::<PyResult<_>>()?
            } else {
                Vec::new()
            }
        };
        // A path that does not exist may be a store that this call makes.
        let is_stored = |path: &PathBuf| is_store(path) || !path.exists() && !is_pattern(path);
        if !paths.is_empty() && (add || paths.iter().any(is_stored)) {
            return Ok(ReferenceInput::Stores(paths));
        }
        if add {
            return Err(PyValueError::new_err("option `add` needs a store: option `against` names none"));
        }
        let names = FieldNames { extra: None, ..names.clone() };
        if !paths.is_empty() {
            return Ok(ReferenceInput::Temporary(Source::Paths(paths)));
        }
        Source::read(object, &names, bits).map(ReferenceInput::Temporary)
    }

    /// Sets the stores in `config`. If the input is no store, adds its documents or fingerprints to a temporary
    /// store. The temporary store is deleted when the returned folder is dropped. `has_fingerprints` is whether the
    /// run deduplicates fingerprints: then the temporary store gets fingerprints of the documents.
    pub(crate) fn set_stores(
        self,
        config: &mut DedupConfig,
        reading: &DocumentOptions,
        skip_bad: bool,
        has_fingerprints: bool,
        call: &Arc<Call>,
    ) -> Result<Option<TempDir>> {
        let source = match self {
            ReferenceInput::Stores(stores) => {
                config.against = stores;
                return Ok(None);
            }
            ReferenceInput::Temporary(source) => source,
        };
        let folder = temporary_folder(config)?;
        let path = folder.path().join("against");
        match source {
            Source::Fingerprints(values) => {
                let width = values.width();
                let inputs = each_width!(values, values => Inputs::from_fingerprints(values, None))?;
                each_width!(width, type F => store_fingerprints::<F>(&path, &inputs, config, call))?;
            }
            Source::Paths(paths) => {
                let inputs = Inputs::new(&paths, reading.clone())?.skip_malformed(skip_bad);
                store_documents(&path, &inputs, config, has_fingerprints, call)?;
            }
            Source::Documents(documents) => {
                let (documents, _) = DocumentIter::new(documents, call);
                let inputs = Inputs::from_documents(documents).skip_malformed(skip_bad);
                store_documents(&path, &inputs, config, has_fingerprints, call)?;
            }
        }
        config.against = vec![path];
        Ok(Some(folder))
    }
}

fn is_pattern(path: &std::path::Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

fn temporary_folder(config: &DedupConfig) -> Result<TempDir> {
    let parent = config.temporary_folder.clone().unwrap_or_else(std::env::temp_dir);
    tempfile::Builder::new().prefix("simstore-against-").tempdir_in(&parent).map_err(|source| Error::Io {
        path: parent,
        action: "create a temporary directory in",
        source,
    })
}

fn store_documents(
    path: &std::path::Path,
    inputs: &Inputs,
    config: &mut DedupConfig,
    has_fingerprints: bool,
    call: &Arc<Call>,
) -> Result<()> {
    let distance = distance_config(config);
    if distance.max_distance.is_some() || has_fingerprints {
        let width = Width::from_bits(distance.bits.unwrap_or(u64::BITS))?;
        return each_width!(width, type F => store_fingerprints::<F>(path, inputs, config, call));
    }
    // The profile is moved to the store, so that `config` uses the store's profile.
    let (similar, named) = match &mut config.comparison {
        ComparisonConfig::Default => (SimilarityConfig::default(), None),
        ComparisonConfig::Similarity(similar) => {
            let named = similar.profile.take();
            (similar.clone(), named)
        }
        ComparisonConfig::Distance(distance) => (SimilarityConfig::default(), distance.profile.take()),
    };
    let profile = match named {
        Some(name) => Profile::with_resources(&name, &config.resources)?,
        None => Profile::shingles(),
    };
    let settings = SimilarSettings::new(
        similar.min_similarity.unwrap_or(TEMPORARY_STORE_SIMILARITY),
        similar.recall.unwrap_or(TEMPORARY_STORE_RECALL),
    )?
    .with_texts();
    let store_options = StoreOptions { profile: Some(profile.to_string()), ..StoreOptions::default() };
    let store = open_similar_store(path, store_options, settings)?;
    // Different documents may have equal ids here, so ids are names, which may repeat.
    let by_name = AddOptions { names: true, shared_names: true, ..AddOptions::default() };
    add(&store, inputs, &profile, &by_name, &mut (), &**call).map(drop)
}

/// Returns the settings for comparing fingerprints. If `config` compares texts, returns the defaults.
fn distance_config(config: &DedupConfig) -> DistanceConfig {
    match &config.comparison {
        ComparisonConfig::Distance(distance) => distance.clone(),
        ComparisonConfig::Default | ComparisonConfig::Similarity(_) => DistanceConfig::default(),
    }
}

fn store_fingerprints<F: Fingerprint>(
    path: &std::path::Path,
    inputs: &Inputs,
    config: &DedupConfig,
    call: &Arc<Call>,
) -> Result<()> {
    let distance = distance_config(config);
    let profile = match &distance.profile {
        Some(name) => Profile::with_resources(name, &config.resources)?,
        None => Profile::default(),
    };
    let are_documents = inputs.kind()? == simstore_corpus::InputKind::Documents;
    let store_options = StoreOptions {
        distance: Some(distance.max_distance.unwrap_or(TEMPORARY_STORE_DISTANCE)),
        profile: are_documents.then(|| profile.to_string()),
        ..StoreOptions::default()
    };
    let store = Store::<F>::open(path, store_options)?;
    add(&store, inputs, &profile, &AddOptions::default(), &mut (), &**call).map(drop)
}
