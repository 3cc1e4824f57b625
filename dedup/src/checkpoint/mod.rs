//! Checkpoints of a run for `--resume`: part files with the documents of finished input files, and stage
//! files with the results of pipeline stages.

pub(crate) mod checksummed_file;
pub(crate) mod parts;
pub(crate) mod stage_results;
