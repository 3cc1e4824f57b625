//! Functions for tasks of a compute cluster that write or read a set of fingerprints, split into shards: the file that
//! lists its shards, and the directory that holds the file and the shards.

use std::path::PathBuf;

use pyo3::prelude::*;
use simstore_corpus::shards::{ShardList, StoreShard, manifest_checksum, prepare_folder, shard_folder};

use crate::call;

/// Fields of a shard: directory, number of fingerprints, number of pairs, checksum.
type ShardFields = (String, u64, u64, String);
/// Fields of a list of shards: run (its name), bits, distance, profile, missing (number of rows without a
/// fingerprint), shards.
type ShardListFields = (String, u32, u32, Option<String>, u64, Vec<ShardFields>);

fn shard_from_fields((folder, fingerprints, pairs, checksum): ShardFields) -> StoreShard {
    StoreShard { folder, fingerprints, pairs, checksum }
}

fn list_from_fields((run, bits, distance, profile, missing, shards): ShardListFields) -> ShardList {
    ShardList {
        run,
        bits,
        distance,
        profile,
        missing,
        shards: shards.into_iter().map(shard_from_fields).collect(),
    }
}

/// Reads and checks a file that lists the shards of a set of fingerprints.
#[pyfunction]
pub(crate) fn _read_shard_list(py: Python<'_>, path: PathBuf) -> PyResult<ShardListFields> {
    let ShardList { run, bits, distance, profile, missing, shards } =
        call::detached(py, move || ShardList::read(&path))?;
    let shards = shards
        .into_iter()
        .map(|shard| (shard.folder, shard.fingerprints, shard.pairs, shard.checksum))
        .collect();
    Ok((run, bits, distance, profile, missing, shards))
}

/// Writes the list of the shards of a set of fingerprints to the directory that holds the shards. Removes files in
/// the directory that the list does not name.
#[pyfunction]
pub(crate) fn _write_shard_list(py: Python<'_>, folder: PathBuf, list: ShardListFields) -> PyResult<()> {
    call::detached(py, move || list_from_fields(list).write(&folder))
}

/// Creates a directory for the shards of a run, or removes leftovers of failed runs from the directory. Unless
/// `replace` is set, a directory that already has shards is an error.
#[pyfunction]
pub(crate) fn _prepare_shard_folder(py: Python<'_>, folder: PathBuf, replace: bool) -> PyResult<()> {
    call::detached(py, move || prepare_folder(&folder, replace))
}

/// Returns the name of a shard's directory.
#[pyfunction]
pub(crate) fn _shard_folder(number: u64, run: &str) -> String {
    shard_folder(number, run)
}

/// Returns the checksum of a written shard.
#[pyfunction]
pub(crate) fn _shard_checksum(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    call::detached(py, move || manifest_checksum(&store))
}

/// Checks that a store is the shard that a list names. `opened` has the properties of the open store, which are checked too: bits,
/// distance, fingerprints and pairs.
#[pyfunction]
#[pyo3(signature = (store, list, shard, opened=None))]
pub(crate) fn _check_shard(
    py: Python<'_>,
    store: PathBuf,
    list: ShardListFields,
    shard: ShardFields,
    opened: Option<(u32, u32, u64, u64)>,
) -> PyResult<()> {
    call::detached(py, move || list_from_fields(list).check_shard(&shard_from_fields(shard), &store, opened))
}
