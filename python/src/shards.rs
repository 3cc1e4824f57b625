//! The list of a set's shards, and the folder of a set, for the tasks that write and read them.

use std::path::PathBuf;

use pyo3::prelude::*;
use simstore_corpus::shards::{Shard, Shards, make_ready, manifest_checksum, shard_folder};

use crate::gate;

/// A shard: its directory, fingerprints, pairs and checksum.
type OneShard = (String, u64, u64, String);
/// A list: run, bits, distance, profile, missing and shards.
type List = (String, u32, u32, Option<String>, u64, Vec<OneShard>);

fn shard_of((folder, fingerprints, pairs, checksum): OneShard) -> Shard {
    Shard { folder, fingerprints, pairs, checksum }
}

fn list_of((run, bits, distance, profile, missing, shards): List) -> Shards {
    Shards { run, bits, distance, profile, missing, shards: shards.into_iter().map(shard_of).collect() }
}

/// Reads and checks the list of a set.
#[pyfunction]
pub(crate) fn _read_shards(py: Python<'_>, path: PathBuf) -> PyResult<List> {
    let Shards { run, bits, distance, profile, missing, shards } =
        gate::quick(py, move || Shards::read(&path))?;
    let shards = shards.into_iter().map(|of| (of.folder, of.fingerprints, of.pairs, of.checksum)).collect();
    Ok((run, bits, distance, profile, missing, shards))
}

/// Writes a list to the directory of a set, and removes files that the list does not name.
#[pyfunction]
pub(crate) fn _write_shards(py: Python<'_>, folder: PathBuf, list: List) -> PyResult<()> {
    gate::quick(py, move || list_of(list).write(&folder))
}

/// Makes a directory ready for the shards of a run.
#[pyfunction]
pub(crate) fn _ready_for_shards(py: Python<'_>, folder: PathBuf, replace: bool) -> PyResult<()> {
    gate::quick(py, move || make_ready(&folder, replace))
}

/// Returns the name of a shard's directory.
#[pyfunction]
pub(crate) fn _shard_folder(number: u64, run: &str) -> String {
    shard_folder(number, run)
}

/// Returns the checksum of a written shard.
#[pyfunction]
pub(crate) fn _shard_checksum(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    gate::quick(py, move || manifest_checksum(&store))
}

/// Checks that a store is the shard that a list names. `opened` has the properties of the open store, which are checked too: bits,
/// distance, fingerprints and pairs.
#[pyfunction]
#[pyo3(signature = (store, list, shard, opened=None))]
pub(crate) fn _check_shard(
    py: Python<'_>,
    store: PathBuf,
    list: List,
    shard: OneShard,
    opened: Option<(u32, u32, u64, u64)>,
) -> PyResult<()> {
    gate::quick(py, move || list_of(list).check_shard(&shard_of(shard), &store, opened))
}
