//! Settings of stores as Python has them.

use std::path::Path;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use simstore::{Codec, PlanChoice, Result};

use crate::gate;
use crate::profile::PyProfile;

/// How texts became the fingerprints of a store: its name; and the width that goes with it, if it is told.
pub(crate) fn profile_of(profile: Option<&Bound<'_, PyAny>>) -> PyResult<(Option<String>, Option<u32>)> {
    let Some(profile) = profile else { return Ok((None, None)) };
    if let Ok(profile) = profile.cast::<PyProfile>() {
        let profile = profile.get();
        return Ok((Some(profile.name()), Some(profile.bits())));
    }
    let Ok(name) = profile.cast::<PyString>() else {
        return Err(PyTypeError::new_err("profile: expected a Profile, or the name of one"));
    };
    let name = name.to_string();
    let known = gate::detached(profile.py(), || name.parse::<simstore_text::Profile>())?;
    Ok((Some(known.to_string()), None))
}

pub(crate) fn codec_of(name: Option<&str>) -> Result<Option<Codec>> {
    name.map(str::parse).transpose()
}

pub(crate) fn plan_of(name: Option<&str>) -> Result<Option<PlanChoice>> {
    name.map(str::parse).transpose()
}

/// A path as a str.
pub(crate) fn path_of<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyString>> {
    Ok(path.as_os_str().into_pyobject(py)?)
}
