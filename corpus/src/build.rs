//! A store of all that inputs hold.

use std::path::Path;

use crate::{Counts, InputKind, Inputs, Naming, Watch};
use simstore::{BuildOptions, Builder, Error, Fingerprint, Result, Snapshot};
use simstore_text::Profile;

/// Builds a store of documents, whose fingerprints are made by a profile, which is kept with it, or of fingerprints. The first
/// document [decides](Naming) whether ids are numbers; with `names`, all ids are names.
///
/// # Errors
/// As [`Inputs::visit`] and [`Builder`]; [`Error::Refused`] if the inputs hold no fingerprint and `path` exists. After an error
/// no partial store is left, and an existing store is unchanged.
pub fn build<F: Fingerprint>(
    path: &Path,
    options: BuildOptions,
    inputs: &Inputs,
    profile: &Profile,
    names: bool,
    watch: &dyn Watch,
) -> Result<(Snapshot<F>, Counts)> {
    // Only the caller can know the profile that given fingerprints were made with.
    let profile_of_store = match inputs.kind()? {
        InputKind::Documents => profile.to_string(),
        InputKind::Fingerprints => options.profile.clone(),
    };
    let inputs = &inputs.within(options.memory);
    let keeps_ids = options.ids;
    let replaces = path.try_exists().map_err(Error::io(path, "look for"))?;
    let mut builder = Builder::<F>::create(path, BuildOptions { profile: profile_of_store, ..options })?;
    let mut naming = if names { Naming::Names } else { Naming::default() };
    let counts = inputs.visit(profile, watch, |item| {
        let (id, name) = if keeps_ids {
            naming.assign(item.id.clone(), Some(item.position)).map_err(|reason| item.bad(reason))?
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
