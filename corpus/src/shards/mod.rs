//! Sets that are too large for one machine: several stores in one folder, its shards, and the list of them, as
//! `format-spec/shards.md` has it.

mod folder;
mod list;

pub use self::folder::{make_ready, manifest_checksum};
pub use self::list::{LIST, Shard, Shards, shard_folder};
