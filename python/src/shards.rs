//! The list of a set's shards, and the folder of a set, for the tasks that write and read them.

use std::path::PathBuf;

use pyo3::prelude::*;
use simstore_corpus::shards::{StoreShard, ShardList, prepare_folder, manifest_checksum, shard_folder};

use crate::gate;

/// A shard: its directory, fingerprints, pairs and checksum.
type ShardFields = (String, u64, u64, String);
/// A list: run, bits, distance, profile, missing and shards.
type ShardListFields = (String, u32, u32, Option<String>, u64, Vec<ShardFields>);

fn shard_of((folder, fingerprints, pairs, checksum): ShardFields) -> StoreShard {
    StoreShard { folder, fingerprints, pairs, checksum }
}

fn list_of((run, bits, distance, profile, missing, shards): ShardListFields) -> ShardList {
    ShardList { run, bits, distance, profile, missing, shards: shards.into_iter().map(shard_of).collect() }
}

/// Reads and checks the list of a set.
#[pyfunction]
pub(crate) fn _read_shards(py: Python<'_>, path: PathBuf) -> PyResult<ShardListFields> {
    let ShardList { run, bits, distance, profile, missing, shards } =
        gate::detached(py, move || ShardList::read(&path))?;
    let shards = shards.into_iter().map(|of| (of.folder, of.fingerprints, of.pairs, of.checksum)).collect();
    Ok((run, bits, distance, profile, missing, shards))
}

/// Writes a list to the directory of a set, and removes files that the list does not name.
#[pyfunction]
pub(crate) fn _write_shards(py: Python<'_>, folder: PathBuf, list: ShardListFields) -> PyResult<()> {
    gate::detached(py, move || list_of(list).write(&folder))
}

/// Makes a directory ready for the shards of a run.
#[pyfunction]
pub(crate) fn _ready_for_shards(py: Python<'_>, folder: PathBuf, replace: bool) -> PyResult<()> {
    gate::detached(py, move || prepare_folder(&folder, replace))
}

/// Returns the name of a shard's directory.
#[pyfunction]
pub(crate) fn _shard_folder(number: u64, run: &str) -> String {
    shard_folder(number, run)
}

/// Returns the checksum of a written shard.
#[pyfunction]
pub(crate) fn _shard_checksum(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    gate::detached(py, move || manifest_checksum(&store))
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
    gate::detached(py, move || list_of(list).check_shard(&shard_of(shard), &store, opened))
}
