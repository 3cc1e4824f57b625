//! Checkpoints of a run, which `--resume` reads: the results of stages, and parts, which hold the documents of finished files.

pub(crate) mod checksummed_file;
pub(crate) mod parts;
pub(crate) mod stage_results;
