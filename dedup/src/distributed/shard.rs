//! Shards: each machine reads and fingerprints its share of the documents.

use simstore::{Error, Result, each_width};
use simstore_corpus::{InputCounts, Inputs, Observer};
use simstore_io::output::UnfinishedOutputs;

use crate::checkpoint::parts::PartFolder;
use crate::checkpoint::parts::work_shard::{PartCounts, WorkShard};
use crate::config::{DedupConfig, ResumeConfig};

/// Reads one shard of the inputs, and writes its part files to the folder of [`DedupConfig::resume`]. When the
/// part files of all shards are in one folder, a [`run`](crate::run()) with this folder combines them. A part file
/// is listed in `unfinished` until it is complete.
///
/// # Errors
/// The errors of [`run`](crate::run()).
pub fn make_shard(
    config: &DedupConfig,
    inputs: &Inputs,
    shard: WorkShard,
    unfinished: &UnfinishedOutputs,
    observer: &dyn Observer,
) -> Result<(InputCounts, PartCounts)> {
    let resolved = config.resolve(inputs, None, observer)?;
    let Some(ResumeConfig { folder, section_bytes }) = &config.resume else {
        return Err(Error::BadArgument(
            "option `shard` needs option `resume`, the directory for its parts".to_owned(),
        ));
    };
    resolved.profile.check_bits(resolved.width.bits())?;
    let parts = PartFolder {
        folder,
        shard: Some(shard),
        inputs: &resolved.inputs,
        profile: &resolved.profile,
        min_hasher: resolved.min_hasher.as_ref(),
        section_bytes: *section_bytes,
        unfinished,
        observer,
    };
    each_width!(resolved.width, type F => parts.visit::<F>(|_| Ok(())))
}
