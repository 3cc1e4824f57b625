//! Sets of fingerprints that are too large for one machine. A set is a folder with several stores, its shards, and their
//! list. The format is in `format-spec/shards.md`.

mod folder;
mod list;

pub use self::folder::{manifest_checksum, prepare_folder};
pub use self::list::{LIST_FILE, ShardList, StoreShard, shard_folder};
