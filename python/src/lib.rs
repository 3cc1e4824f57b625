//! The Python module `simstore._simstore`: exports alone. Each class and each group of functions has a file, whose methods call the
//! libraries through the gate (`gate.rs`).

use pyo3::prelude::*;

mod arrow;
mod compression;
mod dedup;
mod documents;
mod errors;
mod evaluate;
mod fingerprints;
mod gate;
mod profile;
mod results;
mod source;
mod summary;
mod texts;

/// The compiled part of simstore.
#[pymodule(gil_used = true)]
mod _simstore {
    #[pymodule_export]
    use crate::arrow::{Array, Table};
    #[pymodule_export]
    use crate::compression::{Compression, compression};
    #[pymodule_export]
    use crate::dedup::{Deduplication, dedup};
    #[pymodule_export]
    use crate::evaluate::{Evaluation, evaluate};
    #[pymodule_export]
    use crate::gate::Progress;
    #[pymodule_export]
    use crate::profile::{_profile, Profile, similarity, sketches};
    #[pymodule_export]
    use crate::summary::Summary;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
