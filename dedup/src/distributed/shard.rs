//! Shards: shares of the reading, which may be done on several machines.

use simstore::{Error, Result, each_width};
use simstore_corpus::{Counts, Inputs, Watch};
use simstore_io::output::Unfinished;

use crate::checkpoint::parts::Parts;
use crate::checkpoint::parts::shard::{Shard, Tally};
use crate::config::{DedupConfig, Resume};

/// Makes the parts of a shard in the folder of [`DedupConfig::resume`]. When the parts of all shards are in one folder, a
/// [`run`](crate::run()) with this folder joins them.
///
/// # Errors
/// The errors of [`run`](crate::run()).
pub fn make_shard(
    config: &DedupConfig,
    inputs: &Inputs,
    shard: Shard,
    unfinished: &Unfinished,
    watch: &dyn Watch,
) -> Result<(Counts, Tally)> {
    let resolved = config.resolve(inputs, None, watch)?;
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
        watch,
    };
    each_width!(resolved.width, type F => parts.visit::<F>(|_| Ok(())))
}
