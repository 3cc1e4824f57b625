//! Builds a store from inputs.

use std::path::Path;

use crate::{IdScheme, InputCounts, InputKind, Inputs, Observer};
use simstore::{BuildOptions, Builder, Error, Fingerprint, Result, Snapshot};
use simstore_text::Profile;

/// Builds a store from documents or fingerprints. The profile makes the fingerprints of documents, and its name is kept in
/// the store. The first document [decides](IdScheme) whether ids are numbers or names. With `names`, all ids are names.
///
/// # Errors
/// Errors of [`Inputs::visit`] and [`Builder`]. [`Error::Refused`] if `path` exists, but the inputs have no fingerprint. After
/// an error, no partial store remains, and an existing store is unchanged.
pub fn build<F: Fingerprint>(
    path: &Path,
    options: BuildOptions,
    inputs: &Inputs,
    profile: &Profile,
    names: bool,
    observer: &dyn Observer,
) -> Result<(Snapshot<F>, InputCounts)> {
    // Only the caller can know the profile that made these fingerprints.
    let profile_of_store = match inputs.kind()? {
        InputKind::Documents => profile.to_string(),
        InputKind::Fingerprints => options.profile.clone(),
    };
    let inputs = &inputs.with_memory_limit(options.memory);
    let keeps_ids = options.ids;
    let replaces = path.try_exists().map_err(Error::io(path, "look for"))?;
    let mut builder = Builder::<F>::create(path, BuildOptions { profile: profile_of_store, ..options })?;
    let mut id_scheme = if names { IdScheme::Names } else { IdScheme::default() };
    let counts = inputs.visit(profile, observer, |item| {
        let (id, name) = if keeps_ids {
            id_scheme.assign(item.id.clone(), Some(item.position)).map_err(|reason| item.malformed(reason))?
        } else {
            (0, None)
        };
        match (item.fingerprint, name) {
            (None, _) => Ok(()),
            (Some(fingerprint), None) => builder.insert(fingerprint, id),
            (Some(fingerprint), Some(name)) => builder.insert_named(fingerprint, id, &name),
        }
    })?;
    if replaces && counts.read == counts.empty {
        return Err(Error::Refused(format!(
            "{}: the inputs have no fingerprints; the existing store is unchanged",
            path.display()
        )));
    }
    Ok((builder.finish()?, counts))
}
