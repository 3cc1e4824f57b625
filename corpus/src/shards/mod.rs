//! Sets of fingerprints that are too large for one machine. A set is divided into shards; each shard is a store. The folder
//! of the set has the stores and a list of them, `shards.json`. `format-spec/shards.md` defines the format.

mod folder;
mod list;

pub use self::folder::{manifest_checksum, prepare_folder};
pub use self::list::{LIST_FILE, ShardList, StoreShard, shard_folder};
