//! Panics on purpose: tests see what becomes of them.

use pyo3::prelude::*;

use crate::gate;
use crate::panics::caught_here;

/// Panics on purpose, for tests: in a quick call, in a long call, on a thread of rayon, in a Python call from a long call, or outside of a
/// call.
#[pyfunction]
pub(crate) fn _panic(py: Python<'_>, inside: &str) -> PyResult<()> {
    match inside {
        "quick" => gate::detached(py, || panic!("on purpose")),
        "long" => gate::interruptible(py, |_| panic!("on purpose")),
        "asked" => gate::interruptible(py, |call| call.in_caller(|_| panic!("on purpose"))),
        "rayon" => gate::interruptible(py, |_| {
            simstore::threads::ensure_pool()?;
            rayon::join(|| (), || panic!("on purpose"));
            Ok(())
        }),
        "here" => caught_here(py, || panic!("on purpose")),
        _ => panic!("on purpose"),
    }
}
