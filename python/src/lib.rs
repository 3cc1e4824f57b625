//! The Python module `simstore._simstore`: exports alone. Each class and each group of functions has a file, whose methods call the
//! libraries through the gate (`gate.rs`).

use pyo3::prelude::*;

mod against;
mod array;
mod batch;
mod batches;
mod blobs;
mod border;
mod builder;
mod columns;
mod compression;
mod dedup;
mod deduplication;
mod documents;
mod entries;
mod errors;
mod evaluate;
mod fingerprints;
mod forest;
mod frames;
mod gate;
mod html;
mod items;
mod join;
mod matches;
mod near;
mod no_text;
mod numbers;
mod on_purpose;
mod opened;
mod packed;
mod pairs;
mod panics;
mod parts;
mod pickled;
mod profile;
mod results;
mod rows;
mod settings;
mod shards;
mod similar;
mod similar_adding;
mod similar_match;
mod similar_store;
mod sketching;
mod snapshot;
mod source;
mod stars;
mod store;
mod stored;
mod summary;
mod table;
mod tables;
mod text_profile;
mod texts;
mod under_way;
mod values;
mod writable;

/// The compiled part of simstore.
#[pymodule(gil_used = true)]
mod _simstore {
    #[pymodule_export]
    use crate::array::PyArrowArray;
    #[pymodule_export]
    use crate::batch::PyBatch;
    #[pymodule_export]
    use crate::builder::PyBuilder;
    #[pymodule_export]
    use crate::compression::{_compression, PyCompression, compression};
    #[pymodule_export]
    use crate::dedup::dedup;
    #[pymodule_export]
    use crate::deduplication::{_deduplication, PyDeduplication};
    #[pymodule_export]
    use crate::evaluate::{_evaluation, PyEvaluation, evaluate};
    #[pymodule_export]
    use crate::forest::PyForest;
    #[pymodule_export]
    use crate::gate::PyProgress;
    #[pymodule_export]
    use crate::join::{clusters, distance, self_join};
    #[pymodule_export]
    use crate::matches::PyMatch;
    #[pymodule_export]
    use crate::on_purpose::_panic;
    #[pymodule_export]
    use crate::parts::{PyJoinParts, parts};
    #[pymodule_export]
    use crate::profile::{_profile, PyProfile, similarity, sketches};
    #[pymodule_export]
    use crate::shards::{
        _check_shard, _read_shards, _ready_for_shards, _shard_checksum, _shard_folder, _write_shards,
    };
    #[pymodule_export]
    use crate::similar_match::PySimilarMatch;
    #[pymodule_export]
    use crate::similar_store::PySimilarStore;
    #[pymodule_export]
    use crate::sketching::{_candidates, _choose_sketches, _compared, _feature_sets, _sketched, _value_keys};
    #[pymodule_export]
    use crate::snapshot::PySnapshot;
    #[pymodule_export]
    use crate::stars::PyStars;
    #[pymodule_export]
    use crate::store::PyStore;
    #[pymodule_export]
    use crate::stored::PySimilarStores;
    #[pymodule_export]
    use crate::summary::{_summary, PySummary};
    #[pymodule_export]
    use crate::table::{_array, _table, PyTable};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::panics::install_hook();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
