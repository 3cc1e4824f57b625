//! Shards: each machine reads and fingerprints its share of the documents.

use simstore::{Error, Result, each_width};
use simstore_corpus::{InputCounts, Inputs, Observer};
use simstore_io::output::UnfinishedOutputs;

use crate::checkpoint::parts::Parts;
use crate::checkpoint::parts::shard::{Shard, Tally};
use crate::config::{DedupConfig, Resume};

/// Writes the part files of a shard to the folder of [`DedupConfig::resume`]. When the part files of all
/// shards are in one folder, a [`run`](crate::run()) with this folder combines them.
///
/// # Errors
/// The errors of [`run`](crate::run()).
pub fn make_shard(
    config: &DedupConfig,
    inputs: &Inputs,
    shard: Shard,
    unfinished: &UnfinishedOutputs,
    observer: &dyn Observer,
) -> Result<(InputCounts, Tally)> {
    let resolved = config.resolve(inputs, None, observer)?;
    let Some(Resume { folder, section: section_bytes }) = &config.resume else {
        return Err(Error::BadArgument(
            "option `shard` needs option `resume`, the directory for its parts".to_owned(),
        ));
    };
    resolved.profile.check_bits(resolved.width.bits())?;
    let parts = Parts {
        folder,
        shard: Some(shard),
        inputs: &resolved.inputs,
        profile: &resolved.profile,
        sketcher: resolved.sketcher.as_ref(),
        section_bytes: *section_bytes,
        unfinished,
        observer,
    };
    each_width!(resolved.width, type F => parts.visit::<F>(|_| Ok(())))
}
