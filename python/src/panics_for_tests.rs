//! A function that panics, for tests of how panics become exceptions.

use pyo3::prelude::*;

use crate::call;
use crate::panics::catch_panic_in_python;

/// Panics on purpose, for tests: in a quick call, in a long call, on a thread of rayon, in a Python call from a long call, or outside of a
/// call.
#[pyfunction]
pub(crate) fn _panic(py: Python<'_>, inside: &str) -> PyResult<()> {
    match inside {
        "quick" => call::detached(py, || panic!("on purpose")),
        "long" => call::interruptible(py, |_| panic!("on purpose")),
        "asked" => call::interruptible(py, |call| call.in_caller(|_| panic!("on purpose"))),
        "rayon" => call::interruptible(py, |_| {
            simstore::threads::ensure_pool()?;
            rayon::join(|| (), || panic!("on purpose"));
            Ok(())
        }),
        "here" => catch_panic_in_python(py, || panic!("on purpose")),
        _ => panic!("on purpose"),
    }
}
