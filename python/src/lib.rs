//! The Python module `simstore._simstore`. This file only lists its exports. Each class and each group of functions has a file, whose
//! methods call the libraries through the functions of `call.rs`.
//!
//! The struct of a Python class has the prefix `Py`: `PyStore` is the class `simstore.Store`.

#![expect(
    clippy::doc_markdown,
    reason = "comments of classes and functions are Python docstrings in NumPy style, not Markdown"
)]

use pyo3::prelude::*;

mod array;
mod array_input;
mod arrow_tables;
mod arrow_values;
mod batch;
mod batches;
mod binary_column;
mod builder;
mod call;
mod closable_store;
mod component_stars;
mod compression;
mod dedup;
mod deduplication;
mod documents;
mod errors;
mod evaluate;
mod fingerprints;
mod forest;
mod frames;
mod html;
mod id_columns;
mod id_pairs;
mod item_source;
mod join;
mod join_parts;
mod labelled_pairs;
mod matches;
mod near_pairs;
mod new_documents;
mod number_arguments;
mod open_similar_store;
mod packed_fingerprints;
mod panics;
mod panics_for_tests;
mod pickle;
mod profile;
mod reentrancy;
mod reference_input;
mod result_tables;
mod settings;
mod shard_list;
mod similar_match;
mod similar_settings;
mod similar_store;
mod similar_stores;
mod similarity_tasks;
mod snapshot;
mod source;
mod store;
mod summary;
mod table;
mod text_error;
mod text_profile;
mod texts;
mod writable_store;

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
    use crate::call::PyProgress;
    #[pymodule_export]
    use crate::component_stars::PyStars;
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
    use crate::join::{clusters, distance, self_join};
    #[pymodule_export]
    use crate::join_parts::{PyJoinParts, restore_join_parts};
    #[pymodule_export]
    use crate::matches::PyMatch;
    #[pymodule_export]
    use crate::panics_for_tests::_panic;
    #[pymodule_export]
    use crate::profile::{_profile, PyProfile, bands, similarity};
    #[pymodule_export]
    use crate::shard_list::{
        _check_shard, _prepare_shard_folder, _read_shard_list, _shard_checksum, _shard_folder,
        _write_shard_list,
    };
    #[pymodule_export]
    use crate::similar_match::PySimilarMatch;
    #[pymodule_export]
    use crate::similar_store::PySimilarStore;
    #[pymodule_export]
    use crate::similar_stores::PySimilarStores;
    #[pymodule_export]
    use crate::similarity_tasks::{
        _candidate_similarities, _candidates, _choose_bands, _feature_sets, _minhash_bands, _value_keys,
    };
    #[pymodule_export]
    use crate::snapshot::PySnapshot;
    #[pymodule_export]
    use crate::store::PyStore;
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
