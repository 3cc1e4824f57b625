//! Sets of fingerprints that are too large for one machine. A set is divided into shards, and each shard is a store. All
//! stores of a set are in one folder, with a list of the shards in the file `shards.json`. `format-spec/shards.md` defines
//! the format.

mod folder;
mod list;

pub use self::folder::{manifest_checksum, prepare_folder};
pub use self::list::{LIST_FILE, ShardList, StoreShard, shard_folder};
