//! Settings of stores, read from Python arguments.

use std::path::Path;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use simstore::{Codec, PlanChoice, Result};

use crate::call;
use crate::profile::PyProfile;

/// Reads the argument `profile`: a `Profile` or a name. Returns the canonical name, and the width in bits if it is a `Profile`.
pub(crate) fn read_profile(profile: Option<&Bound<'_, PyAny>>) -> PyResult<(Option<String>, Option<u32>)> {
    let Some(profile) = profile else { return Ok((None, None)) };
    if let Ok(profile) = profile.cast::<PyProfile>() {
        let profile = profile.get();
        return Ok((Some(profile.name()), Some(profile.bits())));
    }
    let Ok(name) = profile.cast::<PyString>() else {
        return Err(PyTypeError::new_err("profile: expected a Profile, or the name of one"));
    };
    let name = name.to_string();
    let parsed = call::detached(profile.py(), || name.parse::<simstore_text::Profile>())?;
    Ok((Some(parsed.to_string()), None))
}

pub(crate) fn parse_codec(name: Option<&str>) -> Result<Option<Codec>> {
    name.map(str::parse).transpose()
}

pub(crate) fn parse_plan(name: Option<&str>) -> Result<Option<PlanChoice>> {
    name.map(str::parse).transpose()
}

/// Converts a path to a str.
pub(crate) fn path_to_python<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyString>> {
    Ok(path.as_os_str().into_pyobject(py)?)
}
