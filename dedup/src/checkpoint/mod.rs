//! Checkpoints of a run for `--resume`: part files with the documents of the input files that were already read,
//! and stage files with the results of the pipeline stages that were already completed.

pub(crate) mod checksummed_file;
pub(crate) mod parts;
pub(crate) mod stage_results;
